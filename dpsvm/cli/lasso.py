"""``dpsvm lasso``: a sparse linear model by Frank-Wolfe, with or without parties and privacy."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpsvm.cli.budget import ChargedLedger, charge_told, charged_fit, open_ledger
from dpsvm.cli.files import read_private, warn_of_width
from dpsvm.cli.lasso_flags import MODEL_FLAGS, OUTPUT_FLAGS, PARTY_FLAGS, PRIVACY_FLAGS
from dpsvm.cli.lasso_report import lines, record, title, to_libsvm
from dpsvm.cli.layout import line
from dpsvm.cli.options import UsageError, help_page, one_operand, parse
from dpsvm.cli.outputs import check_outputs, write_outputs
from dpsvm.cli.parties import Parties, sizes_of, width_of
from dpsvm.data import LibsvmFormatError, load_libsvm
from dpsvm.frank_wolfe.comparison import Comparison, compare
from dpsvm.frank_wolfe.estimator import FrankWolfeLasso
from dpsvm.frank_wolfe.figure import picture
from dpsvm.report.progress import runs_progress

_NAME = "dpsvm lasso"
_USAGE = "usage: dpsvm lasso --radius r [flags] FILE"


def help_text() -> str:
    """The help of the command."""
    return help_page(
        _USAGE,
        "Least squares over the columns of FILE, in LIBSVM's format, plain or compressed, its "
        "labels being any numbers, under a bound on the sum of the absolute weights, by "
        "Frank-Wolfe: most weights are 0. There is no intercept: centre the data, for privacy "
        "by public constants. Prints the model beside zero weights, and with parties or "
        "privacy beside a model of all columns in one place.",
        ("The model", MODEL_FLAGS),
        (
            "Parties that hold the columns: each round, each sends an index and a sketch",
            PARTY_FLAGS,
        ),
        ("Privacy, with public bounds; with --parties, of all that they send", PRIVACY_FLAGS),
        ("What is compared and written", OUTPUT_FLAGS),
    )


@dataclass(frozen=True, kw_only=True)
class _Job:
    """What the command line asks for."""

    settings: dict[str, Any]  # of the estimator
    parties: Parties | None
    n_features: int | None  # None: what FILE shows
    ledger: str | None
    data: str
    test: str | None
    compare: bool
    json: str | None
    model: str | None
    plot: str | None
    quiet: bool

    @property
    def private(self) -> bool:
        return "epsilon" in self.settings


def run(arguments: list[str]) -> None:
    """Carry out the command."""
    job = _read_job(arguments)
    ledger = None if job.ledger is None else open_ledger(job.ledger)
    before = None if ledger is None else ledger.remaining()
    X, y = _rows(job)
    sizes = None if job.parties is None else sizes_of(job.parties, X.shape[1])
    test = None if job.test is None else load_libsvm(job.test, n_features=X.shape[1])
    with charge_told(_NAME, job.ledger, ledger):
        found = _compare(job, X, y, sizes, test, ledger)
        write_outputs(
            job.json,
            lambda: record(found, job.data, len(y), sizes, job.settings),
            job.plot,
            lambda: picture(found, title(found, job.data, sizes)),
        )
        if job.model is not None:
            to_libsvm(found.model).save(job.model)
    if not job.quiet:
        print("\n".join(lines(found, job.data, len(y), sizes)))
        if ledger is not None:
            left = f"{before:g} before, {ledger.remaining():g} is left"
            print(line("ledger", f"{job.ledger}: {left}"))


def _compare(
    job: _Job,
    X: Any,
    y: NDArray[np.float64],
    sizes: list[int] | None,
    test: tuple[Any, Any] | None,
    ledger: ChargedLedger | None,
) -> Comparison:
    model = FrankWolfeLasso(**job.settings, accountant=ledger)
    measured = job.compare or not job.private
    steps = "steps" if sizes is None else "rounds"
    total = model.most_steps(distributed=sizes is not None)
    with (
        charged_fit(_NAME, job.ledger, ledger),
        runs_progress(steps, total, not job.quiet) as tick,
    ):
        return compare(model, X, y, sizes, test=test, measured=measured, tick=tick)


def _read_job(arguments: list[str]) -> _Job:
    values, files = parse(arguments, MODEL_FLAGS + PARTY_FLAGS + PRIVACY_FLAGS + OUTPUT_FLAGS)
    data = one_operand(files, "FILE", _USAGE)
    names = ("parties", "n_features", "ledger", *(flag.name for flag in OUTPUT_FLAGS))
    own = {name: values.pop(name) for name in dict.fromkeys(names)}
    settings = {name: value for name, value in values.items() if value is not None}
    _check(settings, own)
    check_outputs(
        {"FILE": data, "--test": own["test"], "--ledger": own["ledger"]},
        {"--json": own["json"], "--model": own["model"], "--plot": own["plot"]},
    )
    return _Job(settings=settings, data=data, **own)


def _check(settings: dict[str, Any], own: dict[str, Any]) -> None:
    """Refuse flags that are missing, or without effect; the estimator refuses the rest."""
    if "radius" not in settings:
        raise UsageError(f"--radius is required: it has no default; {_USAGE}")
    parties, private = own["parties"], "epsilon" in settings
    width = width_of(parties)
    if width is not None and own["n_features"] not in (None, width):
        raise UsageError(f"--parties are {width} columns, --n-features says {own['n_features']}")
    if not private:
        if own["ledger"] is not None:
            raise UsageError("--ledger goes with --epsilon")
        if own["compare"]:
            raise UsageError("--compare goes with --epsilon: without it all is compared")
        if "random_state" in settings and "tau" not in settings:
            raise UsageError("--seed goes with --epsilon or --tau: nothing else is random")
    elif own["plot"] is not None and parties is None:
        raise UsageError("--plot with --epsilon needs --parties: no other private run has a curve")


def _rows(job: _Job) -> tuple[Any, NDArray[np.float64]]:
    """The table and the targets; of a private run within their public bounds, line by line."""
    width = width_of(job.parties) or job.n_features
    if not job.private:
        return load_libsvm(job.data, n_features=width)
    X, y, line_of = read_private(job.data, width)
    for name, what, numbers, row_of in (
        ("entry_bound", "value", X.data, lambda place: _row(X, place)),
        ("label_bound", "label", y, int),
    ):
        above = np.flatnonzero(np.abs(numbers) > job.settings.get(name, np.inf))
        if above.size:
            flag = f"--{name.replace('_', '-')} {job.settings[name]:g}"
            reason = f"{what} {numbers[above[0]]:g} is beyond {flag}"
            raise LibsvmFormatError(job.data, line_of(row_of(above[0])), reason)
    if width is None:
        warn_of_width(job.data, X.shape[1])
    return X, y


def _row(table: Any, place: int) -> int:
    """The row of a stored value of a CSR table."""
    return int(np.searchsorted(table.indptr, place, side="right")) - 1
