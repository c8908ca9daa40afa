"""The libraries take turns on one saved problem, every fit in a fresh process.

A library that fails, or gives no answer in half an hour, is not asked again.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from bench.common import busy_seconds, note
from bench.lock import Turn

OWN = "dpsvm"
PATIENCE = 1800  # seconds


@dataclass(frozen=True)
class Plan:
    """What is done with every problem alike."""

    repeats: int
    threads: int
    queries: int = 0  # rows to predict after the fit
    lock: Path | None = None  # held while runs last


@dataclass(frozen=True)
class Runs:
    """What the runs of one library on one problem answered."""

    answers: Sequence[dict[str, Any]]

    @property
    def absent(self) -> str | None:
        """Why there is no answer, None if there is one."""
        return next((str(a["absent"]) for a in self.answers if "absent" in a), None)

    def values(self, what: str) -> list[float]:
        return [a[what] for a in self.answers if a.get(what) is not None]

    def median(self, what: str) -> float | None:
        """None where the library was not asked that, or has no answer to it."""
        values = self.values(what)
        return statistics.median(values) if values else None

    def first(self, what: str) -> Any:
        return self.answers[0].get(what)


def fit_once(library: str, problem: Path, plan: Plan, *, objective: bool) -> dict[str, Any]:
    """Run fit_once.py in a fresh process."""
    command = [sys.executable, str(Path(__file__).with_name("fit_once.py")), library, str(problem)]
    command += ["--threads", str(plan.threads), "--queries", str(plan.queries)]
    limit = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"), str(plan.threads))
    # libsvm-official's OpenMP threads spin at barriers; beside any other load that costs it 5-fold.
    limit["OMP_WAIT_POLICY"] = "passive"
    everyone, family = busy_seconds()
    started = time.perf_counter()
    try:
        done = subprocess.run(
            [*command, "--objective"] if objective else command,
            env=os.environ | limit,
            capture_output=True,
            text=True,
            check=False,
            timeout=PATIENCE,
        )
    except subprocess.TimeoutExpired:
        return {"absent": f"no answer in {PATIENCE} s"}
    if done.returncode != 0:
        last = (done.stderr.strip().splitlines() or [f"exit code {done.returncode}"])[-1]
        return {"absent": f"failed: {last}"}
    answer: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    elapsed = time.perf_counter() - started
    everyone_after, family_after = busy_seconds()
    others = (everyone_after - everyone) - (family_after - family)
    return answer | {"taken": max(0.0, others / elapsed)}


def take_turns(
    name: str, libraries: Sequence[str], problem: Path, plan: Plan, *, objective: bool = True
) -> dict[str, Runs]:
    """The runs of each library; only the first of them works out the objective."""
    answers: dict[str, list[dict[str, Any]]] = {library: [] for library in libraries}
    own = Turn(plan.lock)
    for turn in range(plan.repeats):
        for library, known in answers.items():
            if any("absent" in answer for answer in known):
                continue
            own.take()
            answer = fit_once(library, problem, plan, objective=objective and turn == 0)
            own.offer()
            known.append(answer)
            told = answer.get("absent") or f"{answer['seconds']:.2f} s"
            note(f"{name} {turn + 1}/{plan.repeats} {library}: {told}")
    own.offer(after=0.0)
    return {library: Runs(known) for library, known in answers.items()}
