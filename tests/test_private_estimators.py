"""The private classifiers: what they promise, what they refuse, and that nothing else gets out."""

from __future__ import annotations

import dataclasses
import json
import math
import pickle
import warnings
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.datasets import make_blobs, make_circles
from sklearn.exceptions import NotFittedError
from sklearn.experimental import enable_halving_search_cv  # noqa: F401
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import (
    GridSearchCV,
    HalvingGridSearchCV,
    RandomizedSearchCV,
    cross_val_score,
)
from sklearn.multiclass import OneVsRestClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import Normalizer

import dpsvm.privacy.estimators
import dpsvm.privacy.methods
from dpsvm import SVC
from dpsvm.losses import HuberHinge, Logistic
from dpsvm.privacy.accountant import BudgetAccountant, BudgetError
from dpsvm.privacy.accounting import Pure, epsilon_of
from dpsvm.privacy.estimators import PrivateLogisticRegression, PrivateSVC
from dpsvm.privacy.guarantee import Guarantee
from dpsvm.privacy.methods import METHODS
from dpsvm.privacy.minimiser import CertificateError, Objective, minimise
from dpsvm.privacy.plan import automatic_C
from dpsvm.privacy.preparation import Preparation
from dpsvm.warnings import PrivacyLeakWarning

BOTH = [PrivateSVC, PrivateLogisticRegression]
PUBLIC = {"data_norm": 4.0, "classes": [0, 1], "delta": 1e-5}


@pytest.fixture(scope="module")
def blobs():
    return make_blobs(400, 3, centers=[[-1, -1, 0], [1, 1, 0]], cluster_std=0.7, random_state=0)


@pytest.fixture(scope="module")
def three():
    centers = [[-2, 0], [2, 0], [0, 3]]
    return make_blobs(900, 2, centers=centers, cluster_std=0.5, random_state=0)


def quiet(model, X, y):
    """Fit with a seed, of which the warning is tested elsewhere."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PrivacyLeakWarning)
        return model.fit(X, y)


class TestGuarantee:
    @pytest.mark.parametrize("kind", BOTH)
    @pytest.mark.parametrize("method", METHODS)
    def test_every_method_states_its_guarantee_and_learns(
        self, kind: type, method: str, blobs: Any
    ) -> None:
        model = kind(epsilon=4.0, method=method, **PUBLIC).fit(*blobs)
        relation = "replace" if method == "objective" else "add-remove"
        delta = 0.0 if method in ("objective", "output-laplace") else 1e-5
        assert model.privacy_guarantee_ == Guarantee(4.0, delta, relation)
        assert (model.epsilon_, model.delta_, model.neighbouring_) == (4.0, delta, relation)
        assert model.coef_.shape == (1, 3)
        assert model.intercept_.shape == (1,)
        assert model.noise_scale_ == model.privacy_report_["noise_scale"]
        if method != "output-laplace":
            assert model.score(*blobs) > 0.8

    def test_output_without_delta_is_pure(self, blobs: Any) -> None:
        model = PrivateSVC(method="output", data_norm=4.0, classes=[0, 1]).fit(*blobs)
        assert model.delta_ == 0.0
        assert model.privacy_report_["noise_law"] == "spherical"

    @pytest.mark.parametrize("relation", ["add-remove", "replace"])
    @pytest.mark.parametrize("method", ["objective-gaussian", "output", "gradient"])
    def test_either_relation_can_be_asked_for(self, relation: str, method: str, blobs: Any) -> None:
        model = PrivateSVC(method=method, neighbouring=relation, **PUBLIC).fit(*blobs)
        assert model.neighbouring_ == relation
        assert model.privacy_report_["neighbouring"] == relation

    @pytest.mark.parametrize("method", METHODS)
    def test_the_report_is_plain_json_and_the_same_for_other_data(
        self, method: str, blobs: Any
    ) -> None:
        X, y = blobs
        model = PrivateSVC(method=method, **PUBLIC)
        first = model.fit(X, y).privacy_report_
        second = model.fit(-3 * X[:50], 1 - y[:50]).privacy_report_
        assert json.loads(json.dumps(first)) == first == second

    def test_hinge_on_output_and_gradient(self, blobs: Any) -> None:
        for method in ("output", "gradient"):
            model = PrivateSVC(epsilon=4.0, method=method, loss="hinge", **PUBLIC)
            assert model.fit(*blobs).score(*blobs) > 0.8

    def test_a_class_weight_raises_the_sensitivity(self, blobs: Any) -> None:
        plain = PrivateSVC(method="output", C=0.1, **PUBLIC).fit(*blobs)
        heavy = PrivateSVC(method="output", C=0.1, class_weight={1: 5.0}, **PUBLIC).fit(*blobs)
        assert heavy.noise_scale_ == pytest.approx(5 * plain.noise_scale_)

    def test_a_class_weight_moves_the_boundary_towards_the_other_class(self, blobs: Any) -> None:
        shares = []
        for weight in (0.05, 1.0, 20.0):
            model = PrivateSVC(
                epsilon=1e6, method="output", C=0.05, class_weight={1: weight}, **PUBLIC
            )
            shares.append(model.fit(*blobs).predict(blobs[0]).mean())
        assert shares == sorted(shares)
        assert shares[0] < shares[2]


class TestManyClasses:
    @pytest.mark.parametrize("method", METHODS)
    def test_the_budget_is_split_and_stated(self, method: str, three: Any) -> None:
        accountant = BudgetAccountant(3.0, 1e-5, neighbouring="replace")
        model = PrivateSVC(
            3.0, 1e-5, method=method, data_norm=4.0, classes=[0, 1, 2], neighbouring="replace",
            accountant=accountant,
        ).fit(*three)  # fmt: skip
        assert model.coef_.shape == (3, 2)
        assert model.decision_function(three[0]).shape == (900, 3)
        assert "3 equal machines" in model.privacy_report_["budget_split"]
        assert len(accountant.charges) == 1
        assert accountant.total().epsilon <= 3.0
        if method in ("objective-gaussian", "gradient"):
            assert model.score(*three) > 0.85

    def test_pure_epsilons_add_up(self) -> None:
        one = PrivateSVC.plan(1.0, None, 100, 3, method="output", C=0.1)
        four = PrivateSVC.plan(4.0, None, 100, 3, method="output", C=0.1, n_classes=4)
        assert one.noise_scale == pytest.approx(four.noise_scale)
        assert "epsilon = 1 each" in four.budget_split

    def test_probabilities_sum_to_one(self, three: Any, blobs: Any) -> None:
        model = PrivateLogisticRegression(5.0, 1e-5, data_norm=4.0, classes=[0, 1, 2]).fit(*three)
        chances = model.predict_proba(three[0])
        assert np.allclose(chances.sum(axis=1), 1)
        assert np.array_equal(model.classes_[chances.argmax(axis=1)], model.predict(three[0]))
        two = PrivateLogisticRegression(**PUBLIC).fit(*blobs)
        assert np.allclose(two.predict_proba(blobs[0]).sum(axis=1), 1)


class TestLimits:
    @pytest.mark.parametrize("method", ["objective-gaussian", "objective", "output"])
    def test_a_growing_epsilon_recovers_the_fit_without_noise(
        self, method: str, blobs: Any
    ) -> None:
        X, y = blobs
        model = PrivateLogisticRegression(1e6, method=method, C=0.5, **PUBLIC)
        model.fit(X, y)
        rows = Preparation(4.0, 0.3)(X)
        objective = Objective(rows, 2.0 * y - 1, np.ones(400), Logistic(), 2.0, np.zeros(4))
        coef, intercept = Preparation(4.0, 0.3).unprepare(minimise(objective, 1e-9)[None])
        assert np.allclose(model.coef_, coef, atol=5e-3)
        assert np.allclose(model.intercept_, intercept, atol=5e-3)

    def test_without_noise_it_is_scikit_learns_logistic_regression(self, blobs: Any) -> None:
        X, y = blobs
        rows = Preparation(4.0, 0.3)(X)
        theirs = LogisticRegression(C=0.5, fit_intercept=False, tol=1e-10).fit(rows, y)
        ours = PrivateLogisticRegression(
            1e7, method="output", C=0.5, data_norm=4.0, classes=[0, 1]
        ).fit(X, y)
        assert np.allclose(ours.decision_function(X), theirs.decision_function(rows), atol=0.02)

    @pytest.mark.parametrize("method", ["objective-gaussian", "objective", "output", "gradient"])
    def test_accuracy_rises_with_epsilon_on_average(self, method: str, blobs: Any) -> None:
        means = []
        for epsilon in (0.02, 0.3, 5.0):
            scores = [
                quiet(PrivateSVC(epsilon, method=method, random_state=seed, **PUBLIC), *blobs)
                for seed in range(15)
            ]
            means.append(np.mean([model.score(*blobs) for model in scores]))
        assert means[0] < means[1] < means[2] + 0.005
        assert means[2] > 0.9

    def test_data_of_one_class_alone_are_fitted(self, blobs: Any) -> None:
        X, _ = blobs
        model = PrivateSVC(**PUBLIC).fit(X, np.zeros(400, int))
        assert model.classes_.tolist() == [0, 1]


class TestRandomFeatures:
    def test_a_circle_is_learned_and_the_linear_machine_cannot(self) -> None:
        X, y = make_circles(2000, factor=0.4, noise=0.05, random_state=0)
        public = {"delta": 1e-5, "data_norm": 2.0, "classes": [0, 1]}
        round_ = PrivateSVC(2.0, kernel="rbf", gamma=1.0, n_components=30, **public).fit(X, y)
        assert round_.score(X, y) > 0.95
        assert PrivateSVC(2.0, **public).fit(X, y).score(X, y) < 0.75

    def test_the_model_holds_no_training_row(self) -> None:
        X, y = make_circles(300, factor=0.4, noise=0.05, random_state=0)
        model = PrivateSVC(
            kernel="rbf", gamma=1.0, n_components=20, feature_seed=9, delta=1e-5, data_norm=2.0,
            classes=[0, 1],
        ).fit(X, y)  # fmt: skip
        stored = pickle.dumps(model)
        assert not any(np.float64(value).tobytes() in stored for value in X.ravel())
        again = pickle.loads(stored)
        # Every stored number comes from the weights, the public seed and the parameters.
        assert set(vars(again)) == {
            *model.get_params(), "n_features_in_", "classes_", "coef_", "intercept_", "C_",
            "epsilon_", "delta_", "neighbouring_", "privacy_guarantee_", "noise_scale_",
            "privacy_report_", "feature_map_", "_preparation",
        }  # fmt: skip
        plan = PrivateSVC.plan(1.0, 1e-5, 300, 2, kernel="rbf", gamma=1.0, n_components=20)
        assert again.noise_scale_ == plan.noise_scale
        assert again.C_ == plan.C
        rebuilt = Preparation(
            2.0, 0.3, dpsvm.privacy.preparation.RandomFourierFeatures(2, 20, 1.0, 9)
        )
        assert again._preparation == rebuilt
        assert again.feature_map_ == rebuilt.features
        weights = rebuilt.features(X) @ again.coef_[0] + again.intercept_[0]
        assert np.allclose(weights, model.decision_function(X), atol=1e-12)

    def test_rows_are_shortened_when_asked_about_too(self) -> None:
        X, y = make_circles(300, factor=0.4, noise=0.05, random_state=0)
        model = PrivateSVC(kernel="rbf", gamma=1.0, delta=1e-5, data_norm=0.5, classes=[0, 1]).fit(
            X, y
        )
        far = np.array([[3.0, 4.0]])
        assert model.decision_function(far) == pytest.approx(model.decision_function(far / 10))

    def test_gamma_must_be_public(self, blobs: Any) -> None:
        for gamma in ("scale", "auto", None, 0.0, -1.0, math.nan):
            with pytest.raises(ValueError, match="gamma"):
                PrivateSVC(kernel="rbf", gamma=gamma, **PUBLIC).fit(*blobs)


class TestNothingElseGetsOut:
    FORBIDDEN = ("n_iter", "gap", "norm_reached", "clipped", "score", "objective_", "support")

    @pytest.mark.parametrize("method", METHODS)
    def test_no_attribute_but_the_weights_depends_on_the_data(
        self, method: str, blobs: Any
    ) -> None:
        X, y = blobs
        one = PrivateSVC(method=method, **PUBLIC).fit(X, y)
        other = PrivateSVC(method=method, **PUBLIC).fit(-2 * X[:90], y[:90])
        assert not [name for name in vars(one) if any(word in name for word in self.FORBIDDEN)]
        for name in vars(one):
            if name not in ("coef_", "intercept_"):
                assert str(getattr(one, name)) == str(getattr(other, name)), name

    @pytest.mark.parametrize("method", METHODS)
    def test_shortening_rows_is_not_told(
        self,
        method: str,
        blobs: Any,
        recwarn: pytest.WarningsRecorder,
        capsys: pytest.CaptureFixture[str],
    ) -> None:
        X, y = blobs
        PrivateSVC(method=method, data_norm=0.1, classes=[0, 1], delta=1e-5).fit(X, y)
        assert not recwarn.list
        assert capsys.readouterr() == ("", "")

    def test_two_fits_draw_new_noise(self, blobs: Any) -> None:
        model = PrivateSVC(**PUBLIC)
        assert not np.array_equal(model.fit(*blobs).coef_.copy(), model.fit(*blobs).coef_)

    def test_a_seed_warns_and_repeats(self, blobs: Any) -> None:
        with pytest.warns(PrivacyLeakWarning, match="random_state") as caught:
            one = PrivateSVC(random_state=3, **PUBLIC).fit(*blobs)
        assert caught[0].filename == __file__
        other = quiet(PrivateSVC(random_state=3, **PUBLIC), *blobs)
        assert np.array_equal(one.coef_, other.coef_)
        assert one.privacy_report_["noise_source"].startswith("a seed")


class TestAccountant:
    def test_every_fit_is_charged_once_and_the_last_is_refused(self, blobs: Any) -> None:
        accountant = BudgetAccountant(2.5)
        model = PrivateSVC(
            1.0, method="output", data_norm=4.0, classes=[0, 1], accountant=accountant
        )
        model.fit(*blobs)
        model.fit(*blobs)
        assert [charge.event for charge in accountant.charges] == [Pure(1.0)] * 2
        with pytest.raises(BudgetError):
            model.fit(*blobs)
        assert len(accountant.charges) == 2
        with pytest.raises(NotFittedError):
            model.predict(blobs[0])

    @pytest.mark.parametrize("method", METHODS)
    def test_what_is_charged_is_the_guarantee(self, method: str, blobs: Any) -> None:
        relation = "replace" if method == "objective" else "add-remove"
        accountant = BudgetAccountant(1.0, 1e-5, neighbouring=relation)
        PrivateSVC(method=method, accountant=accountant, **PUBLIC).fit(*blobs)
        [charge] = accountant.charges
        if method in ("objective", "output-laplace"):
            assert charge.event == Pure(1.0)
        else:
            assert 1 - 1e-6 < epsilon_of([charge.event], 1e-5) <= 1 + 1e-12

    def test_a_budget_of_the_other_relation_is_refused(self, blobs: Any) -> None:
        accountant = BudgetAccountant(9.0, 1e-5)
        with pytest.raises(BudgetError, match="replace"):
            PrivateSVC(method="objective", accountant=accountant, **PUBLIC).fit(*blobs)

    def test_the_charge_comes_before_the_solver_and_stands_when_it_fails(
        self, blobs: Any, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        accountant = BudgetAccountant(1.0, 1e-5)
        seen = []

        def fails(*_, **__):
            seen.append(len(accountant.charges))
            raise CertificateError("nothing is released")

        monkeypatch.setattr("dpsvm.privacy.methods.objective_gaussian.minimise", fails)
        model = PrivateSVC(accountant=accountant, **PUBLIC)
        with pytest.raises(CertificateError):
            model.fit(*blobs)
        assert seen == [1]
        assert len(accountant.charges) == 1
        assert not hasattr(model, "coef_")

    def test_a_tolerance_out_of_reach_releases_nothing(self, blobs: Any) -> None:
        accountant = BudgetAccountant(1.0, 1e-5)
        model = PrivateSVC(tol=1e-12, accountant=accountant, **PUBLIC)
        with pytest.raises(CertificateError):
            model.fit(*(np.concatenate([part] * 50) for part in blobs))
        assert len(accountant.charges) == 1

    def test_bad_data_are_refused_before_any_charge(self, blobs: Any) -> None:
        X, y = blobs
        accountant = BudgetAccountant(1.0, 1e-5)
        with pytest.raises(ValueError, match="label 7"):
            PrivateSVC(accountant=accountant, **PUBLIC).fit(X, np.where(y == 0, 7, y))
        assert accountant.charges == ()

    def test_a_grid_search_stops_with_the_budget(self, blobs: Any) -> None:
        accountant = BudgetAccountant(2.0, 1e-5)
        search = GridSearchCV(
            PrivateSVC(1.0, accountant=accountant, **PUBLIC), {"C": [0.01, 0.1]}, cv=3,
            error_score="raise",
        )  # fmt: skip
        with pytest.warns(PrivacyLeakWarning), pytest.raises(BudgetError):
            search.fit(*blobs)
        assert accountant.total().epsilon <= 2.0


class TestScikitLearn:
    @pytest.mark.parametrize("kind", BOTH)
    def test_the_constructor_stores_parameters_and_clone_keeps_them(self, kind: type) -> None:
        accountant, classes = BudgetAccountant(1.0), np.array([0, 1])
        model = kind(
            0.3, 1e-6, method="output", data_norm=2.0, classes=classes, accountant=accountant
        )
        assert model.get_params()["classes"] is classes
        copy = clone(model)
        assert copy.accountant is accountant
        assert copy.epsilon == 0.3
        assert copy.get_params().keys() == model.get_params().keys()
        assert set(vars(model)) == set(model.get_params())

    def test_fitting_changes_no_parameter_and_no_input(self, blobs: Any) -> None:
        X, y = blobs[0].copy(), blobs[1].copy()
        model = PrivateSVC(**{**PUBLIC, "data_norm": 0.5})
        before = dict(model.get_params())
        model.fit(X, y)
        assert model.get_params() == before
        assert np.array_equal(X, blobs[0])
        assert np.array_equal(y, blobs[1])

    def test_pipelines_and_cross_validation(self, blobs: Any) -> None:
        model = make_pipeline(Normalizer(), PrivateSVC(4.0, 1e-5, data_norm=1.0, classes=[0, 1]))
        assert cross_val_score(model, *blobs, cv=3).mean() > 0.8

    def test_an_unfitted_model_says_so(self, blobs: Any) -> None:
        with pytest.raises(NotFittedError):
            PrivateSVC(**PUBLIC).decision_function(blobs[0])

    def test_feature_names_and_their_number_are_kept(self, blobs: Any) -> None:
        pd = pytest.importorskip("pandas")
        frame = pd.DataFrame(blobs[0], columns=["a", "b", "c"])
        model = PrivateSVC(**PUBLIC).fit(frame, blobs[1])
        assert model.n_features_in_ == 3
        assert model.feature_names_in_.tolist() == ["a", "b", "c"]
        with pytest.raises(ValueError, match="features"):
            model.predict(blobs[0][:, :2])

    def test_sparse_rows_give_the_dense_weights(self, blobs: Any) -> None:
        X, y = blobs
        for method in METHODS:
            for loss in ("huber", "hinge") if method == "output" else ("huber",):
                model = PrivateSVC(method=method, loss=loss, random_state=0, **PUBLIC)
                dense = quiet(model, X, y).coef_.copy()
                sparse = quiet(model, sp.csr_array(X), y)
                assert np.allclose(dense, sparse.coef_, atol=1e-3)
                assert np.allclose(
                    sparse.decision_function(sp.csr_matrix(X)), sparse.decision_function(X)
                )

    def test_labels_may_be_text_in_any_order(self, blobs: Any) -> None:
        X, y = blobs
        words = np.where(y == 1, "yes", "no")
        model = PrivateSVC(8.0, 1e-5, data_norm=4.0, classes=["yes", "no"]).fit(X, words)
        assert model.classes_.tolist() == ["no", "yes"]
        assert model.score(X, words) > 0.9

    def test_the_decision_is_the_linear_function_of_the_coefficients(self, blobs: Any) -> None:
        X, y = blobs
        model = PrivateSVC(**PUBLIC).fit(X, y)
        assert np.allclose(model.decision_function(X), X @ model.coef_[0] + model.intercept_[0])

    def test_without_an_intercept_there_is_none(self, blobs: Any) -> None:
        model = PrivateSVC(fit_intercept=False, **PUBLIC).fit(*blobs)
        assert model.intercept_.tolist() == [0.0]


class TestPlan:
    @pytest.mark.parametrize("kind", BOTH)
    @pytest.mark.parametrize("method", METHODS)
    def test_the_plan_is_what_a_fit_does(self, kind: type, method: str, blobs: Any) -> None:
        plan = kind.plan(2.0, 1e-5, n=400, d=3, method=method)
        model = kind(2.0, method=method, **PUBLIC).fit(*blobs)
        assert plan.noise_scale == model.noise_scale_
        assert plan.guarantee == model.privacy_guarantee_
        assert plan.C == model.C_
        assert f"{plan.noise_scale:.6g}" in str(plan)

    def test_nothing_is_spent(self) -> None:
        accountant = BudgetAccountant(1.0, 1e-5)
        PrivateSVC.plan(1.0, 1e-5, 100, 3, accountant=accountant)
        assert accountant.charges == ()

    def test_many_classes_need_more_noise(self) -> None:
        two = PrivateSVC.plan(1.0, 1e-5, 100, 3, C=0.01)
        many = PrivateSVC.plan(1.0, 1e-5, 100, 3, C=0.01, n_classes=5)
        assert many.noise_scale > 2 * two.noise_scale
        assert many.machines == 5

    @pytest.mark.parametrize(
        ("words", "message"),
        [
            ({"n": 0}, "n must be"),
            ({"d": 1.5}, "d must be"),
            ({"n_classes": 1}, "n_classes must be"),
            ({"epsilon": -1.0}, "epsilon"),
            ({"delta": 2.0}, "delta"),
            ({"C": -1.0}, "'C' parameter"),
        ],
    )
    def test_bad_numbers_are_named(self, words: dict[str, Any], message: str) -> None:
        facts = {"epsilon": 1.0, "delta": 1e-5, "n": 10, "d": 3, **words}
        with pytest.raises(ValueError, match=message):
            PrivateSVC.plan(**facts)


class TestBadInput:
    @pytest.mark.parametrize("kind", BOTH)
    @pytest.mark.parametrize(
        ("name", "value", "message"),
        [
            ("epsilon", 0.0, "epsilon .*got 0.0"),
            ("epsilon", -1.0, "epsilon .*got -1.0"),
            ("epsilon", math.nan, "epsilon .*got nan"),
            ("epsilon", math.inf, "epsilon .*got inf"),
            ("epsilon", "much", "epsilon .*got 'much'"),
            ("delta", 0.0, "delta .*got 0.0"),
            ("delta", 1.0, "delta .*got 1.0"),
            ("delta", math.nan, "delta .*got nan"),
            ("delta", None, "needs a delta"),
            ("data_norm", None, "data_norm must be given"),
            ("data_norm", 0.0, "data_norm.* Got 0.0"),
            ("data_norm", math.nan, "data_norm.* Got nan"),
            ("data_norm", math.inf, "data_norm.* Got inf"),
            ("classes", None, "classes must be given"),
            ("classes", [0], "at least two"),
            ("classes", [0, 0], "twice"),
            ("classes", [0.0, math.nan], "finite"),
            ("class_weight", "balanced", "measured from the data"),
            ("class_weight", {0: -1.0}, "class_weight must be from .* got -1.0"),
            ("class_weight", {0: math.inf}, "class_weight must be from .* got inf"),
            ("class_weight", {5: 1.0}, "label 5"),
            ("gamma", "scale", "gamma must be a public number, got 'scale'"),
            ("gamma", "auto", "gamma must be a public number, got 'auto'"),
            ("method", "magic", "method.* Got 'magic'"),
            ("kernel", "poly", "kernel.* Got 'poly'"),
            ("neighbouring", "column", "neighbouring.* Got 'column'"),
            ("C", 0.0, "'C' parameter.* Got 0.0"),
            ("C", math.nan, "'C' parameter.* Got nan"),
            ("C", 100.0, "C must be below"),
            ("tol", 0.0, "tol.* Got 0.0"),
            ("n_steps", 0, "n_steps.* Got 0"),
            ("n_components", 0, "n_components.* Got 0"),
            ("batch_rate", 1.5, "batch_rate.* Got 1.5"),
            ("accountant", "ledger.json", "accountant.* Got 'ledger.json'"),
            ("random_state", "seed", "random_state .*got 'seed'"),
        ],
    )
    def test_a_bad_parameter_is_named_with_its_value(
        self, kind: type, name: str, value: Any, message: str, blobs: Any
    ) -> None:
        with pytest.raises(ValueError, match=message):
            kind(**{**PUBLIC, name: value}).fit(*blobs)

    def test_sample_weights_are_refused(self, blobs: Any) -> None:
        with pytest.raises(ValueError, match="sample_weight is refused"):
            PrivateSVC(**PUBLIC).fit(*blobs, sample_weight=np.ones(400))

    @pytest.mark.parametrize("method", ["objective", "objective-gaussian"])
    def test_the_hinge_needs_another_method(self, method: str, blobs: Any) -> None:
        with pytest.raises(ValueError, match="bounded curvature"):
            PrivateSVC(method=method, loss="hinge", C=0.1, **PUBLIC).fit(*blobs)

    @pytest.mark.parametrize(
        ("rows", "message"),
        [
            (np.full((400, 3), np.nan), "NaN"),
            (np.full((400, 3), np.inf), "infinity"),
            (np.empty((0, 3)), "0 sample"),
            (np.zeros(400), "Expected 2D array"),
        ],
    )
    def test_bad_rows(self, rows: np.ndarray, message: str, blobs: Any) -> None:
        with pytest.raises(ValueError, match=message):
            PrivateSVC(**PUBLIC).fit(rows, blobs[1])

    def test_a_label_that_is_not_public_is_refused(self, blobs: Any) -> None:
        with pytest.raises(ValueError, match="label 2, which is not in classes"):
            PrivateSVC(**PUBLIC).fit(blobs[0], blobs[1] + 1)


class TestAutomaticC:
    @pytest.mark.parametrize("epsilon", [0.01, 1.0, 50.0])
    @pytest.mark.parametrize("machines", [1, 10])
    @pytest.mark.parametrize("loss", [HuberHinge(0.2), HuberHinge(1.0), Logistic()], ids=repr)
    def test_it_is_always_allowed(self, epsilon: float, machines: int, loss: Any) -> None:
        for method in METHODS:
            facts = dpsvm.privacy.methods.Setup(
                loss=loss,
                C=automatic_C(method, loss, epsilon, machines),
                dimension=4,
                neighbouring="replace",
                machines=machines,
            )
            mechanism = dpsvm.privacy.methods.calibrate(method, facts, epsilon, 1e-5)
            assert math.isfinite(mechanism.noise_scale)

    def test_it_is_a_function_of_public_numbers(self, blobs: Any) -> None:
        X, y = blobs
        one = PrivateSVC(**PUBLIC).fit(X, y)
        other = PrivateSVC(**PUBLIC).fit(X[:20] * 9, y[:20])
        assert one.C_ == other.C_


def test_the_guarantee_cannot_be_changed_by_accident(blobs: Any) -> None:
    model = PrivateSVC(**PUBLIC).fit(*blobs)
    with pytest.raises(dataclasses.FrozenInstanceError):
        model.privacy_guarantee_.epsilon = 0.1
    assert SVC(kernel="linear").fit(*blobs).privacy_guarantee_ is None


@pytest.mark.parametrize("method", ["objective-gaussian", "objective", "output", "gradient"])
def test_a_budget_without_bounds_is_no_overflow(method: str) -> None:
    plan = PrivateSVC.plan(1e4, 1e-5, n=100, d=3, method=method)
    assert 0 < plan.C <= 1.0


def test_sampled_steps_go_with_the_gradient_method_only(blobs: Any) -> None:
    with pytest.raises(ValueError, match=r"batch_rate goes with method='gradient', got 0\.5"):
        PrivateSVC(batch_rate=0.5, **PUBLIC).fit(*blobs)


def test_a_fit_that_fails_leaves_nothing_of_the_last_one(blobs: Any) -> None:
    model = PrivateSVC(**PUBLIC).fit(*blobs)
    with pytest.raises(ValueError, match="epsilon"):
        model.set_params(epsilon=-1.0).fit(*blobs)
    assert not hasattr(model, "privacy_guarantee_")
    assert not hasattr(model, "coef_")


def test_noise_from_a_seed_is_said_where_the_guarantee_is(blobs: Any) -> None:
    seeded = quiet(PrivateSVC(random_state=0, **PUBLIC), *blobs)
    assert "for experiments only" in seeded.privacy_report_["guarantee"]
    fresh = PrivateSVC(**PUBLIC).fit(*blobs)
    assert fresh.privacy_report_["guarantee"] == str(fresh.privacy_guarantee_)


CANDIDATES = {"C": [0.01, 0.02]}
SEARCHES: dict[str, Any] = {
    "grid": lambda model: GridSearchCV(model, CANDIDATES, cv=2),
    "random": lambda model: RandomizedSearchCV(model, CANDIDATES, n_iter=2, cv=2),
    "halving": lambda model: HalvingGridSearchCV(model, CANDIDATES, cv=2, min_resources=20),
    "pipeline": lambda model: GridSearchCV(
        make_pipeline(Normalizer(), model), {"privatesvc__C": [0.01, 0.02]}, cv=2
    ),
    "one against the rest": lambda model: GridSearchCV(
        OneVsRestClassifier(model), {"estimator__C": [0.01, 0.02]}, cv=2
    ),
}


@pytest.mark.parametrize("make", SEARCHES.values(), ids=SEARCHES)
def test_every_search_is_warned_of_once_each_time_it_is_fitted(make: Any) -> None:
    X, y = make_blobs(60, centers=2, n_features=2, center_box=(-1, 1), random_state=0)
    search = make(PrivateSVC(**PUBLIC))
    for _ in range(2):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            search.fit(X, y)
        told = [one for one in caught if "winner on validation rows" in str(one.message)]
        assert [one.filename for one in told] == [__file__]
