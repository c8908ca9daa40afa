"""``dpsvm train --private``: a linear machine, or one on random features, with a guarantee.

Nothing is told of the data but the noisy weights: no training accuracy, no iteration counts, not
how many rows there are or were shortened.
"""

from __future__ import annotations

import os
import sys
import textwrap
import warnings
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from dpsvm._errors import LibsvmFormatError
from dpsvm._streams import atomic_write
from dpsvm._version import __version__
from dpsvm.cli.budget import ChargedLedger, charge_told, charged_fit, open_ledger
from dpsvm.cli.files import read_private, require_apart, require_folder
from dpsvm.cli.options import UsageError
from dpsvm.cli.private_flags import parse_private
from dpsvm.privacy.estimators import PrivateSVC
from dpsvm.privacy.model_file import save_private
from dpsvm.privacy.release import FACTS
from dpsvm.report.plain_json import dumps
from dpsvm.warnings import PrivacyLeakWarning

_NAME = "dpsvm train"
_USAGE = "usage: dpsvm train --private [flags] FILE [MODEL]"
_NEEDED = {
    "epsilon": "a guarantee has no default",
    "data_norm": "a public bound on the norm of a row is never measured from the data",
}
_GOES_WITH = {
    "gamma": ("kernel", ("rbf",), "-g goes with -t 2"),
    "n_components": ("kernel", ("rbf",), "--n-components goes with -t 2"),
    "feature_seed": ("kernel", ("rbf",), "--feature-seed goes with -t 2"),
    "n_steps": ("method", ("gradient",), "--n-steps goes with --method gradient"),
    "batch_rate": ("method", ("gradient",), "--batch-rate goes with --method gradient"),
    "width": ("loss", (None, "huber", "smooth"), "--width goes with --loss huber or smooth"),
}
_ELSEWHERE = (
    "flags that were chosen by looking at the data; what else is released from the data, unless "
    "one ledger is charged for all of it."
)
_TOLD_IN_WORDS = (
    *("guarantee", *FACTS, "method", "machines", "budget_split"),
    *("noise_law", "noise_scale", "noise_source", "weight_noise"),
    *("public", "withheld", "floating_point"),
)
_SEEDED = (
    "--seed makes the noise repeatable: whoever knows or guesses it can take the noise away. A "
    "seed is for experiments; leave it out to release a model"
)
_WIDTH = (
    "the number of features, {0}, is the largest index of some row: the guarantee holds if that "
    "number is public, which --n-features {0} states"
)
_LABEL_WIDTH, _LINE_WIDTH = 24, 100


@dataclass(frozen=True, kw_only=True)
class _Job:
    """What the command line asks for."""

    settings: dict[str, Any]  # of PrivateSVC
    n_features: int | None  # None: what FILE shows, with a warning
    data: str
    model: str
    ledger: str | None
    json: str | None
    seed: int | None
    plan: int | None  # a number of rows: tell what a fit would add, and end
    quiet: bool


def run(arguments: list[str]) -> None:
    """Carry out the command."""
    job = _read_job(arguments)
    if job.plan is not None:
        assert job.n_features is not None  # --plan was refused without it
        print(PrivateSVC.plan(n=job.plan, d=job.n_features, **job.settings))
        return
    for path in (job.json, job.model):
        if path is not None:
            require_folder(path)
    ledger = None if job.ledger is None else open_ledger(job.ledger)
    X, y = _read_rows(job.data, job.n_features, job.settings["classes"])
    if job.n_features is None:
        _say(f"warning: {job.data}: {_WIDTH.format(X.shape[1])}")
    with charge_told(_NAME, job.ledger, ledger):
        model = _fit(job, X, y, ledger)
        save_private(model, job.model)
    if job.json is not None:
        with atomic_write(job.json) as file:
            file.write(dumps({"model": job.model, "dpsvm": __version__} | model.privacy_report_))
    if not job.quiet:
        print("\n".join(_report_lines(model.privacy_report_)))
        if ledger is not None:
            print(_line("ledger", f"{job.ledger}: {ledger.remaining():g} is left"))
        print(_line("model", job.model))


def _fit(job: _Job, X: Any, y: NDArray[np.int64], ledger: ChargedLedger | None) -> PrivateSVC:
    model = PrivateSVC(**job.settings, accountant=ledger, random_state=job.seed)
    if job.seed is not None:
        _say(f"warning: {_SEEDED}")

    with warnings.catch_warnings(), charged_fit(_NAME, job.ledger, ledger):
        warnings.simplefilter("ignore", PrivacyLeakWarning)  # said above, in terms of flags
        return model.fit(X, y)


def _read_job(arguments: list[str]) -> _Job:
    values, operands = parse_private(arguments)
    if len(operands) > 2:
        raise UsageError(f"unexpected {operands[2]!r} ({_USAGE})")
    if not operands and values["plan"] is None:
        raise UsageError(f"FILE is missing ({_USAGE})")
    if values["plan"] is not None and values["n_features"] is None:
        raise UsageError("--plan needs --n-features: no file is read")
    for name, reason in _NEEDED.items():
        if values[name] is None:
            raise UsageError(f"--private needs --{name.replace('_', '-')}: {reason}")
    for name, (other, wanted, complaint) in _GOES_WITH.items():
        if values[name] is not None and values[other] not in wanted:
            raise UsageError(complaint)
    if values["kernel"] == "rbf" and values["gamma"] is None:
        raise UsageError("--private with -t 2 needs -g: gamma is never taken from the data")
    for label in values["class_weight"]:
        if label not in values["classes"]:
            raise UsageError(f"-w{label}: {label} is not in --classes")
    del values["private"], values["machine"]
    kept = {name: values.pop(name) for name in ("ledger", "json", "seed", "plan", "quiet")}
    n_features = values.pop("n_features")
    settings = {name: value for name, value in values.items() if value is not None}
    settings |= {"delta": values["delta"], "classes": list(values["classes"])}
    settings["class_weight"] = values["class_weight"] or None
    data, model = (*operands, "", "")[:2]
    model = model or os.path.basename(data) + ".model"
    files = {"FILE": data, "--ledger": kept["ledger"], "MODEL": model, "--json": kept["json"]}
    require_apart(files)
    return _Job(settings=settings, n_features=n_features, data=data, model=model, **kept)


def _read_rows(
    path: str, n_features: int | None, classes: list[int]
) -> tuple[sparse.csr_array, NDArray[np.int64]]:
    """The rows and labels of a data file, with as many features and such labels as are public."""
    rows, labels, line_of = read_private(path, n_features)
    unknown = np.flatnonzero(~np.isin(labels, classes))
    if unknown.size:
        row = int(unknown[0])
        listed = ",".join(map(str, classes))
        reason = f"label {labels[row]:g} is not in --classes {listed}"
        raise LibsvmFormatError(path, line_of(row), reason)
    return rows, labels.astype(np.int64)


def _report_lines(report: Mapping[str, Any]) -> Iterator[str]:
    """What is guaranteed, what it took, and what is not covered, for a terminal."""
    public = ", ".join(f"{name} {_shown(value)}" for name, value in report["public"].items())
    noise = f"{report['noise_law']}, scale {report['noise_scale']:.6g}"
    yield _line("guarantee", report["guarantee"])
    yield _line("method", report["method"])
    yield _line("noise", f"{noise}, from {report['noise_source']}")
    yield _line("noise a weight", f"at most {report['weight_noise']:.4g} (root mean square)")
    yield _line("budget", report["budget_split"])
    for name, value in report.items():
        if name not in _TOLD_IN_WORDS:
            yield _line(name.replace("_", " "), _shown(value))
    yield _line("public inputs", public)
    yield _line("withheld", report["withheld"])
    yield _line("not covered", f"{_ELSEWHERE} {report['floating_point']}")


def _say(text: str) -> None:
    print(f"{_NAME}: {text}", file=sys.stderr)


def _line(label: str, text: str) -> str:
    indent = " " * _LABEL_WIDTH
    return textwrap.fill(
        text,
        _LINE_WIDTH,
        initial_indent=label.ljust(_LABEL_WIDTH),
        subsequent_indent=indent,
        break_long_words=False,
        break_on_hyphens=False,
    )


def _shown(value: Any) -> str:
    if isinstance(value, list):
        return ",".join(map(_shown, value))
    return f"{value:.6g}" if isinstance(value, float) else str(value)
