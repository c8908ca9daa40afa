"""A process for each site of a run on one organisation's cluster, joined by MPI.

    mpirun -n 3 python -m dpsvm.federation.mpi job.toml clinic.toml clinic.toml lab.toml

Rank 0 is the coordinator, at the first site; rank k + 1 is the k-th party of the job, at the next
one. Ranks that can read all sites' files are no protection against each other: across
organisations, another runner is needed. This one needs the extra ``dpsvm[mpi]``.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import sys
import time
import traceback
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import Any

from dpsvm.federation.config import SiteConfig
from dpsvm.federation.coordinator import Coordinator
from dpsvm.federation.frames import LARGEST
from dpsvm.federation.in_process import Watch, run_turns
from dpsvm.federation.job import Job
from dpsvm.federation.messages import NOT_BEGUN, Message, decoded_answer, refused_bytes
from dpsvm.federation.party import Party
from dpsvm.federation.site import Refusal
from dpsvm.federation.store import Phase, StoreError, no_phase, told_of
from dpsvm.federation.turn import Turn
from dpsvm.privacy.minimiser import CertificateError

Handle = Callable[[bytes], bytes]
"""Makes the bytes of an answer of the bytes of a message."""

_MESSAGE, _LEAVE = 1, 2  # tags
_LONGEST_PAUSE = 0.001
_NOTE = 0.2  # seconds between notes of who is awaited

Told = Callable[[int, list[str], float], None]
"""Called now and then with the round, who has not answered in it, and for how many seconds."""


class MpiRunner:
    """Moves messages between rank 0, where the coordinator is, and the parties' ranks.

    Rank 0 sends to all parties and then receives in their order; a party receives and then sends.
    So a message may be larger than what MPI buffers. Only bytes travel, and their number is looked
    at before memory is taken for them. A rank that does not answer in time is not asked any more.

    comm : an MPI communicator; the world by default
    phase : called "before send" and "after send", for tests
    reply_timeout : seconds that the parties have for their answers of a round
    told : at rank 0, hears who is awaited

    >>> runner = MpiRunner()
    >>> runner.rank, runner.size
    (0, 1)
    """

    reply_timeout = math.inf
    told: Told | None = None
    _noted = 0.0  # when it was told last

    def __init__(
        self,
        comm: Any = None,
        *,
        phase: Phase = no_phase,
        reply_timeout: float = math.inf,
        told: Told | None = None,
    ) -> None:
        from mpi4py import MPI

        self._mpi = MPI
        self.comm = MPI.COMM_WORLD if comm is None else comm
        self.rank, self.size = int(self.comm.rank), int(self.comm.size)
        self._phase = phase
        self.lost: set[str] = set()  # parties that did not answer in time
        self.reply_timeout, self.told = reply_timeout, told

    def run(self, coordinator: Coordinator, watch: Watch | None = None) -> Turn:
        """At rank 0: run to the end, or to what stops it. The parties stay: dismiss them."""
        ranks = {party: place + 1 for place, party in enumerate(coordinator.job.parties)}
        return run_turns(coordinator, partial(self.deliver, ranks), watch)

    def deliver(
        self, ranks: Mapping[str, int], messages: Mapping[str, Message]
    ) -> dict[str, Message | None]:
        """At rank 0: the answer of every party to its message."""
        asked = {name: message for name, message in messages.items() if name not in self.lost}
        frames = {name: message.encode() for name, message in asked.items()}
        began = time.monotonic()
        end = began + self.reply_timeout
        self._phase("before send")
        self.lost |= {name for name in frames if not self.send(ranks[name], frames[name], end=end)}
        self._phase("after send")
        found: dict[str, Message | None] = dict.fromkeys(messages)
        for name in frames:
            awaited = [one for one in frames if found[one] is None]
            note = partial(self._note, asked[name].round, awaited, began)
            got = None if name in self.lost else self.receive(ranks[name], end, note)
            if got is None:
                self.lost.add(name)
            else:
                found[name] = decoded_answer(got[1], asked[name])
        return found

    def _note(self, number: int, awaited: list[str], began: float) -> None:
        now = time.monotonic()
        if self.told is not None and now > self._noted + _NOTE:
            self._noted = now
            self.told(number, awaited, now - began)

    def dismiss(self, reason: str = "") -> None:
        """At rank 0: tell all others to leave; a reason says what went wrong.

        Where a rank has not answered, all are ended: it would not leave.
        """
        if self.lost:
            sys.stderr.flush()
            self.comm.Abort(2)
        for rank in range(1, self.size):
            self.send(rank, reason.encode(), _LEAVE)

    def serve(self, handle: Handle) -> str:
        """At a party: answer until told to leave; what went wrong, "" if nothing did."""
        while True:
            got = self.receive(0)
            assert got is not None  # without an end
            tag, data = got
            if tag == _LEAVE:
                return data.decode()
            answer = handle(data)
            self._phase("before send")
            self.send(0, answer)
            self._phase("after send")

    def send(self, rank: int, data: bytes, tag: int = _MESSAGE, *, end: float = math.inf) -> bool:
        """Send bytes to a rank; whether they were taken before the end."""
        if math.isinf(end):
            self.comm.Send([data, self._mpi.BYTE], rank, tag)
            return True
        request = self.comm.Isend([data, self._mpi.BYTE], rank, tag)
        while not request.Test():
            if time.monotonic() > end:
                return False
            time.sleep(0.0)
        return True

    def receive(
        self, rank: int, end: float = math.inf, note: Callable[[], None] | None = None
    ) -> tuple[int, bytes] | None:
        """The tag and the bytes of the next message of a rank; None if there is none by the end."""
        status, pause = self._mpi.Status(), 0.0
        while (message := self.comm.Improbe(rank, self._mpi.ANY_TAG, status)) is None:
            if time.monotonic() > end:
                return None
            if note is not None:
                note()
            time.sleep(pause)  # MPI's own waiting would keep a core from those who compute
            pause = min(pause + _LONGEST_PAUSE / 50, _LONGEST_PAUSE)
        size = status.Get_count(self._mpi.BYTE)
        if size > LARGEST:
            raise RuntimeError(f"rank {rank} sent {size} bytes, the limit is {LARGEST}")
        data = bytearray(size)
        message.Recv([data, self._mpi.BYTE])
        return status.Get_tag(), bytes(data)


def take_part(
    runner: MpiRunner,
    job: str,
    sites: Sequence[str],
    *,
    resume: bool = False,
    phase: Phase = no_phase,
    watch: Watch | None = None,
) -> int:
    """Be the site of this rank until the run is over or has failed everywhere; the exit code.

    job, sites : files; the coordinator's site, then the parties' in their order
    resume : go on with a run that has begun
    """
    if runner.rank != 0:
        return _answer(runner, job, sites, phase=phase)
    try:
        terms = _job(runner, job, sites)
        coordinator = SiteConfig.load(sites[0]).coordinator(terms, phase=phase)
        if coordinator.round != NOT_BEGUN and not resume:
            raise Refusal(f"run {terms.run} has begun: go on with it with --resume")
        turn = runner.run(coordinator, watch)
    except (ValueError, OSError) as error:  # nothing is under way: parties wait for a message
        runner.dismiss(str(error))
        return _complain(str(error))
    if turn.ended == "stopped":
        code = _complain(str(turn.reason))
        runner.dismiss(str(turn.reason))
        return code
    runner.dismiss()
    print(f"{turn.ended}, {len(coordinator.history)} rounds", flush=True)
    return 0


def main(arguments: Sequence[str] | None = None) -> int:
    """What every rank runs; the exit code is 0, or 2 if the run stopped or could not begin."""
    parser = argparse.ArgumentParser(prog="python -m dpsvm.federation.mpi", description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("job", help="the job file")
    parser.add_argument("site", nargs="+", help="site files: the coordinator's, then the parties'")
    parser.add_argument("--resume", action="store_true", help="go on with a run that has begun")
    parser.add_argument("--reply-timeout", type=float, default=math.inf, help="seconds")
    parser.add_argument("--progress", help="a file that tells how far the run is")
    options = parser.parse_args(arguments)
    try:
        told = None if options.progress is None else partial(_write_progress, options.progress)
        runner = MpiRunner(reply_timeout=options.reply_timeout, told=told)
    except ImportError:
        return _complain("MPI needs mpi4py: pip install 'dpsvm[mpi]'")
    part = partial(take_part, runner, options.job, options.site, resume=options.resume)
    return guarded(runner, part)


def guarded(runner: MpiRunner, part: Callable[[], int]) -> int:
    """Take part; an error that nobody foresaw ends all ranks, which would wait for this one."""
    try:
        return part()
    except BaseException:
        traceback.print_exc()
        sys.stderr.flush()
        runner.comm.Abort(1)
        raise


def _answer(runner: MpiRunner, job_file: str, sites: Sequence[str], *, phase: Phase) -> int:
    name = f"rank {runner.rank}"
    try:
        job = _job(runner, job_file, sites)
        name = job.parties[runner.rank - 1]
        config = SiteConfig.load(sites[runner.rank])
        if config.name != name:
            raise Refusal(f"rank {runner.rank} is {name}, and has the file of {config.name}")
        handle = partial(_handle, config.party(job, phase=phase))
    except (ValueError, OSError, CertificateError) as error:
        told = f"{name} cannot take part: its own screen says why"
        if isinstance(error, (Refusal, StoreError)):  # others may quote its data
            told = told_of(error)
        if told != str(error):
            _complain(str(error))
        handle = partial(refused_bytes, reason=told)
    return 2 if runner.serve(handle) else 0


def _job(runner: MpiRunner, file: str, sites: Sequence[str]) -> Job:
    job = Job.load(file)
    needed = len(job.parties) + 1
    for what, count in (("ranks", runner.size), ("site files", len(sites))):
        if count != needed:
            raise Refusal(
                f"run {job.run} needs {needed} {what}, for the coordinator and "
                f"{len(job.parties)} parties, got {count}"
            )
    return job


def _handle(party: Party, data: bytes) -> bytes:
    """A party's answer; what it refuses without saying all of it, it says here."""
    answer = party.handle_bytes(data)
    if party.refused is not None and Message.decode(answer).text("reason") != party.refused:
        _complain(party.refused)
    return answer


def _write_progress(file: str, number: int, awaited: list[str], seconds: float) -> None:
    with suppress(OSError):  # it is to look at, and no more
        with open(f"{file}.new", "w", encoding="utf-8") as new:
            json.dump([number, awaited, seconds], new)
        os.replace(f"{file}.new", file)


def _complain(reason: str) -> int:
    print(f"dpsvm federation: error: {reason}", file=sys.stderr, flush=True)
    return 2


if __name__ == "__main__":
    sys.exit(main())
