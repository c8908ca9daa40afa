"""Private ADMM over a network: bounds, calibration, noise, and attacks on what is guaranteed."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from network_problems import make_problem, make_terms, newton, solve, weights
from scipy.stats import gamma as gamma_law
from scipy.stats import kstest
from statistical import DRAWS, LEVEL

from bench.admm import network_attack
from dpsvm.admm.network import Iterate, Node, Samples, run
from dpsvm.admm.network.bounds import (
    determinant_costs,
    largest_total,
    output_sensitivities,
    paper_condition,
    paper_costs,
    tight_costs,
)
from dpsvm.admm.network.privacy import NodeNoise, calibrate
from dpsvm.losses import HuberHinge, Logistic, SmoothHinge
from dpsvm.privacy.accounting import Gaussian, Pure, epsilon_of
from dpsvm.privacy.minimiser import CertificateError
from dpsvm.privacy.noise import Noise

SMOOTH = ("logistic", "huber", "smooth")
SIZES = [30, 20, 25, 40]


def private(tables, signs, terms, calibration, seed=0):
    """Run the nodes of a problem with noise; return them and every message."""
    noise, d, heard = Noise(seed), tables[0].shape[1], []
    nodes = [
        Node(i, Samples(X, y), terms, perturbation=calibration.noise_of(i, d, noise))
        for i, (X, y) in enumerate(zip(tables, signs, strict=True))
    ]
    run(nodes, lambda t, n: heard.append(weights(n)))
    return nodes, np.array(heard)


# The bounds


def test_the_figures_of_the_papers_setting_come_out() -> None:
    # T = 20 rounds of the recycled method; degrees 4 and 2, rho 1/2.
    for n, graph, alpha, claimed, tight in (
        (5, "complete", 1.0, 4.75, 4.51),
        (20, "ring", 0.25, 7.42, 5.41),
    ):
        terms = make_terms(n, graph, C=1750.0, lam=0.22, rounds=20)
        alphas = np.full_like(terms.curvatures, alpha)
        sizes = [40_000 // n] * n
        assert largest_total(paper_costs(terms, sizes, alphas))[-1] == pytest.approx(
            claimed, abs=0.006
        )
        assert largest_total(tight_costs(terms, sizes, alphas))[-1] == pytest.approx(
            tight, abs=0.006
        )
        left, right = paper_condition(terms, sizes)
        assert left == 0.5 < right


@pytest.mark.parametrize("loss", SMOOTH)
def test_the_tight_bound_is_never_above_the_papers(loss: str) -> None:
    rng = np.random.default_rng(0)
    for _ in range(50):
        rho, C, alpha = 10.0 ** rng.uniform(-4, 2, 3)
        terms = make_terms(4, rho=rho, C=C, lam=10.0 ** rng.uniform(-4, 2), loss=loss)
        alphas = np.full_like(terms.curvatures, alpha)
        assert np.all(tight_costs(terms, SIZES, alphas) <= paper_costs(terms, SIZES, alphas))


@pytest.mark.parametrize("loss", [Logistic(), HuberHinge(0.5), SmoothHinge(0.5)], ids=repr)
def test_the_determinants_of_neighbours_are_within_one_factor(loss: Any) -> None:
    """The step of the proof: rank one, both determinants in [D, D (1 + q)]."""
    rng = np.random.default_rng(1)
    for _ in range(200):
        B, d, kappa = 5, 3, 10.0 ** rng.uniform(-3, 1)
        C, f = float(B), rng.standard_normal(d) * 3
        rows = rng.standard_normal((B + 1, d))
        rows /= np.maximum(1.0, np.linalg.norm(rows, axis=1))[:, None]
        q = C * loss.smoothness / (B * kappa)

        def determinant(which, f=f, C=C, B=B, kappa=kappa, rows=rows, d=d):
            X = rows[which]
            curved = X.T @ (X * (C / B * loss.curvature(X @ f))[:, None])
            return np.linalg.slogdet(curved + kappa * np.eye(d))[1]

        without = determinant(range(1, B))
        one, other = determinant(range(B)), determinant([*range(1, B), B])
        for found in (one, other):
            assert -1e-12 <= found - without <= math.log1p(q) + 1e-12
        assert abs(one - other) <= math.log1p(q) + 1e-12


@pytest.mark.parametrize("loss", SMOOTH)
def test_minimisers_of_neighbours_are_within_the_output_sensitivity(loss: str) -> None:
    rng, worst = np.random.default_rng(2), 0.0
    terms = make_terms(2, "path", rho=0.05, C=4.0, lam=0.1, loss=loss, rounds=1)
    bound = output_sensitivities(terms, [4, 4], 0.0)[0, 0]
    kappa = terms.curvatures[0, 0]
    for _ in range(60):
        rows = rng.standard_normal((5, 2)) * 10.0 ** rng.uniform(-1, 1)
        rows /= np.maximum(1.0, np.linalg.norm(rows, axis=1))[:, None]
        linear = rng.standard_normal(2)
        found = []
        for X in (rows[:4], np.vstack([rows[4:], rows[1:4]])):

            def slope(f, X=X, b=linear):
                return X.T @ terms.loss.slope(X @ f) + kappa * f + b

            def curvature(f, X=X):
                return (X * terms.loss.curvature(X @ f)[:, None]).T @ X + kappa * np.eye(2)

            found.append(newton(slope, curvature, np.zeros(2), steps=15))
        worst = max(worst, np.linalg.norm(found[0] - found[1]) / bound)
    assert 0.3 < worst <= 1.0


@pytest.mark.parametrize("gamma", [None, 0.5])
@pytest.mark.parametrize("loss", [Logistic(), HuberHinge(0.5), SmoothHinge(0.5)], ids=repr)
def test_exact_densities_of_runs_on_neighbouring_data_stay_within_the_bound(
    loss: Any, gamma: float | None
) -> None:
    random = np.random.default_rng(0)
    for alpha, growth in ((0.1, 1.0), (10.0, 1.3)):
        attack = network_attack.make_attack(
            loss, alpha=alpha, growth=growth, gamma=gamma, rounds=3 if gamma else 2
        )
        ratio = attack.search(100, 1, random, steps=8)
        assert 0.2 < ratio <= 1.0 + network_attack.ROUNDING


def test_the_attack_finds_out_a_bound_without_its_determinants() -> None:
    attack = network_attack.make_attack(HuberHinge(0.5), alpha=0.1, size=1)
    costs = determinant_costs(attack.terms, [1, 1])[:, 0].sum()
    ratio = attack.search(100, 1, np.random.default_rng(0), steps=30)
    assert ratio * attack.bound > attack.bound - costs


def test_the_attack_knows_the_densities_of_the_nodes_own_runs() -> None:
    """The noise it reads off the messages is the noise that was drawn."""
    attack = network_attack.make_attack(Logistic(), size=5, alpha=0.7, rounds=5, growth=1.2)
    rng = np.random.default_rng(3)
    rows = rng.standard_normal((5, 2))
    rows /= np.linalg.norm(rows, axis=1)[:, None] * 1.001
    drawn = rng.standard_normal((3, 2, 2))

    class Known:
        updates, tol = 3, 1e-11

        def __init__(self, node):
            self.node = node

        def check(self, samples, terms):
            pass

        def linear(self, update):
            return drawn[update - 1, self.node]

        def release(self, update, minimiser):
            return minimiser

    heard = []
    nodes = [
        Node(i, Samples(rows, np.ones(5)), attack.terms, perturbation=Known(i)) for i in range(2)
    ]
    run(nodes, lambda t, n: heard.append(weights(n)) if t % 2 else None)
    messages = np.array(heard)
    determinants = sum(
        np.linalg.slogdet(
            rows.T @ (rows * Logistic().curvature(rows @ messages[k, 0])[:, None])
            + attack.terms.curvatures[k, 0] * np.eye(2)
        )[1]
        for k in range(3)
    )
    wanted = determinants - 0.7 * np.linalg.norm(drawn[:, 0], axis=1).sum()
    assert attack.log_density(rows, messages) == pytest.approx(wanted, abs=1e-8)


# Calibration


@pytest.mark.parametrize("gamma", [None, 0.5])
@pytest.mark.parametrize("loss", SMOOTH)
@pytest.mark.parametrize("epsilon", [0.8, 4.7, 100.0])
def test_every_node_spends_its_epsilon_and_no_more(
    epsilon: float, loss: str, gamma: float | None
) -> None:
    terms = make_terms(4, rho=[3.0, 5.0, 4.0, 8.0], growth=1.05, loss=loss, gamma=gamma, C=2.0)
    found = calibrate("objective", terms, SIZES, tol=1e-9, epsilon=epsilon)
    totals = tight_costs(terms, SIZES, found.alphas).sum(axis=0)
    assert np.all(totals <= 0.999 * epsilon)
    assert np.allclose(totals, 0.999 * epsilon, rtol=1e-10)
    assert found.event == Pure(epsilon)
    assert str(found.guarantee) == f"epsilon = {epsilon:g} (replace)"
    assert found.spent[-1] <= epsilon
    assert found.spent[-1] == pytest.approx(epsilon)
    covering = 2e-9 / terms.curvatures / found.output_scales
    assert np.all(covering.sum(axis=0) <= 0.001 * epsilon)
    report = found.figures
    assert report["tight"] <= report["paper"]
    assert "certified to a gradient norm of 1e-09" in report["assumes"]
    assert "loss, objective and test error" in report["outside"]


def test_the_papers_bound_costs_less_than_it_says_and_needs_its_condition() -> None:
    terms = make_terms(4, rho=2.0)
    found = calibrate("objective", terms, SIZES, tol=1e-9, epsilon=3.0, bound="paper")
    report = found.figures
    assert report["paper"] == pytest.approx(0.999 * 3.0)
    assert report["paper_condition"].endswith("holds")
    assert found.event.epsilon < 3.0
    assert found.event.epsilon == pytest.approx(report["tight"] / 0.999)
    steep = make_terms(4, rho=1e-3, lam=1e-3, loss="huber", width=0.1)
    with pytest.raises(ValueError, match=r"bound='paper' needs 2 c1 < .* 20 is not below 0\.0"):
        calibrate("objective", steep, SIZES, tol=1e-9, epsilon=90.0, bound="paper")
    loose = calibrate("objective", steep, SIZES, tol=1e-9, epsilon=90.0).figures
    assert "does not hold, so the paper claims nothing here" in loose["paper_condition"]


@pytest.mark.parametrize("alpha", [0.5, [0.5, 1.0, 0.2, 0.4], np.full((10, 4), 0.5)])
def test_a_given_alpha_costs_its_bound_and_the_covering(alpha: Any) -> None:
    terms = make_terms(4, rho=2.0)
    found = calibrate("objective", terms, SIZES, tol=1e-9, alpha=alpha)
    tight = largest_total(tight_costs(terms, SIZES, found.alphas))[-1]
    assert found.event.epsilon == pytest.approx(tight / 0.999)
    assert found.event.epsilon * 0.999 >= tight


def test_output_perturbation_costs_the_budget() -> None:
    terms = make_terms(4, rho=[0.5, 1.0, 0.2, 0.4], growth=1.1)
    steps = output_sensitivities(terms, SIZES, 1e-9)
    pure = calibrate("primal", terms, SIZES, tol=1e-9, epsilon=2.0)
    spent = (steps / pure.output_scales).sum(axis=0)
    assert np.all(spent <= 2.0)
    assert np.allclose(spent, 2.0)
    found = calibrate("gaussian", terms, SIZES, tol=1e-9, epsilon=2.0, delta=1e-5)
    for node in range(4):
        events = [Gaussian(mu) for mu in steps[:, node] / found.output_scales[:, node]]
        assert epsilon_of(events, 1e-5) <= 2.0
        assert epsilon_of(events, 1e-5) == pytest.approx(2.0, rel=1e-6)
    assert epsilon_of([found.event], 1e-5) == pytest.approx(2.0)
    assert found.spent[-1] <= 2.0
    assert np.all(np.diff(found.spent) > 0)


@pytest.mark.parametrize(
    ("settings", "told"),
    [
        ({"epsilon": 0.01}, "epsilon = 0.01 is too small for any noise"),
        ({"epsilon": 0.0}, "epsilon must be a finite number above 0, got 0.0"),
        ({"epsilon": math.inf}, "epsilon must be a finite number above 0, got inf"),
        ({"alpha": -1.0}, "alpha must hold finite numbers above 0, got -1.0"),
        ({"alpha": [1.0, 2.0]}, "alpha must be a number, one for each of 4 nodes"),
        ({"alpha": "much"}, "alpha must hold numbers, got 'much'"),
        ({"epsilon": 1.0, "bound": "loose"}, "bound must be one of 'tight', 'paper'"),
        ({"mode": "gaussian", "epsilon": 1.0, "delta": 0.0}, "delta must be a number between"),
        ({"mode": "magic", "epsilon": 1.0}, "privacy must be one of 'objective', 'primal'"),
        ({"loss": "hinge", "epsilon": 1.0}, "needs a loss of bounded curvature .* got 'hinge'"),
    ],
)
def test_noise_that_cannot_be_made_is_refused(settings: dict[str, Any], told: str) -> None:
    settings = {"mode": "objective", "loss": "logistic"} | settings
    terms = make_terms(4, loss=settings.pop("loss"))
    with pytest.raises(ValueError, match=told):
        calibrate(settings.pop("mode"), terms, SIZES, tol=1e-9, **settings)


# The run


@pytest.mark.parametrize("gamma", [None, 0.5])
@pytest.mark.parametrize("mode", ["objective", "primal", "gaussian"])
def test_without_noise_to_speak_of_a_private_run_is_the_plain_one(
    mode: str, gamma: float | None
) -> None:
    tables, signs = make_problem(5)
    terms = make_terms(4, gamma=gamma, rounds=10)
    delta = {"delta": 1e-5} if mode == "gaussian" else {}
    found = calibrate(mode, terms, SIZES, tol=1e-11, epsilon=1e13, **delta)
    _, heard = private(tables, signs, terms, found)
    plain = []
    solve(tables, signs, terms, watch=lambda t, n: plain.append(weights(n)))
    # Gaussian noise shrinks with the root of epsilon alone.
    assert np.abs(heard - np.array(plain)).max() < (1e-4 if mode == "gaussian" else 1e-8)


@pytest.mark.parametrize("mode", ["objective", "primal", "gaussian"])
def test_given_its_messages_a_node_is_a_function_of_its_samples_and_fresh_noise(mode: str) -> None:
    """State that is no function of messages would be a secret that no sensitivity covers."""
    tables, signs = make_problem(6)
    terms = make_terms(4, "path", rho=[0.5, 1.0, 0.2, 0.4], growth=1.1, rounds=8)
    delta = {"delta": 1e-5} if mode == "gaussian" else {}
    found = calibrate(mode, terms, SIZES, tol=1e-9, epsilon=5.0, **delta)
    nodes, heard = private(tables, signs, terms, found)
    adjacency, f, multipliers = terms.graph.adjacency(), np.zeros((4, 4)), np.zeros((4, 4))
    for t in range(1, 9):
        rho = terms.penalties.table[terms.update_of(t) - 1]
        W = adjacency * (rho[:, None] + rho) / 2
        R = W.sum(axis=1)[:, None]
        if t % 2:
            before, f = f, heard[t - 1]
            multipliers = multipliers + (R * f - W @ f) / 2
        else:
            wanted = f + (2 * W @ f - R * before - W @ before) / (2 * R + terms.gamma)
            assert np.abs(heard[t - 1] - wanted).max() < 1e-12
            f = heard[t - 1]
    for node in nodes:
        assert np.abs(node.state.dual - multipliers[node.index]).max() < 1e-12
        assert np.array_equal(node.state.updated, heard[6, node.index])


@pytest.mark.parametrize(("reuses", "times"), [("noisy", 1.0), ("exact", 1.5)])
def test_a_node_that_went_on_from_its_exact_iterate_would_move_further_than_stated(
    reuses: str, times: float
) -> None:
    """Both worlds send the same; the second minimiser is what the noise has to hide."""
    terms = make_terms(
        2, "path", rho=1.25, growth=2.0, C=1.0, lam=1e-9, rounds=2, gamma=None, loss="huber"
    )
    moved = []
    for row in (1.0, -1.0):

        class Fixed:
            updates, tol = 2, 1e-11

            def __init__(self):
                self.found = []

            def check(self, samples, terms):
                pass

            def linear(self, update):
                return None

            def release(self, update, minimiser):
                self.found.append(minimiser)
                return np.zeros(1) if reuses == "noisy" else minimiser

        noise = Fixed()
        samples = Samples(np.array([[row]]), np.ones(1))
        node = Node(0, samples, terms, perturbation=noise)
        for t in (0, 1):
            node.absorb([Iterate(t, 1, np.zeros(1))])
            node.emit()
        moved.append(noise.found[1])
    stated = output_sensitivities(terms, [1, 1], 0.0)[1, 0]
    assert np.linalg.norm(moved[0] - moved[1]) == pytest.approx(times * stated)


def test_every_update_draws_fresh_noise_of_its_scale() -> None:
    d, scales = 3, np.array([0.5, 2.0])
    noise = NodeNoise(d, Noise(7), 1e-9, scales, np.array([1e-3, 1e-3]), np.array([2.0**-20] * 2))
    count = DRAWS // 10
    for update in (1, 2):
        drawn = np.array([noise.linear(update) for _ in range(count)])
        norms = np.linalg.norm(drawn, axis=1)
        assert kstest(norms, gamma_law(d, scale=scales[update - 1]).cdf).pvalue > LEVEL
        first = drawn[:, 0] / norms  # the height of a point on a sphere in 3 dimensions is uniform
        assert kstest((first + 1) / 2, "uniform").pvalue > LEVEL
    sent = np.array([noise.release(1, np.ones(d)) for _ in range(count)]) - 1.0
    norms = np.linalg.norm(sent, axis=1)
    assert kstest(norms, gamma_law(d, scale=1e-3).cdf).pvalue > LEVEL
    gaussian = NodeNoise(d, Noise(8), 1e-9, None, np.array([2.0]), np.array([2.0**-20]), "gaussian")
    sent = np.array([gaussian.release(1, np.ones(d)) for _ in range(count)]) - 1.0
    assert kstest(sent.ravel() / 2.0, "norm").pvalue > LEVEL


def test_what_is_sent_lies_on_a_public_grid() -> None:
    tables, signs = make_problem(9)
    terms = make_terms(4, rounds=3)
    found = calibrate("objective", terms, SIZES, tol=1e-9, epsilon=9.0)
    nodes, heard = private(tables, signs, terms, found)
    noise = nodes[0].perturbation.widths[0]
    grid = 2.0 ** math.floor(math.log2(noise) - 20)
    assert np.all(np.mod(heard[0, 0] / grid, 1.0) == 0.0)
    assert grid < 1e-5 / float(found.alphas[0, 0] * terms.curvatures[0, 0]) * math.sqrt(5)


def test_a_node_that_misses_its_certificate_sends_nothing() -> None:
    tables, signs = make_problem(10)
    terms = make_terms(4, rounds=3)
    found = calibrate("objective", terms, SIZES, tol=8e-15, epsilon=9.0)
    noise = found.noise_of(0, 4, Noise(0))
    node = Node(0, Samples(tables[0], signs[0]), terms, perturbation=noise)
    node.absorb([Iterate(0, other, np.zeros(4)) for other in node.neighbours])
    with pytest.raises(CertificateError, match=r"node 0 could not .* charged stays charged"):
        node.emit()
    with pytest.raises(ValueError, match="missed a certificate and sends nothing more"):
        node.emit()


def test_a_private_node_takes_only_what_its_noise_was_made_for() -> None:
    tables, signs = make_problem(10)
    terms = make_terms(4, rounds=3)
    found = calibrate("objective", terms, SIZES, tol=1e-9, epsilon=9.0)

    def node(rows, labels):
        return Node(0, Samples(rows, labels), terms, perturbation=found.noise_of(0, 4, Noise(0)))

    node(tables[0], signs[0])
    with pytest.raises(ValueError, match="a row of node 0 has a norm above 1"):
        node(50 * tables[0], signs[0])
    with pytest.raises(ValueError, match="made for 30 samples, got 6"):
        node(tables[0][:6], signs[0][:6])


def test_a_node_makes_no_update_that_its_noise_was_not_made_for() -> None:
    tables, signs = make_problem(11)
    short, long = make_terms(4, rounds=3), make_terms(4, rounds=5)
    found = calibrate("objective", short, SIZES, tol=1e-9, epsilon=9.0)
    with pytest.raises(ValueError, match="other terms than its noise was made for"):
        private(tables, signs, long, found)
