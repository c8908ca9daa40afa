"""One description of a training run, spoken to both sides: svm-train's flags and dpsvm's core.

``run_libsvm`` runs the real program and reads what it prints; ``run_dpsvm`` calls the core with
the rows grouped in LIBSVM's class order. Both answer with ``Printed`` numbers.
"""

from __future__ import annotations

import math
import re
import subprocess
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp

from bench.common import MEGABYTE, require_program

if TYPE_CHECKING:
    from dpsvm._result import Report, Solution

MACHINES = ("c-svc", "nu-svc", "one-class", "epsilon-svr", "nu-svr")  # LIBSVM's -s
KERNELS = ("linear", "poly", "rbf", "sigmoid")  # LIBSVM's -t
FLAGS = {
    "machine": "-s",
    "kernel": "-t",
    "C": "-c",
    "gamma": "-g",
    "coef0": "-r",
    "degree": "-d",
    "nu": "-n",
    "epsilon": "-p",
    "tol": "-e",
    "shrinking": "-h",
}
CACHE_MB = 1000


@dataclass(frozen=True)
class Setting:
    """What to train, with LIBSVM's defaults; gamma None is 1 / features.

    Debian's svm-train reads its options in single precision, so real values are rounded to it
    here, for both sides; defaults, which it keeps in double, are never spelt out to it.
    """

    machine: str = "c-svc"
    kernel: str = "rbf"
    C: float = 1.0
    gamma: float | None = None
    coef0: float = 0.0
    degree: int = 3
    nu: float = 0.5
    epsilon: float = 0.1
    tol: float = 1e-3
    shrinking: bool = True
    class_weight: tuple[tuple[int, float], ...] = ()

    def __post_init__(self) -> None:
        for name, value in self.changed().items():
            if isinstance(value, float):
                object.__setattr__(self, name, float(np.float32(value)))

    def changed(self) -> dict[str, Any]:
        """The fields that are not the default."""
        values = {f.name: (getattr(self, f.name), f.default) for f in fields(self)}
        return {name: value for name, (value, default) in values.items() if value != default}

    @property
    def classifier(self) -> bool:
        return self.machine in ("c-svc", "nu-svc")

    @property
    def regressor(self) -> bool:
        return self.machine in ("epsilon-svr", "nu-svr")

    def flags(self) -> list[str]:
        """The options of svm-train and of ``dpsvm train``."""
        values = self.changed() | {
            "machine": MACHINES.index(self.machine),
            "kernel": KERNELS.index(self.kernel),
            "shrinking": int(self.shrinking),
        }
        named = {FLAGS[name]: value for name, value in values.items() if name in FLAGS}
        named |= {f"-w{label}": weight for label, weight in self.class_weight}
        return ["-m", str(CACHE_MB), *(w for flag, v in named.items() for w in (flag, repr(v)))]

    def keywords(self, n_features: int) -> dict[str, Any]:
        """The keyword arguments of ``dpsvm._core.train``, class weights apart."""
        given = {f.name: getattr(self, f.name) for f in fields(self) if f.name != "class_weight"}
        gamma = 1.0 / n_features if self.gamma is None else self.gamma
        return given | {"gamma": gamma, "cache_bytes": CACHE_MB * MEGABYTE}

    def describe(self) -> str:
        """The kernel and every value that is not the default."""
        plain = {k: v for k, v in self.changed().items() if k in FLAGS}
        words = [f"{k}={v:g}" for k, v in plain.items() if k not in ("machine", "kernel")]
        return " ".join([self.kernel, *words, *(f"w{k}={w:g}" for k, w in self.class_weight)])


@dataclass(frozen=True)
class Printed:
    """What LIBSVM prints of one binary, regression or one-class problem.

    extra is its second line: nu (C-SVC, epsilon-SVR), C (nu-SVC), epsilon (nu-SVR), else nan.
    """

    iterations: int
    objective: float
    rho: float
    n_sv: int
    n_bsv: int
    extra: float = math.nan


@dataclass(frozen=True)
class Outcome:
    problems: tuple[Printed, ...]
    total_sv: int


_NUMBER = r"(-?(?:nan|inf|[\d.]+(?:e[+-]?\d+)?))"
_PROBLEM = re.compile(
    rf"#iter = (\d+)\n(?:(?:nu|C|epsilon) = {_NUMBER}\n)?"
    rf"obj = {_NUMBER}, rho = {_NUMBER}\nnSV = (\d+), nBSV = (\d+)"
)


def read_printed(text: str) -> Outcome:
    """The numbers in what ``svm-train`` (or ``dpsvm train``) printed."""
    problems = tuple(
        Printed(
            int(iterations), float(obj), float(rho), int(n_sv), int(n_bsv), float(extra or "nan")
        )
        for iterations, extra, obj, rho, n_sv, n_bsv in _PROBLEM.findall(text)
    )
    if not problems:
        raise ValueError(f"svm-train printed no result: {text[-200:]!r}")
    total = re.search(r"Total nSV = (\d+)", text)
    return Outcome(problems, int(total[1]) if total else problems[0].n_sv)


def run_libsvm(setting: Setting, data: Path, model: Path) -> Outcome:
    """Train with the real svm-train on a plain LIBSVM file."""
    command = [require_program("svm-train"), *setting.flags(), str(data), str(model)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise RuntimeError(f"{' '.join(command)}: {done.stderr.strip() or done.stdout.strip()}")
    return read_printed(done.stdout)


def class_codes(y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The labels in LIBSVM's order (first seen first, but +1 before -1) and each row's code."""
    labels, first, inverse = np.unique(y, return_index=True, return_inverse=True)
    order = np.argsort(first)
    if labels.tolist() == [-1.0, 1.0]:
        order = np.array([1, 0])
    code = np.empty(len(labels))
    code[order] = np.arange(len(labels))
    return labels[order], code[inverse]


def train(
    X: sp.csr_matrix | np.ndarray, y: np.ndarray, setting: Setting, **options: Any
) -> Solution:
    """``dpsvm._core.train`` on the problem that svm-train would pose for these rows."""
    from dpsvm import _core

    if setting.classifier:
        labels, y = class_codes(y)
        if setting.class_weight:
            weight = dict(setting.class_weight)
            options["class_weight"] = np.array([weight.get(int(label), 1.0) for label in labels])
    return _core.train(X, y, **setting.keywords(X.shape[1]) | options)


def run_dpsvm(setting: Setting, X: sp.csr_matrix, y: np.ndarray) -> Outcome:
    """Train with dpsvm and answer what LIBSVM would print."""
    solution = train(X, y, setting)
    return Outcome(
        tuple(
            Printed(r.iterations, r.objective, r.rho, r.n_sv, r.n_bsv, _extra(setting.machine, r))
            for r in solution.reports
        ),
        len(solution.support),
    )


def _extra(machine: str, report: Report) -> float:
    if machine == "nu-svc":
        return 1.0 / report.r
    if machine == "nu-svr":
        return -report.r
    return math.nan if machine == "one-class" else report.nu
