"""Private Frank-Wolfe: samplers, sensitivities under attack, accounting, and what is refused."""

from __future__ import annotations

import math
import re
import warnings
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from dp_accounting_prices import dp_accounting_epsilon
from frank_wolfe_problems import make_lasso, split
from scipy import sparse
from scipy.special import log_softmax
from scipy.stats import chisquare, gumbel_r, kstest, norm
from statistical import DRAWS, LEVEL

from dpsvm.frank_wolfe import (
    DistributedFrankWolfe,
    FrankWolfeLasso,
    L1Ball,
    LeastSquares,
    OneShotSketching,
    PrivateDistributedFrankWolfe,
    PrivateFrankWolfe,
    agreement,
    minimize,
)
from dpsvm.frank_wolfe.messages import Query
from dpsvm.frank_wolfe.party import Party
from dpsvm.frank_wolfe.privacy import (
    CentralCalibration,
    DistributedCalibration,
    choose_vertex,
    gradient_sensitivity,
    score_sensitivity,
    sketch_sensitivity,
)
from dpsvm.frank_wolfe.sketches import Sketch
from dpsvm.frank_wolfe.theory import DistributedSizes
from dpsvm.privacy import BudgetAccountant, BudgetError
from dpsvm.privacy.accounting import Gaussian, Pure, ZCdp, epsilon_of
from dpsvm.privacy.audit.bounds import epsilon_at_least
from dpsvm.privacy.noise import Noise
from dpsvm.warnings import PrivacyLeakWarning

BOTH = {"radius": 0.7, "rounds": 10, "epsilon": 1.0, "delta": 1e-5, "entry_bound": 1.0}
RUN = BOTH | {"label_bound": 1.0}
SPLIT = BOTH | {"sketch": 20, "public_labels": True}


# Samplers


def test_gumbel_noise_has_its_distribution() -> None:
    drawn = Noise(0).gumbel(2.5, DRAWS)
    assert kstest(drawn, gumbel_r(scale=2.5).cdf).pvalue > LEVEL


def test_vertices_are_chosen_with_the_probabilities_of_the_exponential_mechanism() -> None:
    gradient, sensitivity, epsilon = np.array([0.5, -1.0, 0.2]), 0.3, 0.9
    noise, counts = Noise(1), np.zeros(6)
    for _ in range(DRAWS):
        place, sign = choose_vertex(gradient, sensitivity, epsilon, noise)
        counts[place + (0 if sign == 1 else 3)] += 1
    law = np.exp(log_softmax(epsilon * np.r_[-gradient, gradient] / (2 * sensitivity)))
    assert chisquare(counts, law * DRAWS).pvalue > LEVEL


def test_the_loss_of_a_choice_has_a_range_of_epsilon_and_its_divergences_those_of_zcdp() -> None:
    rng, epsilon, widest = np.random.default_rng(2), 0.8, 0.0
    for trial in range(400):
        g = rng.standard_normal(4) * 10.0 ** rng.uniform(-1, 1)
        change = rng.uniform(-1, 1, 4) if trial % 2 else rng.choice([-1.0, 1.0], 4)
        p, q = (log_softmax(epsilon * np.r_[-h, h] / 2.0) for h in (g, g + change))
        loss = p - q
        assert np.ptp(loss) <= epsilon + 1e-12
        assert np.max(np.abs(loss)) <= epsilon + 1e-12
        widest = max(widest, float(np.ptp(loss)))
        for order in (1.5, 2.0, 8.0, 50.0):
            divergence = np.log(np.sum(np.exp(order * p + (1 - order) * q))) / (order - 1)
            assert divergence <= order * epsilon**2 / 8 + 1e-12
    assert widest > 0.99 * epsilon


def test_telling_the_sign_of_the_winner_by_absolute_value_would_cost_without_end() -> None:
    """A score that passes through 0 changes its sign, which noise on |g| does not hide."""
    for score in (1e-9, -1e-9):
        gradient = np.array([score])
        signs = {choose_vertex(gradient, 1.0, 0.1, Noise(seed))[1] for seed in range(30)}
        assert signs == {-1, 1}


def test_a_sketch_is_released_with_gaussian_noise_of_its_scale() -> None:
    calibration = DistributedCalibration.of(Sketch(50, 20), [DRAWS] * 2, DRAWS, 1.0, 1e-5, 1.0)
    noise, row = calibration.noise_of(0, Noise(3)), np.linspace(-1, 1, 20)
    drawn = np.concatenate([noise.release(row) - row for _ in range(DRAWS // 20)])
    assert kstest(drawn, norm(scale=calibration.scale).cdf).pvalue > LEVEL
    steps = noise.release(row) / (2.0 ** math.floor(math.log2(calibration.scale)) * 2.0**-20)
    assert np.array_equal(steps, np.round(steps))


def law_of(gradient, sensitivity, epsilon):
    """The exponential mechanism over +e_1, .., +e_d, -e_1, .., -e_d."""
    return np.exp(log_softmax(epsilon * np.r_[-gradient, gradient] / (2 * sensitivity)))


def test_a_party_chooses_by_the_law_that_its_guarantee_needs() -> None:
    rng, sketch = np.random.default_rng(8), Sketch(50, 20)
    residual, scores = rng.standard_normal(20) / 50, np.array([0.1, -0.03, 0.015])
    calibration = DistributedCalibration.of(sketch, [3], DRAWS, 1e5, 1e-5, 2.0)
    noise, counts = calibration.noise_of(0, Noise(5)), np.zeros(6)
    for _ in range(DRAWS):
        place, sign = noise.choose(scores, residual)
        counts[place + (0 if sign == 1 else 3)] += 1
    moved = 2 * 2.0 * np.max(np.abs(sketch.matrix.T @ residual))  # an entry goes from -2 to 2
    law = law_of(scores, moved, calibration.choice_epsilon)
    assert 0.02 < np.min(law) < np.max(law) < 0.6  # neither even nor sure
    assert chisquare(counts, law * DRAWS).pvalue > LEVEL


def test_a_central_run_chooses_by_the_law_that_its_guarantee_needs() -> None:
    A, y = np.array([[1.0, 0.2], [-1.0, 0.9]]), np.array([0.5, -1.0])
    solver = PrivateFrankWolfe(radius=0.7, rounds=1, epsilon=3.0, entry_bound=1.0, label_bound=1.0)
    counts, runs = np.zeros(4), DRAWS // 4
    for _ in range(runs):
        atom = solver.solve(A, y).choices[0]
        counts[atom.index + (0 if atom.value > 0 else 2)] += 1
    law = law_of(-A.T @ y / 2, 2 * (0.7 + 1) / 2, 3.0)
    assert chisquare(counts, law * runs).pvalue > LEVEL


def test_no_query_however_small_or_large_is_answered_without_noise() -> None:
    """Of a subnormal residual the sensitivity would be rounded to 0, but not every score."""
    rng, sketch = np.random.default_rng(9), Sketch(200, 50)
    A = rng.uniform(-100, 100, (200, 3))
    calibration = DistributedCalibration.of(sketch, [3], DRAWS, 0.1, 1e-5, 100.0)
    for size in (5e-324, 1e-300, 1e300):
        party = Party(0, A, sketch, perturbation=calibration.noise_of(0, Noise(3)))
        residual = np.zeros(50)
        residual[0] = size
        choices = {party.answer(Query(t, residual)).choice for t in range(1, 200)}
        assert choices == {-3, -2, -1, 1, 2, 3}
    with pytest.raises(
        ValueError, match=re.escape("scores with a sensitivity of 0.0 cannot be hidden")
    ):
        choose_vertex(np.array([1e-320]), 0.0, 1.0, Noise(0))


# Sensitivities, attacked


def test_no_record_moves_the_gradient_further_than_the_sensitivity() -> None:
    rng, worst, n, d, radius = np.random.default_rng(4), 0.0, 6, 3, 1.7
    bound = gradient_sensitivity(radius, n, 1.0, 1.0)
    for _ in range(3000):
        A, y = rng.uniform(-1, 1, (n, d)), rng.uniform(-1, 1, n)
        B, z = A.copy(), y.copy()
        B[0], z[0] = rng.choice([-1.0, 1.0], d), rng.choice([-1.0, 1.0])
        if rng.random() < 0.7:
            A[0], y[0] = rng.choice([-1.0, 1.0], d), rng.choice([-1.0, 1.0])
        x = L1Ball(d, radius).lmo(rng.standard_normal(d)) * rng.choice([1.0, rng.random()])
        moved = A.T @ (A @ x - y) - B.T @ (B @ x - z)
        worst = max(worst, float(np.max(np.abs(moved))) / n)
    assert 0.99 * bound < worst <= bound


@pytest.mark.parametrize("size", [None, 5, 40])
def test_no_entry_moves_a_sketch_or_a_score_further_than_its_sensitivity(size: int | None) -> None:
    rng, n = np.random.default_rng(5), 30
    sketch = Sketch(n, size, seed=1)
    bound, worst_sketch, worst_score = sketch_sensitivity(sketch, 1.0), 0.0, 0.0
    for _ in range(300):
        a = rng.uniform(-1, 1, n)
        b, j = a.copy(), int(rng.integers(n))
        a[j], b[j] = 1.0, -1.0
        worst_sketch = max(worst_sketch, float(np.linalg.norm(sketch.of(a - b))) / n)
        residual = rng.standard_normal(sketch.size)
        limit = score_sensitivity(residual, sketch, 1.0)
        moved = abs(float(sketch.of(a - b) @ residual))
        assert moved <= limit
        worst_score = max(worst_score, moved / limit)
    assert 0.99 * bound < worst_sketch <= bound
    assert worst_score > 0.9


def test_the_naive_score_sensitivity_is_too_small_and_the_spectral_one_too_large() -> None:
    A, y = make_lasso(n=4000, d=10)
    sketch, eta = Sketch(4000, 100), 1.0
    residual = -sketch.of(y) / 4000
    proved = score_sensitivity(residual, sketch, 1.0)
    j = int(np.argmax(np.abs(sketch.back(residual))))
    other = A.copy()
    A[j, 0], other[j, 0] = 1.0, -1.0
    moved = abs(float((sketch.of(A) - sketch.of(other))[:, 0] @ residual))
    assert moved == pytest.approx(proved)
    assert moved > 5.0 * (2 * eta / 4000)
    report = DistributedCalibration.of(sketch, [5, 5], 5, 1.0, 1e-5, 1.0).figures
    assert 5.0 < report["published_sensitivity"] / report["sketch_sensitivity"] < 6.5


def test_a_sensitivity_divided_by_n_for_a_message_that_is_not_is_n_times_too_small() -> None:
    n = 50
    sketch = Sketch(n, 20)
    a = np.ones(n)
    b = a.copy()
    j = int(np.argmax(np.linalg.norm(sketch.matrix, axis=0)))
    b[j] = -1.0
    undivided = float(np.linalg.norm(sketch.of(a) - sketch.of(b)))
    assert undivided == pytest.approx(n * sketch_sensitivity(sketch, 1.0))


# Accounting


@pytest.mark.parametrize(("parties", "rounds", "epsilon"), [(3, 20, 1.0), (1, 1, 0.1), (4, 50, 8)])
def test_all_the_releases_of_a_run_together_cost_at_most_what_is_guaranteed(
    parties: int, rounds: int, epsilon: float
) -> None:
    found = DistributedCalibration.of(
        Sketch(100), [4] * parties, rounds, epsilon, 1e-5, 1.0, cache=False
    )
    every = [ZCdp(found.choice_epsilon**2 / 8), Gaussian(found.mu)] * (parties * rounds)
    assert 0.999 * epsilon < epsilon_of(every, 1e-5) <= epsilon
    assert epsilon_of([found.event], 1e-5) <= epsilon
    central = CentralCalibration.of(rounds, 0.1, epsilon, 1e-5)
    summed = epsilon_of([Pure(central.choice_epsilon)] * rounds, 0.0)
    joint = epsilon_of([ZCdp(central.choice_epsilon**2 / 8)] * rounds, 1e-5)
    assert 0.999 * epsilon < min(summed, joint) <= epsilon
    assert epsilon_of([central.event], 1e-5) <= epsilon
    pure = CentralCalibration.of(rounds, 0.1, epsilon, None)
    assert epsilon_of([Pure(pure.choice_epsilon)] * rounds, 0.0) <= epsilon
    assert pure.guarantee.delta == 0.0


def test_with_a_cache_no_party_pays_for_more_sketches_than_it_has_columns() -> None:
    cached = DistributedCalibration.of(Sketch(100), [2, 50], 20, 1.0, 1e-5, 1.0)
    assert cached.sketches == (2, 20)
    every = [ZCdp(cached.choice_epsilon**2 / 8)] * 40 + [Gaussian(cached.mu)] * 22
    assert 0.999 < epsilon_of(every, 1e-5) <= 1.0
    without = DistributedCalibration.of(Sketch(100), [2, 50], 20, 1.0, 1e-5, 1.0, cache=False)
    assert without.scale / cached.scale == pytest.approx(math.sqrt(40 / 22))


def test_dp_accounting_agrees() -> None:
    pytest.importorskip("dp_accounting")
    found = DistributedCalibration.of(Sketch(100), [20] * 3, 20, 1.0, 1e-5, 1.0)
    every = [ZCdp(found.choice_epsilon**2 / 8), Gaussian(found.mu)] * 60
    assert dp_accounting_epsilon(every, 1e-5, method="rdp") == pytest.approx(1.0, rel=0.02)


def test_halves_of_rho_allow_more_than_halves_of_epsilon_and_delta() -> None:
    found = DistributedCalibration.of(Sketch(100), [20] * 3, 20, 1.0, 1e-5, 1.0)
    assert found.choice_epsilon > 0.0323  # (1/2, delta/2) for the choices alone, by zCDP
    assert 1 / found.mu < 56.9  # (1/2, delta/2) for the sketches alone, exactly
    advanced = 1.0 / (2 * math.sqrt(2 * 60 * math.log(2e5)))
    assert found.choice_epsilon > advanced


def audited(calibration, runs=3000):
    """A lower bound on the epsilon of a round, from the messages of two neighbouring parties."""
    sketch, noise = calibration.sketch, Noise(7)
    residual = np.linspace(-1.0, 1.0, sketch.size) / sketch.n_samples
    j = int(np.argmax(np.linalg.norm(sketch.matrix, axis=0)))
    column = np.zeros((sketch.n_samples, 1))
    hits = []
    for entry in (1.0, -1.0):
        column[j] = entry
        away = sketch.of(column)[:, 0] / sketch.n_samples  # the other neighbour has its negative
        favoured = -np.sign(entry * sketch.back(residual)[j])
        direction, count = entry * away, 0
        for _ in range(runs):
            party = Party(0, column, sketch, perturbation=calibration.noise_of(0, noise))
            sent = party.answer(Query(1, residual))
            # The log-likelihood ratio of +1 to -1, up to the weight of the choice.
            ratio = 2.0 * float(sent.sketch @ direction) / calibration.scale**2
            ratio += 0.5 * calibration.choice_epsilon * sent.sign * favoured * entry
            count += ratio > 0.5 * calibration.mu**2
        hits.append(count)
    return epsilon_at_least(*hits, runs, delta=1e-5, confidence=1 - LEVEL)


def test_an_audit_of_the_messages_finds_out_too_little_noise_and_only_that() -> None:
    sound = DistributedCalibration.of(Sketch(20, 5), [1], 1, 1.0, 1e-5, 1.0)
    assert audited(sound) <= 1.0
    broken = replace(sound, mu=8 * sound.mu, choice_epsilon=8 * sound.choice_epsilon)
    assert audited(broken) > 1.0


# Runs


def quiet(solver, *data):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PrivacyLeakWarning)
        return solver.solve(*data)


def test_without_end_of_epsilon_the_private_methods_are_the_others() -> None:
    A, y = make_lasso()
    endless = RUN | {"epsilon": 1e14}
    central = minimize(LeastSquares(A, y), L1Ball(12, 0.7), max_iter=10)
    found = PrivateFrankWolfe(**endless).solve(A, y)
    assert np.max(np.abs(found.x - central.x)) < 1e-12
    for problem in ("l1", "product"):
        plain = DistributedFrankWolfe(radius=0.7, rounds=10, sketch=20, problem=problem)
        private = PrivateDistributedFrankWolfe(
            **(SPLIT | {"epsilon": 1e14, "problem": problem})
        ).solve(split(A, 3), y)
        assert np.max(np.abs(private.x - plain.solve(split(A, 3), y).x)) < 1e-6


def test_a_model_is_made_of_the_choices_and_nothing_else() -> None:
    A, y = make_lasso()
    found = PrivateFrankWolfe(**RUN).solve(A, y)
    x = np.zeros(12)
    for t, atom in enumerate(found.choices):
        x *= 1 - 2 / (t + 2)
        x[atom.index] += 2 / (t + 2) * atom.value
    assert np.max(np.abs(x - found.x)) < 1e-15
    assert np.abs(found.x).sum() <= 0.7 * (1 + 1e-12)
    assert str(found.guarantee) == "epsilon = 1, delta = 1e-05 (replace)"


def test_a_private_run_over_parties_counts_and_keeps_quiet_about_the_data() -> None:
    A, y = make_lasso()
    found = PrivateDistributedFrankWolfe(**SPLIT, cache=False).solve(
        split(A, 3), y, lambda one, x: True
    )
    assert found.n_rounds == 10  # a watch cannot end it
    assert (found.traffic.up_integers, found.traffic.up_floats) == (30, 600)
    assert found.value is None
    assert str(found.guarantee) == "epsilon = 1, delta = 1e-05 (features)"
    assert found.predicted == found.traffic
    assert found.report["labels"].startswith("public: ")
    assert np.abs(found.x).sum() <= 0.7 * (1 + 1e-12)


def test_a_column_sent_before_is_not_drawn_anew() -> None:
    A, _ = make_lasso(d=1)
    sketch = Sketch(60, 20)
    calibration = DistributedCalibration.of(sketch, [1], 3, 1.0, 1e-5, 1.0)
    party = Party(0, A, sketch, perturbation=calibration.noise_of(0, Noise(0)))
    sent = [party.answer(Query(t, np.ones(20))).sketch for t in (1, 2, 3)]
    assert [one is None for one in sent] == [False, True, True]
    with pytest.raises(ValueError, match="party 0 was made for 3 choices, all of which were made"):
        party.answer(Query(4, np.ones(20)))
    other = DistributedCalibration.of(sketch, [2], 3, 1.0, 1e-5, 1.0).noise_of(0, Noise(0))
    assert [len(other.release(np.zeros(20))) for _ in range(2)] == [20, 20]
    with pytest.raises(ValueError, match="party 0 was made for 2 sketches, all of which were made"):
        other.release(np.zeros(20))
    with pytest.raises(ValueError, match="made for party 0, got party 1"):
        Party(1, A, sketch, perturbation=calibration.noise_of(0, Noise(0)))
    with pytest.raises(ValueError, match="party must be an integer from 0 to 0, got 1"):
        calibration.noise_of(1, Noise(0))
    with pytest.raises(ValueError, match="made for another sketch"):
        Party(0, A, Sketch(60, 20), perturbation=calibration.noise_of(0, Noise(0)))


def test_protected_labels_are_released_once_with_the_noise_of_their_own_sensitivity() -> None:
    n, runs = 40, DRAWS // 20
    sketch = Sketch(n, 20, seed=2)
    calibration = DistributedCalibration.of(sketch, [5, 9], 5, 1.0, 1e-5, 1.0, label_bound=3.0)
    y, noise = np.linspace(-3.0, 3.0, n), Noise(4)
    drawn = [calibration.release_labels(y, noise) - sketch.of(y) / n for _ in range(runs)]
    scale = 3.0 * calibration.scale  # labels are bounded by 3, entries by 1
    assert kstest(np.concatenate(drawn), norm(scale=scale).cdf).pvalue > LEVEL
    moved = np.zeros(n)
    moved[int(np.argmax(np.linalg.norm(sketch.matrix, axis=0)))] = 6.0  # from -3 to 3
    assert np.linalg.norm(sketch.of(moved) / n) == pytest.approx(calibration.mu * scale)
    every = [ZCdp(calibration.choice_epsilon**2 / 8)] * 10 + [Gaussian(calibration.mu)] * 11
    assert 0.999 < epsilon_of(every, 1e-5) <= 1.0
    report = calibration.figures
    assert report["choices"] + report["sketches"] == len(every)


def test_with_protected_labels_all_that_follows_is_made_of_their_release() -> None:
    A, y = make_lasso()
    run = {name: value for name, value in SPLIT.items() if name != "public_labels"}
    solver = PrivateDistributedFrankWolfe(**run, label_bound=1.0)
    found = solver.solve(split(A, 2), y)
    assert str(found.guarantee) == "epsilon = 1, delta = 1e-05 (replace)"
    assert found.report["labels"].startswith("protected: ")
    assert found.traffic.up_integers == 20
    exact = PrivateDistributedFrankWolfe(**(run | {"epsilon": 1e14}), label_bound=1.0)
    plain = DistributedFrankWolfe(radius=0.7, rounds=10, sketch=20).solve(split(A, 2), y)
    assert np.max(np.abs(exact.solve(split(A, 2), y).x - plain.x)) < 1e-6
    with pytest.raises(ValueError, match=re.escape("at most label_bound = 0.1")):
        PrivateDistributedFrankWolfe(**run, label_bound=0.1).solve(split(A, 2), y)


def test_the_coordinator_never_sees_protected_labels_themselves(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    A, y = make_lasso()
    run = {name: value for name, value in SPLIT.items() if name != "public_labels"}
    seen, make = [], agreement.Coordinator

    def watched(goal, *given, **settings):
        seen.append(goal)
        return make(goal, *given, **settings)

    monkeypatch.setattr(agreement, "Coordinator", watched)
    for _ in range(2):
        found = PrivateDistributedFrankWolfe(**run, label_bound=1.0).solve(split(A, 2), y)
    exact = Sketch(60, 20).of(y) / 60
    scale = found.report["sketch_noise"]  # entries and labels have the same bound
    for goal in seen:
        assert np.all(goal != exact)
        assert 0.2 * scale < np.std(goal - exact) < 5 * scale
    assert np.all(seen[0] != seen[1])


def test_labels_that_are_all_0_leave_nothing_to_hide() -> None:
    A, _ = make_lasso()
    found = PrivateDistributedFrankWolfe(**SPLIT).solve(split(A, 2), np.zeros(60))
    assert np.all(np.isfinite(found.x))


# Rounds and sketches that theory proposes


def test_more_rounds_are_proposed_where_n_or_epsilon_is_larger() -> None:
    sizes = {"n_samples": 10**5, "n_features": 40, "parties": 4, "radius": 1.0}
    sizes |= {"entry_bound": 1.0, "label_size": 0.5, "rho": 1.0}
    proposed = [DistributedSizes(**sizes | {"rho": rho}).rounds(100) for rho in (0.01, 1.0, 100.0)]
    assert proposed == sorted(proposed)
    assert proposed[-1] / proposed[0] == pytest.approx(100 ** (2 / 3), rel=0.2)  # sqrt(rho)^(2/3)
    more = DistributedSizes(**sizes | {"n_samples": 10**7}).rounds(100)
    assert more / DistributedSizes(**sizes).rounds(100) == pytest.approx(10 ** (2 / 3), rel=0.2)


def test_a_proposed_sketch_is_shorter_than_a_column_or_there_is_none() -> None:
    sizes = {"n_features": 40, "parties": 4, "radius": 1.0}
    sizes |= {"entry_bound": 1.0, "label_size": 0.5, "rho": 1.0}
    assert DistributedSizes(n_samples=50, **sizes).plan(1e-5)[1] is None
    rounds, size = DistributedSizes(n_samples=10**5, **sizes).plan(1e-5)
    assert size == math.ceil(9 * math.log(rounds / 1e-5))
    assert DistributedSizes(n_samples=10**5, **sizes).plan(1e-5, 7, 30) == (7, 30)


def test_what_is_proposed_depends_on_no_feature_and_on_no_protected_label() -> None:
    rng = np.random.default_rng(0)
    run = {"radius": 0.7, "epsilon": 50.0, "delta": 1e-5, "entry_bound": 1.0}
    n = 20_000
    for name, labels in (("public_labels", True), ("label_bound", 1.0)):
        found = set()
        for scale in (0.01, 0.1, 1.0):
            A, y = rng.uniform(-scale, scale, (n, 4)), rng.uniform(-scale, scale, n)
            y = y if name == "label_bound" else np.linspace(-1, 1, n)
            one = PrivateDistributedFrankWolfe(**run, **{name: labels}).solve(split(A, 2), y)
            found.add((one.n_rounds, one.predicted))
        assert len(found) == 1
        assert found.pop()[0] > 5  # which other sizes would move
    central = PrivateFrankWolfe(**run, label_bound=1.0)
    lengths = {len(central.solve(s * A, s * np.ones(n)).choices) for s in (0.01, 0.1, 1.0)}
    assert len(lengths) == 1


def test_the_central_bound_behind_the_proposed_rounds_holds_in_the_mean() -> None:
    """E f(x_T) - f* <= 2 C / (T + 2) + r (2 D / e0) log 2d."""
    A, y = make_lasso(n=2000, d=6)
    f, radius, rounds = LeastSquares(A, y), 0.7, 12
    best = minimize(f, L1Ball(6, radius), step="line-search", max_iter=3000).value
    for epsilon in (1.0, 10.0, 1000.0):
        calibration = CentralCalibration.of(
            rounds, gradient_sensitivity(radius, 2000, 1.0, 1.0), epsilon, 1e-5
        )
        missed = radius * 2 * calibration.sensitivity / calibration.choice_epsilon * math.log(12)
        bound = 2 * (2 * radius) ** 2 / (rounds + 2) + missed
        settings = {"radius": radius, "rounds": rounds, "epsilon": epsilon}
        solver = PrivateFrankWolfe(**RUN | settings)
        values = [f.value(solver.solve(A, y).x) for _ in range(30)]
        assert np.mean(values) - best <= bound


def test_with_many_records_the_private_model_is_nearly_the_best() -> None:
    A, y = make_lasso(n=20_000, d=6)
    f = LeastSquares(A, y)
    best = minimize(f, L1Ball(6, 1.0), step="line-search", max_iter=500).value
    start = f.value(np.zeros(6))
    run = {"radius": 1.0, "rounds": 15, "delta": 1e-5, "random_state": 0, "entry_bound": 1.0}
    central = quiet(PrivateFrankWolfe(**run, epsilon=2.0, label_bound=1.0), A, y)
    assert f.value(central.x) - best < 0.15 * (start - best)
    split_run = PrivateDistributedFrankWolfe(
        **run, epsilon=300.0, sketch=50, public_labels=True, tau=2
    )
    found = quiet(split_run, split(A, 2), y)
    assert f.value(found.x) - best < 0.5 * (start - best)


def test_a_seed_repeats_a_run_and_warns() -> None:
    A, y = make_lasso()
    for solver, data in (
        (PrivateFrankWolfe(**RUN, random_state=1), A),
        (PrivateDistributedFrankWolfe(**SPLIT, random_state=1, tau=2), split(A, 2)),
    ):
        with pytest.warns(PrivacyLeakWarning, match="makes the noise repeatable"):
            one = solver.solve(data, y)
        assert np.array_equal(one.x, quiet(solver, data, y).x)


# Budgets and refusals


def test_a_run_is_charged_once_and_before_it_starts() -> None:
    A, y = make_lasso()
    accountant = BudgetAccountant(1.2, 1e-5, neighbouring="replace")
    PrivateFrankWolfe(**RUN, accountant=accountant).solve(A, y)
    assert [charge.label for charge in accountant.charges] == ["PrivateFrankWolfe"]
    assert accountant.total().epsilon <= 1.0
    with pytest.raises(BudgetError, match="does not fit"):
        PrivateFrankWolfe(**RUN, accountant=accountant).solve(A, y)
    with pytest.raises(BudgetError, match="'features' cannot be charged to a budget for 'replace'"):
        PrivateDistributedFrankWolfe(**SPLIT, accountant=accountant).solve(split(A, 2), y)
    assert len(accountant.charges) == 1


@pytest.mark.parametrize("kind", ["central", "parties", "protected labels", "one-shot"])
def test_nothing_is_drawn_before_the_charge(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    A, y = make_lasso()
    relation = "replace" if kind in ("central", "protected labels") else "features"
    accountant = BudgetAccountant(10.0, 1e-4, neighbouring=relation)
    charged = []
    for draw in ("gumbel", "gaussian"):
        plain = getattr(Noise, draw)
        monkeypatch.setattr(
            Noise,
            draw,
            lambda *given, plain=plain: charged.append(len(accountant.charges)) or plain(*given),
        )
    run = BOTH | {"accountant": accountant, "label_bound": 1.0}
    if kind == "central":
        PrivateFrankWolfe(**run).solve(A, y)
    elif kind == "protected labels":
        PrivateDistributedFrankWolfe(**run).solve(split(A, 2), y)
    elif kind == "parties":
        PrivateDistributedFrankWolfe(**SPLIT, accountant=accountant).solve(split(A, 2), y)
    else:
        run = {name: value for name, value in SPLIT.items() if name != "rounds"}
        OneShotSketching(**run, accountant=accountant).solve(split(A, 2), y)
    assert charged
    assert set(charged) == {1}


def test_a_sparse_table_cannot_hide_an_entry_above_its_bound_in_parts() -> None:
    A, y = make_lasso()
    parts = sparse.csr_array(A)
    parts.data = np.r_[parts.data, np.ones(4)]  # entry (59, 0) four times more
    parts.indices = np.r_[parts.indices, np.zeros(4, dtype=parts.indices.dtype)]
    parts.indptr[-1] += 4
    bounds = {"epsilon": 1.0, "delta": 1e-5, "entry_bound": 1.0}
    kinds = {
        "central": lambda: PrivateFrankWolfe(**RUN).solve(parts, y),
        "parties": lambda: PrivateDistributedFrankWolfe(**SPLIT).solve([parts, A], y),
        "one-shot": lambda: OneShotSketching(
            radius=0.7, sketch=20, public_labels=True, **bounds
        ).solve([parts], y),
        "estimator": lambda: FrankWolfeLasso(0.7, label_bound=1.0, **bounds).fit(parts, y),
        "estimator, parties": lambda: FrankWolfeLasso(0.7, public_labels=True, **bounds).fit(
            parts, y, parties=[6, 6]
        ),
    }
    for name, run in kinds.items():
        with pytest.raises(ValueError, match="entry_bound = 1 in absolute value, and one is not"):
            print(name, run())


@pytest.mark.parametrize(
    ("settings", "reason"),
    [
        ({"public_labels": False}, "an epsilon needs public_labels=True"),
        ({"entry_bound": 0.5}, "at most entry_bound = 0.5 in absolute value, and one is not"),
        ({"entry_bound": 1e308, "radius": 1e300}, "the sensitivity of a sketch is inf"),
        ({"step": lambda t: 2.0}, "a step must lie between 0 and 1, got 2.0 at iteration 0"),
        ({"step": lambda t: math.nan if t == 5 else 0.5}, "got nan at iteration 5"),
        ({"step": lambda t: "x"}, "a step must be a number, got 'x'"),
        ({"entry_bound": -1.0}, "entry_bound must be a finite number above 0, got -1.0"),
        ({"epsilon": 0.0}, "epsilon must be a finite number above 0, got 0.0"),
        ({"delta": 1.0}, "delta must be a number between 0 and 1"),
        ({"tau": 7}, "must be an integer from 1 to 6, got 7"),
        ({"rounds": 0}, "rounds must be an integer from 1 on, got 0"),
        ({"radius": -1.0}, "radius must be a finite number above 0, got -1.0"),
        ({"problem": "both"}, "problem must be 'l1' or 'product', got 'both'"),
        ({"step": "long"}, "step must be 'diminishing'"),
    ],
)
def test_what_can_be_refused_is_before_a_charge(settings: dict[str, Any], reason: str) -> None:
    A, y = make_lasso()
    accountant = BudgetAccountant(10.0, 1e-5, neighbouring="features")
    solver = PrivateDistributedFrankWolfe(**(SPLIT | settings), accountant=accountant)
    with pytest.raises(ValueError, match=re.escape(reason)):
        solver.solve(split(A, 2), y)
    assert accountant.charges == ()


@pytest.mark.parametrize(
    ("settings", "reason"),
    [
        ({"entry_bound": 0.5}, "entries must be at most entry_bound = 0.5"),
        ({"label_bound": 0.1}, "entries must be at most label_bound = 0.1"),
        ({"radius": 0.0}, "radius must be a finite number above 0, got 0.0"),
        ({"epsilon": -1.0}, "epsilon must be a finite number above 0, got -1.0"),
        ({"delta": 0.0}, "delta must be a number between 0 and 1"),
        ({"entry_bound": 1e200, "radius": 1e200}, "the sensitivity of a choice is inf"),
        ({"rounds": 1.5}, "rounds must be an integer from 1 on, got 1.5"),
        ({"random_state": "x"}, "random_state must be None"),
    ],
)
def test_the_central_method_refuses_before_a_charge(settings: dict[str, Any], reason: str) -> None:
    A, y = make_lasso()
    accountant = BudgetAccountant(10.0, 1e-5, neighbouring="replace")
    solver = PrivateFrankWolfe(**(RUN | settings), accountant=accountant)
    with pytest.raises(ValueError, match=re.escape(reason)):
        solver.solve(A, y)
    assert accountant.charges == ()
