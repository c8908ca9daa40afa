"""The private modes: sensitivities that hold, an attack that fails, and figures kept apart."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from dp_accounting_prices import dp_accounting_epsilon
from scipy.stats import binom, chi2, kstest
from sharing_problems import make_problem, members, solve, weights
from statistical import LEVEL

from dpsvm.admm.sharing import Broadcast, Columns, Coordinator, Party, Terms, run
from dpsvm.admm.sharing.privacy import (
    GaussianPerturbation,
    PublicBounds,
    calibrate,
    classical_noise,
    column_sensitivity,
    composition_table,
    corollary_1,
    lemma_1,
    row_sensitivity,
)
from dpsvm.admm.sharing.regularisers import L1, L2, Ball
from dpsvm.admm.sharing.steps import make_step
from dpsvm.admm.sharing.totals import Adder
from dpsvm.losses import make_prediction_loss
from dpsvm.privacy.accounting import Gaussian, epsilon_of
from dpsvm.privacy.noise import Noise

ROW = PublicBounds(data_norm=1.0, radius=1.5, target_bound=2.0)
COLUMN = PublicBounds(column_norm=2.0, target_norm=3.0)


def _message(D, target, mu, penalty=None, constraint=None):
    columns = Columns(D)
    return columns.times(make_step(columns, penalty or L2(), constraint).solve(target, mu))


# Sensitivity


def _unit_rows(rng, n, d):
    rows = rng.standard_normal((n, d))
    return rows / np.linalg.norm(rows, axis=1, keepdims=True) * rng.choice([1.0, 1.0, 0.5], (n, 1))


def test_no_replaced_row_of_a_random_search_moves_a_message_past_the_bound() -> None:
    rng = np.random.default_rng(0)
    worst = 0.0
    for _ in range(1500):
        n, d = int(rng.integers(1, 12)), int(rng.integers(1, 4))
        mu, radius, bound = 10 ** rng.uniform(-3, 2), 10 ** rng.uniform(-1, 1), rng.uniform(0.1, 5)
        D = _unit_rows(rng, n, d)
        other = D.copy()
        other[0] = -D[0] if rng.random() < 0.5 else _unit_rows(rng, 1, d)
        target = bound * rng.choice([-1.0, 1.0, 0.3], n)
        ball = Ball(radius)
        moved = _message(D, target, mu, constraint=ball) - _message(
            other, target, mu, constraint=ball
        )
        worst = max(worst, np.linalg.norm(moved) / row_sensitivity(mu, radius, bound))
    assert 0.5 < worst <= 1.0


def test_a_row_bound_is_nearly_reached_by_many_short_rows() -> None:
    """All rows but one short: they move together and the bound's first term is what they move."""
    worst = 0.0
    for mu in np.geomspace(0.01, 100, 9):
        for length in np.geomspace(0.01, 1, 9):
            n, radius, bound = 200, 1e3, 1.0
            D = np.full((n, 1), length)
            D[0] = 1.0
            other = D.copy()
            other[0] = -1.0
            target = np.zeros(n)
            target[0] = bound
            moved = _message(D, target, mu, constraint=Ball(radius)) - _message(
                other, target, mu, constraint=Ball(radius)
            )
            slack = bound / math.sqrt(mu)  # the bound for weights that stay small
            worst = max(worst, np.linalg.norm(moved[1:]) / slack)
    assert 0.4 < worst <= 1.0


@pytest.mark.parametrize("data_norm", [0.25, 3.0])
def test_the_row_bound_scales_with_the_units_of_the_rows(data_norm: float) -> None:
    # Rows R times as long and weights R times as short give the same messages.
    mu, radius, bound = 0.7, 2.0, 1.3
    plain = row_sensitivity(mu, radius, bound)
    scaled = row_sensitivity(mu * data_norm**2, radius / data_norm, bound, data_norm)
    assert scaled == pytest.approx(plain)


def test_no_column_of_a_random_search_moves_a_message_past_the_bound_and_one_reaches_it() -> None:
    rng = np.random.default_rng(1)
    worst = 0.0
    for _ in range(1500):
        n, d = int(rng.integers(1, 10)), int(rng.integers(1, 6))
        mu, length = 10 ** rng.uniform(-3, 2), 10 ** rng.uniform(-1, 1)
        D = rng.standard_normal((n, d)) * 10 ** rng.uniform(-2, 1)
        column, target = rng.standard_normal(n), rng.standard_normal(n)
        if rng.random() < 0.3:
            D, target = np.zeros((n, 1)), column
        D[:, 0] *= length / max(np.linalg.norm(D[:, 0]), 1e-300)
        other = D.copy()
        other[:, 0] = column * length / np.linalg.norm(column)
        changes = [other, np.delete(D, 0, axis=1) if d > 1 else other]
        limit = column_sensitivity(mu, length, np.linalg.norm(target))
        for changed in changes:
            moved = _message(D, target, mu) - _message(changed, target, mu)
            worst = max(worst, np.linalg.norm(moved) / limit)
    assert 0.999 < worst <= 1.0


def test_the_column_bound_does_not_hold_for_an_l1_penalty() -> None:
    rng = np.random.default_rng(2)
    worst = 0.0
    for _ in range(300):
        D = rng.standard_normal((6, 4))
        D /= np.linalg.norm(D, axis=0)
        other = D.copy()
        column = rng.standard_normal(6)
        other[:, 0] = column / np.linalg.norm(column)
        target = 5 * rng.standard_normal(6)
        mu = 10 ** rng.uniform(-1, 1)
        moved = _message(D, target, mu, L1()) - _message(other, target, mu, L1())
        worst = max(
            worst, np.linalg.norm(moved) / column_sensitivity(mu, 1.0, np.linalg.norm(target))
        )
    assert worst > 1.0


def test_the_constant_of_the_papers_lemma_is_exceeded_where_its_assumptions_hold() -> None:
    # One sample of norm 1 with 300 features; x, z and the dual are at most 1; the penalty's second
    # derivative is 1. The row turns round, and so do the weights.
    d, terms = 300, Terms.of(parties=1, rho=1.0, lam=1e-3)
    row, price = np.full((1, d), d**-0.5), np.array([-1.0])
    worlds = [Party(0, Columns(sign * row), terms) for sign in (1.0, -1.0)]
    for party in worlds:
        party.answer(Broadcast(1, price, 1.0))
    moved = np.linalg.norm(worlds[0].weights - worlds[1].weights)
    assert moved > 20 * lemma_1(d, terms, b1=1.0, c1=1.0)


# The column-space attack


def _outside(message, D):
    """The share of a message that is not in the column space of D."""
    basis = np.linalg.qr(D)[0]
    return np.linalg.norm(message - basis @ (basis.T @ message)) / np.linalg.norm(message)


def _two_worlds(seed):
    rng = np.random.default_rng(seed)
    D = rng.standard_normal((40, 3))
    D /= np.linalg.norm(D, axis=0) / 2
    other = D.copy()
    column = rng.standard_normal(40)
    other[:, 0] = 2 * column / np.linalg.norm(column)
    return D, other


def test_the_printed_mechanism_gives_its_column_space_away_however_large_the_noise() -> None:
    D, other = _two_worlds(3)
    rng = np.random.default_rng(4)
    root = np.linalg.cholesky(np.linalg.inv(D.T @ D))
    x = make_step(Columns(D), L2(), None).solve(rng.standard_normal(40), 1.0)
    message = D @ (x + 1e6 * root @ rng.standard_normal(3))
    assert _outside(message, D) < 1e-12
    assert _outside(message, other) > 0.05


def test_the_column_space_attack_on_a_sound_message_stays_below_its_guarantee() -> None:
    D, other = _two_worlds(3)
    epsilon, delta, trials = 1.0, 1e-5, 600
    terms = Terms.of(parties=1, rho=1.0)
    found = calibrate("column", terms, [3], 1, epsilon, delta, COLUMN)
    noise, rng = Noise(5), np.random.default_rng(6)
    price = -np.linspace(-1, 1, 40)
    right = 0
    for _ in range(trials):
        truth, decoy = (D, other) if rng.random() < 0.5 else (other, D)
        party = Party(0, Columns(truth), terms, found.perturbation(0, noise))
        message = party.answer(Broadcast(1, price, 1.0)).prediction
        right += _outside(message, truth) < _outside(message, decoy)
        assert _outside(message, truth) > 0.3
    # Whoever tells two equally likely worlds apart is right with at most this probability.
    most = (math.exp(epsilon) + delta) / (1 + math.exp(epsilon))
    assert right <= binom.ppf(1 - LEVEL, trials, most)
    assert binom.ppf(1 - LEVEL, trials, most) < trials


# Calibration and report


@pytest.mark.parametrize(("mode", "bounds"), [("row", ROW), ("column", COLUMN)])
def test_the_messages_of_a_party_cost_exactly_the_budget(mode: str, bounds: PublicBounds) -> None:
    constraint = Ball(1.5) if mode == "row" else None
    terms = Terms.of(parties=3, rho=0.2, constraint=constraint)
    found = calibrate(mode, terms, [4, 3, 2], 20, 1.5, 1e-5, bounds)
    messages = [Gaussian(found.message_mu)] * 20
    assert epsilon_of(messages, 1e-5) == pytest.approx(1.5, rel=1e-9)
    assert epsilon_of(messages, 1e-5) <= 1.5
    report = found.figures
    assert str(found.guarantee) == f"epsilon = 1.5, delta = 1e-05 ({mode}), of the messages alone"
    assert report["claimed"] is None
    assert report["tight"] <= 1.5 < report["renyi"] < report["corollary_1"]
    assert "labels are not protected" in report["labels"]
    assert "outside" in report["outside"]
    assert report["protects"] == f"one {mode} of one party"


def test_a_record_that_lies_in_all_the_parties_pays_for_all_their_messages() -> None:
    terms = Terms.of(parties=3, rho=0.2, constraint=Ball(1.5))
    found = calibrate("row", terms, [4, 3, 2], 20, 1.0, 1e-5, ROW)
    whole = found.figures["whole_record"]
    assert whole == pytest.approx(epsilon_of([Gaussian(found.message_mu)] * 60, 1e-5))
    assert epsilon_of([found.event], 1e-5) == pytest.approx(whole)
    assert whole > 1.5


def test_the_papers_mode_claims_and_guarantees_nothing() -> None:
    terms = Terms.of(parties=2, rho=0.5)
    found = calibrate("paper", terms, [66, 57], 20, 1.0, 1e-6, PublicBounds(b1=1.0, c1=1.0))
    report = found.figures
    assert found.guarantee is None
    assert "epsilon = 1, delta = 1e-06 a round" in report["claimed"]
    assert report["reason"].startswith("claimed by the paper, not a guarantee")
    assert found.noise_scales[0] == lemma_1(66, terms, 1.0, 1.0) * classical_noise(1.0, 1e-6)
    assert found.noise_scales[1] > found.noise_scales[0]


def test_twenty_rounds_at_epsilon_one_cost_what_the_table_says() -> None:
    table = composition_table(20, 1.0, 1e-6)
    assert table["corollary 1"] == pytest.approx(55.2, abs=0.05)
    assert table["basic"] == 20
    assert table["renyi"] == pytest.approx(3.62, abs=0.005)
    assert table["tight"] == pytest.approx(3.32, abs=0.005)
    assert table["delta"] == pytest.approx(4e-5)


def test_the_table_agrees_with_dp_accounting() -> None:
    pytest.importorskip("dp_accounting")
    table = composition_table(20, 1.0, 1e-6)
    events = [Gaussian(1 / classical_noise(1.0, 1e-6))] * 20
    for name, method in (("renyi", "rdp"), ("tight", "pld")):
        theirs = dp_accounting_epsilon(events, table["delta"], method=method)
        assert table[name] == pytest.approx(theirs, rel=1e-3)


def test_corollary_1_is_infinite_where_its_deltas_exceed_one() -> None:
    assert corollary_1(20, 1.0, 0.1)[0] == math.inf


# Noise


def test_noise_of_scale_zero_is_no_privacy_mode_bit_for_bit() -> None:
    blocks, y = make_problem(7)
    _, parties = solve(blocks, y, rounds=30, relaxation=1.8)
    terms = Terms.of(parties=3, rho=0.3, relaxation=1.8)
    others = members(blocks, terms, GaussianPerturbation(0.0, Noise(0), rounds=100))
    run(Coordinator(y, make_prediction_loss("logistic"), terms, rounds=30), others)
    assert weights(parties).tobytes() == weights(others).tobytes()


def test_every_message_carries_fresh_gaussian_noise_of_the_calibrated_scale() -> None:
    n, rounds, scale = 400, 25, 3.0
    D = np.zeros((n, 1))  # its messages are noise and nothing else
    terms = Terms.of(parties=1, rho=1.0)
    party = Party(0, Columns(D), terms, GaussianPerturbation(scale, Noise(8), rounds=100))
    drawn = np.array(
        [party.answer(Broadcast(t, np.zeros(n), 1.0)).prediction for t in range(1, rounds + 1)]
    )
    assert kstest(drawn.ravel() / scale, "norm").pvalue > LEVEL
    energy = (drawn**2).sum() / scale**2
    assert chi2.ppf(LEVEL, drawn.size) < energy < chi2.isf(LEVEL, drawn.size)
    shifted = np.corrcoef(drawn[:-1].ravel(), drawn[1:].ravel())[0, 1]
    assert abs(shifted) < 5 / math.sqrt(drawn.size)


def test_the_noisy_message_is_the_one_a_party_goes_on_from() -> None:
    D = np.random.default_rng(9).standard_normal((30, 2))
    terms = Terms.of(parties=1, rho=1.0)
    party = Party(0, Columns(D), terms, GaussianPerturbation(5.0, Noise(10), rounds=100))
    sent = party.answer(Broadcast(1, np.ones(30), 1.0)).prediction
    party.answer(Broadcast(2, np.zeros(30), 1.0))
    wanted = make_step(Columns(D), L2(), None).solve(sent, terms.mu(1.0))
    assert np.array_equal(party.weights, wanted)


@pytest.mark.parametrize("relaxation", [1.0, 1.8])
def test_given_its_messages_a_party_is_a_function_of_its_step_alone(relaxation: float) -> None:
    """What a message is added to follows from earlier messages and prices: no other secret."""
    rng = np.random.default_rng(11)
    terms = Terms.of(parties=1, rho=0.7, relaxation=relaxation)
    perturbation = GaussianPerturbation(2.0, Noise(12), rounds=100, target_bound=1.0)
    D = rng.standard_normal((20, 3))
    party, prices, sent = Party(0, Columns(D), terms, perturbation), [np.zeros(20)], [np.zeros(20)]
    excess = np.zeros(20)
    step = make_step(Columns(D), L2(), None)
    for t in range(1, 6):
        prices.append(rng.standard_normal(20))
        target = np.clip(sent[-1] - prices[-1] / 0.7, -1.0, 1.0)
        sent.append(party.answer(Broadcast(t, prices[-1], 0.7)).prediction)
        assert np.array_equal(party.weights, step.solve(target, terms.mu(0.7)))
        excess = (prices[-1] - prices[-2] + 0.7 * excess) / 1.4
        released = (sent[-1] - (1 - relaxation) * (sent[-2] - excess)) / relaxation
        assert np.abs(released - D @ party.weights).max() < 12.0


def test_all_that_the_coordinator_does_follows_from_the_messages_and_the_labels() -> None:
    blocks, y = make_problem(13)
    terms = Terms.of(parties=3, rho=0.3)
    parties = members(blocks, terms, GaussianPerturbation(0.5, Noise(14), rounds=100))
    settings = {"rounds": 12, "tol": 1e-9}
    coordinator = Coordinator(y, make_prediction_loss("logistic"), terms, **settings)
    broadcast = first = coordinator.open()
    heard, states, adder = [], [], Adder(3, len(y))
    while coordinator.ending is None:
        heard.append([party.answer(broadcast) for party in parties])
        broadcast = coordinator.gather(adder.add(heard[-1]))
        states.append((coordinator.residuals, coordinator.released_loss, broadcast.keep))
    replay = Coordinator(y, make_prediction_loss("logistic"), terms, **settings)
    assert np.array_equal(replay.open().price, first.price)
    adder = Adder(3, len(y))
    for contributions, state in zip(heard, states, strict=True):
        broadcast = replay.gather(adder.add(contributions))
        assert (replay.residuals, replay.released_loss, broadcast.keep) == state
    assert replay.ending == coordinator.ending


# Bad input


@pytest.mark.parametrize(
    ("mode", "bounds", "terms", "told"),
    [
        ("row", PublicBounds(data_norm=1.0, radius=1.0), {}, "needs the public bound target_bound"),
        ("column", PublicBounds(column_norm=1.0), {}, "needs the public bound target_norm"),
        ("paper", PublicBounds(b1=1.0), {}, "needs the public bound c1"),
        (
            "row",
            PublicBounds(data_norm=-1.0, radius=1.0, target_bound=1.0),
            {},
            "data_norm .* -1.0",
        ),
        ("row", ROW, {}, "privacy='row' keeps the weights in the ball"),
        ("row", ROW, {"constraint": Ball(9.0)}, "privacy='row' keeps the weights in the ball"),
        ("column", COLUMN, {"penalty": "l1"}, "proved for penalty='l2' alone, got 'l1'"),
        ("column", COLUMN, {"constraint": Ball(9.0)}, "proved without a constraint"),
        ("none", COLUMN, {}, "privacy must be one of 'row', 'column', 'paper', got 'none'"),
    ],
)
def test_a_mode_without_its_bounds_or_its_proof_is_refused(
    mode: str, bounds: PublicBounds, terms: dict[str, Any], told: str
) -> None:
    with pytest.raises(ValueError, match=told):
        calibrate(mode, Terms.of(parties=1, rho=1.0, **terms), [2], 5, 1.0, 1e-5, bounds)


def test_the_papers_mode_takes_no_epsilon_above_one() -> None:
    with pytest.raises(ValueError, match=r"at most 1 a round, got 1\.5"):
        calibrate(
            "paper", Terms.of(parties=1, rho=1.0), [2], 5, 1.5, 1e-5, PublicBounds(b1=1, c1=1)
        )


def test_rows_and_columns_above_their_public_norm_are_refused() -> None:
    terms = Terms.of(parties=1, rho=1.0, constraint=Ball(1.5))
    rows = calibrate("row", terms, [2], 5, 1.0, 1e-5, ROW)

    def party(calibration, index, columns, own_terms=None):
        perturbation = calibration.perturbation(0, Noise(0))
        return Party(index, columns, own_terms or calibration.terms, perturbation)

    party(rows, 0, Columns(np.eye(2)))
    with pytest.raises(ValueError, match=r"a row of party 0 .* data_norm = 1"):
        party(rows, 0, Columns(np.array([[1.0, 0.0], [1.0, 1.0]])))
    with pytest.raises(ValueError, match="a row of party 0"):  # the constant counts
        party(rows, 0, Columns(np.eye(2), constant=True))
    with pytest.raises(ValueError, match="party 0 has other terms"):
        party(rows, 0, Columns(np.eye(2)), Terms.of(parties=1, rho=1.0))
    columns = calibrate("column", Terms.of(parties=1, rho=1.0), [2], 5, 1.0, 1e-5, COLUMN)
    party(columns, 0, Columns(np.eye(9), constant=True))  # the constant is nobody's secret
    party(columns, 0, Columns(np.eye(9)), Terms.of(parties=1, rho=1.0))  # equal terms
    with pytest.raises(ValueError, match=r"a column of party 3 .* column_norm = 2"):
        party(columns, 3, Columns(np.array([[1.0, 5.0]])))


def test_a_private_party_answers_no_round_its_noise_was_not_made_for() -> None:
    terms = Terms.of(parties=1, rho=1.0)
    party = Party(0, Columns(np.eye(3)), terms, GaussianPerturbation(1.0, Noise(15), rounds=2))
    party.answer(Broadcast(1, np.zeros(3), 1.0))
    for broadcast, reason in [
        (Broadcast(1, np.zeros(3), 1.0), "awaits round 2, got round 1"),
        (Broadcast(2, np.zeros(1), 1.0), "numbers for 3 samples"),
        (Broadcast(2, np.zeros(3), 1e9), "made for rho = 1, got 1e"),
    ]:
        with pytest.raises(ValueError, match=reason):
            party.answer(broadcast)
    party.answer(Broadcast(2, np.zeros(3), 1.0))
    with pytest.raises(ValueError, match="made for 2 rounds, got round 3"):
        party.answer(Broadcast(3, np.zeros(3), 1.0))
