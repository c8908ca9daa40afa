"""Runs of ADMM over a network on Adult, made once each, in parallel, and kept for every figure.

Adult is a9a and a9a.t together, every row divided by sqrt(14): 14 questions with at most one answer
each, so that no norm is above 1. Run s deals the rows by the seed s: the first 40,000 to the nodes,
in equal shares, the rest for the test; the seed is also that of a random graph and of the noise.
"""

from __future__ import annotations

import itertools
import os
import warnings
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from bench.common import load, note
from bench.lock import holding

TRAINING = 40_000
COST, LAM, RHO, GAMMA = 1750.0, 0.22, 0.5, 0.5
PAPER_RHO = np.array([1.0, 1.03, 1.02, 0.8, 1.01])
PAPER_GROWTH = np.array([0.01, 0.005, 0.003, 0.015, 0.01])
QUESTIONS = 14
BATCH = 24  # runs at a time, between which other work can have its turn
KEPT = ("round", "update", "objective", "loss", "consensus", "test_error", "privacy")


@dataclass(frozen=True)
class Job:
    """One fit; what it does not say is the same in all of them."""

    run: int  # the seed of split, graph and noise
    recycle: bool
    nodes: int = 5
    graph: str = "random"
    rounds: int = 49
    lam: float = LAM
    gamma: float = GAMMA
    growth: float = 1.0
    paper_penalties: str | None = None  # the form that takes the paper's table of Figure 1(b)
    epsilon: float | None = None
    tol: float = 1e-9

    def settings(self, cost: float) -> dict[str, Any]:
        """Of the estimator."""
        chosen: dict[str, Any] = {"graph": self.graph, "recycle": self.recycle, "C": cost}
        chosen |= {"lam": self.lam, "rounds": self.rounds, "tol": self.tol}
        chosen |= {"rho": RHO, "growth": self.growth, "classes": [-1, 1]}
        if self.recycle:
            chosen["gamma"] = self.gamma
        if self.graph == "random":
            chosen["graph_seed"] = self.run
        if self.epsilon is not None:
            chosen |= {"privacy": "objective", "epsilon": self.epsilon, "random_state": self.run}
        if self.paper_penalties is not None:
            updates = (self.rounds + 1) // 2 if self.recycle else self.rounds
            k = np.arange(updates)[:, None]
            chosen |= {"rho": PAPER_RHO * (1.0 + k * PAPER_GROWTH)}
            chosen |= {"penalty": self.paper_penalties}
        return chosen


@dataclass(frozen=True)
class Split:
    """The rows of one run."""

    X: Any
    y: np.ndarray
    test: tuple[Any, np.ndarray]

    @property
    def cost(self) -> float:
        """C, in the paper's proportion to the rows."""
        return COST * len(self.y) / TRAINING

    def shares(self, nodes: int) -> tuple[list[Any], list[np.ndarray]]:
        """Equal shares, one after the other."""
        cuts = np.linspace(0, len(self.y), nodes + 1).astype(int)
        pairs = list(itertools.pairwise(cuts))
        return [self.X[a:b] for a, b in pairs], [self.y[a:b] for a, b in pairs]


@cache
def adult(shared: Path) -> tuple[Any, np.ndarray]:
    """a9a and a9a.t together, no row longer than 1."""
    parts = [load(shared, name) for name in ("a9a", "a9a.t")]
    width = max(X.shape[1] for X, _ in parts)
    for X, _ in parts:
        X.resize(X.shape[0], width)
    X = sp.csr_matrix(sp.vstack([X for X, _ in parts])) / QUESTIONS**0.5
    return X, np.concatenate([y for _, y in parts])


@cache
def split(shared: Path, run: int, training: int) -> Split:
    """The rows of a run, from its seed."""
    X, y = adult(shared)
    order = np.random.default_rng(run).permutation(len(y))
    used, held_out = order[:training], order[training : training + len(y) - TRAINING]
    return Split(X[used], y[used], (X[held_out], y[held_out]))


@cache
def central(shared: Path, run: int, training: int, nodes: int, lam: float) -> dict[str, float]:
    """The model of all rows in one place: its objective, training loss and test error."""
    from sklearn.linear_model import LogisticRegression

    rows = split(shared, run, training)
    share = rows.cost * nodes / len(rows.y)  # C / B_i
    model = LogisticRegression(
        C=share / lam, fit_intercept=False, solver="newton-cholesky", tol=1e-10
    )
    w = model.fit(rows.X, rows.y).coef_.ravel()
    losses = np.logaddexp(0.0, -rows.y * (rows.X @ w))
    X, y = rows.test
    return {
        "objective": float(share * losses.sum() + lam / 2.0 * (w @ w)),
        "loss": float(losses.mean()),
        "test_error": float(np.mean((X @ w > 0) != (y > 0))),
    }


def fit(job: Job, shared: Path, training: int) -> dict[str, Any]:
    """What is kept of a fit: the history, the optimum, and the bounds of a private run."""
    from dpsvm.admm import NetworkADMM
    from dpsvm.admm.network.agreement import Agreement
    from dpsvm.admm.network.bounds import largest_total, paper_costs

    rows = split(shared, job.run, training)
    tables, labels = rows.shares(job.nodes)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of the seed, and of the paper's penalties
        model = NetworkADMM(**job.settings(rows.cost))
        model.fit(tables, labels, evaluate_on=rows.test, measured=True)
        terms = Agreement.of(model, model.node_sizes_).terms
    found: dict[str, Any] = {name: model.history_[name] for name in KEPT}
    found["central"] = central(shared, job.run, training, job.nodes, job.lam)
    found["gap"] = found["objective"] / found["central"]["objective"] - 1.0
    found["accesses"] = model.data_accesses_
    report = model.privacy_report_
    if report is not None:
        alphas = np.array(report["alphas"])
        costs = largest_total(paper_costs(terms, model.node_sizes_, alphas))
        found["paper_by_update"] = costs
        found |= {name: report[name] for name in ("tight", "paper", "paper_condition")}
    return found


class Fits:
    """Fits by their jobs, each made once.

    lock : a file whose lock is held while a batch runs
    """

    def __init__(self, shared: Path, training: int, lock: Path | None) -> None:
        self.shared, self.training, self.lock = shared, training, lock
        self._known: dict[Job, dict[str, Any]] = {}

    def __getitem__(self, job: Job) -> dict[str, Any]:
        return self._known[job]

    def make(self, jobs: Iterable[Job], what: str) -> None:
        """Make those that are not known yet."""
        from joblib import Parallel, delayed

        missing = [job for job in dict.fromkeys(jobs) if job not in self._known]
        for start in range(0, len(missing), BATCH):
            batch = missing[start : start + BATCH]
            note(f"{what}: fits {start + 1} to {start + len(batch)} of {len(missing)}")
            with holding(self.lock):
                calls = (delayed(fit)(job, self.shared, self.training) for job in batch)
                found = Parallel(n_jobs=os.cpu_count())(calls)
            self._known |= zip(batch, found, strict=True)
