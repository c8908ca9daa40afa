"""Locks keep threads and processes apart, and end with their holder."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from pathlib import Path

import filelock
import pytest

from dpsvm._locks import LockedError, lock
from dpsvm.federation.store import RunFolder, StoreError
from dpsvm.privacy import BudgetAccountant

HOLD = (
    "import sys; from dpsvm._locks import lock\n"
    "held = lock(sys.argv[1]); print('held', flush=True); sys.stdin.read()\n"
)


def holder(path: Path) -> subprocess.Popen[str]:
    """A process that has the lock until its standard input ends."""
    process = subprocess.Popen(
        [sys.executable, "-c", HOLD, str(path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "held\n"
    return process


def test_another_process_is_kept_out_until_the_holder_ends(tmp_path: Path) -> None:
    with holder(tmp_path / "lock") as process, pytest.raises(LockedError):
        lock(tmp_path / "lock", wait=False)
    assert process.returncode == 0
    lock(tmp_path / "lock", wait=False).release()


def test_a_killed_holder_leaves_no_lock(tmp_path: Path) -> None:
    with holder(tmp_path / "lock") as process:
        process.kill()
    lock(tmp_path / "lock", wait=False).release()


def test_a_lock_is_taken_without_an_import_that_a_forked_child_would_wait_for(
    tmp_path: Path,
) -> None:
    code = (
        "import sys; from dpsvm._locks import lock; before = set(sys.modules)\n"
        "lock(sys.argv[1]).release(); print(set(sys.modules) - before)\n"
    )
    words = [sys.executable, "-c", code, str(tmp_path / "lock")]
    assert subprocess.run(words, capture_output=True, text=True, check=True).stdout == "set()\n"


def test_a_charge_waits_for_another_process(tmp_path: Path) -> None:
    path = tmp_path / "ledger.json"
    accountant = BudgetAccountant(1.0, path=path, create=True)
    with holder(Path(f"{os.path.realpath(path)}.lock")) as process:
        charging = threading.Thread(target=accountant.spend, args=(0.5,))
        charging.start()
        assert charging.is_alive()
        assert "charges" in path.read_text()
        assert "Pure" not in path.read_text()
        assert process.stdin is not None
        process.stdin.close()
        charging.join()
    assert accountant.remaining() == 0.5


def test_a_run_that_another_process_has_is_refused_and_then_free(tmp_path: Path) -> None:
    (tmp_path / "run-1").mkdir()
    with (
        holder(tmp_path / "run-1" / "lock"),
        pytest.raises(StoreError, match="another process has this run"),
    ):
        RunFolder(tmp_path, "run-1")
    RunFolder(tmp_path, "run-1").close()


def test_threads_are_kept_apart(tmp_path: Path) -> None:
    inside: list[int] = []
    most: list[int] = []

    def enter(number: int) -> None:
        held = lock(tmp_path / "lock")
        inside.append(number)
        most.append(len(inside))
        inside.remove(number)
        held.release()

    threads = [threading.Thread(target=enter, args=(number,)) for number in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert most == [1] * 6


def test_what_cannot_be_locked_is_an_error_that_names_the_file(tmp_path: Path) -> None:
    (tmp_path / "lock").mkdir()
    with pytest.raises(OSError, match="lock"):
        lock(tmp_path / "lock")


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root writes anywhere")
def test_a_folder_that_cannot_be_written_is_an_error_that_names_the_file(tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    with pytest.raises(PermissionError, match="lock"):
        lock(tmp_path / "lock")


def test_a_lock_that_would_outlive_its_holder_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("dpsvm._locks.FileLock", filelock.SoftFileLock)
    with pytest.raises(OSError, match="files cannot be locked here"):
        lock(tmp_path / "lock")


@pytest.mark.skipif(os.name == "nt", reason="permissions are those of the folder")
def test_a_lock_file_has_the_permissions_that_the_umask_leaves(tmp_path: Path) -> None:
    before = os.umask(0o007)
    try:
        held = lock(tmp_path / "lock")
    finally:
        os.umask(before)
    assert (tmp_path / "lock").stat().st_mode & 0o777 == 0o660
    held.release()
