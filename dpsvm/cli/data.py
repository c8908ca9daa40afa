"""``dpsvm data``: scikit-learn's own data sets as files, so that every command can be tried."""

from __future__ import annotations

import csv
import errno
import os
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpsvm.cli.files import require_folder
from dpsvm.cli.layout import line
from dpsvm.cli.options import Flag, UsageError, help_page, meant, one_of, parse, share, whole
from dpsvm.data import atomic_write, dump_libsvm

Rows = NDArray[np.float64]

SETS = {
    "breast-cancer": "569 rows, 30 features, labels -1 (malignant) and 1 (benign)",
    "iris": "150 rows, 4 features, labels 0 to 2",
    "wine": "178 rows, 13 features, labels 0 to 2",
    "digits": "1797 rows, 64 features, labels 0 to 9",
    "diabetes": "442 rows, 10 features, a number to predict",
}
_USAGE = "usage: dpsvm data NAME [FILE] [flags], or dpsvm data"
_SCALES = ("none", "range", "standard")


def _names(text: str) -> tuple[str, ...]:
    names = tuple(text.split(","))
    if len(set(names)) < len(names) or not all(name.isidentifier() for name in names):
        raise ValueError(f"{text!r} is not a list of different names, like clinic,lab")
    return names


FLAGS = (
    Flag(
        "--split",
        "draw this share of the rows at random for a test file of their own, FILE.t",
        "x",
        share,
        name="share",
    ),
    Flag("--seed", "of --split, and of the orders of --parties", "n", whole(0), 0),
    Flag(
        "--scale",
        "range: features to [-1, 1]; standard: mean 0 and variance 1, numbers to predict too",
        "how",
        one_of(_SCALES),
        _SCALES[0],
    ),
    Flag(
        "--parties",
        "write a table NAME.csv for each of these parties instead, for dpsvm federation: a share "
        "of the columns and the ids, in an order of its own; the first has the labels too",
        "name,...",
        _names,
    ),
    Flag(
        "--missing",
        "leave this share of the rows out of each table of --parties, other rows of each",
        "x",
        share,
    ),
    Flag("--force", "write over files that exist", default=False),
)


def help_text() -> str:
    """The help of the command."""
    return help_page(
        _USAGE,
        "Writes one of the data sets that come with scikit-learn to FILE (default: NAME), in "
        "LIBSVM's format. Without a NAME: lists them. A file that exists is left as it is.",
        ("Data sets", [Flag(name, meaning) for name, meaning in SETS.items()]),
        ("Flags", FLAGS),
        ending="The scales are taken from all rows of the set: fine for trying things out. A real "
        "guarantee needs ranges that were public before.",
    )


def run(arguments: list[str]) -> None:
    """Carry out the command."""
    values, operands = parse(arguments, FLAGS)
    if not operands:
        print("\n".join(line(name, meaning) for name, meaning in SETS.items()))
        return
    name, path = operands[0], (operands[1:] or operands)[0]
    if name not in SETS:
        hint = meant(name, SETS) or f": use {', '.join(SETS)}"
        raise UsageError(f"unknown data set {name!r}{hint}")
    if len(operands) > 2:
        raise UsageError(f"unexpected {operands[2]!r} ({_USAGE})")
    parties: tuple[str, ...] = values["parties"] or ()
    if parties and len(operands) == 2:
        raise UsageError("--parties names the files: no FILE goes with it")
    if values["missing"] is not None and not parties:
        raise UsageError("--missing is of the tables of --parties")
    X, y, columns = _load(name, values["scale"])
    if len(parties) > len(columns):
        raise UsageError(f"--parties: {len(parties)} cannot share {len(columns)} columns")
    rng = np.random.default_rng(values["seed"])
    parts = _parts(len(y), values["share"], rng)
    files = [f"{one}{ending}.csv" for ending in parts for one in parties]
    _require_new(files or [f"{path}{ending}" for ending in parts], force=values["force"])
    told = f", of a split by seed {values['seed']}" if len(parts) > 1 else ""
    shares = np.array_split(np.arange(len(columns)), max(len(parties), 1))
    for ending, rows in parts.items():
        count = f"{len(rows)} rows{told}"
        if not parties:
            dump_libsvm(X[rows], y[rows], f"{path}{ending}")
            print(line(f"{path}{ending}", count))
        for party, own in zip(parties, shares, strict=False):
            file, labels = f"{party}{ending}.csv", y if own[0] == 0 else None
            there = rng.permutation(rows)[: _left(len(rows), values["missing"])]
            _write_table(file, X, labels, columns, own, there)
            more = "" if labels is None else " and the labels"
            ids = f"{len(there)} of {count}: {len(own)} columns{more}; the ids are sample"
            print(line(file, ids.removeprefix(f"{len(rows)} of ")))


def _load(name: str, scale: str) -> tuple[Rows, Rows, list[str]]:
    from sklearn import datasets

    found: Any = getattr(datasets, f"load_{name.replace('-', '_')}")()
    X, y = np.asarray(found.data, dtype=np.float64), np.asarray(found.target, dtype=np.float64)
    if len(found.get("target_names", ())) == 2:
        y = 2.0 * y - 1.0
    if scale == "standard":
        X = _divided(X - X.mean(axis=0), X.std(axis=0))
        y = (y - y.mean()) / y.std() if name == "diabetes" else y
    elif scale == "range":
        low, high = X.min(axis=0), X.max(axis=0)
        X = _divided(2.0 * X - low - high, high - low)
    return X, y, list(map(str, found.feature_names))


def _divided(X: Rows, by: Rows) -> Rows:
    """Columns divided by numbers; a constant column is 0."""
    return np.where(by > 0, X / np.where(by > 0, by, 1.0), 0.0)


def _parts(n: int, share: float | None, rng: np.random.Generator) -> dict[str, NDArray[np.intp]]:
    """The rows of each file by what is added to its name."""
    if share is None:
        return {"": np.arange(n)}
    order = rng.permutation(n)
    held_out = min(max(round(share * n), 1), n - 1)
    return {"": np.sort(order[held_out:]), ".t": np.sort(order[:held_out])}


def _left(count: int, missing: float | None) -> int:
    """How many of so many rows a party has."""
    return count if missing is None else max(round(count * (1.0 - missing)), 1)


def _write_table(
    path: str,
    X: Rows,
    y: Rows | None,
    columns: Sequence[str],
    own: NDArray[np.intp],
    rows: NDArray[np.intp],
) -> None:
    """Write a party's table as CSV: ids, perhaps labels, and its columns."""
    with atomic_write(path) as file:
        writer = csv.writer(file, lineterminator="\n")
        label = [] if y is None else ["label"]
        writer.writerow(["sample", *label, *(columns[i] for i in own)])
        for row in rows:
            label = [] if y is None else [f"{y[row]:.17g}"]
            writer.writerow([f"s{row:04}", *label, *map(repr, X[row, own].tolist())])


def _require_new(paths: Sequence[str], *, force: bool) -> None:
    """Refuse, before anything is written, files that could not be, or that exist."""
    for path in paths:
        require_folder(path)
        if os.path.exists(path) and not force:
            reason = "there is a file already, left as it is; --force writes over it"
            raise FileExistsError(errno.EEXIST, reason, path)
