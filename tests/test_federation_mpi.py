"""A rank for each site: the bytes of the in-process runner, kills, and errors that reach all."""

from __future__ import annotations

import importlib
import importlib.util
import os
import subprocess
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from queue import Queue
from typing import Any

import pytest
from benches import BENCH
from threadpoolctl import threadpool_limits

import dpsvm
from bench.federation import sites
from dpsvm.federation import InProcessRunner, Party
from dpsvm.federation.frames import LARGEST
from dpsvm.federation.mpi import MpiRunner, take_part
from dpsvm.federation.store import no_phase

with_mpi = pytest.mark.skipif(
    importlib.util.find_spec("mpi4py") is None,
    reason="mpi4py is not installed: pip install 'dpsvm[mpi]'",
)


ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"), "1")


@pytest.fixture(scope="module", autouse=True)
def _one_thread() -> Iterator[None]:
    """As the ranks have: sums of many numbers depend on how many threads add them up."""
    with threadpool_limits(1):
        yield


def launch(*arguments: str) -> subprocess.CompletedProcess[str]:
    """All ranks, to their end; one that hangs fails the test."""
    home = str(Path(dpsvm.__path__[0]).parent)
    return subprocess.run(
        sites.mpirun(list(arguments)),
        capture_output=True,
        text=True,
        timeout=60,
        env=os.environ | ONE_THREAD | {"PYTHONPATH": home},
        check=False,
    )


ROWS = 20_000  # a message is larger than what MPI buffers


class Thread(MpiRunner):
    """A rank that is a thread of this process: errors can be tried in no time."""

    def __init__(self, rank: int, boxes: list[list[Queue[tuple[int, bytes]]]]) -> None:
        self.rank, self.size, self._boxes = rank, len(boxes), boxes
        self._phase, self.lost = no_phase, set()

    def send(self, rank: int, data: bytes, tag: int = 1, **_: Any) -> bool:
        self._boxes[rank][self.rank].put((tag, data))
        return True

    def receive(self, rank: int, *_: Any) -> tuple[int, bytes]:
        return self._boxes[self.rank][rank].get(timeout=20)


def in_threads(files: list[str], *, ranks: int = 4, **options: Any) -> list[int]:
    """The exit codes of all ranks."""
    boxes: list[list[Queue[tuple[int, bytes]]]]
    boxes = [[Queue() for _ in range(ranks)] for _ in range(ranks)]

    def part(rank: int) -> int:
        return take_part(Thread(rank, boxes), files[0], files[1:], **options)

    with ThreadPoolExecutor(ranks) as pool:
        return list(pool.map(part, range(ranks)))


@pytest.fixture(scope="module")
def wanted(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """A private run in one process."""
    problem = sites.make_problem(tmp_path_factory.mktemp("one") / "sites", "sharing", rows=ROWS)
    parties, coordinator = problem.make()
    assert InProcessRunner(parties).run(coordinator).ended == "done"
    return problem


@with_mpi
@pytest.mark.parametrize("algorithm", sites.PROBLEMS)
def test_ranks_give_the_bytes_of_one_process(algorithm: str, tmp_path: Path) -> None:
    here, there = (
        sites.make_problem(tmp_path / name, algorithm, rows=ROWS) for name in ("here", "there")
    )
    parties, coordinator = here.make()
    assert InProcessRunner(parties).run(coordinator).ended == "done"
    done = launch("-m", "dpsvm.federation.mpi", *there.files)
    assert (done.returncode, done.stdout, done.stderr) == (0, "done, 4 rounds\n", "")
    assert there.kept() == here.kept()
    assert there.charges() == here.charges()


@with_mpi
def test_a_killed_run_is_resumed_to_the_same_bytes(wanted: Any, tmp_path: Path) -> None:
    problem = sites.make_problem(tmp_path / "sites", "sharing", rows=ROWS)
    driver = str(BENCH / "federation" / "driver.py")
    assert launch(driver, "--kill", "2:during snapshot:4", *problem.files).returncode != 0
    assert list(problem.run_folder("lab").glob(".dpsvm-*"))
    done = launch(driver, "--resume", *problem.files)
    assert (done.returncode, done.stdout, done.stderr) == (0, "done, 4 rounds\n", "")
    assert problem.kept() == wanted.kept()
    assert problem.charges() == wanted.charges()


@with_mpi
def test_a_party_that_cannot_begin_ends_all_ranks(tmp_path: Path) -> None:
    problem = sites.make_problem(tmp_path / "sites", "sharing")
    ledger = problem.folder / "lab" / "ledger.json"
    ledger.unlink()
    done = launch("-m", "dpsvm.federation.mpi", *problem.files)
    assert (done.returncode, done.stdout) == (2, "")
    told, own = sorted(done.stderr.splitlines(), key=lambda line: str(ledger) in line)
    assert told.startswith("dpsvm federation: error: lab refused: no such ledger")
    assert own.startswith(f"dpsvm federation: error: {ledger}: no such ledger")


def complaint(capsys: pytest.CaptureFixture[str]) -> str:
    """The one line that all ranks together say."""
    [line] = capsys.readouterr().err.splitlines()
    return str(line).removeprefix("dpsvm federation: error: ")


def test_a_run_that_has_begun_is_resumed_only_when_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    problem = sites.make_problem(tmp_path / "sites", "sharing")
    assert in_threads(problem.files) == [0, 0, 0, 0]
    assert capsys.readouterr().out == "done, 4 rounds\n"
    kept, charges = problem.kept(), problem.charges()
    assert in_threads(problem.files) == [2, 2, 2, 2]
    assert complaint(capsys) == "run trial has begun: go on with it with --resume"
    assert in_threads(problem.files, resume=True) == [0, 0, 0, 0]
    assert (problem.kept(), problem.charges()) == (kept, charges)


def test_a_lost_snapshot_is_told_to_all_without_a_path(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    problem = sites.make_problem(tmp_path / "sites", "sharing")
    assert in_threads(problem.files) == [0, 0, 0, 0]
    capsys.readouterr()
    snapshot = problem.run_folder("home") / "snapshot"
    kept = snapshot.read_bytes()
    snapshot.unlink()
    assert in_threads(problem.files, resume=True) == [2, 2, 2, 2]
    assert "home refused: run trial was charged to the ledger of home" in complaint(capsys)
    snapshot.write_bytes(kept[:-1])
    assert in_threads(problem.files, resume=True) == [2, 2, 2, 2]
    told, own = sorted(capsys.readouterr().err.splitlines(), key=lambda line: str(tmp_path) in line)
    assert "home refused: this snapshot cannot be used" in told
    assert str(snapshot) in own


def test_what_cannot_begin_at_the_coordinator_ends_all_ranks(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    problem = sites.make_problem(tmp_path / "sites", "sharing")
    job, owner, *others = problem.files
    assert in_threads([job, others[1], *others]) == [2, 2, 2, 2]
    assert complaint(capsys) == ("run trial is coordinated by its label owner clinic, not by lab")
    assert in_threads([job, owner, *others[:2]]) == [2, 2, 2, 2]
    assert complaint(capsys) == (
        "run trial needs 4 site files, for the coordinator and 3 parties, got 3"
    )
    assert in_threads(problem.files, ranks=3) == [2, 2, 2]
    assert "needs 4 ranks" in complaint(capsys)
    assert in_threads([job, owner, others[1], others[0], others[2]]) == [2, 2, 2, 2]
    assert complaint(capsys) == "clinic refused: rank 1 is clinic, and has the file of lab"
    problem.job_file.write_text("run = 1")
    assert in_threads(problem.files) == [2, 2, 2, 2]
    assert "'algorithm' is missing" in capsys.readouterr().err


def test_what_is_no_message_is_refused_by_name(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    problem = sites.make_problem(tmp_path / "sites", "sharing")
    monkeypatch.setattr(Party, "handle_bytes", lambda self, data: b"nonsense")
    assert in_threads(problem.files) == [2, 2, 2, 2]
    assert complaint(capsys) == (
        "clinic refused: it answered with what is no message: 8 bytes are too few for a frame"
    )


@with_mpi
def test_more_bytes_than_allowed_are_not_received() -> None:
    from mpi4py import MPI

    class Huge:
        """A communicator that announces them."""

        rank, size = 0, 2

        def Improbe(self, rank: int, tag: int, status: Any) -> object:
            status.Set_elements(MPI.BYTE, LARGEST + 1)
            return object()

    with pytest.raises(RuntimeError, match=f"rank 1 sent {LARGEST + 1} bytes, the limit is"):
        MpiRunner(Huge()).receive(1)
