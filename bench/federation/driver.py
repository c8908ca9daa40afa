"""A rank of an MPI run that can be told to die, and that tells what it sent.

    mpirun -n 4 python bench/federation/driver.py [--resume] [--kill RANK:PHASE:COUNT] \\
        [--log FOLDER] JOB SITE SITE SITE SITE

It is ``python -m dpsvm.federation.mpi`` with a hook in the phases: the rank kills itself, with
SIGKILL, when it reaches the phase for the COUNT-th time. The log has a line of JSON for every
message before it is sent, every phase that was reached, and the seconds at every round's end.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import signal
import sys
import time
from functools import partial
from pathlib import Path
from typing import Any

sys.path.append(str(Path(__file__).resolve().parents[2]))

from dpsvm.federation.messages import Message
from dpsvm.federation.mpi import MpiRunner, guarded, take_part


class Log:
    """Lines of JSON of one rank; written at once, so that a kill loses none."""

    def __init__(self, folder: Path | None, rank: int) -> None:
        self._file = None
        if folder is not None:
            self._file = os.open(folder / str(rank), os.O_WRONLY | os.O_CREAT | os.O_APPEND)

    def add(self, **line: Any) -> None:
        if self._file is not None:
            os.write(self._file, json.dumps(line).encode() + b"\n")


class Told(MpiRunner):
    """Logs what is sent."""

    log: Log

    def send(self, rank: int, data: bytes, tag: int = 1, **more: float) -> bool:
        if tag == 1:
            sent = Message.decode(data)
            digest = hashlib.sha256(data).hexdigest()
            self.log.add(round=sent.round, kind=sent.kind, to=rank, digest=digest)
        return super().send(rank, data, tag, **more)


class Death:
    """The hook."""

    def __init__(self, kill: str | None, rank: int, log: Log) -> None:
        victim, name, count = (kill or "-1::0").split(":")
        self._name, self._left = name, int(count) if int(victim) == rank else 0
        self._log = log

    def __call__(self, phase: str) -> None:
        self._log.add(phase=phase)
        if phase == self._name and self._left > 0:
            self._left -= 1
            if self._left == 0:
                os.kill(os.getpid(), signal.SIGKILL)


def main() -> int:
    parser = argparse.ArgumentParser()
    parser.add_argument("job")
    parser.add_argument("site", nargs="+")
    parser.add_argument("--resume", action="store_true")
    parser.add_argument("--kill")
    parser.add_argument("--log", type=Path)
    options = parser.parse_args()
    runner = Told()
    runner.log = Log(options.log, runner.rank)
    runner._phase = hook = Death(options.kill, runner.rank, runner.log)
    part = partial(
        take_part,
        runner,
        options.job,
        options.site,
        resume=options.resume,
        phase=hook,
        watch=lambda metrics: runner.log.add(ended=metrics["round"], at=time.perf_counter()),
    )
    return guarded(runner, part)


if __name__ == "__main__":
    sys.exit(main())
