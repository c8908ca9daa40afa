"""What ``dpsvm train`` says about the problems it solves."""

from __future__ import annotations

import math
import sys
from collections.abc import Iterator, Mapping
from dataclasses import asdict
from typing import Any

from dpsvm._result import Report
from dpsvm.svm.training import Listener

_CUT_SHORT = {
    "max_iter": "stopped at the iteration limit",
    "time_limit": "stopped at the time limit",
    "exhausted": "ran out of pairs to select",
    "stalled": "stalled (scale the features, lower -c or -d, or take a larger -e)",
}

_NOT_FACTS = ("trace", "marks")


def report_lines(machine: str, report: Report) -> Iterator[str]:
    """The lines LIBSVM prints for one solved problem, after its dots and stars."""
    yield f"optimization finished, #iter = {report.iterations}"
    if machine in ("c-svc", "epsilon-svr") and not math.isnan(report.nu):
        yield f"nu = {report.nu:f}"
    elif machine == "nu-svc":
        yield f"C = {1.0 / report.r:f}"
    elif machine == "nu-svr":
        yield f"epsilon = {-report.r:f}"
    yield f"obj = {report.objective:f}, rho = {report.rho:f}"
    yield f"nSV = {report.n_sv}, nBSV = {report.n_bsv}"


class Log(Listener):
    """Prints LIBSVM's lines unless quiet, and keeps the facts of every problem for ``--json``."""

    def __init__(self, machine: str, quiet: bool) -> None:
        self.machine = machine
        self.quiet = quiet
        self.problems: list[dict[str, Any]] = []
        self.warnings: list[str] = []
        self._shown = 0  # dots and stars of the problem at hand

    def progress(self, progress: Mapping[str, Any]) -> bool:
        """Print the dots and stars of a lone problem as they come: a monitor for the solver."""
        if progress["problems"] == 1:
            self._show(progress["marks"])
        return False

    def _show(self, marks: str) -> None:
        if not self.quiet and len(marks) > self._shown:
            print(marks[self._shown :], end="", flush=True)
            self._shown = len(marks)

    def solved(self, report: Report, classes: tuple[int, int] | None, purpose: str) -> None:
        """Print the lines of one problem."""
        facts = {name: value for name, value in asdict(report).items() if name not in _NOT_FACTS}
        self.problems.append({"purpose": purpose, "classes": classes} | facts)
        self._show(report.marks)
        self._shown = 0
        if report.marks:
            self.say("")
        for line in report_lines(self.machine, report):
            self.say(line)

    def trained(self, n_support: int) -> None:
        """Print the support vectors of all pairs of classes together."""
        self.say(f"Total nSV = {n_support}")

    def single_class(self, label: int) -> None:
        """Print what LIBSVM prints of a fold without a second class."""
        self.say("WARNING: training data in only one class. See README for details.")
        self.say("Total nSV = 0")

    def laplace(self, scale: float) -> None:
        """Print the model of a regression's residuals."""
        self.say("Prob. model for test data: target value = predicted value + z,")
        self.say(f"z: Laplace distribution e^(-|z|/sigma)/(2sigma),sigma= {scale:g}")

    def say(self, line: str) -> None:
        """Print a line to standard output, unless quiet."""
        if not self.quiet:
            print(line)

    def warn(self, text: str) -> None:
        """Print a warning to standard error, quiet or not."""
        self.warnings.append(text)
        print(f"dpsvm train: warning: {text}", file=sys.stderr)

    def warn_of_unfinished(self, tol: float) -> None:
        """Warn, once for each reason, of problems that ended with a gap above ``tol``."""
        for reason, phrase in _CUT_SHORT.items():
            gaps = [problem["gap"] for problem in self.problems if problem["stop_reason"] == reason]
            if gaps:
                self.warn(
                    f"{len(gaps)} of {len(self.problems)} problems {phrase}: "
                    f"largest gap {max(gaps):.3g}, tolerance {tol:g}"
                )
