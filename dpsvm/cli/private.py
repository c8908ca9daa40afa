"""``dpsvm train --private``: a linear machine, or one on random features, with a guarantee.

Nothing is told of the data but the noisy weights: no training accuracy, no iteration counts, not
how many rows there are or were shortened.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from dpsvm._errors import LibsvmFormatError
from dpsvm._streams import atomic_write
from dpsvm._version import __version__
from dpsvm.cli.budget import charge_told, charged_fit, open_ledger
from dpsvm.cli.files import (
    read_private,
    require_apart,
    require_folder,
    unknown_label,
    warn_of_width,
)
from dpsvm.cli.layout import line
from dpsvm.cli.options import UsageError
from dpsvm.cli.private_flags import ALL_PRIVATE_FLAGS, parse_private
from dpsvm.cli.wording import in_flags
from dpsvm.privacy.estimators import PrivateSVC
from dpsvm.privacy.model_file import save_private
from dpsvm.privacy.release import FACTS
from dpsvm.report.plain_json import dumps

_NAME = "dpsvm train"
_USAGE = "usage: dpsvm train --private [flags] FILE [MODEL]"
_NO_SETTINGS = ("private", "machine", "n_features", "ledger", "json", "plan", "quiet")
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


def run(arguments: list[str]) -> None:
    """Carry out the command."""
    values, operands = parse_private(arguments)
    _refuse(values, operands)
    data, path = (*operands, "", "")[:2]
    path = path or os.path.basename(data) + ".model"
    told, charged = values["json"], values["ledger"]
    require_apart({"FILE": data, "--ledger": charged, "MODEL": path, "--json": told})
    settings = {name: value for name, value in values.items() if value is not None}
    settings = {name: value for name, value in settings.items() if name not in _NO_SETTINGS}
    settings |= {"delta": values["delta"], "classes": list(values["classes"])}
    settings["class_weight"] = values["class_weight"] or None
    if values["plan"] is not None:
        print(PrivateSVC.plan(n=values["plan"], d=values["n_features"], **settings))
        return
    for written in (told, path):
        if written is not None:
            require_folder(written)
    ledger = None if charged is None else open_ledger(charged)
    X, y = _read_rows(data, values["n_features"], settings["classes"])
    if values["n_features"] is None:
        warn_of_width(data, X.shape[1])
    model = PrivateSVC(**settings, accountant=ledger)
    with charge_told(_NAME, charged, ledger):
        with in_flags(ALL_PRIVATE_FLAGS), charged_fit(_NAME, charged, ledger):
            model.fit(X, y)
        save_private(model, path)
        report = model.privacy_report_
        if told is not None:
            with atomic_write(told) as file:
                file.write(dumps({"model": path, "dpsvm": __version__} | report))
        if not values["quiet"]:
            print("\n".join(_report_lines(report)))
            if ledger is not None:
                print(line("ledger", f"{charged}: {ledger.remaining():g} is left"))
            print(line("model", path), flush=True)  # a full disk is told here


def _refuse(values: Mapping[str, Any], operands: Sequence[str]) -> None:
    """Refuse what is missing, and what has no effect."""
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


def _read_rows(
    path: str, n_features: int | None, classes: list[int]
) -> tuple[sparse.csr_array, NDArray[np.int64]]:
    """The rows and labels of a data file, with as many features and such labels as are public."""
    rows, labels, line_of = read_private(path, n_features)
    if (refused := unknown_label(labels, classes)) is not None:
        raise LibsvmFormatError(path, line_of(refused[0]), refused[1])
    return rows, labels.astype(np.int64)


def _report_lines(report: Mapping[str, Any]) -> Iterator[str]:
    """What is guaranteed, what it took, and what is not covered, for a terminal."""
    public = ", ".join(f"{name} {_shown(value)}" for name, value in report["public"].items())
    noise = f"{report['noise_law']}, scale {report['noise_scale']:.6g}"
    yield line("guarantee", report["guarantee"])
    yield line("method", report["method"])
    yield line("noise", f"{noise}, from {report['noise_source']}")
    yield line("noise a weight", f"at most {report['weight_noise']:.4g} (root mean square)")
    yield line("budget", report["budget_split"])
    for name, value in report.items():
        if name not in _TOLD_IN_WORDS:
            yield line(name.replace("_", " "), _shown(value))
    yield line("public inputs", public)
    yield line("withheld", report["withheld"])
    yield line("not covered", f"{_ELSEWHERE} {report['floating_point']}")


def _shown(value: Any) -> str:
    if isinstance(value, list):
        return ",".join(map(_shown, value))
    return f"{value:.6g}" if isinstance(value, float) else str(value)
