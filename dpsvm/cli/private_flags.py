"""The flags of ``dpsvm train --private``, and which of the others do not go with it.

Everything a private fit may depend on besides the rows is a public input, so what plain training
takes from the data file (the labels, gamma) is a flag here. The number of features is one too; left
out, it is taken from the file, and the guarantee is said to assume that it is public.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any, NoReturn

from dpsvm.cli.options import Flag, number, one_of, parse, positive, reader, share, whole
from dpsvm.cli.train_flags import DPSVM_FLAGS, LIBSVM_FLAGS
from dpsvm.names import LOSSES, METHODS, OF_RECORDS

_LARGEST_INT = 2**31 - 1


def _labels(text: str) -> tuple[int, ...]:
    labels = tuple(int(label) for label in text.split(","))
    if len(labels) < 2 or len(set(labels)) < len(labels) or max(map(abs, labels)) > _LARGEST_INT:
        raise ValueError
    return labels


_c_svc = one_of(("0",), ": --private trains no other machine")
_kernel = one_of(("0", "2"), ": --private has no other kernel")

MACHINE_FLAGS = (
    Flag("-s", "c-svc, the only machine", "type", _c_svc, default_text="0", name="machine"),
    Flag(
        "-t",
        "0 linear, 2 rbf through random features (which needs -g)",
        "type",
        lambda text: {"0": "linear", "2": "rbf"}[_kernel(text)],
        "linear",
        default_text="0",
        name="kernel",
    ),
    Flag(
        "-g", "gamma of the rbf kernel, never taken from the data", "gamma", positive, name="gamma"
    ),
    Flag(
        "-c",
        "weight of the losses",
        "cost",
        positive,
        default_text="from epsilon, method and loss",
        name="C",
    ),
    next(flag for flag in LIBSVM_FLAGS if flag.spelling == "-w"),
    next(flag for flag in LIBSVM_FLAGS if flag.spelling == "-q"),
)
"""LIBSVM's flags that a private fit takes, with what they mean there."""

PRIVATE_FLAGS = (
    Flag("--private", "train with a differential privacy guarantee", default=False),
    Flag("--epsilon", "the guarantee's epsilon; required", "x", positive),
    Flag(
        "--delta",
        "the guarantee's delta, well below 1 / number of rows; objective and output do without",
        "x",
        share,
    ),
    Flag(
        "--data-norm",
        "public bound on the norm of a row, to which longer rows are shortened; required",
        "x",
        positive,
    ),
    Flag(
        "--classes",
        "the public set of labels; never what the file happens to hold",
        "list",
        reader(_labels, "a list of at least two different whole numbers, as in -1,1"),
        (-1, 1),
        default_text="-1,1",
    ),
    Flag(
        "--n-features",
        "the public number of features",
        "n",
        whole(1),
        default_text="the largest index of FILE, with a warning",
    ),
    Flag(
        "--method",
        "how the noise is added",
        "name",
        one_of(METHODS),
        default_text=METHODS[0],
        choices=("  " + " ".join(METHODS),),
    ),
    Flag("--loss", " ".join(LOSSES), "name", one_of(LOSSES), default_text="huber"),
    Flag("--width", "of the rounded corner of huber and smooth", "x", positive, default_text="0.7"),
    Flag(
        "--neighbouring",
        "what the guarantee protects: add-remove (a record more or less) or replace",
        "relation",
        one_of(OF_RECORDS),
        default_text="add-remove; replace for objective",
    ),
    Flag("--n-components", "random frequencies of -t 2", "n", whole(1), default_text="50"),
    Flag(
        "--feature-seed",
        "public seed of the random features, independent of the noise",
        "n",
        whole(0),
        default_text="0",
    ),
    Flag("--n-steps", "steps of gradient", "n", whole(1), default_text="50"),
    Flag(
        "--batch-rate",
        "probability of a row to take part in a step of gradient",
        "x",
        number("a number above 0 and up to 1", lambda value: 0.0 < value <= 1.0),
        default_text="1",
    ),
    Flag("--ledger", "budget to charge before anything is released; see dpsvm budget", "file", str),
    Flag(
        "--plan",
        "print what a fit to n rows would add, and end: no file is read, charged or written",
        "n",
        whole(1),
    ),
)
"""The flags that mean something with ``--private`` only."""

SHARED_FLAGS = (
    replace(
        next(flag for flag in DPSVM_FLAGS if flag.spelling == "--seed"),
        name="random_state",
        meaning="seed of the noise, for experiments only",
        default_text="the operating system's entropy",
    ),
    Flag("--json", "write the privacy report to a file", "file", str),
)
"""Flags that plain training has too, with what they mean here."""

TRAINING_FLAGS = (*LIBSVM_FLAGS, *DPSVM_FLAGS)
ALL_PRIVATE_FLAGS = (*MACHINE_FLAGS, *PRIVATE_FLAGS, *SHARED_FLAGS)


def parse_private(arguments: Sequence[str]) -> tuple[dict[str, Any], list[str]]:
    """The values of the flags of a private fit; a flag of plain training is refused by name.

    >>> parse_private(["--private", "-b", "1", "heart"])
    Traceback (most recent call last):
    ...
    dpsvm.cli.options.UsageError: -b: does not go with --private
    """
    return _parse_apart(arguments, ALL_PRIVATE_FLAGS, TRAINING_FLAGS, "does not go with --private")


def parse_plain(arguments: Sequence[str]) -> tuple[dict[str, Any], list[str]]:
    """The values of the flags of plain training; one of a private fit is refused by name.

    >>> parse_plain(["--epsilon", "1", "heart"])
    Traceback (most recent call last):
    ...
    dpsvm.cli.options.UsageError: --epsilon: goes with --private
    """
    return _parse_apart(arguments, TRAINING_FLAGS, PRIVATE_FLAGS, "goes with --private")


def _parse_apart(
    arguments: Sequence[str], flags: Iterable[Flag], others: Iterable[Flag], reason: str
) -> tuple[dict[str, Any], list[str]]:
    def refuse(*_: str) -> NoReturn:
        raise ValueError(reason)

    own = list(flags)
    spellings = {flag.spelling for flag in own}
    # Named by their spelling: -p and --epsilon share a name, and mean different things.
    refused = [
        replace(flag, name=flag.spelling, read=refuse)
        for flag in others
        if flag.spelling not in spellings
    ]
    values, operands = parse(arguments, own + refused)
    for flag in refused:
        del values[flag.name]
    return values, operands
