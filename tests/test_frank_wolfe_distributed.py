"""Frank-Wolfe over columns that parties hold: special cases, messages and what they count."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest
from frank_wolfe_problems import make_lasso, split
from scipy import sparse

from dpsvm.frank_wolfe import (
    DistributedFrankWolfe,
    L1Ball,
    LeastSquares,
    Theorem1,
    Traffic,
    longest_uplink,
    minimize,
    product_of_balls,
)
from dpsvm.frank_wolfe.coordinator import Coordinator
from dpsvm.frank_wolfe.messages import Bid, Proposal, Query
from dpsvm.frank_wolfe.party import Party
from dpsvm.frank_wolfe.privacy import DistributedCalibration
from dpsvm.frank_wolfe.sketches import Sketch
from dpsvm.privacy.noise import Noise

# Special cases


@pytest.mark.parametrize("step", ["diminishing", "line-search"])
@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_array])
def test_parties_that_scan_all_their_columns_are_frank_wolfe(step: str, kind: Any) -> None:
    A, y = make_lasso()
    central = minimize(LeastSquares(A, y), L1Ball(12, 0.7), step=step, max_iter=100)
    points = []
    for parties in (1, 3, 12):
        solver = DistributedFrankWolfe(radius=0.7, rounds=100, step=step)
        blocks = [kind(block) for block in split(A, parties)]
        found = solver.solve(blocks, y, lambda one, x: points.append(np.concatenate(x)))
        assert np.max(np.abs(found.x - central.x)) < 1e-12
        assert found.value == pytest.approx(central.value, rel=1e-12)
        assert found.released_value == pytest.approx(central.value, rel=1e-12)
    assert np.all(np.abs(points).sum(axis=1) <= 0.7 * (1 + 1e-12))


def test_looking_at_tau_columns_that_are_all_a_party_has_changes_nothing() -> None:
    A, y = make_lasso()
    blocks = split(A, 3)
    whole = DistributedFrankWolfe(radius=0.7, rounds=50).solve(blocks, y)
    tau = DistributedFrankWolfe(radius=0.7, rounds=50, tau=4, random_state=0).solve(blocks, y)
    assert np.array_equal(whole.x, tau.x)


def test_a_sketched_run_is_frank_wolfe_on_sketched_data() -> None:
    A, y = make_lasso(n=200)
    J = Sketch(200, 40, seed=5).matrix
    # |J A x - J y|^2 / (2 n): LeastSquares divides by its rows, which are m.
    f = LeastSquares(J @ A * np.sqrt(40 / 200), J @ y * np.sqrt(40 / 200))
    central = minimize(f, L1Ball(12, 0.7), max_iter=60)
    for kind in (np.asarray, sparse.csr_array):
        solver = DistributedFrankWolfe(radius=0.7, rounds=60, sketch=40, sketch_seed=5)
        found = solver.solve([kind(block) for block in split(A, 4)], y)
        assert np.max(np.abs(found.x - central.x)) < 1e-11
        assert found.released_value == pytest.approx(central.value, rel=1e-10)
        assert found.value == pytest.approx(LeastSquares(A, y).value(found.x), rel=1e-12)


@pytest.mark.parametrize("radii", [0.3, (0.2, 0.3, 0.4)])
def test_the_product_problem_is_frank_wolfe_over_a_product_of_balls(radii: Any) -> None:
    A, y = make_lasso()
    for step in ("diminishing", "line-search"):
        domain = product_of_balls([4, 4, 4], radii)
        central = minimize(LeastSquares(A, y), domain, step=step, max_iter=100)
        solver = DistributedFrankWolfe(radius=radii, problem="product", rounds=100, step=step)
        found = solver.solve(split(A, 3), y)
        assert np.max(np.abs(found.x - central.x)) < 1e-12
        assert domain.contains(found.x)


def test_all_the_proposals_at_once_would_leave_the_ball() -> None:
    """The printed update adds an atom of size eta for every party."""
    A, y = make_lasso()
    first = DistributedFrankWolfe(radius=0.7, rounds=1)
    assert np.abs(first.solve(split(A, 3), y).x).sum() == pytest.approx(0.7)
    summed = DistributedFrankWolfe(radius=0.7, rounds=1, problem="product")
    assert np.abs(summed.solve(split(A, 3), y).x).sum() == pytest.approx(3 * 0.7)


# The printed formulas fail


def printed(A, y, eta, steps, *, scale=1.0, sign=-1.0, size=None, key=np.abs):
    """Frank-Wolfe with q = A x / n: the residual q - scale y / n, atoms of a sign and a size, of
    the gradient with the largest key."""
    n, d = A.shape
    x = np.zeros(d)
    for t in range(steps):
        g = A.T @ (A @ x / n - scale * y / n)
        i = int(np.argmax(key(g)))
        s = np.zeros(d)
        s[i] = sign * np.sign(g[i]) * (eta if size is None else size)
        x += 2.0 / (t + 2.0) * (s - x)
    return x


def test_labels_that_are_not_divided_by_n_a_wrong_sign_and_a_missing_radius_fail() -> None:
    A, y = make_lasso(n=60)
    f = LeastSquares(A, y)
    start, right = f.value(np.zeros(12)), f.value(printed(A, y, 0.9, 400))
    assert right < 0.2 * start
    undivided = f.value(printed(A, y, 2.0, 400, scale=60.0))  # (13)
    assert undivided - f.value(printed(A, y, 2.0, 400)) > 3.0 * start
    assert f.value(printed(A, y, 0.9, 400, sign=1.0)) > 2.0 * start  # (14) ascends
    # (15) without eta: unit atoms leave a ball of radius 0.2.
    assert np.abs(printed(A, y, 0.2, 400, size=1.0)).sum() > 0.5


def test_without_the_absolute_value_weights_that_should_rise_never_do() -> None:
    A, y = make_lasso(n=60)
    f = LeastSquares(A, y)
    right, signed = printed(A, y, 0.9, 400), printed(A, y, 0.9, 400, key=lambda g: g)  # line 11
    assert right[0] > 0.3
    assert np.max(signed) < 0.02
    assert f.value(signed) > 3.0 * f.value(right)


def test_the_residual_is_sketched_and_not_only_the_product() -> None:
    rng = np.random.default_rng(0)
    n, d, m = 1000, 40, 100
    A = rng.uniform(-1, 1, (n, d))
    x = np.zeros(d)
    x[:3] = 0.3
    y = A @ x
    J, eta = Sketch(n, m).matrix, 0.9
    found = DistributedFrankWolfe(radius=eta, rounds=300, sketch=m).solve([A], y)
    start = LeastSquares(A, y).value(np.zeros(d))
    half = np.zeros(d)
    for t in range(300):  # A'y kept exact beside the sketched A'A x
        g = A.T @ (J.T @ (J @ (A @ half))) / n - A.T @ y / n
        s = L1Ball(d, eta).lmo(g)
        half += 2.0 / (t + 2.0) * (s - half)
    assert found.value < 0.05 * start
    assert LeastSquares(A, y).value(half) > 3.0 * found.value


# Some of the columns


@pytest.mark.parametrize("problem", ["l1", "product"])
def test_with_some_columns_drawn_theorem_1_holds_with_p_the_least_share(problem: str) -> None:
    A, y = make_lasso()
    f = LeastSquares(A, y)
    domain = L1Ball(12, 0.7) if problem == "l1" else product_of_balls([6, 6], 0.7)
    least = minimize(f, domain, step="line-search", max_iter=3000).value
    curves = []
    for seed in range(10):
        solver = DistributedFrankWolfe(
            radius=0.7, problem=problem, rounds=150, tau=2, random_state=seed
        )
        found = solver.solve(split(A, 2), y)
        curves.append([one.released_value - least for one in found.rounds])
        assert domain.contains(found.x)
    longest = 2.0 * 0.7 * np.sqrt(np.max(np.diag(f.hessian())))
    curvature = longest**2 if problem == "l1" else (2 * longest) ** 2
    bound = Theorem1(f.value(np.zeros(12)) - least, curvature, p=1 / 3)
    mean = np.mean(curves, axis=0)
    assert np.all(mean <= [bound(t) for t in range(1, 151)])
    assert mean[-1] < 0.2 * mean[0]
    assert any(one.step == 0.0 for one in found.rounds) or problem == "product"


# Messages


def test_without_a_cache_exactly_as_much_is_sent_as_predicted() -> None:
    A, y = make_lasso()
    settings = {"radius": 0.7, "rounds": 25, "sketch": 20}
    plain = DistributedFrankWolfe(**settings, cache=False).solve(split(A, 4), y)
    assert plain.traffic == longest_uplink(parties=4, rounds=25, size=20)
    assert (plain.traffic.up_integers, plain.traffic.up_floats) == (4 * 25, 20 * 4 * 25)
    kept = DistributedFrankWolfe(**settings).solve(split(A, 4), y)
    assert np.array_equal(plain.x, kept.x)
    assert kept.traffic.up_integers == 100
    assert kept.traffic.up_floats <= 20 * 12  # every column once at most
    assert plain.rounds[9].traffic == longest_uplink(parties=4, rounds=10, size=20)


@pytest.mark.parametrize("settings", [{}, {"sketch": 20}, {"tau": 2, "random_state": 1}])
def test_where_only_the_winner_sends_its_column_the_iterates_are_the_same(
    settings: dict[str, Any],
) -> None:
    A, y = make_lasso()
    run = {"radius": 0.7, "rounds": 25, "step": "line-search", "cache": False} | settings
    blocks = split(A, 4)
    every = DistributedFrankWolfe(**run).solve(blocks, y)
    winner = DistributedFrankWolfe(**run, send="winner").solve(blocks, y)
    assert np.max(np.abs(every.x - winner.x)) < 1e-12
    size = settings.get("sketch", 60)
    assert winner.traffic == Traffic(4 * 25, (4 + size) * 25, 4 * 25 * size)
    assert winner.predicted == every.traffic
    kept = DistributedFrankWolfe(**run | {"cache": True}, send="winner").solve(blocks, y)
    assert kept.traffic.up_floats <= 4 * 25 + 12 * size  # every column once at most


def test_a_column_is_delivered_by_the_winner_of_the_round_alone() -> None:
    party = Party(0, np.eye(2), Sketch(2))
    with pytest.raises(ValueError, match="party 0 has made no bid in round 0"):
        party.deliver()
    coordinator = Coordinator(np.full(2, 0.5), 2, [2, 2], [1.0], schedule=None)
    query = coordinator.open()
    bids = [party.bid(query), Bid(1, 1, 1, -0.1)]
    for wrong, reason in (
        ([Bid(2, 0, 1, 0.0), bids[1]], "a message for round 1 is needed"),
        ([bids[0], Bid(1, 1, 1, np.nan)], "finite numbers"),
    ):
        with pytest.raises(ValueError, match=reason):
            coordinator.award(wrong)
    assert coordinator.award(bids) == 0
    with pytest.raises(ValueError, match=r"of the parties \[0\], in order, are needed"):
        coordinator.take(Proposal(1, 1, 1, np.ones(2)))
    assert coordinator.take(party.deliver()).round == 2
    with pytest.raises(ValueError, match=r"of the parties \[\], in order, are needed"):
        coordinator.take(Proposal(2, 0, 1, np.ones(2)))


def test_a_private_party_makes_no_bid() -> None:
    sketch = Sketch(60, 20)
    noise = DistributedCalibration.of(sketch, [12], 3, 1.0, 1e-5, 1.0).noise_of(0, Noise(0))
    with pytest.raises(ValueError, match="a bid tells a score, which is not private"):
        Party(0, make_lasso()[0], sketch, perturbation=noise).bid(Query(1, np.ones(20)))


def test_a_watch_may_end_a_run() -> None:
    A, y = make_lasso()
    solver = DistributedFrankWolfe(radius=0.7, rounds=25)
    found = solver.solve(split(A, 2), y, lambda one, x: one.round == 7)
    assert (found.n_rounds, len(found.rounds)) == (7, 7)


def test_messages_out_of_turn_or_shape_are_refused() -> None:
    party = Party(0, np.eye(2), Sketch(2))
    with pytest.raises(ValueError, match="party 0 awaits round 1, got round 2"):
        party.answer(Query(2, np.zeros(2)))
    with pytest.raises(ValueError, match="a residual of 2 finite numbers"):
        party.answer(Query(1, np.zeros(3)))
    coordinator = Coordinator(np.full(2, 0.5), 2, [2], [1.0], schedule=None)
    for message, reason in (
        (Proposal(2, 0, 1, np.zeros(2)), "a message for round 1 is needed"),
        (Proposal(1, 1, 1, np.zeros(2)), r"parties \[0\], in order, are needed"),
        (Proposal(1, 0, 0, np.zeros(2)), "sent the choice 0"),
        (Proposal(1, 0, -3, np.zeros(2)), "sent the choice -3"),
        (Proposal(1, 0, 1, np.zeros(5)), r"finite numbers of shape \(2,\), got shape \(5,\)"),
        (Proposal(1, 0, 1, None), "sent no sketch of column 0, nor did before"),
    ):
        with pytest.raises(ValueError, match=reason):
            coordinator.gather([message])


@pytest.mark.parametrize(
    ("settings", "reason"),
    [
        ({"radius": 0.0}, "radius must be a finite number above 0, got 0.0"),
        ({"radius": [0.5, 0.5]}, "radius must be one number in problem 'l1'"),
        ({"radius": [0.5], "problem": "product"}, "one number or 3 in problem 'product'"),
        ({"problem": "sum"}, "problem must be 'l1' or 'product', got 'sum'"),
        ({"tau": 5}, "tau must be an integer from 1 to 4, got 5"),
        ({"rounds": 0}, "rounds must be an integer from 1 on, got 0"),
        ({"sketch": 0}, "the size of a sketch must be an integer from 1 on, got 0"),
        ({"step": 1.0}, "step must be"),
    ],
)
def test_bad_settings_are_refused(settings: dict[str, Any], reason: str) -> None:
    A, y = make_lasso()
    with pytest.raises(ValueError, match=re.escape(reason)):
        DistributedFrankWolfe(**({"radius": 0.5} | settings)).solve(split(A, 3), y)


def test_bad_blocks_are_refused() -> None:
    solver = DistributedFrankWolfe(radius=0.5)
    A, y = make_lasso()
    with pytest.raises(ValueError, match="blocks must be a list"):
        solver.solve(A, y)
    with pytest.raises(ValueError, match="party 1 must have a table of 60 rows"):
        solver.solve([A, A[:5]], y)
    with pytest.raises(ValueError, match="party 0 must have finite numbers"):
        solver.solve([A * np.nan], y)
