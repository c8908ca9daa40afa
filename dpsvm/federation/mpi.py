"""A process for each site of a run on one organisation's cluster, joined by MPI.

    mpirun -n 3 python -m dpsvm.federation.mpi job.toml clinic.toml clinic.toml lab.toml

Rank 0 is the coordinator, at the first site; rank k + 1 is the k-th party of the job, at the next
one. Ranks that can read all sites' files are no protection against each other: across
organisations, another runner is needed. This one needs the extra ``dpsvm[mpi]``.
"""

from __future__ import annotations

import argparse
import sys
import time
import traceback
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from dpsvm.federation.config import SiteConfig
from dpsvm.federation.coordinator import Coordinator, Turn
from dpsvm.federation.frames import LARGEST
from dpsvm.federation.in_process import Watch, run_turns
from dpsvm.federation.job import Job
from dpsvm.federation.messages import NOT_BEGUN, Message, decoded_answer, refused_bytes
from dpsvm.federation.party import Party
from dpsvm.federation.site import Refusal
from dpsvm.federation.store import Phase, StoreError, no_phase, told_of
from dpsvm.privacy.minimiser import CertificateError

Handle = Callable[[bytes], bytes]
"""Makes the bytes of an answer of the bytes of a message."""

_MESSAGE, _LEAVE = 1, 2  # tags
_LONGEST_PAUSE = 0.001


class MpiRunner:
    """Moves messages between rank 0, where the coordinator is, and the parties' ranks.

    Rank 0 sends to all parties and then receives in their order; a party receives and then sends.
    So a message may be larger than what MPI buffers. Only bytes travel, and their number is looked
    at before memory is taken for them.

    comm : an MPI communicator; the world by default
    phase : called "before send" and "after send", for tests

    >>> runner = MpiRunner()
    >>> runner.rank, runner.size
    (0, 1)
    """

    def __init__(self, comm: Any = None, *, phase: Phase = no_phase) -> None:
        from mpi4py import MPI

        self._mpi = MPI
        self.comm = MPI.COMM_WORLD if comm is None else comm
        self.rank, self.size = int(self.comm.rank), int(self.comm.size)
        self._phase = phase

    def run(self, coordinator: Coordinator, watch: Watch | None = None) -> Turn:
        """At rank 0: run to the end, or to what stops it. The parties stay: dismiss them."""
        ranks = {party: place + 1 for place, party in enumerate(coordinator.job.parties)}
        return run_turns(coordinator, partial(self.deliver, ranks), watch)

    def deliver(
        self, ranks: Mapping[str, int], messages: Mapping[str, Message]
    ) -> dict[str, Message | None]:
        """At rank 0: the answer of every party to its message."""
        frames = {name: message.encode() for name, message in messages.items()}
        self._phase("before send")
        for name, frame in frames.items():
            self.send(ranks[name], frame)
        self._phase("after send")
        answers = {name: self.receive(ranks[name])[1] for name in frames}
        return {name: decoded_answer(answer, messages[name]) for name, answer in answers.items()}

    def dismiss(self, reason: str = "") -> None:
        """At rank 0: tell all others to leave; a reason says what went wrong."""
        for rank in range(1, self.size):
            self.send(rank, reason.encode(), _LEAVE)

    def serve(self, handle: Handle) -> str:
        """At a party: answer until told to leave; what went wrong, "" if nothing did."""
        while True:
            tag, data = self.receive(0)
            if tag == _LEAVE:
                return data.decode()
            answer = handle(data)
            self._phase("before send")
            self.send(0, answer)
            self._phase("after send")

    def send(self, rank: int, data: bytes, tag: int = _MESSAGE) -> None:
        """Send bytes to a rank."""
        self.comm.Send([data, self._mpi.BYTE], rank, tag)

    def receive(self, rank: int) -> tuple[int, bytes]:
        """The tag and the bytes of the next message of a rank."""
        status, pause = self._mpi.Status(), 0.0
        while (message := self.comm.Improbe(rank, self._mpi.ANY_TAG, status)) is None:
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
        runner.dismiss(str(turn.reason))
        return _complain(str(turn.reason))
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
    options = parser.parse_args(arguments)
    try:
        runner = MpiRunner()
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


def _complain(reason: str) -> int:
    print(f"dpsvm federation: error: {reason}", file=sys.stderr, flush=True)
    return 2


if __name__ == "__main__":
    sys.exit(main())
