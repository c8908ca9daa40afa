"""The mechanisms: sensitivities, calibration, and densities integrated without any theorem."""

from __future__ import annotations

import importlib.util
import math
from typing import Any

import numpy as np
import pytest
from scipy import stats
from scipy.integrate import trapezoid
from scipy.special import log_ndtr
from statistical import DRAWS, LEVEL

from dpsvm.losses import Hinge, HuberHinge, Logistic, SmoothHinge
from dpsvm.privacy.accountant import BudgetAccountant, BudgetError
from dpsvm.privacy.accounting import Gaussian, Pure, epsilon_of, gaussian_mu
from dpsvm.privacy.dual import solve_hinge
from dpsvm.privacy.methods import (
    METHODS,
    Setup,
    calibrate,
    objective_gaussian_event,
    output_sensitivity,
)
from dpsvm.privacy.minimiser import Objective, minimise
from dpsvm.privacy.noise import Noise
from dpsvm.privacy.selection import choose, noisy_best
from dpsvm.warnings import PrivacyLeakWarning

SMOOTH = [HuberHinge(0.5), SmoothHinge(1.0), Logistic()]
RELATIONS = ["add-remove", "replace"]


def setup(**changes):
    facts = {"loss": HuberHinge(0.5), "C": 0.05, "dimension": 5, **changes}
    return Setup(**facts)


def rows_of(random, n, d):
    X = random.normal(size=(n, d))
    return X / np.linalg.norm(X, axis=1)[:, None] / (1 + 1e-9)


class TestOutput:
    @pytest.mark.parametrize("loss", [Hinge(), *SMOOTH], ids=repr)
    @pytest.mark.parametrize("relation", RELATIONS)
    def test_no_neighbours_found_at_random_are_further_apart_than_the_bound(
        self, loss: Any, relation: str
    ) -> None:
        random = np.random.default_rng(0)
        bound, gap = output_sensitivity(setup(loss=loss, C=0.7, neighbouring=relation))

        def fit(X, y):
            if isinstance(loss, Hinge):
                return solve_hinge(X, y, np.ones(len(y)), 0.7, gap)
            objective = Objective(X, y, np.ones(len(y)), loss, 1 / 0.7, np.zeros(3))
            return minimise(objective, math.sqrt(2 * gap) / 0.7)

        largest = 0.0
        for _ in range(40):
            X, y = rows_of(random, 6, 3), random.choice([-1.0, 1.0], 6)
            if relation == "add-remove":
                other_X, other_y = X[1:], y[1:]
            else:
                other_X, other_y = X.copy(), y.copy()
                other_X[0], other_y[0] = -X[0] * y[0], 1.0
            largest = max(largest, np.linalg.norm(fit(X, y) - fit(other_X, other_y)))
        assert 0.3 * bound < largest <= bound

    def test_the_bound_is_reached_by_one_far_record(self) -> None:
        # One record alone: w = C y x while its margin stays below the corner.
        bound, gap = output_sensitivity(setup(loss=Hinge(), C=0.7, neighbouring="replace"))
        one, other = (
            solve_hinge(np.array([[x]]), np.ones(1), np.ones(1), 0.7, gap)[0] for x in (1.0, -1.0)
        )
        assert abs(one - other) == pytest.approx(1.4, abs=0.03)
        assert abs(one - other) <= bound

    @pytest.mark.parametrize("relation", RELATIONS)
    def test_the_gap_adds_twice_its_root_to_the_sensitivity(self, relation: str) -> None:
        bound, gap = output_sensitivity(setup(C=2.0, neighbouring=relation))
        least = 2.0 * (1 if relation == "add-remove" else 2)
        assert bound == pytest.approx(least + 2 * math.sqrt(2 * gap), rel=1e-9)
        assert bound >= least + 2 * math.sqrt(2 * gap)

    @pytest.mark.parametrize("machines", [1, 3])
    def test_the_noise_follows_from_epsilon_and_delta(self, machines: int) -> None:
        facts = setup(machines=machines)
        bound, _ = output_sensitivity(facts)
        pure = calibrate("output", facts, 0.5, None)
        assert pure.noise_scale == pytest.approx(machines * bound / 0.5)
        assert pure.event == Pure(0.5)
        gaussian = calibrate("output", facts, 0.5, 1e-6)
        mu = gaussian_mu(0.5, 1e-6)
        assert gaussian.noise_scale == pytest.approx(math.sqrt(machines) * bound / mu)
        assert gaussian.noise_scale >= math.sqrt(machines) * bound / mu
        laplace = calibrate("output-laplace", facts, 0.5, None)
        assert laplace.noise_scale == pytest.approx(math.sqrt(5) * machines * bound / 0.5)

    @pytest.mark.parametrize("seed", [0, None])
    def test_released_weights_are_the_minimiser_plus_noise_of_the_law(
        self, seed: int | None
    ) -> None:
        facts = setup(loss=Logistic(), C=1.0, dimension=3)
        X, y = np.eye(3) / 1.001, np.array([[1.0, -1.0, 1.0]])
        exact = minimise(Objective(X, y[0], np.ones(3), Logistic(), 1.0, np.zeros(3)), 1e-12)
        noise = Noise(seed)
        for method, delta in (("output", None), ("output", 1e-5), ("output-laplace", None)):
            mechanism = calibrate(method, facts, 1.0, delta)
            draws = [
                mechanism.release(X, y, np.ones(3), noise)[0] - exact for _ in range(DRAWS // 20)
            ]
            draws = np.array(draws) / mechanism.noise_scale
            if mechanism.noise_law == "spherical":
                norms = np.linalg.norm(draws, axis=1)
                assert stats.kstest(norms, stats.gamma(3).cdf).pvalue > LEVEL
                direction = (draws / norms[:, None])[:, 0]
                assert stats.kstest(direction, stats.uniform(-1, 2).cdf).pvalue > LEVEL
            else:
                law = stats.norm if mechanism.noise_law == "gaussian" else stats.laplace
                assert stats.kstest(draws.ravel(), law.cdf).pvalue > LEVEL
            size = np.sqrt(np.mean(draws**2)) * mechanism.noise_scale
            assert size == pytest.approx(mechanism.weight_noise, rel=0.2)


def line(loss, lam, records):
    """The random term b that makes w the minimiser, and db/dw, for rows and signs on a line."""
    w = np.linspace(-60, 60, 600_001) / lam
    b, jacobian = -lam * w, np.full_like(w, lam)
    for x, y in records:
        b -= y * x * loss.slope(y * x * w)
        jacobian += x * x * loss.curvature(y * x * w)
    return w, b, jacobian


def densities(mechanism, lam, log_density, pair):
    found = []
    for records in pair:
        w, b, jacobian = line(mechanism.setup.loss, lam, records)
        found.append(log_density(b) + np.log(jacobian))
    return w, *found


PAIRS = {
    "add-remove": [
        ([], [(1.0, 1.0)]),
        ([(1.0, -1.0)] * 2, [(1.0, -1.0)] * 2 + [(1.0, 1.0)]),
        ([(0.5, 1.0)] * 3 + [(1.0, 1.0)], [(0.5, 1.0)] * 3),
    ],
    "replace": [
        ([(1.0, 1.0)], [(1.0, -1.0)]),
        ([(1.0, 1.0)] * 3, [(1.0, 1.0)] * 2 + [(1.0, -1.0)]),
        ([(0.3, -1.0), (0.9, 1.0)], [(0.3, -1.0), (-0.2, 1.0)]),
    ],
}


class TestObjective:
    @pytest.mark.parametrize("C", [0.01, 0.05, 0.2, 0.3, 5.0])
    @pytest.mark.parametrize("n", [100, 5000])
    def test_the_numbers_are_those_printed_by_the_paper(self, C: float, n: int) -> None:
        given, c = 0.8, 2.0
        epsilon = 0.999 * given  # the rest covers the inexact minimiser
        Lambda = 1 / (n * C)
        left = epsilon - math.log(1 + 2 * c / (n * Lambda) + c**2 / (n * Lambda) ** 2)
        Delta = 0.0
        if left <= 0:
            Delta, left = c / (n * math.expm1(epsilon / 4)) - Lambda, epsilon / 2
        mechanism = calibrate("objective", setup(C=C, neighbouring="replace"), given, None)
        assert mechanism.noise_scale == pytest.approx(2 / left, rel=1e-9)
        assert mechanism.extra == pytest.approx(n * Delta, rel=1e-9)
        assert mechanism.noise_scale >= 2 / left

    @pytest.mark.parametrize("loss", SMOOTH, ids=repr)
    @pytest.mark.parametrize("C", [0.05, 0.3, 5.0])
    @pytest.mark.parametrize("pair", PAIRS["replace"])
    def test_on_a_line_the_density_changes_by_at_most_exp_epsilon(
        self, loss: Any, C: float, pair: tuple[Any, ...]
    ) -> None:
        facts = setup(loss=loss, C=C, dimension=1, neighbouring="replace")
        mechanism = calibrate("objective", facts, 1.0, None)
        lam = facts.lam + mechanism.extra
        scale = mechanism.noise_scale
        _, one, other = densities(mechanism, lam, lambda b: -np.abs(b) / scale, pair)
        assert np.abs(one - other).max() <= 0.999 + 1e-9

    def test_the_rest_of_epsilon_covers_what_the_minimiser_may_be_off(self) -> None:
        facts = setup(C=0.2, neighbouring="replace", tol=1e-4)
        mechanism = calibrate("objective", facts, 1.0, None)
        off = 2 * 1e-4 / (facts.lam + mechanism.extra)  # at either of two neighbours
        assert off / mechanism.output_scale <= 0.001

    def test_add_remove_is_refused_by_name(self) -> None:
        with pytest.raises(ValueError, match="neighbouring='replace' only, got 'add-remove'"):
            calibrate("objective", setup(), 1.0, None)

    @pytest.mark.parametrize("method", ["objective", "objective-gaussian"])
    def test_the_hinge_is_refused_by_name(self, method: str) -> None:
        facts = setup(loss=Hinge(), neighbouring="replace")
        with pytest.raises(ValueError, match=r"bounded curvature.*got 'hinge'"):
            calibrate(method, facts, 1.0, 1e-5)


class TestObjectiveGaussian:
    @pytest.mark.parametrize("relation", RELATIONS)
    def test_the_divergences_are_at_most_those_of_the_paper(self, relation: str) -> None:
        facts = setup(C=0.3, loss=Logistic(), neighbouring=relation, tol=1e-6)
        L, beta, lam, s, s_out = (2.0 if relation == "replace" else 1.0), 0.25, 1 / 0.3, 4.0, 1e-2
        for a in (1.5, 2.0, 10.0, 50.0):
            t = L / s
            paper = (
                -math.log(1 - beta / lam)
                + L**2 / (2 * s**2)
                + (math.log(2) + (a - 1) ** 2 * t**2 / 2 + log_ndtr((a - 1) * t)) / (a - 1)
                + 2 * a * 1e-12 / (lam**2 * s_out**2)
            )
            [ours] = objective_gaussian_event(facts, s, s_out).rdp([a])
            gained = -math.log(1 - beta / lam) - math.log(1 + beta / lam)
            assert ours == pytest.approx(paper - gained, rel=1e-7)
            assert ours <= paper

    @pytest.mark.parametrize("relation", RELATIONS)
    @pytest.mark.parametrize("machines", [1, 4])
    @pytest.mark.parametrize("epsilon", [0.1, 1.0, 8.0])
    def test_the_noise_is_enough_and_no_more_than_enough(
        self, relation: str, machines: int, epsilon: float
    ) -> None:
        facts = setup(C=0.01, neighbouring=relation, machines=machines)
        mechanism = calibrate("objective-gaussian", facts, epsilon, 1e-5)
        assert epsilon_of([mechanism.event], 1e-5) <= epsilon
        scale = mechanism.noise_scale * (1 - 1e-6)
        less = objective_gaussian_event(facts, scale, mechanism.output_scale)
        assert epsilon_of([less], 1e-5) > epsilon

    def test_replace_costs_nearly_twice_the_epsilon_at_the_noise_of_add_remove(self) -> None:
        one = calibrate("objective-gaussian", setup(C=0.01, loss=Logistic()), 1.0, 1e-5)
        both = setup(C=0.01, loss=Logistic(), neighbouring="replace")
        event = objective_gaussian_event(both, one.noise_scale, one.output_scale)
        assert 1.8 < epsilon_of([event], 1e-5) < 2.3

    def test_noise_on_the_minimiser_is_small_beside_that_of_the_objective(self) -> None:
        mechanism = calibrate("objective-gaussian", setup(C=0.01), 1.0, 1e-5)
        assert mechanism.output_scale < 0.01 * mechanism.noise_scale * mechanism.setup.C

    @pytest.mark.parametrize("loss", SMOOTH, ids=repr)
    @pytest.mark.parametrize(
        ("relation", "pair"), [(name, pair) for name, pairs in PAIRS.items() for pair in pairs]
    )
    @pytest.mark.parametrize(
        ("epsilon", "delta", "curvature"), [(1.0, 1e-5, 0.2), (1.0, 1e-2, 0.2), (3.0, 1e-3, 4.0)]
    )
    def test_on_a_line_the_integrated_delta_is_within_the_guarantee(
        self,
        loss: Any,
        relation: str,
        pair: tuple[Any, ...],
        epsilon: float,
        delta: float,
        curvature: float,
    ) -> None:
        C = curvature / loss.smoothness  # also above 1 / smoothness
        facts = setup(loss=loss, C=C, dimension=1, neighbouring=relation)
        mechanism = calibrate("objective-gaussian", facts, epsilon, delta)
        s = mechanism.noise_scale
        w, *logs = densities(
            mechanism, facts.lam, lambda b: stats.norm.logpdf(b / s) - math.log(s), pair
        )
        for one, other in (logs, logs[::-1]):
            assert trapezoid(np.exp(one), w) == pytest.approx(1, abs=5e-4)
            excess = np.maximum(np.exp(one) - math.exp(epsilon) * np.exp(other), 0)
            assert trapezoid(excess, w) <= delta

    def test_on_a_line_half_of_the_delta_is_reached(self) -> None:
        facts = setup(loss=HuberHinge(1.0), C=1e-3, dimension=1)
        mechanism = calibrate("objective-gaussian", facts, 1.0, 1e-5)
        s = mechanism.noise_scale
        w, *logs = densities(
            mechanism, facts.lam, lambda b: stats.norm.logpdf(b, 0, s), PAIRS["add-remove"][0]
        )
        excess = [np.maximum(np.exp(a) - math.e * np.exp(b), 0) for a, b in (logs, logs[::-1])]
        assert 0.45e-5 < max(trapezoid(each, w) for each in excess) <= 0.5e-5

    @pytest.mark.parametrize("C", [0.86, 0.9, 3.0])
    def test_too_large_a_C_is_refused_with_the_limit(self, C: float) -> None:
        with pytest.raises(ValueError, match=r"C must be below 0\.859 for epsilon = 1 .*got"):
            calibrate("objective-gaussian", setup(C=C), 1.0, 1e-5)

    def test_much_budget_leaves_the_exact_minimiser(self) -> None:
        random = np.random.default_rng(0)
        X, y = rows_of(random, 50, 5), np.sign(random.normal(size=(1, 50)))
        facts = setup(loss=Logistic(), C=1.0)
        mechanism = calibrate("objective-gaussian", facts, 1e7, 1e-5)
        exact = minimise(Objective(X, y[0], np.ones(50), Logistic(), 1.0, np.zeros(5)), 1e-10)
        assert np.allclose(mechanism.release(X, y, np.ones(50), Noise(0))[0], exact, atol=0.02)


class TestGradient:
    @pytest.mark.parametrize("relation", RELATIONS)
    @pytest.mark.parametrize("steps", [1, 40])
    @pytest.mark.parametrize("machines", [1, 3])
    def test_all_its_gaussians_compose_to_the_budget(
        self, relation: str, steps: int, machines: int
    ) -> None:
        facts = setup(steps=steps, machines=machines, neighbouring=relation)
        mechanism = calibrate("gradient", facts, 1.0, 1e-5)
        difference = 2.0 if relation == "replace" else 1.0
        events = [Gaussian(difference / mechanism.noise_scale)] * (steps * machines)
        if relation == "add-remove":
            events.append(Gaussian(1 / mechanism.count_scale))
        else:
            assert mechanism.count_scale == 0
        assert 1 - 1e-6 < epsilon_of(events, 1e-5) <= 1.0
        assert mechanism.event == Gaussian(gaussian_mu(1.0, 1e-5))

    def test_steps_without_noise_go_towards_the_minimum(self) -> None:
        random = np.random.default_rng(0)
        X = rows_of(random, 300, 5)
        y = np.sign(X[:, :1].T + 0.1)
        facts = setup(loss=Logistic(), C=1.0, steps=400)
        mechanism = calibrate("gradient", facts, 1e7, 1e-5)
        objective = Objective(X, y[0], np.ones(300), Logistic(), 1.0, np.zeros(5))
        exact = minimise(objective, 1e-9)
        [found] = mechanism.release(X, y, np.ones(300), Noise(0))
        assert np.linalg.norm(found - exact) < 0.2 * np.linalg.norm(exact)

    @pytest.mark.skipif(
        importlib.util.find_spec("dp_accounting") is not None, reason="dp-accounting is installed"
    )
    def test_sampling_without_dp_accounting_says_what_to_install(self) -> None:
        with pytest.raises(ValueError, match="dp-accounting, which is not installed"):
            calibrate("gradient", setup(rate=0.1), 1.0, 1e-5)

    @pytest.mark.skipif(
        importlib.util.find_spec("dp_accounting") is None, reason="dp-accounting is not installed"
    )
    def test_sampling_needs_less_noise_and_is_accounted_for(self) -> None:
        full = calibrate("gradient", setup(), 1.0, 1e-5)
        sampled = calibrate("gradient", setup(rate=0.1), 1.0, 1e-5)
        assert 0.05 * full.noise_scale < sampled.noise_scale < 0.5 * full.noise_scale

    def test_sampling_with_replaced_records_is_refused(self) -> None:
        with pytest.raises(ValueError, match="add-remove' only, got 'replace'"):
            calibrate("gradient", setup(rate=0.1, neighbouring="replace"), 1.0, 1e-5)


class TestCalibrate:
    @pytest.mark.parametrize("method", METHODS)
    @pytest.mark.parametrize("epsilon", [0.0, -1.0, math.nan, math.inf])
    def test_a_bad_epsilon_is_named(self, method: str, epsilon: float) -> None:
        with pytest.raises(ValueError, match=f"epsilon .*got {epsilon}"):
            calibrate(method, setup(neighbouring="replace"), epsilon, 1e-5)

    @pytest.mark.parametrize("method", METHODS)
    @pytest.mark.parametrize("delta", [0.0, 1.0, -1e-5, math.nan])
    def test_a_bad_delta_is_named(self, method: str, delta: float) -> None:
        with pytest.raises(ValueError, match=f"delta .*got {delta}"):
            calibrate(method, setup(neighbouring="replace"), 1.0, delta)

    @pytest.mark.parametrize("method", ["objective-gaussian", "gradient"])
    def test_a_missing_delta_is_asked_for(self, method: str) -> None:
        with pytest.raises(ValueError, match="needs a delta"):
            calibrate(method, setup(), 1.0, None)

    def test_an_unknown_method_or_relation_is_named(self) -> None:
        with pytest.raises(ValueError, match="got 'magic'"):
            calibrate("magic", setup(), 1.0, None)
        with pytest.raises(ValueError, match="got 'column'"):
            setup(neighbouring="column")

    @pytest.mark.parametrize("method", METHODS)
    @pytest.mark.parametrize("loss", SMOOTH, ids=repr)
    def test_more_budget_never_asks_for_more_noise(self, method: str, loss: Any) -> None:
        facts = setup(loss=loss, C=0.01, neighbouring="replace", machines=2)
        scales = [calibrate(method, facts, e, 1e-5).noise_scale for e in (0.1, 0.5, 2.0, 9.0)]
        assert scales == sorted(scales, reverse=True)

    @pytest.mark.parametrize("method", METHODS)
    def test_released_weights_lie_on_a_public_grid(self, method: str) -> None:
        facts = setup(neighbouring="replace")
        mechanism = calibrate(method, facts, 1.0, 1e-5)
        X, y = rows_of(np.random.default_rng(0), 30, 5), np.ones((1, 30))
        released = mechanism.release(X, y, np.ones(30), Noise(0))
        grid = 2.0 ** math.floor(math.log2(2.0**-20 * mechanism.weight_noise))
        assert np.array_equal(released, np.round(released / grid) * grid)


class TestChoice:
    @pytest.mark.parametrize("relation", RELATIONS)
    def test_the_probabilities_are_those_of_permute_and_flip(self, relation: str) -> None:
        epsilon, counts = 1.0, [3, 1, 2]
        scale = 1.0 if relation == "add-remove" else 2.0
        keep = [math.exp((1 - c) * epsilon / scale) for c in counts]
        wanted = np.zeros(3)
        for order in ([0, 1, 2], [0, 2, 1], [1, 0, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0]):
            left = 1.0
            for i in order:
                wanted[i] += left * keep[i] / 6
                left *= 1 - keep[i]
        random = np.random.default_rng(7)
        with pytest.warns(PrivacyLeakWarning):
            found = [
                noisy_best(counts, epsilon, neighbouring=relation, random_state=random)
                for _ in range(DRAWS // 4)
            ]
        seen = np.bincount(found, minlength=3)
        assert stats.chisquare(seen, wanted * len(found)).pvalue > LEVEL

    def test_the_charge_comes_first_and_is_refused_before_noise_is_drawn(self) -> None:
        class Counting:
            drawn = 0

            def bytes(self, count):
                self.drawn += count
                return np.random.default_rng(0).bytes(count)

        source, accountant = Counting(), BudgetAccountant(0.5)
        with pytest.warns(PrivacyLeakWarning), pytest.raises(BudgetError):
            noisy_best([1, 2], 1.0, accountant=accountant, random_state=source)
        assert source.drawn == 0
        noisy_best([1, 2], 0.5, accountant=accountant)
        assert [charge.event for charge in accountant.charges] == [Pure(0.5)]

    def test_a_model_that_errs_less_is_chosen(self) -> None:
        class Constant:
            def __init__(self, label):
                self.label = label

            def predict(self, X):
                return np.full(len(X), self.label)

        y = np.array([1] * 900 + [0] * 100)
        models = [Constant(0), Constant(1)]
        assert choose(models, np.zeros((1000, 1)), y, 1.0) == 1
        with pytest.raises(ValueError, match="y has 1 labels, and 1000 rows were predicted"):
            choose(models, np.zeros((1000, 1)), y[:1], 1.0)

    @pytest.mark.parametrize("errors", [[], [math.nan], [[1, 2]]])
    def test_bad_counts_are_refused(self, errors: list[Any]) -> None:
        with pytest.raises(ValueError, match="errors must be"):
            noisy_best(errors, 1.0)
