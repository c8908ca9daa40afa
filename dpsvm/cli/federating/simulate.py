"""``dpsvm federation simulate``: all the sites of a job on this machine, with their own disks."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass
from typing import Any

from dpsvm._version import __version__
from dpsvm.cli.federating.baseline import Baseline, baseline
from dpsvm.cli.federating.cast import Cast
from dpsvm.cli.federating.check import rehearse
from dpsvm.cli.files import check_outputs
from dpsvm.cli.interrupt import prompt_interrupt
from dpsvm.cli.layout import line, table
from dpsvm.cli.options import Flag, UsageError, help_page, parse
from dpsvm.data import atomic_write
from dpsvm.federation.coordinator import Coordinator, Turn
from dpsvm.federation.in_process import InProcessRunner
from dpsvm.federation.job import Job
from dpsvm.federation.members import settings_of_job
from dpsvm.federation.models import load_model
from dpsvm.report.plain_json import dumps
from dpsvm.report.progress import runs_progress

_NAME = "dpsvm federation"
_USAGE = "usage: dpsvm federation simulate JOB SITE... [flags]"
_SHOWN = 20  # rounds that are printed
_OUTSIDE = (
    "the model made alone, and losses on rows, are without noise: outside the guarantee of this "
    "private run, and not to be shown to others"
)
OUTPUT_FLAGS = (
    Flag("--json", "write the metrics of every round and the result", "file", str),
    Flag("-q", "print nothing", default=False, name="quiet"),
)
FLAGS = (
    Flag("--resume", "go on with a run that was interrupted", default=False),
    *OUTPUT_FLAGS,
)


def help_text() -> str:
    """The help of the subcommand."""
    return help_page(
        _USAGE,
        "Runs a job to its end with all of its sites in one process. Each site has its own "
        "data, ledger and state folder, as across organisations: budgets are charged, and "
        "snapshots and models are kept. The first SITE is the coordinator's. Prints metrics of "
        "the rounds, budgets before and after, the guarantee, and beside the joint model what "
        "the label owner would have had from its own columns without the others.",
        ("", FLAGS),
    )


def run(arguments: list[str]) -> None:
    """Carry out the subcommand."""
    values, words = parse(arguments, FLAGS)
    simulate(words, _USAGE, **values)


def simulate(
    words: Sequence[str], usage: str, *, resume: bool, json: str | None, quiet: bool
) -> None:
    """Run a job, or go on with it."""
    cast = Cast.load(words, usage)
    if cast.job.algorithm == "predict":
        raise UsageError(f"{cast.job_path} predicts: dpsvm federation predict carries it out")
    check_outputs(cast.files(), {"--json": json})
    if resume:
        cast.require_begun()
    else:
        cast.refuse_begun(cast.resume_command())
    found = _run(cast, quiet=quiet)
    if json is not None:
        with atomic_write(json) as file:
            file.write(dumps(found.record()))
    if not quiet:
        print("\n".join(found.lines()))


@dataclass(frozen=True)
class _Outcome:
    """A run that has ended."""

    cast: Cast
    history: list[dict[str, Any]]
    result: dict[str, Any]
    reason: str | None
    before: dict[str, float | None]
    after: dict[str, float | None]
    beside: Baseline | None

    def record(self) -> dict[str, Any]:
        """All of it, for a file."""
        job = self.cast.job
        private = self.result["guarantee"] is not None
        return {
            "dpsvm": __version__,
            "job": asdict(job),
            "digest": job.digest,
            "history": self.history,
            "result": {name: one for name, one in self.result.items() if name != "history"},
            "budgets": {
                name: {"before": self.before[name], "after": self.after[name]}
                for name in self.before
            },
            "beside": None if self.beside is None else asdict(self.beside),
            "outside_guarantee": ["beside"] if private else [],
        }

    def lines(self) -> list[str]:
        """All of it, for a reader."""
        job, result = self.cast.job, self.result
        ended = f"{result['rounds']} rounds ({result['stop_reason']})"
        lines = [
            line("run", f"{job.run}, {job.algorithm}, of {', '.join(job.parties)}"),
            line("ended", f"{ended}{'' if self.reason is None else f'; {self.reason}'}"),
            line("guarantee", result["guarantee"] or "none: this run is not private"),
        ]
        for name, before in self.before.items():
            after = self.after[name]
            text = f"epsilon = {before} was left, {after} now"
            if before is not None and after is not None:
                text = f"epsilon = {before:g} was left, {after:g} now"
            lines.append(line(f"budget of {name}", "no ledger" if before is None else text))
        return [*lines, "", *_rounds_table(self.history), "", *self._beside_lines()]

    def _beside_lines(self) -> list[str]:
        if self.beside is None:
            owner = self.cast.coordinator.name
            return [line("alone", f"{owner} has no columns of its own, and no model without them")]
        names = list(self.beside.joint)
        rows = [["model", *names]]
        both = {"joint": self.beside.joint, self.beside.alone: self.beside.local}
        for model, figures in both.items():
            rows.append([model, *(f"{figures[name]:.4f}" for name in names)])
        private = self.result["guarantee"] is not None
        return [*table(rows), *([line("outside", _OUTSIDE)] if private else [])]


def _run(cast: Cast, *, quiet: bool) -> _Outcome:
    before = cast.budgets()
    writing = _Writing()
    cast.coordinator.read_whole(cast.job)  # for what stands beside the joint model
    with ExitStack() as stack:
        coordinator = cast.coordinator.coordinator(cast.job, phase=writing)
        stack.callback(coordinator.store.close)
        parties = []
        for site in cast.parties:
            parties.append(site.party(cast.job, phase=writing))
            stack.callback(parties[-1].store.close)
        with _interruptible(cast, coordinator, writing):
            if coordinator.round < 0:
                rehearse(cast, coordinator.site, parties)  # so that no party pays for a refusal
            turn = _watched(InProcessRunner(parties), coordinator, cast.job, quiet=quiet)
            writing.busy = False
            if turn.ended != "done":
                begun = f"; once that is mended, {cast.resume_command()} goes on with it"
                raise ValueError(f"the run stopped: {turn.reason}{begun if cast.kept() else ''}")
            text = coordinator.store.read("result.json")
            result = load_model(text or "", "result.json")
            return _Outcome(
                cast,
                coordinator.history,
                result,
                turn.reason,
                before,
                cast.budgets(),
                baseline(cast, coordinator.history, result),
            )


def _watched(runner: InProcessRunner, coordinator: Coordinator, job: Job, *, quiet: bool) -> Turn:
    """Run to the end, or to what stops it, with a bar on a terminal."""
    with runs_progress("rounds", rounds_of(job), not quiet) as tick:
        for _ in coordinator.history:
            tick()  # those before an interrupt
        return runner.run(coordinator, lambda metrics: tick())


class _Writing:
    """Hears which phase the sites are in: True while a charge or a snapshot is being written."""

    def __init__(self) -> None:
        self.busy = False

    def __call__(self, phase: str) -> None:
        self.busy = phase in ("before charge", "after draw", "after gather", "during snapshot")


@contextmanager
def _interruptible(cast: Cast, coordinator: Coordinator, writing: _Writing) -> Iterator[None]:
    """Ctrl-C is heard while numpy computes; standard error is told how to resume."""

    def advice() -> str:
        return f"{_NAME}: {cast.resume_command()} goes on from round {max(coordinator.round, 0)}"

    try:
        with prompt_interrupt(
            lambda: f"{advice()}\n{_NAME}: interrupted", busy=lambda: writing.busy
        ):
            try:
                yield
            finally:
                writing.busy = False
    except KeyboardInterrupt:
        print(advice(), file=sys.stderr)
        raise


def rounds_of(job: Job) -> int:
    """The most rounds that a run can take.

    >>> rounds_of(Job("r", "sharing", ("a",), "a", {"rounds": 7}))
    7
    """
    return int(settings_of_job(job).rounds)


def _rounds_table(history: Sequence[dict[str, Any]]) -> list[str]:
    """Rounds evenly spread, the first and the last among them."""
    if not history:
        return []
    count, last = min(len(history), _SHOWN), len(history) - 1
    places = sorted({round(last * place / max(count - 1, 1)) for place in range(count)})
    names = list(history[-1])
    rows = [[_shown(history[place].get(name)) for name in names] for place in places]
    return table([names, *rows])


def _shown(value: Any) -> str:
    return f"{value:.5g}" if isinstance(value, float) else str(value)
