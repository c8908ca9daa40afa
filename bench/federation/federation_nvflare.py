"""The contract of federation runners on NVIDIA FLARE, and its seconds per round.

    python bench/federation/federation_nvflare.py [--quick]

A server and three sites as processes of their own, with provisioned mutual TLS on loopback. Private
runs of all three algorithms, whose noise keys are given, are compared with the same runs in one
process: every answer, every charge, and every file that sites keep. Where openmined-psi is
installed, sites align their samples and train on those that are common. Then a site's job is killed
and the run resumed, and jobs that must be refused are submitted. The keys of all are made apart
(--quick: in one place). At last a run with 32,768 rows at each of the sites is timed.

Writes results/federation_nvflare.json and .md. Exit code 1 if anything is not as it must be.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from importlib.util import find_spec
from itertools import pairwise
from pathlib import Path
from statistics import median
from typing import Any

sys.path.append(str(Path(__file__).resolve().parents[2]))

import psutil
from threadpoolctl import threadpool_limits

from bench.common import Table, arguments, child_environment, note, run, version_of, write_results
from bench.federation.sites import (
    OWNER,
    PARTIES,
    PROBLEMS,
    Problem,
    alignment_of,
    approve_all,
    make_problem,
    with_ids,
)
from dpsvm.federation import InProcessRunner, Job, Message
from dpsvm.federation.nvflare_export import TERMS, export
from dpsvm.federation.nvflare_kits import assemble, point, provision, request, sign
from dpsvm.federation.nvflare_runner import Federation, NVFlareRunner, Outcome

VICTIM = "lab"
KILL_ROUNDS, KILL_AFTER = 40, 6
ALIGNED = 60
SPEED_ROWS, SPEED_ROUNDS, BAR = 32_768, 20, 0.5
ONE_THREAD = {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}
LIMIT = 180.0  # seconds after which a job counts as hanging

Answers = dict[tuple[int, str], set[str]]  # digests of all answers by round, from 0, and party


class Recorded(InProcessRunner):
    """Remembers the digests of all answers."""

    def __init__(self, parties: list[Any]) -> None:
        super().__init__(parties, wire=True)
        self.answers: Answers = {}

    def deliver(self, messages: Any) -> dict[str, Message | None]:
        found = super().deliver(messages)
        for name, answer in found.items():
            assert answer is not None
            if answer.round >= 0:
                data = answer.encode()
                self.answers.setdefault((answer.round, name), set()).add(digest(data))
        return found


@dataclass(frozen=True)
class World:
    """A federation that is running, and a folder for problems."""

    folder: Path
    federation: Federation
    runner: NVFlareRunner

    def problem(self, name: str, algorithm: str, *more: Any, **options: Any) -> Problem:
        """New sites, which the kits are told of."""
        found = make_problem(self.folder / name, algorithm, *more, **options)
        assert self.federation.kits.server is not None
        point(self.federation.kits.server, found.site_file(OWNER))
        for party, kit in self.federation.kits.sites.items():
            point(kit, found.site_file(party))
        return found

    def run(self, job: Job) -> Outcome:
        """Run a job."""
        return self.runner.run(job, timeout=LIMIT)

    def submit(self, job: Job, change: Callable[[Path], None]) -> Outcome:
        """Run a job whose folder was changed by somebody."""
        with tempfile.TemporaryDirectory() as folder:
            export(job, folder)
            change(Path(folder, "job"))
            return self.runner.submit(Path(folder, "job"), timeout=LIMIT)

    def logged(self, party: str, text: str) -> bool:
        """Whether a site's own log has a text."""
        return text in (self.federation.kits.sites[party] / "console.log").read_text()

    def deliveries(self) -> int:
        """How many there were in the job that is running."""
        assert self.federation.kits.server is not None
        logs = list(self.federation.kits.server.glob("*/deliveries.jsonl"))
        return len(logs[0].read_text().splitlines()) if logs else 0

    def job_process(self, party: str) -> int:
        """The process of the job that is running at a site."""
        for child in psutil.Process(self.federation.processes[party].pid).children():
            if any("worker_process" in word for word in child.cmdline()):
                return int(child.pid)
        raise RuntimeError(f"{party} has no job process")


def digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def in_process(problem: Problem) -> Answers:
    """Run a problem to its end here."""
    parties, coordinator = problem.make()
    runner = Recorded(parties)
    with threadpool_limits(1):
        turn = runner.run(coordinator)
    assert turn.ended == "done", turn.reason
    for one in (coordinator, *parties):
        one.store.close()
    return runner.answers


def lines_of(outcome: Outcome) -> list[dict[str, Any]]:
    assert outcome.folder is not None, outcome
    return [
        json.loads(line) for line in (outcome.folder / "deliveries.jsonl").read_text().splitlines()
    ]


def answers_of(outcome: Outcome) -> Answers:
    """What a job's coordinator received."""
    found: Answers = {}
    for line in lines_of(outcome):
        for name, one in line["answers"].items() if line["round"] >= 0 else ():
            found.setdefault((line["round"], name), set()).add(one)
    return found


def same_bytes(world: World, algorithm: str) -> list[object]:
    """A row: what is the same as in one process."""
    note(f"{algorithm}: as in one process?")
    plain = make_problem(world.folder / f"{algorithm}-plain", algorithm)
    expected = in_process(plain)
    problem = world.problem(algorithm, algorithm)
    outcome = world.run(problem.job)
    if outcome.ended != "done":
        note(str(outcome))
        return [algorithm, 0, "NO", "NO", "NO", "NO"]
    kept = plain.run_folder(OWNER, "coordinator") / "result.json"
    return [
        algorithm,
        len(expected),
        yes(answers_of(outcome) == expected),
        yes(problem.kept() == plain.kept()),
        yes(outcome.result == kept.read_text()),
        yes(problem.charges() == plain.charges()),
    ]


def killed_and_resumed(world: World) -> list[list[object]]:
    """Rows: a site's job process is killed in the middle, and a new job resumes the run."""
    note(f"the job of {VICTIM} is killed")
    settings = PROBLEMS["sharing"] | {"rounds": KILL_ROUNDS}
    plain = make_problem(world.folder / "kill-plain", "sharing", settings)
    expected = in_process(plain)
    problem = world.problem("kill", "sharing", settings)
    with ThreadPoolExecutor(1) as pool:
        future = pool.submit(world.run, problem.job)
        end = time.monotonic() + LIMIT
        while world.deliveries() < KILL_AFTER and time.monotonic() < end:
            time.sleep(0.05)
        victim = world.job_process(VICTIM)
        os.kill(victim, signal.SIGSTOP)
        time.sleep(1.5)  # the others answer the round that it does not
        os.kill(victim, signal.SIGKILL)
        first = future.result()
    note(f"resumed after: {first.reason}")
    second = world.run(problem.job)
    before, after = answers_of(first), answers_of(second)
    again = [key for key in before if key in after]
    charges = [len(one) for one in problem.charges().values()]
    plainly = [len(one) for one in plain.charges().values()]
    last = max(number for number, _ in before)
    correct = all(given[key] <= expected[key] for given in (before, after) for key in given)
    return [
        stopped(
            "killed in the middle: the run stops, and says what to do",
            first,
            f"{VICTIM} did not answer in round {last}: resume the run",
        ),
        [
            "resumed: every file that sites keep is that of a run nobody killed",
            second.ended,
            yes(second.ended == "done" and problem.kept() == plain.kept()),
        ],
        [
            "resumed: every answer of both jobs is that of a run nobody killed",
            f"{len(before) + len(after)} answers",
            yes(correct and set(expected) <= set(before) | set(after)),
        ],
        [
            "resumed: charged once",
            f"charges at {', '.join(problem.charges())}: {charges}",
            yes(charges == plainly and problem.charges() == plain.charges()),
        ],
        [
            "a repeated request gets the same bytes",
            f"{len(again)} answers of round {last} were asked for twice",
            yes(bool(again) and all(before[key] == after[key] for key in again)),
        ],
    ]


def stopped(what: str, outcome: Outcome, told: str, *more: bool) -> list[object]:
    """A row: a run that must have stopped for a reason, and what else must hold."""
    right = outcome.ended == "stopped" and told in str(outcome.reason) and all(more)
    return [what, outcome.reason, yes(right)]


def misaligned(world: World) -> list[object]:
    """A row: two samples have changed places."""
    note("misaligned ids")
    rows = {party: range(party == VICTIM, 23 + (party == VICTIM)) for party in PARTIES}
    problem = with_ids(world.problem("ids", "sharing"), rows)
    outcome = world.run(problem.job)
    told = f"the sample ids of {VICTIM} are not those of {OWNER}"
    return stopped(
        "misaligned ids are refused, with the reason at the coordinator and at the sites",
        outcome,
        told,
        *(world.logged(party, f"the run was stopped: {told}") for party in PARTIES),
        not any(problem.charges().values()),
    )


def aligned(world: World) -> tuple[list[object], list[object]]:
    """Rows: sites with nine tenths of their samples in common align them, and train on those.

    The first is of the contract, the second of what is the same as in one process: the answers as
    of the same job, for masks depend on the terms; and the rest as on data that were aligned
    beforehand, of files the models, since snapshots hold the terms.
    """
    note("aligned ids")
    common = [row for row in range(ALIGNED) if row % 10 != 3]
    plain = make_problem(world.folder / "align-plain", "sharing", rows=ALIGNED)
    plain = with_ids(plain, dict.fromkeys(PARTIES, common))
    in_process(plain)
    problem = world.problem("align", "sharing", rows=ALIGNED)
    lacks = {party: range(3 + 10 * place, ALIGNED, 30) for place, party in enumerate(PARTIES)}
    rows = {party: sorted({*range(ALIGNED)} - {*lacks[party]}, reverse=True) for party in PARTIES}
    problem = with_ids(problem, rows, alignment="ids-1")
    twin = make_problem(world.folder / "align-twin", "sharing", rows=ALIGNED)
    twin = with_ids(twin, rows, alignment="ids-1")
    in_process(alignment_of(twin))
    expected = in_process(twin)
    found = world.run(alignment_of(problem).job)
    paths = [problem.folder / party / "state" / "alignments" / "ids-1" for party in PARTIES]
    files = {path.read_text() if path.is_file() else str(path) for path in paths}
    told = json.loads(found.result or "{}").get("samples")
    fine = yes(told == len(common) and len(files) == 1)
    what = ["aligned: every site keeps the ids that are common", f"{told} of {ALIGNED}", fine]
    outcome = world.run(problem.job)
    if outcome.ended != "done":
        note(str(outcome))
        return what, ["sharing, aligned", 0, "NO", "NO", "NO", "NO"]
    here, kept = plain.kept(), problem.kept()
    models = [name for name in here if name.endswith(("model.json", "result.json"))]
    result = (plain.run_folder(OWNER, "coordinator") / "result.json").read_text()
    return what, [
        "sharing, aligned",
        len(expected),
        yes(answers_of(outcome) == expected),
        yes(all(kept.get(one) == here[one] for one in models)),
        yes(outcome.result == result),
        yes(problem.charges() == plain.charges()),
    ]


def wrong_run(world: World) -> list[object]:
    """A row: the sites were given the terms of another run."""
    note("a wrong run id")
    problem = world.problem("wrong", "sharing")
    other = replace(problem.job, run="other")  # approved too: it is not for want of a consent
    approve_all(other, map(problem.site_file, PARTIES))

    def change(folder: Path) -> None:
        shutil.copytree(folder / "app", folder / "other")
        terms = folder / "other" / "config" / TERMS
        terms.write_text(other.canonical())
        meta = json.loads((folder / "meta.json").read_text())
        meta["deploy_map"] = {"app": ["server"], "other": list(PARTIES)}
        (folder / "meta.json").write_text(json.dumps(meta))

    outcome = world.submit(problem.job, change)
    told = "takes part in run other, not in trial"
    return stopped(
        "a wrong run id is refused, with the reason at the coordinator and at the site",
        outcome,
        told,
        world.logged(OWNER, told),
        not any(problem.charges().values()),
    )


def lost_ledger(world: World) -> list[object]:
    """A row: the ledger of a site is gone."""
    note("a lost ledger")
    problem = world.problem("ledger", "sharing")
    ledger = problem.folder / VICTIM / "ledger.json"
    ledger.unlink()
    outcome = world.run(problem.job)
    return stopped(
        "a site without its ledger refuses; only its own log names the file",
        outcome,
        f"{VICTIM} refused: no such ledger",
        str(problem.folder) not in str(outcome.reason),
        world.logged(VICTIM, str(ledger)),
        not ledger.exists(),
    )


def shipped_code(world: World) -> list[object]:
    """A row: the job brings a module."""
    note("a job with code")
    problem = world.problem("code", "sharing")

    def change(folder: Path) -> None:
        (folder / "app" / "custom").mkdir()
        (folder / "app" / "custom" / "mine.py").write_text("import dpsvm\n")

    return _refused(world, problem, "a job that ships code is refused", change)


def other_class(world: World, side: str, kind: str) -> list[object]:
    """A row: the job names a class that is not on the list."""
    note(f"another class: {kind}")
    problem = world.problem(f"class-{side}", "sharing")

    def change(folder: Path) -> None:
        path = folder / "app" / "config" / f"config_fed_{side}.json"
        content = json.loads(path.read_text())
        one = content["workflows"][0] if side == "server" else content["executors"][0]["executor"]
        one |= {"path": kind, "args": {}}
        path.write_text(json.dumps(content))

    return _refused(world, problem, f"a job with another class at a {side} is refused", change)


def _refused(
    world: World, problem: Problem, what: str, change: Callable[[Path], None]
) -> list[object]:
    before = problem.kept()
    outcome = world.submit(problem.job, change)
    return [
        what,
        outcome.status,
        yes(
            outcome.ended != "done"
            and "COMPLETED" not in outcome.status
            and not any(problem.charges().values())
            and not any(name.endswith("model.json") for name in set(problem.kept()) - set(before))
        ),
    ]


def speed(world: World) -> list[object]:
    """A row: seconds per round."""
    note(f"{SPEED_ROWS} rows at every site")
    settings = {"loss": "logistic", "rounds": SPEED_ROUNDS}
    problem = world.problem(
        "speed", "sharing", settings, rows=SPEED_ROWS, columns=10, private=False
    )
    began = time.monotonic()
    outcome = world.run(problem.job)
    whole = time.monotonic() - began
    at = [line["at"] for line in lines_of(outcome) if 1 <= line["round"] <= SPEED_ROUNDS]
    rounds = [after - before for before, after in pairwise(at)]
    return [len(PARTIES), SPEED_ROWS, SPEED_ROUNDS, median(rounds), max(rounds), whole]


def keys_made_apart(folder: Path, sites: Sequence[Path], port: int) -> list[object]:
    """Kits by keys that each organisation makes; a row: nobody else has them."""
    note("each makes its own key")
    who: dict[str, tuple[Path | None, str | None]] = {"hub": (sites[0], "localhost")}
    who |= {"admin": (None, None)} | {site.parent.name: (site, None) for site in sites}
    asked = {
        name: request(folder / name, site, server=server, port=port)
        for name, (site, server) in who.items()
    }
    signer = folder.with_name("signer")
    for name, signed in zip(asked, sign(signer, list(asked.values()), port=port), strict=True):
        assemble(folder / name, signed.file, fingerprint=signed.fingerprint)
    found = {name: len(list((folder / name).glob("*.key"))) for name in who}
    theirs = [path.name for path in signer.rglob("*.key")]
    right = set(found.values()) == {1} and theirs == ["rootCA.key"]
    return ["keys are made apart, and the signer has its own only", str(theirs), yes(right)]


def ended_by_sigterm(folder: Path, environment: dict[str, str]) -> list[object]:
    """A row: ``dpsvm federation nvflare start`` is told to end."""
    note("SIGTERM")
    words = [sys.executable, "-m", "dpsvm", "federation", "nvflare", "start", str(folder)]
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True, env=environment) as process:
        assert process.stdout is not None
        told = process.stdout.readline()
        children = psutil.Process(process.pid).children(recursive=True)
        process.terminate()
        process.communicate()
    _, left = psutil.wait_procs(children, timeout=10)
    seen = f"exit code {process.returncode}, {len(left)} of {len(children)} processes left"
    right = "connected" in told and process.returncode == 143 and children and not left
    return ["SIGTERM ends a federation that was started", seen, yes(bool(right))]


def yes(fine: bool) -> str:
    return "yes" if fine else "NO"


def free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


def main() -> int:
    options = arguments(__doc__).parse_args()
    same = Table(
        "Private runs, compared with one process",
        ["algorithm", "answers", "answers the same", "files", "result", "charges"],
    )
    contract = Table("The contract", ["what", "seen", "as it must be"])
    times = Table(
        "Seconds per round",
        ["parties", "doubles per message", "rounds", "median", "longest", "whole job"],
    )
    with tempfile.TemporaryDirectory(prefix="dpsvm-nvflare-") as place:
        folder = Path(place)
        first = make_problem(folder / "first", "sharing")
        sites = [first.site_file(name) for name in PARTIES]
        if options.quick:
            provision(folder / "kits", sites, port=free_port())
        else:
            contract.rows.append(keys_made_apart(folder / "kits", sites, free_port()))
        environment = child_environment(**ONE_THREAD)
        with Federation(folder / "kits", environment) as federation:
            world = World(folder, federation, NVFlareRunner(folder / "kits"))
            can_align = find_spec("private_set_intersection") is not None
            if can_align:
                for table, row in zip((contract, same), aligned(world), strict=True):
                    table.rows.append(row)
            for algorithm in list(PROBLEMS)[: (0 if can_align else 1) if options.quick else None]:
                same.rows.append(same_bytes(world, algorithm))
            if not options.quick:
                contract.rows += killed_and_resumed(world)
                contract.rows.append(misaligned(world))
                contract.rows.append(wrong_run(world))
                contract.rows.append(lost_ledger(world))
                contract.rows.append(shipped_code(world))
                contract.rows.append(
                    other_class(world, "client", "nvflare.app_common.np.np_trainer.NPTrainer")
                )
                contract.rows.append(
                    other_class(world, "server", "nvflare.app_common.workflows.fedavg.FedAvg")
                )
                times.rows.append(speed(world))
            alive = [psutil.Process(one.pid) for one in federation.processes.values()]
            family = [*alive, *(child for one in alive for child in one.children(recursive=True))]
        left = sum(one.is_running() for one in family)
        sigterm = [] if options.quick else ended_by_sigterm(folder / "kits", environment)
    contract.rows.append(
        ["no process is left when the federation has stopped", f"{left} left", yes(left == 0)]
    )
    if not options.quick:
        contract.rows.append(sigterm)
    good = [all(cell != "NO" for cell in row) for row in same.rows]
    kept = [row[-1] == "yes" for row in contract.rows]
    verdicts = [
        f"same bytes as in-process: {sum(good)} of {len(good)}",
        f"contract kept: {sum(kept)} of {len(kept)}",
    ]
    if times.rows:
        fast = float(times.rows[0][3]) <= BAR  # type: ignore[arg-type]
        verdicts.append(f"at most {BAR} s per round: {yes(fast)}")
        good.append(fast)
    tables = [table for table in (same, contract, times) if table.rows]
    print("\n\n".join([*(table.text() for table in tables), "\n".join(verdicts)]))
    if not options.quick:
        config = {"nvflare": version_of("nvflare"), "transport": "grpc, mutual TLS, loopback"}
        write_results(
            options.results, "federation_nvflare", tables, config=config, verdicts=verdicts
        )
    return 0 if all(good) and all(kept) else 1


if __name__ == "__main__":
    run(main)
