"""Many runs at a time, kept as they end so that an interrupted comparison can go on."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from os import PathLike, fspath
from pathlib import Path
from threading import Event
from typing import Any

from dpsvm.comparison.runs import Run, Task

_START = b'{"key": '  # of every line


class Journal:
    """Runs already made, one line of JSON each in a file that only grows.

    A last line cut short, as a killed process leaves it, is dropped.

    >>> import tempfile
    >>> from dpsvm.comparison import Dataset, Setting
    >>> task = Task(Dataset.of([[0.0], [1.0]], [-1, 1]), Setting("wss2"))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     Journal(f"{folder}/runs").add(task, task.run())
    ...     Journal(f"{folder}/runs").find(task).iterations
    1
    """

    def __init__(self, path: str | PathLike[str]) -> None:
        self.path = Path(fspath(path))
        self._runs: dict[str, Run] = {}
        self._whole = 0  # bytes of whole lines
        text = self.path.read_bytes() if self.path.exists() else b""
        for number, line in enumerate(text.splitlines(keepends=True), 1):
            if line.endswith(b"\n"):
                self._whole += len(line)
                self._read(line, number)
            elif not _START.startswith(line[: len(_START)]):  # not ours, so not to be cut
                raise self._wrong(number)
        self._cut = self._whole < len(text)

    def _read(self, line: bytes, number: int) -> None:
        try:
            entry = json.loads(line)
            self._runs[_name(entry["key"])] = Run.from_dict(entry["run"])
        except (ValueError, KeyError, TypeError, AttributeError):
            raise self._wrong(number) from None

    def _wrong(self, number: int) -> ValueError:
        return ValueError(f"{self.path}:{number}: not a line of a comparison")

    def find(self, task: Task) -> Run | None:
        """The run, if it was made."""
        return self._runs.get(_name(task.key()))

    def add(self, task: Task, run: Run) -> None:
        """Keep a run."""
        key = task.key()
        self._runs[_name(key)] = run
        with self.path.open("a") as file:
            if self._cut:
                file.truncate(self._whole)
                self._cut = False
            file.write(json.dumps({"key": key, "run": run.to_dict()}) + "\n")


def _name(key: dict[str, Any]) -> str:
    return json.dumps(key, sort_keys=True)


def execute(
    tasks: Sequence[Task],
    *,
    jobs: int = 1,
    journal: Journal | None = None,
) -> Iterator[tuple[Task, Run]]:
    """Each task with its run, as they end; Ctrl-C and errors stop the runs under way."""
    missing = []
    for task in tasks:
        known = None if journal is None else journal.find(task)
        if known is None:
            missing.append(task)
        else:
            yield task, known
    for task, run in _run(missing, jobs):
        if journal is not None:
            journal.add(task, run)
        yield task, run


def _run(tasks: Sequence[Task], jobs: int) -> Iterator[tuple[Task, Run]]:
    # Threads are enough: the solver runs without Python's lock.
    stop = Event()
    pool = ThreadPoolExecutor(jobs)
    waiting: dict[Future[Run], Task] = {}
    try:
        for task in tasks:
            waiting[pool.submit(task.run, lambda _: stop.is_set())] = task
        while waiting:
            done, _ = wait(waiting, return_when=FIRST_COMPLETED)
            # What has ended is handed over before an error ends it all.
            for future in sorted(done, key=lambda one: one.exception() is not None):
                yield waiting.pop(future), future.result()
    finally:
        stop.set()
        pool.shutdown(cancel_futures=True)
