"""The estimator of ADMM over a network: shares in, a model out, and what it refuses."""

from __future__ import annotations

import pickle
import re
import warnings
from typing import Any

import numpy as np
import pytest
from listener import Failing, Listener, assert_rounds_are_tasks, needs_callbacks
from network_problems import central, make_problem
from scipy import sparse
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import GridSearchCV
from sklearn.utils import estimator_checks

from dpsvm.admm import ADMM, MADMM, MRADMM, RADMM, NetworkADMM
from dpsvm.losses import Logistic
from dpsvm.privacy import BudgetAccountant, BudgetError
from dpsvm.privacy.minimiser import CertificateError
from dpsvm.privacy.preparation import Preparation
from dpsvm.warnings import PrivacyLeakWarning

OBJECTIVE = {"privacy": "objective", "epsilon": 9.0, "classes": [-1, 1], "rounds": 5}
PRIMAL = OBJECTIVE | {"privacy": "primal"}
GAUSSIAN = OBJECTIVE | {"privacy": "gaussian", "delta": 1e-5}


@estimator_checks.parametrize_with_checks([NetworkADMM(rounds=9)])
def test_scikit_learn_check(estimator: NetworkADMM, check: Any) -> None:
    check(estimator)


def quietly(model, *data, **settings):
    """Fit with a seed, which warns."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PrivacyLeakWarning)
        return model.fit(*data, **settings)


# Shares


def test_lists_assignments_and_dealing_are_the_same_split() -> None:
    tables, signs = make_problem(0, sizes=(20, 20, 20))
    model = RADMM("ring").fit(tables, signs)
    X, y = np.vstack(tables), np.concatenate(signs)
    nodes = np.repeat([0, 1, 2], 20)
    shuffled = np.random.default_rng(0).permutation(60)
    dealt = np.argsort(np.tile(np.arange(20), 3) * 3 + nodes)  # node 0, 1, 2, 0, 1, 2, ...
    for other in (
        RADMM("ring").fit(X, y, nodes=nodes),
        RADMM("ring").fit(X[shuffled], y[shuffled], nodes=nodes[shuffled].tolist()),
        RADMM("ring").fit(sparse.csr_matrix(X), y, nodes=nodes),
        RADMM("ring", n_nodes=3).fit(X[dealt], y[dealt]),
        RADMM(np.ones((3, 3)) - np.eye(3)).fit(X[dealt], y[dealt]),
    ):
        assert np.allclose(other.coef_, model.coef_, atol=1e-8)
        assert other.node_sizes_ == [20, 20, 20]
    assert model.n_features_in_ == 4
    assert np.allclose(model.predict_proba(X).sum(axis=1), 1)
    assert NetworkADMM(rounds=1).fit(X, y).n_nodes_ == 5


def test_the_model_is_the_mean_of_the_nodes_at_the_last_update() -> None:
    tables, signs = make_problem(1)
    odd, even = (RADMM("path", rounds=t).fit(tables, signs) for t in (9, 10))
    assert np.array_equal(odd.coefs_, even.coefs_)
    assert np.allclose(odd.coef_, odd.coefs_.mean(axis=0))
    assert (odd.n_iter_, even.n_iter_, odd.n_updates_, even.n_updates_) == (9, 10, 5, 5)
    assert odd.data_accesses_ == even.data_accesses_ == 20
    assert odd.history_["objective"][-1] == pytest.approx(odd.objective_)


def test_the_four_names_are_one_estimator() -> None:
    kinds = [(m().recycle, m().growth != 1.0) for m in (ADMM, MADMM, RADMM, MRADMM)]
    assert kinds == [(False, False), (False, True), (True, False), (True, True)]
    with pytest.raises(ValueError, match="RADMM has constant penalties: MRADMM is the one"):
        RADMM(growth=1.1)
    with pytest.raises(TypeError, match="recycle"):
        ADMM(recycle=True)
    tables, signs = make_problem(2)
    one, two = RADMM().fit(tables, signs), MRADMM(growth=1.0).fit(tables, signs)
    assert np.array_equal(one.coef_, two.coef_)
    assert isinstance(clone(one), NetworkADMM)


@pytest.mark.parametrize("preset", [ADMM, RADMM])
def test_it_converges_to_the_minimiser(preset: Any) -> None:
    tables, signs = make_problem(3)
    model = preset("random", C=5.0, lam=1.0, rho=0.2, rounds=201, tol=1e-11)
    model.fit(tables, signs)
    assert np.abs(model.coef_ - central(tables, signs, Logistic(), 5.0, 1.0)).max() < 1e-9


def test_the_history_holds_the_test_error_of_every_round() -> None:
    tables, signs = make_problem(4)
    X, y = np.vstack(tables), np.concatenate(signs)
    model = RADMM(rounds=5).fit(tables, signs, evaluate_on=(X, y))
    wrong = np.mean(model.predict(X) != y)
    assert model.history_["test_error"][-1] == wrong
    losses = np.logaddexp(0, -y * model.decision_function(X))
    assert model.history_["test_loss"][-1] == pytest.approx(losses.mean())
    assert model.history_.outside_guarantee() == ()
    plain = RADMM(rounds=5, track=False).fit(tables, signs)
    assert len(plain.history_) == 0
    assert np.array_equal(plain.coef_, model.coef_)


def test_a_public_norm_and_a_constant_are_those_of_the_private_machines() -> None:
    tables, signs = make_problem(5)
    tables = [4 * X + 1 for X in tables]
    prepare = Preparation(data_norm=3.0, constant=0.5)
    model = RADMM(data_norm=3.0, constant=0.5, C=3.0, rounds=9)
    model.fit(tables, signs, evaluate_on=(tables[0], signs[0]))
    bare = RADMM(C=3.0, rounds=9).fit([prepare(X) for X in tables], signs)
    X = tables[0][np.linalg.norm(tables[0], axis=1) < 3]
    assert np.allclose(model.decision_function(X), bare.decision_function(prepare(X)))
    assert model.intercept_ != 0
    assert np.linalg.norm(tables[0], axis=1).max() > 3  # and is not shortened where it is tested
    assert model.history_["test_error"][-1] == np.mean(model.predict(tables[0]) != signs[0])
    losses = np.logaddexp(0, -signs[0] * model.decision_function(tables[0]))
    assert model.history_["test_loss"][-1] == pytest.approx(losses.mean())


def test_per_node_penalties_warn_and_name_the_point() -> None:
    tables, signs = make_problem(6)
    model = ADMM(penalty="per-node", rho=[0.5, 1.0, 0.5, 2.0], rounds=2)
    with pytest.warns(ConvergenceWarning, match=r"argmin sum_i O_i / rho_i, .* 2, 1, 2, 0.5"):
        model.fit(tables, signs)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        ADMM(penalty="per-node", rho=0.5, rounds=2).fit(tables, signs)


def test_a_tolerance_out_of_reach_warns_without_privacy() -> None:
    tables, signs = make_problem(7)
    with pytest.warns(ConvergenceWarning, match="not to tol = 1e-15"):
        ADMM(tol=1e-15, rounds=2).fit(tables, signs)


def test_a_start_is_seeded_and_no_function_of_the_data() -> None:
    tables, signs = make_problem(8)
    one, two = (RADMM(start_seed=3, rounds=1).fit(tables, signs).coef_ for _ in range(2))
    assert np.array_equal(one, two)
    assert not np.allclose(one, RADMM(rounds=1).fit(tables, signs).coef_)


def test_a_fitted_model_survives_pickling() -> None:
    tables, signs = make_problem(9)
    model = RADMM(rounds=3).fit(tables, signs)
    again = pickle.loads(pickle.dumps(model))
    assert np.array_equal(again.predict(tables[0]), model.predict(tables[0]))


# Private modes


@pytest.mark.parametrize("mode", [OBJECTIVE, PRIMAL, GAUSSIAN], ids=lambda one: one["privacy"])
def test_a_private_fit_reports_its_guarantee(mode: dict[str, Any]) -> None:
    tables, signs = make_problem(10)
    with pytest.warns(PrivacyLeakWarning, match="random_state makes the noise repeatable"):
        one = RADMM(random_state=0, **mode).fit(tables, signs)
    two = quietly(RADMM(random_state=0, **mode), tables, signs)
    three = RADMM(**mode).fit(tables, signs)
    assert np.array_equal(one.coef_, two.coef_)
    assert not np.array_equal(one.coef_, three.coef_)
    assert (one.epsilon_, one.neighbouring_) == (9.0, "replace")
    assert one.delta_ == mode.get("delta", 0.0)
    assert one.objective_ is None
    spent = one.history_["privacy"]
    assert spent[-1] == pytest.approx(9.0)
    assert spent[1] == spent[0] < spent[2]  # a recycled round is free
    assert np.isnan(one.history_["gradient_norm"]).all()
    assert one.history_.outside_guarantee() == ()
    assert np.isnan(one.history_["loss"]).all()
    report = one.privacy_report_
    assert report["guarantee"] == str(one.privacy_guarantee_)
    assert report["noise_source"] == "a seed: for experiments only"
    assert three.privacy_report_["noise_source"] == "the operating system"
    assert (report["paper"] is None) == (mode["privacy"] != "objective")


def test_a_given_alpha_tells_its_epsilon() -> None:
    tables, signs = make_problem(11)
    settings = {"privacy": "objective", "classes": [-1, 1], "rounds": 5, "random_state": 0}
    model = quietly(RADMM(alpha=2.0, **settings), tables, signs)
    assert model.epsilon_ == pytest.approx(model.privacy_report_["tight"] / 0.999)
    assert model.epsilon_ < model.privacy_report_["paper"]


def test_an_accountant_is_charged_once_before_the_run(monkeypatch: pytest.MonkeyPatch) -> None:
    tables, signs = make_problem(12)
    ledger = BudgetAccountant(epsilon=10.0, neighbouring="replace")
    quietly(RADMM(accountant=ledger, random_state=0, **OBJECTIVE), tables, signs)
    assert ledger.total().epsilon == 9.0
    with pytest.raises(BudgetError):
        RADMM(accountant=ledger, **OBJECTIVE).fit(tables, signs)
    other = BudgetAccountant(epsilon=10.0, neighbouring="add-remove")
    with pytest.raises(BudgetError, match="'replace' cannot be charged to a budget for"):
        RADMM(accountant=other, **OBJECTIVE).fit(tables, signs)
    strict = BudgetAccountant(epsilon=10.0, neighbouring="replace")
    with pytest.raises(ValueError, match="out of reach of floating-point numbers"):
        RADMM(accountant=strict, **OBJECTIVE, tol=1e-15).fit(tables, signs)
    assert strict.charges == ()
    model = RADMM(accountant=strict, **OBJECTIVE)
    missed = "dpsvm.admm.network.node.approach"
    monkeypatch.setattr(missed, lambda objective, tol, start: (start, np.inf))
    with pytest.raises(CertificateError):
        model.fit(tables, signs)
    assert strict.total().epsilon == 9.0  # what was charged stays charged
    assert not hasattr(model, "coef_")


def test_a_search_over_private_models_warns() -> None:
    tables, signs = make_problem(13)
    X, y = np.vstack(tables), np.concatenate(signs)
    model = RADMM(random_state=0, **(OBJECTIVE | {"rounds": 1, "track": False}))
    with (
        pytest.warns(PrivacyLeakWarning, match="random_state"),
        pytest.warns(PrivacyLeakWarning, match="the choice itself is covered by no guarantee"),
    ):
        GridSearchCV(model, {"lam": [1.0]}, cv=2).fit(X, y)


def test_all_that_can_be_refused_is_refused_before_a_charge() -> None:
    tables, signs = make_problem(14)
    X, y = np.vstack(tables), np.concatenate(signs)
    ledger = BudgetAccountant(epsilon=100.0, delta=1e-5, neighbouring="replace")
    far = 2 * X
    odd = np.where(np.arange(len(y)) == 3, 7, y)
    for settings, data, more, told in [
        ({}, (far, y), {}, "a row of node 0 has a norm above 1"),
        ({}, (X, odd), {}, "y holds a label that is not in classes = [-1, 1]"),
        ({}, (X, y), {"evaluate_on": (X, y[:-1])}, "evaluate_on has 115 rows and 114 labels"),
        ({}, (X, y), {"evaluate_on": (X, odd)}, "evaluate_on holds the label"),
        ({"C": 1e3}, (X, y), {}, "C must be at most the number of samples of every node"),
        ({"graph": [(0, 1), (2, 3)]}, (X, y), {}, "the graph is not connected"),
        ({"rho": -1.0}, (X, y), {}, "rho must hold finite numbers above 0"),
        ({"epsilon": 1e-6}, (X, y), {}, "too small for any noise"),
        ({"classes": None}, (X, y), {}, "classes must be given with a private mode"),
        ({"classes": [1, 1]}, (X, y), {}, "classes must be two different labels"),
        ({"loss": "hinge"}, (X, y), {}, "loss='hinge' has no bound on its curvature"),
        ({"random_state": "seven"}, (X, y), {}, "random_state must be None"),
    ]:
        model = NetworkADMM(**({"accountant": ledger} | OBJECTIVE | settings))
        with pytest.raises(ValueError, match=re.escape(told)):
            model.fit(*data, **more)
        assert ledger.charges == ()
        assert not hasattr(model, "coef_")


# Bad input


@pytest.mark.parametrize(
    ("X", "y", "nodes", "told"),
    [
        ([np.ones((4, 1)), np.ones((4, 2))], [[0, 1] * 2] * 2, None, "same columns, got [1, 2]"),
        ([np.ones((4, 1)), np.ones((0, 1))], [[0, 1] * 2, []], None, "node 1 has no samples"),
        ([np.ones((4, 1))] * 2, [[0, 1] * 2, [0, 1]], None, "node 1 has 4 rows and 2 labels"),
        ([np.ones((4, 1))] * 2, [[0, 1] * 2], None, "X holds 2 nodes, and y the labels of 1"),
        ([np.ones((4, 1))] * 2, [[0, 1] * 2] * 2, [0, 1], "a list is already split"),
        ([np.ones((4, 1))], [[0, 1] * 2], None, "at least 2 nodes, got 1"),
        ([np.full((4, 1), np.nan)] * 2, [[0, 1] * 2] * 2, None, "NaN"),
        (np.ones((4, 1)), [0, 1, 2, 1], None, "y must hold two classes, got 3 classes"),
        (np.ones((4, 1)), [1, 1, 1, 1], None, "y must hold two classes, got 1 class"),
        (np.ones((4, 1)), [0.5, 1.5, 2.5, 0.5], None, "Unknown label type"),
        (np.ones((4, 1)), [0, 1, 0, 1], [0, 1, 0], "nodes has the shape (3,) for 4 samples"),
        (np.ones((4, 1)), [0, 1, 0, 1], [0, 2, 0, 2], "node 1 has no samples"),
        (np.ones((4, 1)), [0, 1, 0, 1], [0, -1, 0, 1], "nodes are counted from 0, got -1"),
        (np.ones((4, 1)), [0, 1, 0, 1], [0.0, 1.0, 0.0, 1.0], "whole number of each sample's node"),
        (np.ones((4, 1)), [0, 1, 0, 1], [0, 0, 0, 0], "at least 2 nodes, got 1"),
        (np.array([[1.0], [np.inf], [0.0], [1.0]]), [0, 1, 0, 1], None, "infinity"),
    ],
)
def test_data_that_do_not_fit_together_are_refused(
    X: Any, y: list[Any], nodes: list[float] | None, told: str
) -> None:
    with pytest.raises(ValueError, match=re.escape(told)):
        NetworkADMM(C=0.5).fit(X, y, nodes=nodes)


@pytest.mark.parametrize(
    ("settings", "told"),
    [
        ({"recycle": False, "gamma": 0.5}, "gamma goes with recycle=True, got 0.5 without it"),
        ({"width": 0.5}, "width goes with loss='huber' or 'smooth', got 0.5"),
        ({"graph_seed": 1}, "graph_seed goes with graph='random', got 1"),
        ({"density": 0.5}, "density goes with graph='random', got 0.5"),
        ({"epsilon": 1.0}, "epsilon goes with a private mode, got 1.0"),
        ({"delta": 1e-5}, "delta goes with privacy='gaussian', got 1e-05"),
        ({"alpha": 1.0}, "alpha goes with privacy='objective', got 1.0"),
        ({"bound": "paper"}, "bound goes with privacy='objective', got 'paper'"),
        ({"accountant": BudgetAccountant(1.0)}, "accountant goes with a private mode"),
        (OBJECTIVE | {"delta": 1e-5}, "delta goes with privacy='gaussian'"),
        (PRIMAL | {"alpha": 1.0}, "alpha goes with privacy='objective'"),
        (OBJECTIVE | {"alpha": 1.0}, "alpha sets the noise and epsilon follows"),
        (OBJECTIVE | {"epsilon": None}, "privacy='objective' needs an epsilon, got None"),
        (GAUSSIAN | {"delta": None}, "privacy='gaussian' needs a delta, got None"),
        ({"constant": 1.0}, "constant goes with data_norm, got 1.0 without it"),
        ({"loss": "hinge", "width": 0.5}, "width goes with loss='huber' or 'smooth', got 0.5"),
        ({"loss": "square"}, "loss"),
        ({"C": 0.0}, "C"),
        ({"C": 3.0}, "C must be at most the number of samples of every node, got 3.0 for the 2"),
        ({"lam": -1.0}, "lam"),
        ({"gamma": -0.1}, "gamma"),
        ({"growth": 0.9}, "growth must be at least 1"),
        ({"rho": [1.0, 2.0]}, "rho has 2 numbers for 5 nodes"),
        ({"rounds": 0}, "rounds"),
        ({"n_nodes": 1}, "n_nodes"),
        ({"n_nodes": 11}, "10 samples are not enough for 11 nodes"),
        ({"graph": "circle"}, "graph must be one of"),
        ({"tol": 0.0}, "tol"),
        ({"data_norm": -1.0}, "data_norm"),
        ({"privacy": "magic"}, "privacy"),
        ({"penalty": "both"}, "penalty"),
    ],
)
def test_settings_that_do_not_hold_are_refused_with_their_value(
    settings: dict[str, Any], told: str
) -> None:
    X = np.random.default_rng(0).standard_normal((10, 2)) / 10
    with pytest.raises(ValueError, match=re.escape(told)):
        NetworkADMM(**settings).fit(X, [-1, 1] * 5)


def test_what_only_one_form_of_data_takes_is_refused() -> None:
    X, y = np.eye(4), [0, 1, 0, 1]
    with pytest.raises(ValueError, match="n_nodes has no effect where nodes is given"):
        NetworkADMM(n_nodes=2).fit(X, y, nodes=[0, 1, 0, 1])
    with pytest.raises(ValueError, match="the graph has 3 nodes, and the data have 2"):
        NetworkADMM([(0, 1), (1, 2)]).fit(X, y, nodes=[0, 1, 0, 1])
    model = NetworkADMM(loss="huber", rounds=1, n_nodes=2)
    assert not hasattr(model.fit(X, y), "predict_proba")
    with pytest.raises(ValueError, match="evaluate_on must be a pair"):
        model.fit(X, y, evaluate_on=(X,))
    with pytest.raises(ValueError, match="which track=False leaves out"):
        NetworkADMM(track=False, n_nodes=2).fit(X, y, evaluate_on=(X, y))


@pytest.mark.parametrize(
    "settings",
    [
        {"growth": 1.5, "rounds": 81},
        {"growth": 1.1, "rounds": 401},
        {"alpha": 1e-6, "epsilon": None},
        {"alpha": 1e-320, "epsilon": None},
        {"alpha": "0.5", "epsilon": None},
        {"rho": 1e308},
        {"tol": 1e-320},
        {"tol": 1e300},
        {"privacy": "primal", "rho": 1e-200, "lam": 1e-200},
    ],
    ids=str,
)
@pytest.mark.filterwarnings("ignore:the penalties grow")
def test_runs_that_public_numbers_doom_are_refused_before_the_charge(
    settings: dict[str, Any],
) -> None:
    tables, signs = make_problem(15)
    ledger = BudgetAccountant(1e6, neighbouring="replace")
    base = {"privacy": "objective", "epsilon": 20.0, "classes": [-1, 1], "accountant": ledger}
    refused = r"out of reach|must be from 1e-100|must hold numbers|(tol|lam) must be a float"
    with pytest.raises(ValueError, match=refused):
        NetworkADMM(**(base | settings)).fit(tables, signs)
    assert ledger.charges == ()


def test_labels_of_another_kind_are_refused() -> None:
    tables, signs = make_problem(16)
    mixed = [signs[0].astype(int).astype(str), *signs[1:]]
    with pytest.raises(ValueError, match="node 1 are of another kind"):
        NetworkADMM().fit(tables, mixed)
    with pytest.raises(ValueError, match="labels of another kind than classes"):
        NetworkADMM(classes=["-1", "1"]).fit(tables, signs)


def test_columns_have_the_same_names_at_every_node() -> None:
    pandas = pytest.importorskip("pandas")
    tables, signs = make_problem(17)
    frames = [pandas.DataFrame(table, columns=list("abcd")) for table in tables]
    model = NetworkADMM(rounds=3).fit(frames, signs)
    assert model.feature_names_in_.tolist() == list("abcd")
    with pytest.raises(ValueError, match="feature names should match"):
        model.predict(frames[0][list("dcba")])
    frames[1] = frames[1][list("dcba")]
    with pytest.raises(ValueError, match="same columns in the same order, by name"):
        model.fit(frames, signs)


def test_a_pickled_private_model_holds_nothing_outside_its_guarantee() -> None:
    tables, signs = make_problem(18)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PrivacyLeakWarning)
        model = RADMM(random_state=0, **OBJECTIVE).fit(tables, signs, measured=True)
    assert model.history_.outside_guarantee() == ("loss", "objective")
    again = pickle.loads(pickle.dumps(model))
    assert np.isfinite(model.history_["loss"]).all()
    for name in again.history_.OUTSIDE:
        assert np.isnan(again.history_[name]).all()
    assert np.array_equal(again.history_["consensus"], model.history_["consensus"])


def test_penalties_that_grow_too_far_are_warned_of() -> None:
    tables, signs = make_problem(19)
    with pytest.warns(ConvergenceWarning, match="come to agree before they reach the minimiser"):
        MADMM(growth=1.1, rounds=60, tol=1e-6).fit(tables, signs)


@needs_callbacks
def test_every_iteration_is_a_task_of_scikit_learns_callbacks_and_one_can_stop_the_run() -> None:
    tables, signs = make_problem(14)
    assert_rounds_are_tasks(4, RADMM(rounds=4), tables, signs)
    stopped = RADMM(rounds=9).set_callbacks(Listener(last=4)).fit(tables, signs)
    assert (stopped.n_iter_, stopped.n_updates_, len(stopped.history_)) == (4, 2, 4)
    private = RADMM(random_state=0, **OBJECTIVE).set_callbacks(Listener(last=1))
    assert quietly(private, tables, signs).n_iter_ == OBJECTIVE["rounds"]


@needs_callbacks
def test_nothing_is_charged_when_a_callback_fails() -> None:
    tables, signs = make_problem(14)

    listener, ledger = Failing(), BudgetAccountant(epsilon=10.0, neighbouring="replace")
    with pytest.raises(RuntimeError, match="no"):
        RADMM(accountant=ledger, **OBJECTIVE).set_callbacks(listener).fit(tables, signs)
    assert not listener.open
    assert ledger.charges == ()
