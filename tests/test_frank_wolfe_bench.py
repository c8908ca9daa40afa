"""The benchmark of Frank-Wolfe runs to the end on small problems. No time is judged here."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from shared_data import SHARED, needs_data

import dpsvm

pytest.importorskip("copt")

ROOT = Path(__file__).resolve().parent.parent


@needs_data
def test_frank_wolfe_tells_theory_speed_uplink_and_privacy() -> None:
    done = subprocess.run(
        [sys.executable, str(ROOT / "bench" / "frank_wolfe.py"), str(SHARED), "--quick"],
        capture_output=True,
        text=True,
        env=os.environ | {"PYTHONPATH": str(Path(dpsvm.__path__[0]).parent)},
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert len(re.findall(r"^Theorem 1 on the .*; all at most 1: yes$", done.stdout, re.M)) == 3
    assert "iterates of both differ by 0, at most 0: yes" in done.stdout
    for method in ("dpsvm, 2/(t+2)", "copt, sublinear", "scikit-learn's Lasso"):
        assert done.stdout.count(f"  {method} ") == 2
    assert re.search(r"reuters is not made dense: .*: yes$", done.stdout, re.M)
    assert "K T integers and m K T floats in 8 of 8 settings: yes" in done.stdout
    for method in ("winner sends (dFW)", "product problem, whole columns", "all features once"):
        assert method in done.stdout
    assert "F/F0 by n and epsilon" in done.stdout
