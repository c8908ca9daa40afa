"""The benchmark of ADMM sharing runs to the end on a small subset. No time is judged here."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

from shared_data import SHARED, needs_data

import dpsvm

ROOT = Path(__file__).resolve().parent.parent


@needs_data
def test_sharing_tells_convergence_privacy_and_speed() -> None:
    done = subprocess.run(
        [sys.executable, str(ROOT / "bench" / "sharing.py"), str(SHARED), "--quick"],
        capture_output=True,
        text=True,
        env=os.environ | {"PYTHONPATH": str(Path(dpsvm.__path__[0]).parent)},
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    for method in ("sharing, kappa = M", "Jacobi, kappa = 1", "Gauss-Seidel", "distributed SGD"):
        assert done.stdout.count(f"  {method}") == 2
    assert done.stdout.count("first party") >= 2
    assert re.search(r"corollary 1 +55\.17 +4e-05", done.stdout)
    assert "the weights of both differ by" in done.stdout
