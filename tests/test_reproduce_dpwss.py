"""The paper's table again, on its three smallest sets."""

from __future__ import annotations

import subprocess
from pathlib import Path

from benches import run_bench
from shared_data import SHARED, needs_data

pytestmark = needs_data


def reproduce(state: Path, *words: str) -> subprocess.CompletedProcess[str]:
    quick = [str(SHARED), "--quick", "--jobs", "1", "--state", str(state)]
    return run_bench("comparison/reproduce_dpwss.py", *quick, *words)


def test_wss2_is_equal_and_dpwss_near_and_a_second_command_makes_no_run(tmp_path: Path) -> None:
    state = tmp_path / "state"
    done = reproduce(state)
    assert "wss2 equals the paper in 6 of 6 cells" in done.stdout
    assert "180 of 180 dpwss runs ended exhausted" in done.stdout
    assert "no privacy guarantee" in done.stdout
    kept = state.read_bytes()
    assert kept.count(b"\n") == 186
    again = reproduce(state, "--made-only")
    assert again.stdout == done.stdout
    assert state.read_bytes() == kept


def test_what_is_not_made_yet_is_said_to_be_missing(tmp_path: Path) -> None:
    state = tmp_path / "state"
    reproduce(state, "--sets", "heart")
    done = reproduce(state, "--made-only")
    assert done.returncode == 1
    assert "NOT COMPLETE: 124 runs are still to be made" in done.stdout
