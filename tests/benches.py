"""Runs the benches, each in a process of its own, on the dpsvm that the tests import."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import dpsvm

ROOT = Path(__file__).resolve().parent.parent
BENCH = ROOT / "bench"


def python(*words: str) -> subprocess.CompletedProcess[str]:
    """Run Python with these words."""
    paths = [str(Path(dpsvm.__path__[0]).parent), os.environ.get("PYTHONPATH")]
    return subprocess.run(
        [sys.executable, *words],
        capture_output=True,
        text=True,
        env=os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, paths))},
        check=False,
    )


def run_bench(script: str, *words: str) -> subprocess.CompletedProcess[str]:
    """Run a script, named from ``bench/`` on."""
    return python(str(BENCH / script), *words)


def report_of(script: str, *words: str) -> str:
    """What a script prints that must end well."""
    done = run_bench(script, *words)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout
