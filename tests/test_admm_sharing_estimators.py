"""The estimators of ADMM sharing: blocks in, a model out, and what they refuse."""

from __future__ import annotations

import math
import re
import warnings
from typing import Any

import numpy as np
import pytest
from listener import Failing, Listener, assert_rounds_are_tasks, needs_callbacks
from scipy import sparse
from sharing_problems import make_problem
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import Ridge
from sklearn.utils import estimator_checks

from dpsvm.admm import Ball, Box, SharingADMMClassifier, SharingADMMRegressor
from dpsvm.admm.sharing.comparison import compare
from dpsvm.privacy import BudgetAccountant, BudgetError
from dpsvm.warnings import PrivacyLeakWarning

ROW = {"data_norm": 2.0, "radius": 2.0, "target_bound": 3.0, "epsilon": 1.0, "delta": 1e-5}
COLUMN = {"column_norm": 20.0, "target_norm": 30.0, "epsilon": 1.0, "delta": 1e-5}
PAPER = {"b1": 1.0, "c1": 1.0, "epsilon": 1.0, "delta": 1e-5}
MODES = [("row", ROW), ("column", COLUMN), ("paper", PAPER)]


@estimator_checks.parametrize_with_checks(
    [SharingADMMClassifier(rounds=100), SharingADMMRegressor(rounds=100)]
)
def test_scikit_learn_check(estimator: Any, check: Any) -> None:
    check(estimator)


def test_blocks_sizes_and_lists_of_columns_are_the_same_split() -> None:
    blocks, y = make_problem()
    X = np.hstack(blocks)
    model = SharingADMMClassifier().fit(blocks, y)
    by_size = SharingADMMClassifier().fit(X, y, parties=[4, 3, 2])
    shuffled = np.random.default_rng(0).permutation(9)
    places = np.argsort(shuffled)
    by_place = SharingADMMClassifier().fit(
        sparse.csr_matrix(X[:, shuffled]), y, parties=[places[:4], places[4:7], places[7:]]
    )
    assert np.array_equal(model.coef_, by_size.coef_)
    assert np.allclose(by_place.coef_[:, places], model.coef_, atol=1e-12)
    assert (model.coef_.shape, model.intercept_.shape) == ((1, 9), (1,))
    assert np.allclose(by_place.decision_function(X[:, shuffled]), model.decision_function(X))
    assert np.array_equal(model.predict(blocks), model.predict(X))
    assert np.allclose(model.predict_proba(blocks).sum(axis=1), 1)
    assert model.n_parties_ == 3


def test_the_intercept_is_the_weight_of_one_partys_constant_column() -> None:
    blocks, y = make_problem(1, regression=True)
    model = SharingADMMRegressor(rounds=3000, tol=1e-13, intercept_party=1).fit(blocks, y + 3)
    constant = np.ones((len(y), 1))
    other = Ridge(1.0, fit_intercept=False).fit(np.hstack([*blocks, constant]), y + 3)
    assert model.stop_reason_ == "converged"
    assert model.intercept_ == pytest.approx(other.coef_[-1])
    assert np.allclose(model.coef_, other.coef_[:-1])
    assert np.allclose(model.predict(blocks), np.hstack([*blocks, constant]) @ other.coef_)


def test_the_history_holds_the_test_loss_of_every_round() -> None:
    blocks, y = make_problem(2)
    model = SharingADMMClassifier(rounds=5, intercept_party=0)
    model.fit(blocks, y, evaluate_on=(np.hstack(blocks), y))
    losses = np.logaddexp(0, -y * model.decision_function(blocks))
    assert model.history_["test_loss"][-1] == pytest.approx(losses.mean())
    assert model.history_["objective"][-1] == pytest.approx(model.objective_)
    assert len(model.history_) == model.n_iter_ == 5
    assert model.history_.outside_guarantee() == ()


def test_without_tracking_the_model_is_the_same_and_the_history_empty() -> None:
    blocks, y = make_problem(3)
    tracked = SharingADMMClassifier().fit(blocks, y)
    plain = SharingADMMClassifier(track=False).fit(blocks, y)
    assert np.array_equal(tracked.coef_, plain.coef_)
    assert len(plain.history_) == 0


def test_the_assumptions_of_the_theorem_are_told_when_asked_for() -> None:
    blocks, y = make_problem(4)
    model = SharingADMMClassifier(diagnose=True).fit(blocks, y)
    told = [str(line) for line in model.assumptions_]
    assert len(told) == 3 * 2 + 2
    assert any(line.startswith("party 2: column rank: 2 against 2, holds") for line in told)
    assert any(re.match(r"rho >= L: .* against 0\.25, does not hold", line) for line in told)


def test_a_divergence_warns_with_advice_and_keeps_the_best_weights() -> None:
    column = np.zeros((4, 1))
    column[0] = 1.0
    y = np.array([2.0, 0.5, -1.0, 2.0])
    model = SharingADMMRegressor(method="jacobi", rho=2.0, lam=1e-3, rounds=500)
    with pytest.warns(ConvergenceWarning, match=r"diverged .* least loss; .*='sharing' converges"):
        model.fit([column] * 3, y)
    assert model.stop_reason_ == "diverged"
    assert model.kappa_ == 1
    assert model.objective_ == pytest.approx(model.history_["objective"].min())
    better = SharingADMMRegressor(rho=2.0, lam=1e-3, rounds=500).fit([column] * 3, y)
    assert better.objective_ < model.objective_


# Private modes


def _private(mode, bounds, **settings):
    return SharingADMMClassifier(privacy=mode, rounds=5, **(bounds | settings))


@pytest.mark.parametrize(("mode", "bounds"), MODES)
def test_a_seeded_private_fit_repeats_itself_and_warns(mode: str, bounds: dict[str, Any]) -> None:
    blocks, y = make_problem(5)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", PrivacyLeakWarning)
        one = _private(mode, bounds, random_state=0).fit(blocks, y)
    told = [str(warning.message) for warning in caught]
    assert any("random_state makes the noise repeatable" in line for line in told)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PrivacyLeakWarning)
        two = _private(mode, bounds, random_state=0).fit(blocks, y)
        three = _private(mode, bounds).fit(blocks, y)
    assert np.array_equal(one.coef_, two.coef_)
    assert not np.array_equal(one.coef_, three.coef_)
    assert one.history_.outside_guarantee() == ()
    assert np.isnan(one.history_["objective"]).all()
    assert one.objective_ is one.dual_ is None


def test_a_guarantee_is_reported_as_one_and_a_claim_is_not() -> None:
    blocks, y = make_problem(6)
    row = _private("row", ROW, epsilon=2.0).fit(blocks, y)
    assert (row.message_epsilon_, row.message_delta_) == (2.0, 1e-5)
    assert row.epsilon_ is row.delta_ is row.neighbouring_ is row.privacy_guarantee_ is None
    assert row.privacy_report_["whole_record"] > row.privacy_report_["tight"]
    assert all(np.linalg.norm(weights) <= 2.0 for weights in row.coefs_)
    column = _private("column", COLUMN).fit(blocks, y)
    told = "epsilon = 1, delta = 1e-05 (column), of the messages alone"
    assert str(column.message_guarantee_) == told
    with pytest.warns(PrivacyLeakWarning, match="gives no privacy guarantee"):
        paper = _private("paper", PAPER).fit(blocks, y)
    assert paper.privacy_guarantee_ is paper.message_guarantee_ is paper.message_epsilon_ is None
    assert paper.privacy_report_["reason"].startswith("claimed by the paper, not a guarantee")
    for model in (row, column, paper):
        assert model.privacy_guarantee_ is model.epsilon_ is model.delta_ is None
        assert "labels are not protected here" in model.privacy_report_["labels"]
        assert "outside" in model.privacy_report_["outside"]
    plain = SharingADMMClassifier().fit(blocks, y)
    assert plain.privacy_report_ is plain.privacy_guarantee_ is None


def test_an_accountant_is_charged_before_the_fit_for_a_record_in_all_the_parties() -> None:
    blocks, y = make_problem(8)
    ledger = BudgetAccountant(epsilon=5.0, delta=1e-5, neighbouring="row")
    model = _private("row", ROW, accountant=ledger).fit(blocks, y)
    assert ledger.total().epsilon == pytest.approx(model.privacy_report_["whole_record"])
    with pytest.raises(BudgetError):
        _private("row", ROW, epsilon=5.0, accountant=ledger).fit(blocks, y)
    with pytest.raises(ValueError, match="has no guarantee, so it cannot charge"):
        _private("paper", PAPER, accountant=ledger).fit(blocks, y)


# Bad input

TWO = [np.ones((4, 1)), np.ones((4, 2))]
LABELS = [0, 1, 0, 1]


@pytest.mark.parametrize(
    ("X", "y", "parties", "told"),
    [
        ([np.ones((4, 1)), np.ones((3, 1))], LABELS, None, "same rows, got [4, 3] of them"),
        ([np.ones((4, 1)), np.ones((4, 0))], LABELS, None, "block 1 has 0 feature(s)"),
        (np.ones((4, 3)), LABELS, [3, 0], "party 1 has no columns"),
        (np.ones((4, 3)), LABELS, [2, 2], "parties = [2, 2] are 4 columns, X has 3"),
        (np.ones((4, 3)), LABELS, [[0, 1], []], "party 1 has no columns"),
        (np.ones((4, 3)), LABELS, [[0, 1], [1, 2]], "name a column twice"),
        (np.ones((4, 3)), LABELS, [[0], [1]], "name 2 columns, X has 3"),
        (np.ones((4, 3)), LABELS, [[0, 1], [7]], "do not name columns of X, which has 3"),
        (np.ones((4, 3)), LABELS, [], "at least one block"),
        (np.ones((4, 3)), LABELS, 2, "a list of sizes or of columns, got 2"),
        (np.ones((4, 3)), LABELS, [[[0, 1]], [2]], "party 0 must be a list of columns"),
        ([np.ones((4, 1)), np.ones(4)], LABELS, None, "Expected 2D array, got 1D array"),
        (TWO, LABELS, [1, 2], "a list of blocks is already split"),
        (TWO, [0, 1, 2, 0], None, "y must hold two classes, got 3 classes"),
        (TWO, [1, 1, 1, 1], None, "y must hold two classes, got 1 class"),
        (TWO, [0, 1, 0], None, "X has 4 rows and y 3"),
        ([np.full((4, 1), np.nan)], LABELS, None, "NaN"),
    ],
)
def test_data_that_do_not_fit_together_are_refused(
    X: Any, y: list[int], parties: Any, told: str
) -> None:
    with pytest.raises(ValueError, match=re.escape(told)):
        SharingADMMClassifier().fit(X, y, parties=parties)


@pytest.mark.parametrize(
    ("settings", "told"),
    [
        ({"rho": 0.0}, "rho must be a finite number above 0, got 0.0"),
        ({"rho": "big"}, "rho must be 'auto' or a finite number above 0, got 'big'"),
        ({"lam": -2.0}, "lam must be a finite number above 0, got -2.0"),
        ({"C": 0.0}, "C must be a finite number above 0, got 0.0"),
        ({"method": "jacobi", "kappa": 2}, "method='jacobi' is kappa = 1, got kappa = 2"),
        ({"intercept_party": 2}, "intercept_party must be below 2"),
        ({"rounds": 0}, "rounds"),
        ({"kappa": np.ones(2)}, "kappa must be a finite number above 0, got array"),
        ({"epsilon": 1.0}, "epsilon goes with a private mode, got epsilon=1.0 and privacy=None"),
        ({"delta": 1e-5}, "delta goes with a private mode"),
        ({"data_norm": 1.0}, "data_norm goes with a private mode"),
        ({"privacy": "row"} | ROW | {"b1": 1.0}, "takes no public bound b1, got 1.0"),
        ({"privacy": "row"} | ROW | {"epsilon": None}, "needs an epsilon, got None"),
        ({"loss": "cubic"}, "loss"),
        ({"privacy": "row"} | ROW | {"radius": None}, "needs the public bound radius"),
        ({"privacy": "row"} | ROW | {"delta": None}, "needs a delta, got None"),
        ({"privacy": "row"} | ROW | {"data_norm": 1.0}, "above the public bound data_norm = 1"),
        ({"privacy": "row"} | ROW | {"constraint": Box(-1, 1)}, "keeps the weights in the ball"),
        ({"privacy": "row"} | ROW | {"penalty": "l1"}, "proved for penalty='l2' alone"),
        ({"privacy": "column"} | COLUMN | {"constraint": Ball(1.0)}, "without a constraint"),
        ({"privacy": "column"} | COLUMN | {"column_norm": 1.0}, "above the public bound"),
        ({"privacy": "column"} | COLUMN | {"adaptive_rho": True}, "needs a fixed rho"),
        ({"privacy": "column"} | COLUMN | {"epsilon": 0.0}, "epsilon must be a finite number"),
    ],
)
def test_settings_that_do_not_hold_are_refused_with_their_value(
    settings: dict[str, Any], told: str
) -> None:
    with pytest.raises(ValueError, match=re.escape(told)):
        SharingADMMClassifier(**settings).fit(TWO, LABELS)


def test_new_samples_must_have_the_columns_of_the_fit() -> None:
    model = SharingADMMClassifier().fit([np.eye(4)[:, :1], np.eye(4)[:, 1:3]], LABELS)
    with pytest.raises(ValueError, match=r"blocks of \[1, 2\] columns are needed, got \[2, 1\]"):
        model.predict([np.ones((2, 2)), np.ones((2, 1))])
    with pytest.raises(
        ValueError, match="X has 4 features, but SharingADMMClassifier is expecting"
    ):
        model.predict(np.ones((2, 4)))
    with pytest.raises(ValueError, match="evaluate_on holds the label 7"):
        model.fit(np.eye(4), LABELS, evaluate_on=(np.eye(4), [0, 1, 7, 1]))
    hinge = SharingADMMClassifier("hinge").fit(np.eye(4), LABELS)
    assert not hasattr(hinge, "predict_proba")


def test_new_samples_must_have_the_names_of_the_fit() -> None:
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(np.eye(4), columns=list("abcd"))
    model = SharingADMMClassifier().fit(frame, LABELS, parties=[2, 2])
    assert model.feature_names_in_.tolist() == list("abcd")
    with pytest.raises(ValueError, match="feature names should match"):
        model.predict(frame[list("abdc")])
    with pytest.raises(ValueError, match="feature names should match"):
        model.predict([frame[list("ba")], frame[list("cd")]])
    with pytest.raises(ValueError, match="feature names should match"):
        model.fit(frame, LABELS, evaluate_on=(frame[list("abdc")], LABELS))
    blocks = [frame[list("ab")], frame[list("cd")]]
    assert model.fit(blocks, LABELS).feature_names_in_.tolist() == list("abcd")
    with pytest.raises(ValueError, match="feature names should match"):
        model.predict(frame[list("abdc")])


def test_what_can_be_refused_is_refused_before_the_budget_is_charged() -> None:
    X, y = np.random.default_rng(0).standard_normal((20, 4)) / 10, [0, 1] * 10
    ledger = BudgetAccountant(epsilon=5.0, delta=1e-5, neighbouring="row")
    bounds = {"data_norm": 1.0, "radius": 1.0, "target_bound": 2.0}
    budget = {"epsilon": 1.0, "delta": 1e-5, "accountant": ledger}
    model = SharingADMMClassifier(privacy="row", **budget, **bounds)
    with pytest.raises(ValueError, match="evaluate_on has 20 rows and 19 targets"):
        model.fit(X, y, parties=[2, 2], evaluate_on=(X, y[:-1]))
    with pytest.raises(ValueError, match="evaluate_on must be a pair"):
        model.fit(X, y, evaluate_on=(X,))
    assert ledger.charges == ()
    with pytest.raises(ValueError, match="accountant goes with a private mode"):
        SharingADMMClassifier(accountant=ledger).fit(X, y)
    huge = [np.full((20, 1), 1e200), X]
    column = SharingADMMClassifier(privacy="column", column_norm=1e202, target_norm=1.0, **budget)
    with pytest.raises(ValueError, match="must be from 1e-100 to"):
        column.fit(huge, y)
    assert ledger.charges == ()


@pytest.mark.parametrize(
    "bounds",
    [
        {"column_norm": 1e200, "target_norm": 1.0},
        {"column_norm": 1e-200, "target_norm": 1.0},
        {"column_norm": 1.0, "target_norm": 1e-320},
        {"column_norm": 1.0, "target_norm": 1e300},
        {"data_norm": 1.0, "radius": 1.0, "target_bound": 1e300},
        {"data_norm": 1.0, "radius": 1.0, "target_bound": 1.0, "delta": 5e-324},
        {"data_norm": 1.0, "radius": 1.0, "target_bound": 1.0, "epsilon": 1e300},
        {"data_norm": 1e200, "radius": 1e200, "target_bound": 1.0},
    ],
    ids=str,
)
def test_bounds_that_floating_point_cannot_hold_are_refused_before_the_charge(
    bounds: dict[str, Any],
) -> None:
    X, y = np.zeros((20, 4)), [0, 1] * 10
    mode = "row" if "data_norm" in bounds else "column"
    ledger = BudgetAccountant(epsilon=5.0, delta=1e-5, neighbouring=mode)
    budget = {"epsilon": 1.0, "delta": 1e-5, "accountant": ledger, "rho": 1e-5}
    with pytest.raises(ValueError, match=r"floating point|must be (at|from)"):
        SharingADMMClassifier(privacy=mode, **(budget | bounds)).fit(X, y)
    assert ledger.charges == ()


def test_a_constraint_binds_every_baseline_and_an_intercept_is_the_first_partys_too() -> None:
    blocks, y = make_problem(10)
    held = SharingADMMClassifier(constraint=Ball(0.02), rounds=30)
    found = compare(held, blocks, y, more=True)
    assert all(found.gap(name) >= -1e-6 for name in ("joint", "Gauss-Seidel", "distributed SGD"))
    blocks, y = make_problem(11, regression=True)
    plain = compare(SharingADMMRegressor(), blocks, y)
    shifted = compare(SharingADMMRegressor(intercept_party=1, lam=1e-3), blocks, y + 50)
    assert shifted["first party alone"].train_loss <= 2 * plain["first party alone"].train_loss


@needs_callbacks
def test_every_round_is_a_task_of_scikit_learns_callbacks_and_one_can_stop_the_run() -> None:
    blocks, y = make_problem(9)
    assert_rounds_are_tasks(4, SharingADMMClassifier(rounds=4), blocks, y)
    stopped = SharingADMMClassifier(rounds=9).set_callbacks(Listener(last=3)).fit(blocks, y)
    assert (stopped.n_iter_, stopped.stop_reason_) == (3, "stopped")


@needs_callbacks
def test_callbacks_are_torn_down_and_nothing_is_charged_when_one_of_them_fails() -> None:
    blocks, y = make_problem(9)

    listener, ledger = Failing(), BudgetAccountant(5.0, 1e-5, neighbouring="row")
    model = _private("row", ROW, accountant=ledger).set_callbacks(listener)
    with pytest.raises(RuntimeError, match="no"):
        model.fit(blocks, y)
    assert not listener.open
    assert ledger.charges == ()


@needs_callbacks
def test_a_callback_cannot_stop_a_private_run() -> None:
    blocks, y = make_problem(9)
    model = _private("row", ROW).set_callbacks(Listener(last=1)).fit(blocks, y)
    assert (model.n_iter_, model.stop_reason_) == (5, "rounds")


@pytest.mark.parametrize("name", ["C", "lam", "rho", "kappa"])
@pytest.mark.parametrize("value", [10**400, 1e200, "1", True, math.nan])
def test_a_number_that_is_none_for_a_step_is_refused_in_one_line(name: str, value: Any) -> None:
    X, y = [[0.0], [1.0]], [0, 1]
    with pytest.raises(ValueError, match=f"^{name} must be .*$") as caught:
        SharingADMMClassifier(**{name: value}).fit(X, y)
    assert len(str(caught.value)) < 120
