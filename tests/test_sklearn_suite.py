"""The bench that runs scikit-learn's own tests: a handful of them, and that it can fail."""

from __future__ import annotations

from benches import ROOT, report_of
from commands import python


def test_a_handful_of_scikit_learns_tests_pass() -> None:
    select = "test_precomputed or test_n_support or test_tweak_params"
    report = report_of("interop/sklearn_suite.py", "--select", select)
    assert report.splitlines()[-1] == "4 passed, 0 failed, 1 excepted, 0 skipped"


def test_the_swap_is_real() -> None:
    """Of scikit-learn's own classes, the excepted test would pass: the suite must then complain."""
    code = (
        f"import sys; sys.path.append({str(ROOT)!r})\n"
        "import contextlib, dpsvm\n"
        "from bench.interop import sklearn_suite\n"
        "dpsvm.patched_sklearn = contextlib.nullcontext\n"
        "sys.exit(sklearn_suite.main(['--select', 'test_tweak_params']))\n"
    )
    run = python("-c", code)
    assert run.returncode == 1
    assert "excepted, but passes: test_tweak_params" in run.stdout
