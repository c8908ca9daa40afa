"""The body of ``dpsvm vertical``, ``network`` and ``lasso``: read, fit, compare, tell, save.

A private run tells nothing of its data but what its guarantee covers, unless ``--compare`` asks.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from dpsvm._version import __version__
from dpsvm.cli.budget import ChargedLedger, charge_told, charged_fit, open_ledger
from dpsvm.cli.distributed_flags import COMMON_FLAGS, LEDGER, N_FEATURES, SEED, sizes_of, width_of
from dpsvm.cli.files import check_outputs, read_private, warn_of_width, write_outputs
from dpsvm.cli.layout import line, prose, table
from dpsvm.cli.models import save_linear
from dpsvm.cli.options import Flag, UsageError, help_page, one_operand, parse
from dpsvm.cli.wording import in_flags
from dpsvm.data import LibsvmFormatError, load_libsvm
from dpsvm.progress import runs_progress

_OUTSIDE = "outside the guarantee, because computed on the data:"
_TESTED = "outside the guarantee, for the rows of the test file:"
_NOT_TOLD = ("mode", "epsilon", "delta", "neighbouring", "covers", "seeded", "event")


@dataclass(frozen=True, kw_only=True)
class Request:
    """What the command line asks for."""

    data: str
    settings: dict[str, Any]  # of the estimator, those that were given
    own: dict[str, Any]  # the other flags of the command alone
    private: bool
    n_features: int | None
    ledger: str | None
    test: str | None
    compare: bool
    model: str | None
    json: str | None
    plot: str | None
    quiet: bool

    @property
    def measured(self) -> bool:
        """Whether figures on the data are made."""
        return self.compare or not self.private


@dataclass(frozen=True)
class Done:
    """A run that has ended."""

    request: Request
    rows: int  # of the data
    held: Any  # who holds which columns, or rows
    found: Any  # the comparison

    @property
    def model(self) -> Any:
        """The fitted estimator."""
        return self.found.model


class DistributedCommand(ABC):
    """A command that trains one linear model over data that several hold.

    A family supplies its flags, its estimator and what is told of it.
    """

    name: ClassVar[str]
    about: ClassVar[str]
    model_flags: ClassVar[tuple[Flag, ...]]
    sections: ClassVar[tuple[tuple[str, tuple[Flag, ...]], ...]]  # of help, after the model's
    privacy: ClassVar[tuple[str, tuple[Flag, ...]]]  # of which the first flag asks for it
    required: ClassVar[dict[str, str]] = {}  # flags that must be given, and why
    own: ClassVar[tuple[str, ...]] = ()  # flags that are no settings of the estimator
    compared: ClassVar[tuple[str, ...]] = ()  # those of them that the comparison takes
    random: ClassVar[tuple[str, ...]] = ()  # flags that draw numbers without privacy
    protects: ClassVar[dict[str, str]] = {}  # by relation, where the report does not say
    estimator: Callable[..., Any]  # of settings
    compare: Callable[..., Any]  # a model, fitted to X, y and what is held, with its baselines
    picture: Callable[[Any, str], Any]  # of a comparison, under a title

    @abstractmethod
    def check(self, values: dict[str, Any], common: Mapping[str, Any], *, private: bool) -> None:
        """Refuse flags without effect and complete the settings; the estimator refuses the rest."""

    @abstractmethod
    def told(self, done: Done) -> Iterator[str]:
        """Lines on the data and the run, of which none is computed on the data."""

    @abstractmethod
    def cells(self, done: Done, outcome: Any) -> dict[str, str]:
        """A line of the table of outcomes, by column, after the name."""

    @abstractmethod
    def facts(self, done: Done) -> dict[str, Any]:
        """What JSON tells of this family."""

    def held(self, request: Request, X: Any) -> Any:
        """Who holds which columns, or rows."""
        parties = request.own["parties"]
        return None if parties is None else sizes_of(parties, X.shape[1])

    def figures(self, done: Done) -> Iterator[str]:
        """Lines that are computed on the data."""
        return iter(())

    def relative(self, found: Any, name: str) -> dict[str, Any]:
        """How an outcome stands to the one it is measured by."""
        return {"gap": found.gap(name)}

    def diagnosis(self, done: Done) -> tuple[str, Sequence[Any]] | None:
        """What theory assumes, under a heading, if it was asked for."""
        return None

    def remark(self, found: Any) -> str | None:
        """A word on the outcomes."""
        return None

    def split(self, done: Done) -> str:
        """Who holds what, for the title of a picture."""
        return "" if done.held is None else f" split {'/'.join(map(str, done.held))}"

    def labels(self, settings: dict[str, Any]) -> Literal["any", "class"]:
        """Whether labels are classes."""
        return "class"

    def width(self, request: Request) -> int | None:
        """The number of columns, if it was said."""
        return width_of(request.own.get("parties")) or request.n_features

    def check_rows(
        self, request: Request, X: Any, y: NDArray[np.float64]
    ) -> tuple[int, str] | None:
        """The first row that a private run refuses, and why."""
        return None

    def rounds(self, model: Any, held: Any) -> tuple[str, int | None]:
        """What they are called, and how many there are at most."""
        return "rounds", int(model.rounds)

    def history(self, model: Any) -> Iterable[Any]:
        """The rounds."""
        rounds: Iterable[Any] = model.history_.rounds
        return rounds

    @property
    def flags(self) -> tuple[Flag, ...]:
        """All of them."""
        return tuple(flag for _, flags in self._sections() for flag in flags)

    def _sections(self) -> tuple[tuple[str, tuple[Flag, ...]], ...]:
        heading, flags = self.privacy
        return (
            ("The model", (*self.model_flags, N_FEATURES)),
            *self.sections,
            (heading, (*flags, LEDGER, SEED)),
            ("What is compared and written", COMMON_FLAGS),
        )

    @property
    def _call(self) -> str:
        return f"dpsvm {self.name}"

    @property
    def _usage(self) -> str:
        needed = [flag.usage() for flag in self.flags if flag.name in self.required]
        return f"usage: {' '.join([self._call, *needed])} [flags] FILE"

    def help_text(self) -> str:
        """The help of the command."""
        return help_page(self._usage, self.about, *self._sections())

    def run(self, arguments: list[str]) -> None:
        """Carry out the command."""
        request = self._read(arguments)
        ledger = None if request.ledger is None else open_ledger(request.ledger)
        before = None if ledger is None else ledger.remaining()
        X, y = self._load(request, request.data, self.width(request))
        held = self.held(request, X)
        test = None if request.test is None else self._load(request, request.test, X.shape[1])
        if request.private and self.width(request) is None:
            warn_of_width(request.data, X.shape[1])
        with charge_told(self._call, request.ledger, ledger):
            done = Done(request, len(y), held, self._fit(request, ledger, X, y, held, test))
            write_outputs(
                request.json,
                lambda: self._record(done),
                request.plot,
                lambda: self.picture(done.found, self._title(done)),
            )
            if request.model is not None:
                save_linear(done.model, request.model)
            if not request.quiet:
                print("\n".join(self._lines(done)))
                if ledger is not None:
                    left = f"{before:g} before, {ledger.remaining():g} is left"
                    print(line("ledger", f"{request.ledger}: {left}"))
                if request.model is not None:
                    bare = request.private and done.model.privacy_guarantee_ is None
                    remark = ": no guarantee covers these weights" if bare else ""
                    print(line("model", f"{request.model}{remark}"))
            print(end="", flush=True)  # a full disk is told here

    def _read(self, arguments: list[str]) -> Request:
        values, operands = parse(arguments, self.flags)
        data = one_operand(operands, "FILE", self._usage)
        asks = self.privacy[1][0]
        private = values[asks.name] is not None
        names = dict.fromkeys(flag.name for flag in (N_FEATURES, LEDGER, *COMMON_FLAGS))
        common = {name: values.pop(name) for name in names}
        self._check_common(common | values, asks.spelling, private=private)
        self.check(values, common, private=private)
        check_outputs(
            {"FILE": data, "--test": common["test"], "--ledger": common["ledger"]},
            {f"--{name}": common[name] for name in ("json", "model", "plot")},
        )
        own = {name: values.pop(name) for name in self.own}
        settings = {name: value for name, value in values.items() if value is not None}
        return Request(data=data, settings=settings, own=own, private=private, **common)

    def _check_common(self, values: dict[str, Any], asks: str, *, private: bool) -> None:
        """Refuse what is missing or has no effect, and what would tell of data that are private."""
        for name, reason in self.required.items():
            if values[name] is None:
                raise UsageError(f"--{name} is required: {reason}")
        for name in () if private else ("ledger", "compare"):
            if values[name]:
                raise UsageError(f"--{name} goes with {asks}")
        drawn = private or any(values[name] is not None for name in self.random)
        if values[SEED.name] is not None and not drawn:
            flags = " or ".join([asks, *(f"--{name}" for name in self.random)])
            raise UsageError(f"{SEED.spelling} goes with {flags}: nothing else is random")
        if private and values.get("more") and not values["compare"]:
            raise UsageError(f"--more with {asks} needs --compare: no guarantee covers it")

    def _load(
        self, request: Request, path: str, width: int | None
    ) -> tuple[Any, NDArray[np.float64]]:
        """Rows and labels; of a private run nothing is told of them but why they are refused."""
        labels = self.labels(request.settings)
        if not request.private:
            return load_libsvm(path, n_features=width, labels=labels)
        X, y, line_of = read_private(path, width)
        refused = self.check_rows(request, X, y) if path == request.data else None
        if refused is not None:
            raise LibsvmFormatError(path, line_of(refused[0]), refused[1])
        if labels == "class" and not np.array_equal(y, np.rint(y)):
            row = int(np.flatnonzero(y != np.rint(y))[0])
            raise LibsvmFormatError(path, line_of(row), f"label {y[row]:g} is not a class")
        return X, y.astype(np.int64) if labels == "class" else y

    def _fit(
        self,
        request: Request,
        ledger: ChargedLedger | None,
        X: Any,
        y: Any,
        held: Any,
        test: tuple[Any, Any] | None,
    ) -> Any:
        with in_flags(self.flags):
            model = self.estimator(**request.settings, accountant=ledger)
            name, total = self.rounds(model, held)
            with (
                charged_fit(self._call, request.ledger, ledger),
                runs_progress(name, total, not request.quiet) as tick,
            ):
                more = {name: request.own[name] for name in self.compared}
                return self.compare(
                    model, X, y, held, test=test, measured=request.measured, tick=tick, **more
                )

    def _lines(self, done: Done) -> Iterator[str]:
        request, found, report = done.request, done.found, done.model.privacy_report_
        yield from self.told(done)
        if report is not None:
            yield from _privacy_lines(report, self.protects.get(str(done.model.neighbouring_)))
        figures = list(self.figures(done)) if request.measured else []
        if request.private and found.outcomes:
            yield from ("", _OUTSIDE if request.measured else _TESTED, *[""][: len(figures)])
        yield from figures
        if found.outcomes:
            rows = [{"model": one.name} | self.cells(done, one) for one in found.outcomes]
            yield from ("", *table([list(rows[0]), *(list(row.values()) for row in rows)]))
        if found.verdict is not None:
            yield from ("", prose(found.verdict))
        if (remark := self.remark(found)) is not None:
            yield prose(remark)
        if (diagnosis := self.diagnosis(done)) is not None:
            heading, assumptions = diagnosis
            yield from ("", heading, *(prose(str(one)) for one in assumptions))

    def _title(self, done: Done) -> str:
        title = f"{Path(done.request.data).name}{self.split(done)}"
        report = done.model.privacy_report_
        if report is None:
            return title
        if report["guarantee"] is None:
            return f"{title}: claimed {report['claimed']}, not a guarantee"
        outside = "; figures on the data are outside it" if done.found.measured else ""
        return f"{title}: {report['guarantee']}{outside}"

    def _record(self, done: Done) -> dict[str, Any]:
        model, found, report = done.model, done.found, done.model.privacy_report_
        told = {name: value for name, value in model.get_params().items() if name != "accountant"}
        outside: list[str] = []
        if done.request.private:
            history: tuple[str, ...] = getattr(model.history_, "outside_guarantee", tuple)()
            outside = [f"history.{name}" for name in history]
            outside += ["outcomes"] if found.outcomes else []
            outside += ["verdict"] if found.verdict is not None else []
        covered = report is None or report.get("covers", "model") == "model"
        return {
            "dpsvm": __version__,
            "data": done.request.data,
            "rows": done.rows,
            "settings": {name: _plain(value) for name, value in told.items()},
            **self.facts(done),
            self.rounds(model, done.held)[0]: model.n_iter_,
            "stop_reason": model.stop_reason_,
            "privacy": report,
            "outside_guarantee": outside,
            "outcomes": [asdict(one) | self.relative(found, one.name) for one in found.outcomes],
            "verdict": found.verdict,
            "coef": model.coef_.ravel().tolist() if covered else None,
            "intercept": float(np.ravel(model.intercept_)[0]) if covered else None,
            "history": [asdict(one) for one in self.history(model)],
        }


def _privacy_lines(report: dict[str, Any], protects: str | None) -> Iterator[str]:
    """The guarantee, whom it protects, and all the figures of a report."""
    told = dict(report)
    guarantee, protects = told.pop("guarantee"), told.pop("protects", protects)
    yield line("guarantee", "none" if guarantee is None else guarantee)
    if protects is not None:
        yield line("", protects)
    for name, value in told.items():
        if name not in _NOT_TOLD and value is not None:
            yield line(name.replace("_", " "), shown(value))


def shown(value: Any) -> str:
    """A figure for a reader; of many numbers the least and the largest.

    >>> shown(0.25), shown([1.0, 2.0, 3.0]), shown({"rounds": 7})
    ('0.25', '1 to 3', 'rounds 7')
    """
    if isinstance(value, dict):
        return ", ".join(f"{name} {shown(one)}" for name, one in value.items())
    if isinstance(value, (list, tuple, np.ndarray)):
        low, high = f"{np.min(value):.4g}", f"{np.max(value):.4g}"
        return low if low == high else f"{low} to {high}"
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def cell(value: float | None, form: str) -> str:
    """A number of a table, or a dash where there is none.

    >>> cell(0.25, ".3f"), cell(None, ".3f")
    ('0.250', '-')
    """
    return "-" if value is None or math.isnan(value) else format(value, form)


def _plain(value: Any) -> Any:
    """What JSON can hold of a setting."""
    plain = value is None or isinstance(value, (bool, int, float, str, list, tuple))
    return value if plain else str(value)
