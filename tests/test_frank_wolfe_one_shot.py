"""One-shot sketching of all the features: the baseline for communication."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest
from frank_wolfe_problems import make_lasso, split
from scipy import sparse
from scipy.stats import kstest, norm
from statistical import LEVEL

from dpsvm.frank_wolfe import DistributedFrankWolfe, LeastSquares, OneShotSketching, one_shot
from dpsvm.frank_wolfe.sketches import Sketch
from dpsvm.privacy import BudgetAccountant
from dpsvm.privacy.accounting import Gaussian, epsilon_of, gaussian_mu

RUN = {"radius": 0.7, "sketch": 30, "max_iter": 50}
PRIVATE = {"epsilon": 1.0, "delta": 1e-5, "entry_bound": 1.0, "public_labels": True}


def test_it_minimises_what_proposals_minimise_and_sends_every_column_once() -> None:
    A, y = make_lasso()
    for kind in (np.asarray, sparse.csr_array):
        blocks = [kind(block) for block in split(A, 3)]
        found = OneShotSketching(**RUN).solve(blocks, y)
        other = DistributedFrankWolfe(radius=0.7, sketch=30, rounds=500, step="line-search")
        above = other.solve(blocks, y).released_value - found.sketched.value
        assert -1e-12 < above < 1e-4
        assert (found.traffic.up_integers, found.traffic.up_floats) == (0, 12 * 30)
    J = Sketch(60, 30).matrix
    residual = J @ (A @ found.x - y)
    assert found.sketched.value == pytest.approx(residual @ residual / 120)
    assert found.guarantee is None


def test_no_record_moves_the_sketches_further_than_the_noise_was_made_for() -> None:
    A, _ = make_lasso(n=30, d=5)
    sketch = Sketch(30, 10)
    bound = 2.0 * sketch.longest * np.sqrt(5) / 30
    moved = []
    for j in range(30):
        one, other = A.copy(), A.copy()
        one[j], other[j] = 1.0, -1.0
        moved.append(np.linalg.norm(sketch.of(one) - sketch.of(other)) / 30)
    assert max(moved) == pytest.approx(bound)
    y = np.linspace(-1, 1, 30)
    found = OneShotSketching(radius=0.7, sketch=10, **PRIVATE).solve([A], y)
    assert found.report["sketch_sensitivity"] == pytest.approx(bound)


def test_what_is_sent_has_the_noise_of_its_sensitivity_on_a_public_grid(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    A, y = make_lasso(n=30, d=40)
    sent = []
    monkeypatch.setattr(
        one_shot, "LeastSquares", lambda matrix, goal: sent.append(matrix) or LeastSquares(A, y)
    )
    exact = Sketch(30, 500).of(A) / 30
    found = OneShotSketching(radius=0.7, sketch=500, max_iter=1, **PRIVATE).solve([A], y)
    messages = sent[0] / np.sqrt(30 * 500)  # as sent, before the coordinator scales them
    bound = 2.0 * Sketch(30, 500).longest * np.sqrt(40) / 30
    scale = bound / gaussian_mu(PRIVATE["epsilon"], PRIVATE["delta"])
    assert found.report["sketch_noise"] == pytest.approx(scale)
    assert kstest((messages - exact).ravel(), norm(scale=scale).cdf).pvalue > LEVEL
    steps = messages / (2.0 ** np.floor(np.log2(scale)) * 2.0**-20)
    assert np.max(np.abs(steps - np.round(steps))) < 1e-6


def test_a_private_run_is_charged_what_it_guarantees() -> None:
    A, y = make_lasso()
    accountant = BudgetAccountant(1.0, 1e-5, neighbouring="features")
    found = OneShotSketching(**RUN, **PRIVATE, accountant=accountant).solve(split(A, 3), y)
    assert str(found.guarantee) == "epsilon = 1, delta = 1e-05 (features)"
    (charge,) = accountant.charges
    assert isinstance(charge.event, Gaussian)
    assert epsilon_of([charge.event], 1e-5) <= 1.0
    plain = OneShotSketching(**RUN).solve(split(A, 3), y)
    assert not np.array_equal(found.x, plain.x)
    loud = OneShotSketching(**RUN, **(PRIVATE | {"epsilon": 1e12})).solve(split(A, 3), y)
    assert LeastSquares(A, y).value(loud.x) == pytest.approx(
        LeastSquares(A, y).value(plain.x), rel=1e-3
    )


@pytest.mark.parametrize(
    ("settings", "reason"),
    [
        ({"delta": 1e-5}, "delta goes with an epsilon, got delta=1e-05 without"),
        ({"radius": 0.0}, "radius must be a finite number above 0, got 0.0"),
        ({"sketch": 0}, "sketch must be an integer from 1 on, got 0"),
        (PRIVATE | {"public_labels": None}, "an epsilon needs public_labels=True, got None"),
        (PRIVATE | {"entry_bound": 0.5}, "entries must be at most entry_bound = 0.5"),
        (PRIVATE | {"delta": None}, "a private run needs a delta, got None"),
        (PRIVATE | {"max_iter": -1}, "max_iter must be an integer from 0 on, got -1"),
        (PRIVATE | {"tol": -1.0}, "tol must be a finite number from 0 on, got -1.0"),
    ],
)
def test_bad_settings_are_refused_before_a_charge(settings: dict[str, Any], reason: str) -> None:
    A, y = make_lasso()
    accountant = BudgetAccountant(5.0, 1e-5, neighbouring="features")
    extra = {"accountant": accountant} if "epsilon" in settings else {}
    with pytest.raises(ValueError, match=re.escape(reason)):
        OneShotSketching(**(RUN | settings | extra)).solve(split(A, 3), y)
    assert accountant.charges == ()
