"""``dpsvm audit``: what training with and without one record shows of a claimed epsilon."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from dpsvm.cli.audit_flags import AUDIT_FLAGS, MACHINE_FLAGS, OUTPUT_FLAGS, PRIVATE_FLAGS
from dpsvm.cli.files import check_outputs, write_outputs
from dpsvm.cli.options import UsageError, help_page, one_operand, parse
from dpsvm.cli.wording import in_flags
from dpsvm.data import load_libsvm
from dpsvm.privacy import PrivateSVC
from dpsvm.privacy.audit import NEIGHBOURING, audit
from dpsvm.privacy.methods import METHODS, NEED_DELTA
from dpsvm.svm import SVC
from dpsvm.svm.selectors import DEFAULT, SELECTORS

_USAGE = "usage: dpsvm audit [flags] FILE"
_DENSE_ENTRIES = 1 << 22  # up to this size a dense copy is smaller trouble than sparse rows
_KEYWORDS = {"seed": "random_state", "jobs": "n_jobs", "resume": "resume_path"}  # of audit()
_PRIVATE_TOO = ("kernel", "gamma", "C")
_PAPERS = "is claimed by the paper, not a guarantee"


def help_text() -> str:
    """The help of the command."""
    return help_page(
        _USAGE,
        "Trains on FILE, in LIBSVM's format, plain or compressed, many times with and without "
        "one record, and bounds epsilon from below. The bound can refute a claim; a claim that "
        "is not refuted may still be wrong.",
        ("What is audited", AUDIT_FLAGS),
        ("The machine, with LIBSVM's flags", MACHINE_FLAGS),
        ("A private machine", PRIVATE_FLAGS),
        ("What is written", OUTPUT_FLAGS),
        ending="The exit code is 0 whatever is found, 2 for an error and 130 when interrupted: "
        "with --resume the same command then goes on.",
    )


@dataclass(frozen=True)
class Seeded:
    """An estimator by its seed: what the processes of an audit are handed.

    >>> Seeded(SVC, {"kernel": "linear"})(3).random_state
    3
    """

    kind: Callable[..., Any]
    settings: Mapping[str, Any]

    def __call__(self, seed: int) -> Any:
        return self.kind(**self.settings, random_state=seed)


def run(arguments: list[str]) -> None:
    """Carry out the command."""
    groups = (AUDIT_FLAGS, MACHINE_FLAGS, PRIVATE_FLAGS, OUTPUT_FLAGS)
    values, operands = parse(arguments, [flag for flags in groups for flag in flags])
    path = one_operand(operands, "FILE", _USAGE)
    asked, machine, private, written = (
        {flag.name: values[flag.name] for flag in flags} for flags in groups
    )
    files = {"--json": written["json"], "--plot": written["plot"], "--resume": asked["resume"]}
    check_outputs({"FILE": path}, files)
    if machine["kernel"] == "precomputed":
        raise UsageError("-t 4: an audit adds and removes rows, so the kernel must be computed")
    if asked["neighbouring"] is None:
        asked["neighbouring"] = NEIGHBOURING[private["method"] == "objective"]
    is_private = private.pop("private")
    if is_private:
        settings, claim = _private_settings(private, machine, asked), private["epsilon"]
    else:
        settings, claim = _settings(private, machine)
    papers = not is_private and claim is not None and asked["claimed_epsilon"] is None
    if asked["claimed_epsilon"] is None:
        asked["claimed_epsilon"] = claim
    X, y = load_libsvm(path, labels="class")
    rows: Any = X.toarray() if np.prod(X.shape) <= _DENSE_ENTRIES else sparse.csr_array(X)
    labels = y.astype(np.int64)
    if is_private:  # the label set is public, and an audit releases nothing
        settings["classes"] = np.unique(labels).tolist()
    given = {_KEYWORDS.get(name, name): value for name, value in asked.items()}
    try:
        with in_flags(AUDIT_FLAGS + PRIVATE_FLAGS):
            make = Seeded(PrivateSVC if is_private else SVC, settings)
            result = audit(make, rows, labels, progress=not written["quiet"], **given)
    except KeyboardInterrupt:
        if asked["resume"] is not None:
            words = f"warning: interrupted: the same command goes on from {asked['resume']}"
            print(f"dpsvm audit: {words}", file=sys.stderr)
        raise
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from error
    text = result.report()
    print(text.partition("\n\n")[2] if written["quiet"] else text, flush=True)
    if papers:
        print(f"epsilon {claim:g} {_PAPERS}")
    facts = {"file": path} | result.to_dict()
    write_outputs(written["json"], lambda: facts, written["plot"], result.plot)


def _settings(
    private: Mapping[str, Any], machine: Mapping[str, Any]
) -> tuple[dict[str, Any], float | None]:
    """The keywords of SVC that the command line gives, and the epsilon that its selector claims."""
    for name, value in private.items():
        if value is not None:
            raise UsageError(f"--{name.replace('_', '-')} goes with --private")
    settings = {name: value for name, value in machine.items() if value is not None}
    budget = SELECTORS[settings.get("selector", DEFAULT)].budget
    settings |= {"gamma": settings["gamma"] or "auto", "n_jobs": 1}
    return settings, None if budget is None else settings[budget]


def _private_settings(
    given: Mapping[str, Any], machine: Mapping[str, Any], asked: Mapping[str, Any]
) -> dict[str, Any]:
    """The keywords of PrivateSVC that the command line gives."""
    if machine["kernel"] not in ("linear", "rbf"):
        raise UsageError(f"--private has no {machine['kernel']} kernel: use -t 0 or -t 2")
    for flag in MACHINE_FLAGS:
        if flag.name not in _PRIVATE_TOO and machine[flag.name] != flag.default:
            raise UsageError(f"{flag.spelling}: does not go with --private")
    for name in ("epsilon", "data_norm"):
        if given[name] is None:
            raise UsageError(f"--private needs --{name.replace('_', '-')}")
    method = given["method"] or METHODS[0]
    if method in NEED_DELTA and not asked["delta"]:
        raise UsageError(f"--method {method} needs --delta")
    rbf = machine["kernel"] == "rbf"
    if rbf and not machine["gamma"]:
        raise UsageError("--private with -t 2 needs -g: gamma is never taken from the data")
    settings = {**given, "kernel": machine["kernel"], "neighbouring": asked["neighbouring"]}
    settings |= {"delta": asked["delta"] or None, "C": machine["C"]}
    settings["gamma"] = machine["gamma"] if rbf else None
    return {name: value for name, value in settings.items() if value is not None}
