"""Runs the benches, each in a process of its own, on the dpsvm that the tests import."""

from __future__ import annotations

import subprocess
from pathlib import Path

from commands import python

ROOT = Path(__file__).resolve().parent.parent
BENCH = ROOT / "bench"


def run_bench(script: str, *words: str) -> subprocess.CompletedProcess[str]:
    """Run a script, named from ``bench/`` on."""
    return python(str(BENCH / script), *words)


def report_of(script: str, *words: str) -> str:
    """What a script prints that must end well."""
    done = run_bench(script, *words)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout
