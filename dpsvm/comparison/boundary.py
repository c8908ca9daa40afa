"""Boundaries that wss2 and private selections draw in two features, as in the paper's Figure 1."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from dpsvm._arrays import Array
from dpsvm.comparison.dataset import Dataset
from dpsvm.comparison.results import Results
from dpsvm.comparison.settings import Setting
from dpsvm.svm.selectors import SELECTORS

GRID = 90  # points along each axis
SHOWN_POINTS = 500
SHOWN_SETTINGS = 4
SHOWN_RUNS = 8
CANDIDATES = 20  # features looked at closely
FEW_VALUES = 10


@dataclass(frozen=True, eq=False)
class Boundary:
    """Two features of the data, and the decision values of some runs on a grid over them."""

    features: tuple[int, int]  # counted from 1, as in LIBSVM files
    x: Array  # [GRID]
    y: Array  # [GRID]
    reference: Array  # [GRID, GRID], rows along y: wss2
    drawn: dict[Setting, list[Array]]  # the runs of each setting shown, likewise
    points: Array  # (rows, 2)
    positive: NDArray[np.bool_]


def boundary(comparison: Results) -> Boundary | None:
    """wss2 and runs of settings with a selection epsilon, on two features; None without such."""
    data, plan = comparison.data, comparison.plan
    chosen = _settings(comparison)
    if not chosen or data.X.shape[1] < 2:
        return None
    features = _two_features(data)
    columns = data.X[:, features]
    points = np.array(
        columns.toarray() if sp.issparse(columns) else columns, dtype=np.float64, order="C"
    )
    flat = Dataset(data.name, points, data.codes, data.labels)
    x, y = (_axis(points[:, k]) for k in (0, 1))
    cells = np.stack([part.ravel() for part in np.meshgrid(x, y)], axis=1)

    def decisions(setting: Setting, seed: int) -> Array:
        task = plan.task(flat, setting, seed)
        return task.decisions(flat, task.solve(flat), cells).reshape(GRID, GRID)

    seeds = range(plan.seed, plan.seed + SHOWN_RUNS)
    shown = np.random.default_rng(0).permutation(len(points))[:SHOWN_POINTS]
    return Boundary(
        features=(int(features[0]) + 1, int(features[1]) + 1),
        x=x,
        y=y,
        reference=decisions(Setting("wss2", shrinking=chosen[0].shrinking), plan.seed),
        drawn={setting: [decisions(setting, seed) for seed in seeds] for setting in chosen},
        points=points[shown],
        positive=flat.positive[shown],
    )


def _settings(comparison: Results) -> list[Setting]:
    """The settings to show: those of the first shrinking setting, evenly chosen."""
    settings = [one.setting for one in comparison.summaries]
    run = [one for one in settings if SELECTORS[one.selector].budget is not None]
    same = [setting for setting in run if setting.shrinking == run[0].shrinking]
    places = np.linspace(0, len(same) - 1, min(len(same), SHOWN_SETTINGS)).round().astype(int)
    return [same[place] for place in places.tolist()]


def _two_features(data: Dataset) -> NDArray[np.intp]:
    """The two features whose class means differ most, in their standard deviations.

    Among the best, those with many values come first: points on a lattice hide each other.
    """
    means, squares = [], []
    for rows in data.groups:
        part = data.X[rows]
        means.append(np.asarray(part.mean(axis=0)).ravel())
        squares.append(np.asarray((part.multiply(part) if sp.issparse(part) else part**2).mean(0)))
    variance: Any = sum(s.ravel() - m**2 for s, m in zip(squares, means, strict=True))
    apart = np.abs(means[0] - means[1]) / np.sqrt(np.maximum(variance, 1e-12))
    best = np.argsort(-apart, kind="stable")[:CANDIDATES].tolist()
    columns = data.X[:, best]
    values = columns.toarray() if sp.issparse(columns) else columns
    few = [len(np.unique(values[:, place])) <= FEW_VALUES for place in range(len(best))]
    ranked = sorted(range(len(best)), key=lambda place: (few[place], place))
    return np.sort(np.array([best[place] for place in ranked[:2]]))


def _axis(values: Array) -> Array:
    low, high = float(values.min()), float(values.max())
    margin = 0.05 * (high - low) or 1.0
    return np.linspace(low - margin, high + margin, GRID)
