"""FrankWolfeLasso: scikit-learn's checks, the four kinds of fit, and what they refuse."""

from __future__ import annotations

import re
import warnings
from typing import Any

import numpy as np
import pytest
from frank_wolfe_problems import make_lasso, split
from listener import Listener, needs_callbacks
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import Lasso
from sklearn.utils import estimator_checks

from dpsvm.frank_wolfe import FrankWolfeLasso, L1Ball, LeastSquares, minimize
from dpsvm.privacy import BudgetAccountant
from dpsvm.warnings import PrivacyLeakWarning

CENTRAL = {"epsilon": 1.0, "delta": 1e-5, "entry_bound": 1.0, "label_bound": 1.0, "rounds": 10}
PARTIES = {
    "epsilon": 1.0,
    "delta": 1e-5,
    "entry_bound": 1.0,
    "public_labels": True,
    "rounds": 10,
    "sketch": 20,
}


@estimator_checks.parametrize_with_checks([FrankWolfeLasso(radius=5.0, max_iter=200)])
def test_scikit_learn_check(estimator: FrankWolfeLasso, check: Any) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        check(estimator)


def test_it_is_the_lasso_of_scikit_learn_for_the_norm_of_its_solution() -> None:
    A, y = make_lasso(n=80, d=15)
    other = Lasso(alpha=0.02, fit_intercept=False, tol=1e-10).fit(A, y)
    model = FrankWolfeLasso(float(np.abs(other.coef_).sum()), tol=1e-3, max_iter=5000).fit(A, y)
    least = LeastSquares(A, y).value(other.coef_)
    assert 0 <= model.objective_ - least + 1e-10 <= model.dual_gap_ + 1e-10
    assert np.max(np.abs(model.coef_ - other.coef_)) < 0.02
    assert model.score(A, y) == pytest.approx(other.score(A, y), abs=2e-3)


def test_tables_blocks_and_parties_are_the_same_fit() -> None:
    A, y = make_lasso()
    central = FrankWolfeLasso(0.7, max_iter=50, tol=0.0, step="diminishing")
    with pytest.warns(ConvergenceWarning, match="after max_iter = 50 steps"):
        central.fit(sparse.csr_array(A), y)
    assert central.coef_ == pytest.approx(
        minimize(LeastSquares(A, y), L1Ball(12, 0.7), max_iter=50).x, abs=1e-12
    )
    parts = FrankWolfeLasso(0.7, rounds=50, step="diminishing")
    for X, parties in (
        (split(A, 3), None),
        (A, [4, 4, 4]),
        (A, [np.arange(0, 12, 2), np.arange(1, 12, 2)]),
        (sparse.csr_array(A), [slice(6), slice(6, 12)]),
    ):
        parts.fit(X, y, parties)
        assert np.max(np.abs(parts.coef_ - central.coef_)) < 1e-12
        assert parts.predict(X) == pytest.approx(A @ central.coef_, abs=1e-12)
        assert parts.objective_ == pytest.approx(central.objective_)
        assert len(parts.history_) == parts.n_iter_ == 50
        assert parts.privacy_guarantee_ is None


def test_private_fits_say_what_they_guarantee_and_hide_the_rest() -> None:
    A, y = make_lasso()
    accountant = BudgetAccountant(2.0, 1e-5, neighbouring="replace")
    model = FrankWolfeLasso(0.7, **CENTRAL, accountant=accountant).fit(A, y)
    assert (model.epsilon_, model.delta_, model.neighbouring_) == (1.0, 1e-5, "replace")
    assert (model.objective_, model.dual_gap_, model.history_) == (None, None, None)
    assert len(accountant.charges) == 1
    pure = FrankWolfeLasso(0.7, **(CENTRAL | {"delta": None})).fit(A, y)
    assert str(pure.privacy_guarantee_) == "epsilon = 1 (replace)"
    parts = FrankWolfeLasso(0.7, **PARTIES).fit(A, y, parties=[6, 6])
    assert str(parts.privacy_guarantee_) == "epsilon = 1, delta = 1e-05 (features)"
    assert parts.traffic_.up_integers == 20
    assert parts.objective_ is None
    with pytest.warns(PrivacyLeakWarning, match="repeatable") as caught:
        FrankWolfeLasso(0.7, **CENTRAL, random_state=0).fit(A, y)
    assert caught[0].filename == __file__


@needs_callbacks
def test_callbacks_hear_every_step_and_cannot_end_a_private_fit() -> None:
    A, y = make_lasso()
    settings = {"max_iter": 10, "tol": 0.0}
    for extra, parties, steps in (
        (settings, None, 3),
        ({"rounds": 10}, [6, 6], 4),
        (CENTRAL, None, 10),
        (PARTIES, [6, 6], 10),
    ):
        heard = Listener(last=4)
        model = FrankWolfeLasso(0.7, **extra).set_callbacks(heard)
        model.fit(A, y, parties=parties)
        assert model.n_iter_ == steps
        assert model.stop_reason_ == ("rounds" if steps == 10 else "stopped")
        assert heard.ended.count("round") == (steps if steps != 3 else 4)


@pytest.mark.parametrize(
    ("settings", "parties", "reason"),
    [
        ({"radius": 0.0}, None, "radius must be a finite number above 0, got 0.0"),
        ({"radius": "big"}, None, "radius must be a finite number above 0, got 'big'"),
        ({"tau": 2}, None, "tau goes with parties, got tau=2 without"),
        ({"sketch": 20}, None, "sketch goes with parties, got sketch=20 without"),
        ({"delta": 1e-5}, None, "delta goes with an epsilon, got delta=1e-05 without"),
        ({"public_labels": True}, [6, 6], "public_labels goes with an epsilon"),
        ({"tol": 0.1}, [6, 6], "tol is for a fit without parties and privacy, got 0.1"),
        (CENTRAL | {"tol": 0.1}, None, "tol is for a fit without parties and privacy"),
        (CENTRAL | {"step": "line-search"}, None, "takes step='diminishing' alone"),
        (CENTRAL | {"entry_bound": None}, None, "needs entry_bound, got None"),
        (CENTRAL | {"label_bound": None}, None, "needs label_bound, got None"),
        (CENTRAL | {"label_bound": 0.1}, None, "at most label_bound = 0.1"),
        (CENTRAL | {"public_labels": True}, None, "without parties takes no public_labels"),
        (PARTIES | {"label_bound": 1.0}, [6, 6], "labels are public or protected, got"),
        (PARTIES | {"send": "winner"}, [6, 6], "send is for a fit without privacy, got"),
        ({"send": "some"}, [6, 6], "send must be 'all' or 'winner', got 'some'"),
        ({"send": "winner", "problem": "product"}, [6, 6], "in 'product' there are K winners"),
        (PARTIES | {"sketch": "some"}, [6, 6], "sketch must be 'auto', got 'some'"),
        (PARTIES | {"public_labels": None}, [6, 6], "an epsilon needs public_labels=True"),
        (PARTIES | {"delta": None}, [6, 6], "needs delta, got None"),
        (PARTIES | {"tau": 9}, [6, 6], "from 1 to 6, got 9"),
        ({}, [6, 5], "parties = [6, 5] are 11 columns, X has 12"),
    ],
)
def test_settings_that_do_not_fit_are_refused_and_leave_no_model(
    settings: dict[str, Any], parties: list[int] | None, reason: str
) -> None:
    A, y = make_lasso()
    model = FrankWolfeLasso(**settings)
    with pytest.raises(ValueError, match=re.escape(reason)):
        model.fit(A, y, parties=parties)
    assert not hasattr(model, "coef_")
