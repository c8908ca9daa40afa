"""The bench that runs scikit-learn's own tests: a handful of them, and that it can fail."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import dpsvm

BENCH = Path(__file__).resolve().parent.parent / "bench"


def run_suite(*words, **variables):
    home = str(Path(dpsvm.__path__[0]).parent)
    return subprocess.run(
        [sys.executable, str(BENCH / "sklearn_suite.py"), *words],
        capture_output=True,
        text=True,
        env=os.environ | {"PYTHONPATH": home} | variables,
        check=False,
    )


def test_a_handful_of_scikit_learns_tests_pass():
    run = run_suite("--select", "test_precomputed or test_n_support or test_tweak_params")
    assert run.returncode == 0, run.stdout + run.stderr
    assert run.stdout.splitlines()[-1] == "4 passed, 0 failed, 1 excepted, 0 skipped"


def test_the_swap_is_real():
    """Of scikit-learn's own classes, the excepted test would pass: the suite must then complain."""
    code = (
        f"import sys; sys.path.insert(0, {str(BENCH)!r})\n"
        "import contextlib, dpsvm, sklearn_suite\n"
        "dpsvm.patched_sklearn = contextlib.nullcontext\n"
        "sys.exit(sklearn_suite.main(['--select', 'test_tweak_params']))\n"
    )
    home = str(Path(dpsvm.__path__[0]).parent)
    run = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        env=os.environ | {"PYTHONPATH": home},
        check=False,
    )
    assert run.returncode == 1
    assert "excepted, but passes: test_tweak_params" in run.stdout
