"""scikit-learn's own tests of its SVMs, as they are, run on dpsvm's classes.

    python bench/interop/sklearn_suite.py

test_svm.py and test_sparse.py of the installed scikit-learn are run where they are, not a word
changed, while dpsvm's five classes are in the place of ``sklearn.svm``'s (``patched_sklearn``).
Each test that dpsvm is not meant to pass is named in EXCEPTIONS with the reason.

Exit code 1 if a test fails that is not named there, or if one named there passes.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[2]))

import pytest
import sklearn
import sklearn.svm

import dpsvm

MODULES = ("test_svm", "test_sparse")
PRIVATE = "writes to a private attribute of scikit-learn's classes"
EXCEPTIONS = {
    "test_tweak_params": f"{PRIVATE} (_dual_coef_)",
    "test_svc_raises_error_internal_representation": f"{PRIVATE} (_n_support)",
    "test_svr_errors": (
        "needs fit to accept a 1x1 kernel matrix for two rows and only predict to refuse it; "
        "dpsvm refuses it in fit"
    ),
}


class Suite:
    """A pytest plugin that counts outcomes and knows the exceptions."""

    def __init__(self) -> None:
        self.outcomes: Counter[str] = Counter()
        self.failed: list[str] = []
        self.excepted: set[str] = set()
        self.stale: set[str] = set()  # named in EXCEPTIONS, but passed

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Count the outcome of a test, once."""
        if report.when != "call" and report.outcome == "passed":
            return
        name = name_of(report.nodeid)
        if name not in EXCEPTIONS:
            self.outcomes[report.outcome] += 1
            if report.outcome == "failed":
                self.failed.append(report.nodeid)
        elif report.outcome == "failed":
            self.outcomes["excepted"] += 1
            self.excepted.add(name)
        else:
            self.stale.add(name)


def name_of(nodeid: str) -> str:
    """Return the name of a test without module and case."""
    return nodeid.partition("[")[0].rpartition("::")[2]


def run_suite(select: str = "") -> Suite:
    """Run the tests, or those whose names match pytest's ``-k`` expression."""
    suite = Suite()
    with tempfile.TemporaryDirectory() as folder, dpsvm.patched_sklearn():
        settings = Path(folder) / "none.ini"
        settings.write_text("[pytest]\n")
        options = ["-q", "--no-header", "--tb=short", "-p", "no:cacheprovider", "-W", "ignore"]
        options += ["-c", str(settings), "--rootdir", folder, "-k", select]
        tests = [f"sklearn.svm.tests.{module}" for module in MODULES]
        pytest.main([*options, "--pyargs", *tests], plugins=[suite])
    return suite


def summary(suite: Suite) -> str:
    """Return the counts, the exceptions with their reasons, and what is unexplained."""
    lines = [f"scikit-learn {sklearn.__version__}, {' and '.join(MODULES)}, dpsvm's classes:"]
    lines += [f"  excepted: {name} {EXCEPTIONS[name]}" for name in sorted(suite.excepted)]
    lines += [f"  excepted, but passes: {name}" for name in sorted(suite.stale)]
    lines += [f"  failed: {nodeid}" for nodeid in suite.failed]
    words = ("passed", "failed", "excepted", "skipped")
    lines.append(", ".join(f"{suite.outcomes[word]} {word}" for word in words))
    return "\n".join(lines)


def main(argv: Sequence[str] | None = None) -> int:
    """Run the suite and print its summary."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--select", default="", help="pytest's -k expression")
    suite = run_suite(parser.parse_args(argv).select)
    print(summary(suite))
    return 0 if suite.outcomes["passed"] and not suite.failed and not suite.stale else 1


if __name__ == "__main__":
    sys.exit(main())
