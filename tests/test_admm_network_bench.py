"""The benchmark of ADMM over a network runs to the end on a small subset. No bar is judged."""

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
def test_network_tells_all_figures_time_and_memory() -> None:
    done = subprocess.run(
        [sys.executable, str(ROOT / "bench" / "network.py"), str(SHARED), "--quick"],
        capture_output=True,
        text=True,
        env=os.environ | {"PYTHONPATH": str(Path(dpsvm.__path__[0]).parent)},
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    for number in range(1, 6):
        assert re.search(rf"^Figure {number}: .* of 2 runs$", done.stdout, re.M)
    for panel in ("5 nodes", "20 nodes"):
        reads = re.findall(rf"^  \(a\) {panel} .* (\d+)$", done.stdout, re.M)
        assert [int(n) for n in reads] == [3 * int(panel.split()[0]), 5 * int(panel.split()[0])]
    tight = re.findall(r"ADMM .*  4\.695  +(\d\.\d+)  +2 c1 = 0\.5 < ", done.stdout)
    assert len(tight) == 4
    assert all(float(paper) > 4.695 for paper in tight)
    assert done.stdout.count("(paired t test, one sided, 2 runs)") == 3
    assert "times one scikit-learn fit of its rows" in done.stdout
    assert "at the peak, at most the data and N d^2 doubles" in done.stdout
