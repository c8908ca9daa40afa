"""``dpsvm audit``: what training with and without one record shows of a claimed epsilon."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
from scipy import sparse

from dpsvm.cli.audit_flags import AUDIT_FLAGS, MACHINE_FLAGS, OUTPUT_FLAGS, PRIVATE_FLAGS
from dpsvm.cli.files import check_outputs, write_outputs
from dpsvm.cli.options import UsageError, help_page, one_operand, parse
from dpsvm.cli.wording import in_flags
from dpsvm.data import load_libsvm
from dpsvm.privacy import PrivateSVC
from dpsvm.privacy.audit import NEIGHBOURING, AuditResult, audit
from dpsvm.privacy.methods import METHODS, NEED_DELTA
from dpsvm.svm import SVC
from dpsvm.svm.parameters import Parameters
from dpsvm.svm.selectors import DEFAULT, NUMBERS, SELECTORS

_USAGE = "usage: dpsvm audit [flags] FILE"
_DENSE_ENTRIES = 1 << 22  # up to this size a dense copy is smaller trouble than sparse rows
_SETTINGS = (
    *("C", "kernel", "degree", "coef0", "tol", "shrinking", "max_iter"),
    *("selector", *NUMBERS),
)
_PRIVATE_ONLY = ("epsilon", "method", "loss", "data_norm")
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
class Machine:
    """SVC by its seed: what the processes of an audit are handed.

    >>> Machine(Parameters(kernel="linear", selector="dpwss"))(3).random_state
    3
    """

    parameters: Parameters

    def __call__(self, seed: int) -> SVC:
        given = self.parameters
        return SVC(
            **{name: getattr(given, name) for name in _SETTINGS},
            gamma=given.gamma or "auto",
            random_state=seed,
            n_jobs=1,
        )


@dataclass(frozen=True)
class PrivateMachine:
    """PrivateSVC by its seed.

    >>> PrivateMachine({"epsilon": 1.0, "method": "output"})(3).random_state
    3
    """

    settings: Mapping[str, Any]

    def __call__(self, seed: int) -> PrivateSVC:
        return PrivateSVC(**self.settings, random_state=seed)


@dataclass(frozen=True, kw_only=True)
class _Request:
    """What the command line asks for."""

    data: str
    private: bool
    machine: dict[str, Any]  # of Parameters, or of PrivateSVC
    claimed_epsilon: float | None
    papers: bool  # the claim is the one of the selector's paper
    seed: int | None
    jobs: int
    resume: str | None
    settings: dict[str, Any]  # the rest of what audit() takes
    json: str | None
    plot: str | None
    quiet: bool


def run(arguments: list[str]) -> None:
    """Carry out the command."""
    request = _read_request(arguments)
    X, y = load_libsvm(request.data, labels="class")
    rows: Any = X.toarray() if np.prod(X.shape) <= _DENSE_ENTRIES else sparse.csr_array(X)
    try:
        with in_flags(AUDIT_FLAGS + PRIVATE_FLAGS):
            result = audit(
                _factory(request, y),
                rows,
                y.astype(np.int64),
                claimed_epsilon=request.claimed_epsilon,
                n_jobs=request.jobs,
                random_state=request.seed,
                resume_path=request.resume,
                progress=not request.quiet,
                **request.settings,
            )
    except KeyboardInterrupt:
        if request.resume is not None:
            _say("warning", f"interrupted: the same command goes on from {request.resume}")
        raise
    except ValueError as error:
        raise ValueError(f"{request.data}: {error}") from error
    _tell(request, result)


def _read_request(arguments: list[str]) -> _Request:
    values, operands = parse(arguments, AUDIT_FLAGS + MACHINE_FLAGS + PRIVATE_FLAGS + OUTPUT_FLAGS)
    data = one_operand(operands, "FILE", _USAGE)
    written = {f"--{name}": values[name] for name in ("json", "plot", "resume")}
    check_outputs({"FILE": data}, written)
    private = values.pop("private")
    given = {name: values.pop(name) for name in _PRIVATE_ONLY}
    names = {field.name for field in fields(Parameters)}
    machine = {name: values.pop(name) for name in names & values.keys()}
    if machine["kernel"] == "precomputed":
        raise UsageError("-t 4: an audit adds and removes rows, so the kernel must be computed")
    if values["neighbouring"] is None:
        values["neighbouring"] = NEIGHBOURING[given["method"] == "objective"]
    claimed, papers = values.pop("claimed_epsilon"), False
    if private:
        machine = _private_settings(given, machine, values)
        claimed = machine["epsilon"] if claimed is None else claimed
    else:
        machine = {name: value for name, value in machine.items() if value is not None}
        _refuse_private(given)
        budget = SELECTORS[machine.get("selector", DEFAULT)].budget
        if claimed is None and budget is not None:
            claimed, papers = machine[budget], True
    kept = {name: values.pop(name) for name in ("seed", "jobs", "resume", "json", "plot", "quiet")}
    return _Request(
        data=data,
        private=private,
        machine=machine,
        claimed_epsilon=claimed,
        papers=papers,
        settings=values,
        **kept,
    )


def _refuse_private(given: Mapping[str, Any]) -> None:
    for name, value in given.items():
        if value is not None:
            raise UsageError(f"--{name.replace('_', '-')} goes with --private")


def _private_settings(
    given: Mapping[str, Any], machine: Mapping[str, Any], values: Mapping[str, Any]
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
    if method in NEED_DELTA and not values["delta"]:
        raise UsageError(f"--method {method} needs --delta")
    settings = {name: value for name, value in given.items() if value is not None}
    settings |= {"kernel": machine["kernel"], "neighbouring": values["neighbouring"]}
    if values["delta"]:
        settings["delta"] = values["delta"]
    if machine["C"] is not None:
        settings["C"] = machine["C"]
    if machine["kernel"] == "rbf":
        if not machine["gamma"]:
            raise UsageError("--private with -t 2 needs -g: gamma is never taken from the data")
        settings["gamma"] = machine["gamma"]
    return settings


def _factory(request: _Request, y: Any) -> Machine | PrivateMachine:
    if not request.private:
        return Machine(Parameters(**request.machine))
    # The label set is public, and an audit releases nothing.
    return PrivateMachine(request.machine | {"classes": np.unique(y.astype(np.int64)).tolist()})


def _tell(request: _Request, result: AuditResult) -> None:
    text = result.report()
    print(text.partition("\n\n")[2] if request.quiet else text, flush=True)
    if request.papers:
        print(f"epsilon {result.claimed_epsilon:g} {_PAPERS}")
    facts = {"file": request.data} | result.to_dict()
    write_outputs(request.json, lambda: facts, request.plot, result.plot)


def _say(kind: str, text: str) -> None:
    print(f"dpsvm audit: {kind}: {text}", file=sys.stderr)
