"""``dpsvm scale``: LIBSVM's svm-scale."""

from __future__ import annotations

import sys
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpsvm.cli.files import require_folder
from dpsvm.cli.options import Flag, UsageError, help_page, one_operand, parse, reader
from dpsvm.data import Range, format_libsvm, read_libsvm

_number = reader(float, "a number")
FLAGS = (
    Flag("-l", "lower limit of the scaled features", "lower", _number, -1.0, name="lower"),
    Flag("-u", "upper limit of the scaled features", "upper", _number, 1.0, name="upper"),
    Flag(
        "-y",
        "scale the labels too, to these limits",
        "lower upper",
        lambda lower, upper: (_number(lower), _number(upper)),
        name="y_limits",
    ),
    Flag("-s", "save the observed ranges to a file", "file", str, name="save"),
    Flag("-r", "scale with the ranges of a saved file", "file", str, name="restore"),
)
_USAGE = "usage: dpsvm scale [flags] FILE"
_SHOWN_FEATURES = 5


def help_text() -> str:
    """The help of the command."""
    return help_page(
        _USAGE,
        "Scales each feature of FILE, a LIBSVM data file, plain or compressed, from the range "
        "it takes there to the range asked for, and prints the scaled file.",
        ("", FLAGS),
    )


def run(arguments: list[str]) -> None:
    """Carry out the command."""
    values, operands = parse(arguments, FLAGS)
    path = one_operand(operands, "FILE", _USAGE)
    if values["save"] is not None and values["restore"] is not None:
        raise UsageError("-s and -r cannot be used together")
    if sys.stdout is None:
        raise UsageError("standard output, where the scaled file goes, is closed")
    if values["save"] is not None:
        require_folder(values["save"])
    X, y = read_libsvm(path)
    scaling = _scaling(values, X, y)
    if values["restore"] is not None:
        _warn_of_unseen(scaling, X, values["restore"])
    if values["save"] is not None:
        scaling.write(values["save"])
    n_entries = 0
    for rows, block in scaling.blocks(X):
        n_entries += block.nnz
        labels = scaling.apply_labels(y[rows])
        sys.stdout.buffer.writelines(format_libsvm(block, labels, digits=6, label_digits=17))
    if n_entries > X.nnz and values["lower"] != 0.0:
        _warn(
            f"original #nonzeros {X.nnz} > new #nonzeros {n_entries}: "
            "if feature values are non-negative and sparse, use -l 0 rather than the default -l -1"
        )


def _scaling(values: dict[str, Any], X: Any, y: NDArray[np.float64]) -> Range:
    limits = values["y_limits"]
    if values["restore"] is None:
        lower, upper = values["lower"], values["upper"]
        return Range.fit(X, y, lower=lower, upper=upper, y_limits=limits)
    scaling = Range.read(values["restore"])
    if limits is None or scaling.y is not None:
        return scaling
    return replace(scaling, y=(*limits, float(y.min()), float(y.max())))


def _warn_of_unseen(scaling: Range, X: Any, path: str) -> None:
    unseen = scaling.unseen(X).tolist()
    if unseen:
        shown = ", ".join(map(str, unseen[:_SHOWN_FEATURES]))
        more = ", ..." if len(unseen) > _SHOWN_FEATURES else ""
        _warn(f"{path} has no range for feature {shown}{more}: scaled to 0")


def _warn(text: str) -> None:
    print(f"dpsvm scale: warning: {text}", file=sys.stderr)
