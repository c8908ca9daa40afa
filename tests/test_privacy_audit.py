"""The audit: bounds that hold, mechanisms that pass, broken ones that are caught."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.stats import binom, binomtest, norm
from shared_data import SHARED, needs_data
from sklearn.datasets import make_classification
from sklearn.linear_model import LogisticRegression, SGDClassifier
from sklearn.naive_bayes import GaussianNB
from statistical import LEVEL

import dpsvm.privacy.audit as package
from dpsvm import SVC
from dpsvm.data import load_libsvm
from dpsvm.privacy import PrivateSVC
from dpsvm.privacy.audit import AuditResult, Rule, audit, make_worlds
from dpsvm.privacy.audit.bounds import (
    epsilon_at_least,
    epsilon_from,
    probability_at_least,
    probability_at_most,
)
from dpsvm.privacy.audit.choice import LEARNED, Aim, Pilot, choose
from dpsvm.privacy.audit.runs import Trainer
from dpsvm.privacy.audit.statistics import Meter

SURE = 1.0 - LEVEL
NOISE = 3.7307  # of a Gaussian, for a sensitivity of 1, epsilon 1 and delta 1e-5
DELTA = 1e-5
AIM = Aim(runs=1000, delta=0.0, confidence=0.95)


class NoisySum:
    """The sum of rows clipped to [-1, 1], with noise: private if the noise is right."""

    def __init__(self, scale, seed, kind="normal"):
        self.scale, self.kind, self.random = scale, kind, np.random.default_rng(seed)

    def fit(self, X, y):
        draw = getattr(self.random, self.kind)
        self.coef_ = np.clip(X, -1, 1).sum(axis=0) + draw(0.0, self.scale, X.shape[1])
        return self


def gaussian(seed):
    return NoisySum(NOISE, seed)


def quarter(seed):
    return NoisySum(NOISE / 4, seed)


def laplace(seed):
    return NoisySum(1.0, seed, "laplace")


RELATIONS = package.NEIGHBOURING
ZEROS = np.zeros((6, 1)), np.array([0, 1] * 3)
ONE = {"canary": ([1.0], 0), "claimed_epsilon": 1.0, "random_state": 0}


@pytest.fixture(scope="module")
def blobs():
    return make_classification(60, 4, flip_y=0.1, random_state=0)


class TestBounds:
    @pytest.mark.parametrize(("hits", "runs"), [(0, 50), (1, 50), (17, 50), (50, 50), (3, 8000)])
    def test_the_ends_are_clopper_and_pearsons(self, hits: int, runs: int) -> None:
        exact = binomtest(hits, runs).proportion_ci(0.95, method="exact")
        assert probability_at_least(hits, runs, 0.025) == pytest.approx(exact.low, abs=1e-12)
        assert probability_at_most(hits, runs, 0.025) == pytest.approx(exact.high, abs=1e-12)

    @pytest.mark.parametrize("confidence", [0.95, 0.8])
    @pytest.mark.parametrize("delta", [0.0, 0.05])
    @pytest.mark.parametrize("likely", [0.15, 0.6, 0.97, 1.0])
    @pytest.mark.parametrize("epsilon", [0.1, 1.0, 3.0])
    def test_the_bound_exceeds_epsilon_no_more_often_than_stated(
        self, epsilon: float, likely: float, delta: float, confidence: float
    ) -> None:
        # Summed over every outcome, for the two probabilities that epsilon just allows.
        runs = 60
        rare = (likely - delta) / math.exp(epsilon)
        counts, level = np.arange(runs + 1), (1.0 - confidence) / 2.0
        low = probability_at_least(counts, runs, level)
        high = probability_at_most(counts, runs, level)
        wrong = epsilon_from(low[:, None], high, delta) > epsilon
        chance = binom.pmf(counts, runs, likely) @ wrong @ binom.pmf(counts, runs, rare)
        assert chance <= 1.0 - confidence

    def test_more_runs_show_more_and_delta_takes_away(self) -> None:
        few, many = (epsilon_at_least(n, 0, n, delta=0.0, confidence=0.95) for n in (100, 8000))
        assert few < 3.4 < 7.6 < many
        assert epsilon_at_least(100, 0, 100, delta=0.1, confidence=0.95) < few
        assert epsilon_at_least(50, 0, 100, delta=0.9, confidence=0.95) == 0.0


class TestChoice:
    @staticmethod
    def choose(inside, outside, names=("score",)):
        pilots = [Pilot.of(np.reshape(one, (-1, len(names)))) for one in (inside, outside)]
        return choose(names, *pilots, AIM)

    def test_either_side_and_either_world_can_be_the_event(self) -> None:
        low, high = np.arange(50.0), np.arange(1000.0, 1050.0)
        assert self.choose(high, low).threshold == 524.5
        for inside, outside in ((low, high), (high, low)):
            rule = self.choose(inside, outside)
            world = inside if rule.likely == "with" else outside
            assert rule.count(world) == 50

    def test_an_event_that_is_only_rare_without_is_found(self) -> None:
        outside = np.linspace(0, 1, 200)
        inside = np.concatenate([outside[:100], outside[:100] + 5])
        rule = self.choose(inside, outside)
        assert rule.likely == "with"
        assert rule.at_least
        assert 1 < rule.threshold < 5

    def test_of_two_that_part_the_runs_the_one_with_more_room_is_taken(self) -> None:
        random = np.random.default_rng(0)
        near, far = random.normal(size=(2, 100, 2)), random.normal(size=(2, 100, 2))
        near[1] += [12, 40]
        assert self.choose(near[1], near[0], ["narrow", "wide"]).statistic == "wide"
        assert self.choose(far[1], far[0], ["one", "two"]).threshold < 10

    def test_values_that_are_all_equal_give_no_bound(self) -> None:
        rule = self.choose(np.ones(30), np.ones(30))
        assert rule.count(np.ones(30)) == 30

    def test_neighbouring_doubles_are_parted(self) -> None:
        above = np.nextafter(1.0, 2.0)
        rule = self.choose(np.full(30, above), np.full(30, 1.0))
        assert {rule.count(np.array([1.0])), rule.count(np.array([above]))} == {0, 1}

    def test_what_no_single_statistic_shows_a_direction_does(self) -> None:
        # Two coordinates that vary together: only their difference tells the worlds apart.
        random = np.random.default_rng(0)
        common = random.normal(size=(2, 400, 1))
        parameters = common * [10.0, 10.0] + random.normal(size=(2, 400, 2)) * 0.1
        parameters[1] += [0.5, -0.5]
        pilots = [Pilot(one[:, :1], one) for one in parameters]
        rule = choose(["first"], pilots[1], pilots[0], AIM)
        assert rule.statistic == LEARNED
        assert np.sign(rule.direction).tolist() in ([1, -1], [-1, 1])
        assert Rule.from_dict(json.loads(json.dumps(rule.to_dict()))) == rule


class TestWorlds:
    @pytest.mark.parametrize("form", [np.asarray, sp.csr_array, sp.csr_matrix])
    def test_the_mislabelled_record_stays_in_range_and_has_the_wrong_label(
        self, form: Any, blobs: Any
    ) -> None:
        X, y = blobs
        worlds = make_worlds(form(X), y)
        assert np.all((worlds.record >= X.min(axis=0)) & (worlds.record <= X.max(axis=0)))
        assert worlds.X["with"].shape == (61, 4)
        assert worlds.X["without"].shape == (60, 4)
        assert worlds.label == 0
        means = [X[y == label].mean(axis=0) for label in (0, 1)]
        assert worlds.record @ (means[1] - means[0]) > 0
        assert worlds.row.shape == (1, 4)
        assert sp.issparse(worlds.row) == (form is not np.asarray)

    def test_dense_and_sparse_rows_make_the_same_worlds(self, blobs: Any) -> None:
        X, y = blobs
        for canary in package.CANARIES:
            for relation in RELATIONS:
                dense = make_worlds(X, y, canary, neighbouring=relation)
                sparse = make_worlds(sp.csr_array(X), y, canary, neighbouring=relation)
                for world in ("with", "without"):
                    np.testing.assert_array_equal(dense.X[world], sparse.X[world].toarray())
                    np.testing.assert_array_equal(dense.y[world], sparse.y[world])

    @pytest.mark.parametrize("canary", [*package.CANARIES, (np.ones(4), 1)])
    def test_neighbours_differ_in_one_record(self, canary: Any, blobs: Any) -> None:
        X, y = blobs
        added = make_worlds(X, y, canary)
        assert len(added.y["with"]) == len(added.y["without"]) + 1
        replaced = make_worlds(X, y, canary, neighbouring="replace")
        rows, labels = replaced.X, replaced.y
        assert rows["with"].shape == rows["without"].shape
        differ = (rows["with"] != rows["without"]).any(axis=1) | (
            labels["with"] != labels["without"]
        )
        assert np.count_nonzero(differ) == 1

    def test_a_unique_feature_is_zero_for_everyone_else(self, blobs: Any) -> None:
        for relation in RELATIONS:
            worlds = make_worlds(*blobs, "unique-feature", neighbouring=relation)
            assert worlds.column == 4
            assert not worlds.X["without"][:, 4].any()
            assert np.count_nonzero(worlds.X["with"][:, 4]) == 1

    def test_a_public_range_is_used_to_its_ends(self, blobs: Any) -> None:
        worlds = make_worlds(*blobs, feature_range=(-10, [10, 11, 12, 13]))
        assert set(np.abs(worlds.record)) <= {10, 11, 12, 13}

    def test_the_data_given_are_left_alone(self, blobs: Any) -> None:
        X, y = (part.copy() for part in blobs)
        for canary in package.CANARIES:
            make_worlds(X, y, canary, neighbouring="replace")
            assert (X.tobytes(), y.tobytes()) == (blobs[0].tobytes(), blobs[1].tobytes())

    @pytest.mark.parametrize(
        ("change", "words"),
        [
            ({"canary": "yellow"}, "canary must be .* got 'yellow'"),
            ({"canary": None}, "canary must be"),
            ({"canary": ([1.0], 0)}, "4 finite features"),
            ({"canary": 3}, "pair"),
            ({"neighbouring": "column"}, "neighbouring must be .* got 'column'"),
            ({"record": 60}, "record must be from 0 to 59, got 60"),
            ({"feature_range": (0.0, 1.0)}, "feature 1 reaches from"),
            ({"feature_range": (1.0, -1.0)}, "ascend"),
            ({"feature_range": 3.0}, "feature_range must be"),
        ],
    )
    def test_a_bad_value_is_named(self, change: dict[str, Any], words: str, blobs: Any) -> None:
        with pytest.raises(ValueError, match=words):
            make_worlds(*blobs, **change)

    @pytest.mark.parametrize("y", [np.zeros(60), np.full(60, np.nan), np.zeros(3)])
    def test_bad_labels_are_refused(self, y: np.ndarray, blobs: Any) -> None:
        with pytest.raises(ValueError, match=r"two classes|NaN|one label per row"):
            make_worlds(blobs[0], y)


class TestMechanisms:
    """Right noise stays below its epsilon, at a level that a right program never misses."""

    def test_the_noise_of_these_tests_is_right(self) -> None:
        mu = 1.0 / NOISE
        spent = norm.cdf(mu / 2 - 1 / mu) - math.e * norm.cdf(-mu / 2 - 1 / mu)
        assert 0.99 * DELTA < spent <= DELTA

    def test_a_gaussian_with_its_noise_stays_below_and_with_a_quarter_is_caught(self) -> None:
        settings = ONE | {"delta": DELTA, "runs": 2000}
        right, wrong = (audit(make, *ZEROS, **settings) for make in (gaussian, quarter))
        assert replace(right, confidence=SURE).epsilon <= 1.0
        assert right.refuted is False
        assert "not refuted" in right.report()
        assert wrong.epsilon > 1.0
        assert wrong.refuted is True
        assert "\nrefuted: the claimed epsilon 1 " in wrong.report()

    def test_the_same_under_replacement_where_the_sensitivity_is_two(self) -> None:
        X, y = np.full((6, 1), -1.0), ZEROS[1]
        settings = ONE | {"delta": DELTA, "runs": 2000, "neighbouring": "replace"}
        right = audit(lambda seed: NoisySum(2 * NOISE, seed), X, y, **settings)
        wrong = audit(lambda seed: NoisySum(NOISE / 2, seed), X, y, **settings)
        assert replace(right, confidence=SURE).epsilon <= 1.0 < wrong.epsilon

    def test_a_laplace_mechanism_is_bounded_tightly_and_never_above(self) -> None:
        result = audit(laplace, *ZEROS, **ONE, runs=8000)
        assert result.epsilon > 0.75
        assert replace(result, confidence=SURE).epsilon <= 1.0

    def test_repeated_audits_of_a_tight_mechanism_miss_as_rarely_as_stated(self) -> None:
        missed = 0
        for seed in range(40):
            settings = ONE | {"random_state": seed, "runs": 150, "pilot_runs": 50}
            missed += audit(laplace, *ZEROS, **settings, confidence=0.8).epsilon > 1.0
        assert binomtest(missed, 40, 0.2, alternative="greater").pvalue > LEVEL


class Calibrated(PrivateSVC):
    """PrivateSVC with the noise settled before the fits."""

    def _mechanism(self, dimension, n_classes):
        return self.mechanism


def private(method, delta, relation, share=1.0):
    """PrivateSVC on one feature, with a share of its noise, by the seed.

    C is so small that a record moves the weight nearly as far as the noise was made for, and a
    single gradient step releases all that it was accounted for: nothing is averaged away.
    """
    public = {"C": 0.01, "fit_intercept": False, "data_norm": 1.0, "classes": [0, 1]}
    settings = {"method": method, "delta": delta, "neighbouring": relation, "n_steps": 1, **public}
    right = PrivateSVC(1.0, **settings)._mechanism(1, 2)

    def make(seed):
        model = Calibrated(1.0, **settings, random_state=seed)
        model.mechanism = replace(right, noise_scale=share * right.noise_scale)
        return model

    return make


class Diffprivlibs:
    """What diffprivlib's estimators look like; the sum of rows towards class 1 is released."""

    def __init__(self, *, epsilon=1.0, data_norm=None, random_state=None, accountant=None):
        self.epsilon, self.data_norm, self.random_state = epsilon, data_norm, random_state

    def fit(self, X, y, sample_weight=None):
        rows = np.clip(X, -self.data_norm, self.data_norm)
        noise = np.random.RandomState(self.random_state).laplace(0, self.data_norm / self.epsilon)
        self.coef_ = np.array([[rows[y == 1].sum() - rows[y == 0].sum() + noise]])
        self.intercept_ = np.zeros(1)
        return self

    def predict(self, X):
        return (X @ self.coef_.T > 0).astype(int).ravel()


class TestPrivateEstimators:
    """PrivateSVC keeps its guarantee, and with a quarter of its noise it is found out."""

    data = np.array([[-1.0], [1.0]] * 3), np.array([0, 1] * 3)

    @pytest.mark.parametrize(
        ("method", "delta", "relation"),
        [
            *(("output", delta, relation) for delta in (None, DELTA) for relation in RELATIONS),
            *(("output-laplace", None, relation) for relation in RELATIONS),
            ("objective", None, "replace"),
            *(("objective-gaussian", DELTA, relation) for relation in RELATIONS),
            *(("gradient", DELTA, relation) for relation in RELATIONS),
        ],
    )
    def test_a_guarantee_is_not_refuted(
        self, method: str, delta: float | None, relation: str
    ) -> None:
        settings = {"claimed_epsilon": 1.0, "delta": delta or 0.0, "neighbouring": relation}
        make = private(method, delta, relation)
        result = audit(make, *self.data, **settings, runs=200, random_state=0)
        assert replace(result, confidence=SURE).refuted is False

    @pytest.mark.parametrize(
        ("method", "delta", "relation", "runs"),
        [
            ("output", None, "add-remove", 300),
            ("output-laplace", None, "replace", 300),
            ("output", DELTA, "replace", 800),
            ("objective", None, "replace", 300),
            ("objective-gaussian", DELTA, "add-remove", 800),
            ("gradient", DELTA, "add-remove", 2000),
        ],
    )
    def test_a_quarter_of_the_noise_is_caught(
        self, method: str, delta: float | None, relation: str, runs: int
    ) -> None:
        settings = {"claimed_epsilon": 1.0, "delta": delta or 0.0, "neighbouring": relation}
        make = private(method, delta, relation, share=0.25)
        assert audit(make, *self.data, **settings, runs=runs, random_state=0).refuted

    def test_estimators_with_the_interface_of_diffprivlib_are_audited(self) -> None:
        settings = {"claimed_epsilon": 1.0, "runs": 300, "random_state": 0}
        right, wrong = (
            audit(
                lambda seed, epsilon=epsilon: Diffprivlibs(
                    epsilon=epsilon, data_norm=1.0, random_state=seed
                ),
                *self.data,
                **settings,
            )
            for epsilon in (1.0, 4.0)
        )
        assert replace(right, confidence=SURE).refuted is False
        assert wrong.refuted


class TestAudit:
    def test_the_result_does_not_depend_on_the_processes(self, blobs: Any) -> None:
        def make(seed):
            return SVC(kernel="linear", selector="dpwss", sigma=0.7, random_state=seed)

        settings = {"runs": 40, "pilot_runs": 40, "random_state": 3}
        one, two = (audit(make, *blobs, n_jobs=n, **settings) for n in (1, 2))
        for world in ("with", "without"):
            assert one.values[world].tobytes() == two.values[world].tobytes()
        assert one.rule == two.rule
        assert one.report() == two.report()
        assert list(one.warnings) == ["PrivacyLeakWarning"]

    def test_another_seed_gives_other_runs_and_none_is_used_twice(self, blobs: Any) -> None:
        settings = {"canary": ([1.0], 0), "statistic": lambda model, _: model.coef_, "runs": 50}
        first, second = (audit(gaussian, *ZEROS, **settings, random_state=n) for n in (0, 1))
        assert not np.intersect1d(first.values["with"], second.values["with"]).size
        trainer = Trainer(gaussian, make_worlds(*blobs), Meter(None, np.ones(1)), 0)
        seeds = {trainer.seed(world, n) for world in ("with", "without") for n in range(20_000)}
        assert len(seeds) == 40_000
        assert all(0 <= seed < 2**32 for seed in seeds)

    def test_without_a_seed_the_one_drawn_is_told(self) -> None:
        settings = {"canary": ([1.0], 0), "runs": 30}
        drawn = audit(gaussian, *ZEROS, **settings)
        again = audit(gaussian, *ZEROS, **settings, random_state=drawn.random_state)
        assert drawn.values["with"].tolist() == again.values["with"].tolist()

    @pytest.mark.parametrize("canary", package.CANARIES)
    @pytest.mark.parametrize("neighbouring", RELATIONS)
    def test_estimators_of_others_are_audited(
        self, canary: str, neighbouring: str, blobs: Any
    ) -> None:
        def make(seed):
            return SGDClassifier(loss="log_loss", random_state=seed, max_iter=5, tol=None)

        result = audit(
            make,
            *blobs,
            canary=canary,
            neighbouring=neighbouring,
            runs=40,
            pilot_runs=20,
            random_state=0,
        )
        assert result.refuted is None
        assert result.epsilon <= result.largest
        assert "SGDClassifier(loss='log_loss', max_iter=5, tol=None)" in result.report()

    def test_a_model_without_weights_is_measured_by_what_it_says(self, blobs: Any) -> None:
        result = audit(lambda _: GaussianNB(), *blobs, runs=40, random_state=0, claimed_epsilon=1.0)
        assert result.rule.statistic.startswith("probability at the record")
        assert result.epsilon == result.largest
        assert result.refuted

    def test_three_classes_are_audited(self) -> None:
        X, y = make_classification(90, 6, n_informative=4, n_classes=3, random_state=0)
        result = audit(lambda _: LogisticRegression(), X, y, runs=20, pilot_runs=20, random_state=0)
        assert result.epsilon == result.largest

    def test_a_statistic_of_ones_own_is_used_alone(self) -> None:
        settings = ONE | {"runs": 500, "claimed_epsilon": 5.0}
        result = audit(quarter, *ZEROS, statistic=lambda model, x: model.coef_ @ x, **settings)
        assert result.rule.statistic == "statistic"
        assert 0.3 < result.epsilon < 5.0

    def test_a_model_that_gives_no_number_and_a_failing_fit_are_told(self, blobs: Any) -> None:
        class Silent:
            def fit(self, X, y):
                return self

        class Failing:
            def fit(self, X, y):
                raise RuntimeError("no luck")

        with pytest.raises(ValueError, match="Silent has no coef_"):
            audit(lambda _: Silent(), *blobs)
        with pytest.raises(ValueError, match=r"failed at seed \d+: RuntimeError: no luck"):
            audit(lambda _: Failing(), *blobs)

    def test_a_statistic_that_is_not_a_number_is_still_counted(self) -> None:
        def broken(model, x):
            return np.nan if model.coef_[0] > 1 else np.inf

        result = audit(quarter, *ZEROS, statistic=broken, **ONE | {"runs": 500})
        assert np.isfinite(result.values["with"]).all()
        assert result.epsilon > 0.1
        assert "1e+300" in result.report()

    @pytest.mark.parametrize(
        ("change", "words"),
        [
            ({"claimed_epsilon": 0.0}, "claimed_epsilon must be a positive number, got 0.0"),
            ({"claimed_epsilon": np.nan}, "claimed_epsilon must be"),
            ({"delta": 1.0}, "delta must be at least 0 and below 1, got 1.0"),
            ({"delta": -0.1}, "delta must be"),
            ({"runs": 3}, "runs must be a whole number from 20 on, got 3"),
            ({"runs": 50.5}, "runs must be"),
            ({"pilot_runs": 0}, "pilot_runs must be"),
            ({"confidence": 1.0}, "confidence must be between 0 and 1, got 1.0"),
            ({"random_state": -1}, "random_state must be"),
            ({"n_jobs": 0}, "n_jobs must not be 0"),
        ],
    )
    def test_a_bad_value_is_named_before_any_fit(
        self, change: dict[str, Any], words: str, blobs: Any
    ) -> None:
        with pytest.raises(ValueError, match=words):
            audit(lambda _: pytest.fail("a fit was made"), *blobs, **change)


class TestUniqueFeature:
    def test_dpwss_is_not_private_for_any_epsilon(self, blobs: Any) -> None:
        def make(seed):
            return SVC(kernel="linear", selector="dpwss", sigma=0.7, random_state=seed)

        for relation in RELATIONS:
            result = audit(
                make,
                *blobs,
                canary="unique-feature",
                neighbouring=relation,
                claimed_epsilon=100.0,
                delta=1e-5,
                runs=40,
                pilot_runs=40,
                random_state=0,
            )
            assert result.hits == {"with": 40, "without": 0}
            assert result.unbounded
            assert result.refuted
            text = " ".join(result.report().split())
            assert "not private for any epsilon: the released weights are sums" in text
            assert "with the record it was not 0 in 40 of 40 runs" in text

    def test_nothing_of_the_kind_is_said_of_weights_that_only_happened_to_be_zero(
        self, blobs: Any
    ) -> None:
        def make(seed):
            return SGDClassifier(random_state=seed, max_iter=3, tol=None)

        result = audit(
            make, *blobs, canary="unique-feature", claimed_epsilon=100.0, runs=40, random_state=0
        )
        assert result.hits == {"with": 40, "without": 0}
        assert not result.unbounded
        assert not result.refuted
        assert "not private for any epsilon" not in result.report()

    def test_nor_of_a_mechanism_that_adds_noise_to_every_weight(self, blobs: Any) -> None:
        result = audit(gaussian, *blobs, canary="unique-feature", runs=100, random_state=0)
        assert not result.unbounded


class TestWords:
    @staticmethod
    def result(hits, claimed=1.0, **changes):
        values = {"with": (np.arange(100) < hits) * 1.0, "without": np.zeros(100)}
        parts = {
            "estimator": "SVC",
            "record": "a record",
            "neighbouring": "add-remove",
            "confidence": 0.95,
            "rule": Rule("score", 0.5, True, "with"),
            "values": values,
            "pilot_runs": 20,
            "random_state": 0,
            "claimed_epsilon": claimed,
        }
        return AuditResult(**parts | changes)

    @pytest.mark.parametrize("hits", [0, 30, 100])
    @pytest.mark.parametrize("claimed", [None, 0.5, 50.0])
    @pytest.mark.parametrize("delta", [0.0, 1e-3])
    @pytest.mark.parametrize("impossible", [None, "it cannot be"])
    def test_nothing_is_ever_said_to_be_proved(
        self, hits: int, claimed: float | None, delta: float, impossible: str | None
    ) -> None:
        result = self.result(hits, claimed, delta=delta, impossible=impossible)
        text = result.report()
        assert "prove" not in text.lower()
        assert "audited: epsilon is at least " in text
        assert "95% confidence" in text
        assert ("refuted" in text) == (claimed is not None)
        assert result.to_dict()["refuted"] is result.refuted

    def test_the_printed_bound_is_rounded_down(self) -> None:
        for hits in range(0, 101, 7):
            result = self.result(hits)
            printed = float(result.finding.split("at least ")[1].split()[0])
            assert printed <= result.epsilon < printed + 0.0101

    def test_both_deltas_are_told_and_zero_shows_at_least_as_much(self) -> None:
        result = self.result(100, delta=0.2)
        assert result.at_delta(0.0).epsilon > result.epsilon
        assert result.report().count("audited: ") == 2
        assert "at delta 0.2 (95% confidence)" in result.report()

    def test_a_delta_above_what_was_seen_leaves_an_epsilon(self) -> None:
        assert self.result(10, impossible="so it is").unbounded
        assert not self.result(10, impossible="so it is", delta=0.3).unbounded

    def test_the_picture_shows_both_worlds_and_the_threshold(self) -> None:
        pytest.importorskip("matplotlib")
        for result in (
            self.result(60),
            self.result(0, values={"with": np.zeros(9), "without": np.zeros(9)}),
        ):
            figure = result.plot()
            [axes] = figure.axes
            assert axes.get_xlabel() == "score"
            labels = [text.get_text() for text in axes.get_legend().get_texts()]
            assert [label.partition(":")[0] for label in labels] == [
                "without the record",
                "with the record",
                "event",
            ]
            assert result.finding in figure.get_suptitle()

    def test_the_report_shows_where_the_runs_of_both_worlds_lie(self) -> None:
        lines = self.result(30).report().splitlines()
        inside, outside, axis = lines[-6:-3]
        assert (inside[12], inside[-1]) == ("@", "=")
        assert outside.split() == ["without", "@"]
        assert axis.index("^") == 12 + 33


class TestResuming:
    settings = ONE | {"runs": 60, "pilot_runs": 40, "name": "NoisySum"}

    def test_the_same_call_goes_on_and_ends_the_same(self, tmp_path: Path) -> None:
        path = tmp_path / "runs"
        whole = audit(gaussian, *ZEROS, **self.settings)
        made = []

        def make(seed, stop):
            made.append(seed)
            if len(made) > stop:
                raise KeyboardInterrupt
            return gaussian(seed)

        interruptions = 0
        while True:
            made.clear()
            try:
                resumed = audit(
                    lambda seed: make(seed, 3 + 70),
                    *ZEROS,
                    **self.settings,
                    resume_path=path,
                )
                break
            except KeyboardInterrupt:
                interruptions += 1
        assert interruptions >= 1
        assert resumed.rule == whole.rule
        for world in ("with", "without"):
            assert resumed.values[world].tobytes() == whole.values[world].tobytes()

    def test_an_estimator_without_parameters_needs_a_name(self, tmp_path: Path) -> None:
        settings = {name: value for name, value in self.settings.items() if name != "name"}
        with pytest.raises(ValueError, match=r"NoisySum has no get_params .* give name="):
            audit(gaussian, *ZEROS, **settings, resume_path=tmp_path / "runs")

    def test_runs_in_the_file_are_not_made_again(self, tmp_path: Path) -> None:
        path, made = tmp_path / "runs", []

        def make(seed):
            made.append(seed)
            return gaussian(seed)

        first = audit(make, *ZEROS, **self.settings, resume_path=path)
        kept = path.read_bytes()
        made.clear()
        second = audit(make, *ZEROS, **self.settings, resume_path=path)
        assert len(made) == 3  # a first look at either world, and one to name it
        assert first.report() == second.report()
        assert path.read_bytes() == kept

    def test_the_seed_of_the_file_is_taken_when_none_is_given(self, tmp_path: Path) -> None:
        path = tmp_path / "runs"
        settings = self.settings | {"random_state": None}
        first, second = (audit(gaussian, *ZEROS, **settings, resume_path=path) for _ in range(2))
        assert first.random_state == second.random_state

    @pytest.mark.parametrize("cut", [1, 10, 200, 3000])
    def test_a_line_cut_short_is_dropped_and_made_again(self, cut: int, tmp_path: Path) -> None:
        path = tmp_path / "runs"
        first = audit(gaussian, *ZEROS, **self.settings, resume_path=path)
        whole = path.read_bytes()
        path.write_bytes(whole[:-cut])
        second = audit(gaussian, *ZEROS, **self.settings, resume_path=path)
        assert first.values["without"].tobytes() == second.values["without"].tobytes()
        for line in path.read_text().splitlines():
            json.loads(line)

    @pytest.mark.parametrize(
        "change",
        [
            {"runs": 61},
            {"pilot_runs": 41},
            {"confidence": 0.9},
            {"delta": 0.1},
            {"random_state": 1},
            {"canary": ([0.5], 0)},
            {"name": "another"},
        ],
    )
    def test_another_audit_is_refused_and_the_file_left_alone(
        self, change: dict[str, Any], tmp_path: Path
    ) -> None:
        path = tmp_path / "runs"
        audit(gaussian, *ZEROS, **self.settings, resume_path=path)
        kept = path.read_bytes()
        with pytest.raises(ValueError, match="is another audit: its "):
            audit(gaussian, *ZEROS, **self.settings | change, resume_path=path)
        assert path.read_bytes() == kept

    @pytest.mark.parametrize(
        "text", ["{}\n", "my notes", '{"audit": 1}\n', "[1]\n", '{"key": 1}\n']
    )
    def test_a_file_that_is_no_audit_is_refused_and_left_alone(
        self, text: str, tmp_path: Path
    ) -> None:
        path = tmp_path / "notes"
        path.write_text(text)
        with pytest.raises(ValueError, match="notes:1: not a line of an audit"):
            audit(gaussian, *ZEROS, **self.settings, resume_path=path)
        assert path.read_text() == text


@needs_data
class TestHeart:
    @staticmethod
    def dpwss(seed):
        settings = {"selector": "dpwss", "selection_epsilon": 0.1, "sigma": 0.7}
        return SVC(kernel="linear", random_state=seed, n_jobs=1, **settings)

    def test_dpwss_claimed_one_tenth_is_refuted_above_five(self) -> None:
        X, y = load_libsvm(SHARED / "data" / "heart_scale.xz")
        result = audit(self.dpwss, X.toarray(), y, claimed_epsilon=0.1, runs=1000, random_state=0)
        assert result.epsilon > 5.0
        assert result.refuted
