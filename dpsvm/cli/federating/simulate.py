"""``dpsvm federation simulate`` and ``resume``: all the sites of a job on this machine."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass
from functools import partial
from typing import Any

from dpsvm._version import __version__
from dpsvm.cli.federating.cast import Cast
from dpsvm.cli.federating.check import look, rehearse
from dpsvm.cli.federating.command import RESUME, Command
from dpsvm.cli.files import check_outputs
from dpsvm.cli.interrupt import prompt_interrupt
from dpsvm.cli.layout import line, table
from dpsvm.cli.options import Flag, UsageError
from dpsvm.data import atomic_write
from dpsvm.federation.coordinator import Coordinator
from dpsvm.federation.in_process import InProcessRunner
from dpsvm.federation.members import Finished, local_model, settings_of_job
from dpsvm.federation.models import load_model
from dpsvm.progress import runs_progress
from dpsvm.report.plain_json import dumps

_NAME = "dpsvm federation"
_SIMULATE = "usage: dpsvm federation simulate JOB SITE... [flags]"
_RESUME = "usage: dpsvm federation resume JOB SITE... [flags]"
_SHOWN = 20  # rounds that are printed
_OUTSIDE = (
    "the model made alone, and losses on rows, are without noise: outside the guarantee of this "
    "private run, and not to be shown to others"
)


def _simulate(usage: str, *words: str, resume: bool, json: str | None, quiet: bool) -> None:
    cast = Cast.load(words, usage)
    if cast.job.algorithm in ("predict", "align"):
        name = cast.job.algorithm
        raise UsageError(f"{cast.job_path} {name}s: dpsvm federation {name} carries it out")
    check_outputs(cast.files(), {"--json": json})
    cast.check_begun(resume=resume, again=cast.resume_command())
    found = _run(cast, quiet=quiet)
    if json is not None:
        with atomic_write(json) as file:
            file.write(dumps(found.record()))
    if not quiet:
        print("\n".join(found.lines()))


@dataclass(frozen=True)
class _Baseline:
    """The joint model and one made alone, by the same figures."""

    alone: str  # whose
    joint: dict[str, float]
    local: dict[str, float]


def _baseline(
    cast: Cast, history: Sequence[dict[str, Any]], result: dict[str, Any]
) -> _Baseline | None:
    """The joint model beside a local one; None where a label owner has no columns."""
    job, owner = cast.job, cast.coordinator
    network = job.algorithm == "network"
    if not network and (owner.source is None or not history):
        return None
    sites = cast.parties if network else [owner]
    tables = {site.name: site.table(job, labels=True) for site in sites}
    if not all(table.columns.shape[1] for table in tables.values()):
        return None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the run has said it all
        joint, local = local_model(Finished(job, tables, history, result))
    return _Baseline("a node alone, on average" if network else f"{owner.name} alone", joint, local)


@dataclass(frozen=True)
class _Outcome:
    """A run that has ended."""

    cast: Cast
    history: list[dict[str, Any]]
    result: dict[str, Any]
    reason: str | None
    budgets: dict[str, dict[str, Any]]  # "before" and "after", by site
    beside: _Baseline | None

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
            "budgets": self.budgets,
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
        for name, budget in self.budgets.items():
            text = "no ledger"
            if budget["before"] is not None:
                text = "epsilon = {before:g} was left, {after:g} now".format(**budget)
            lines.append(line(f"budget of {name}", text))
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
                look(cast)
            rounds = int(settings_of_job(cast.job).rounds)
            with runs_progress("rounds", rounds, not quiet) as tick:
                for _ in coordinator.history:
                    tick()  # those before an interrupt
                runner = InProcessRunner(parties)
                turn = runner.run(coordinator, lambda metrics: tick())
            writing.busy = False
            if turn.ended != "done":
                begun = f"; once that is mended, {cast.resume_command()} goes on with it"
                if coordinator.custody.refunded is not None:
                    begun = "; nobody was charged, and another run needs another name"
                begun = begun if cast.kept() else ""
                raise ValueError(f"the run stopped: {runner.why(turn)}{begun}")
            history, text = coordinator.history, coordinator.store.read("result.json")
            result = load_model(text or "", "result.json")
            after = cast.budgets()
            budgets = {name: {"before": before[name], "after": after[name]} for name in before}
            beside = _baseline(cast, history, result)
            return _Outcome(cast, history, result, turn.reason, budgets, beside)


_WRITTEN = ("before reserve", "before charge", "after draw", "after gather", "during snapshot")


class _Writing:
    """Hears which phase the sites are in: True while a charge or a snapshot is being written."""

    def __init__(self) -> None:
        self.busy = False

    def __call__(self, phase: str) -> None:
        self.busy = phase in _WRITTEN


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


_OUTPUT = (
    Flag("--json", "write the metrics of every round and the result", "file", str),
    Flag("-q", "print nothing", default=False, name="quiet"),
)
COMMANDS = {
    "simulate": Command(
        _SIMULATE,
        "Runs a job to its end with all of its sites in one process. Each site has its own "
        "data, ledger and state folder, as across organisations: budgets are charged, and "
        "snapshots and models are kept. The first SITE is the coordinator's. Prints metrics of "
        "the rounds, budgets before and after, the guarantee, and beside the joint model what "
        "the label owner would have had from its own columns without the others.",
        partial(_simulate, _SIMULATE),
        (RESUME, *_OUTPUT),
    ),
    "resume": Command(
        _RESUME,
        "Goes on with a run of dpsvm federation simulate that was interrupted, from the last "
        "round that all sites hold, to the very model of a run without the interrupt. Nothing "
        "is charged twice.",
        partial(_simulate, _RESUME, resume=True),
        _OUTPUT,
    ),
}
