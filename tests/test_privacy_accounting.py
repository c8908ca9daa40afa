"""What releases cost together, against dp-accounting and against the definition."""

from __future__ import annotations

import math

import numpy as np
import pytest
from dp_accounting_prices import dp_accounting_epsilon
from hypothesis import given
from hypothesis import strategies as st
from scipy import integrate, stats

from dpsvm.privacy.accounting import (
    ORDERS,
    Approximate,
    Gaussian,
    Pure,
    Rdp,
    ZCdp,
    bounds_on_epsilon,
    calibrate,
    epsilon_of,
    gaussian_delta,
    gaussian_epsilon,
    gaussian_mu,
    rdp_to_epsilon,
)

EPSILONS = (0.1, 0.5, 1.0, 4.0)
DELTAS = (1e-3, 1e-5, 1e-8)
ROUNDS = (1, 20, 500)
ROUNDING = 1e-9  # of dp-accounting's own floating-point arithmetic


def hockey_stick(mu: float, epsilon: float) -> float:
    """Delta by its definition: the mass of one Gaussian above exp(epsilon) times the other."""

    def excess(x: float) -> float:
        return float(max(stats.norm.pdf(x, mu) - math.exp(epsilon) * stats.norm.pdf(x), 0.0))

    start = epsilon / mu + mu / 2  # below it there is none
    return float(
        integrate.quad(excess, start, max(start, mu) + 40, epsabs=0, epsrel=1e-10, limit=500)[0]
    )


@pytest.mark.parametrize("mu", [0.05, 0.3, 1.0, 3.0])
@pytest.mark.parametrize("epsilon", [0.01, 0.5, 2.0])
def test_the_gaussian_delta_is_that_of_the_definition(mu: float, epsilon: float) -> None:
    assert gaussian_delta(mu, epsilon) == pytest.approx(
        hockey_stick(mu, epsilon), rel=1e-6, abs=1e-300
    )


@pytest.mark.parametrize("epsilon", EPSILONS)
@pytest.mark.parametrize("delta", DELTAS)
def test_calibrated_noise_is_the_least_that_holds(epsilon: float, delta: float) -> None:
    mu = gaussian_mu(epsilon, delta)
    assert gaussian_delta(mu, epsilon) <= delta
    assert gaussian_delta(np.nextafter(mu, 9.0), epsilon) > delta
    assert gaussian_epsilon(mu, delta) == pytest.approx(epsilon, rel=1e-9)
    assert gaussian_delta(mu, gaussian_epsilon(mu, delta)) <= delta


@pytest.mark.parametrize("epsilon", EPSILONS)
@pytest.mark.parametrize("delta", DELTAS)
@pytest.mark.parametrize("rounds", ROUNDS)
def test_gaussian_rounds_lie_between_dp_accountings_pld_estimates(
    epsilon: float, delta: float, rounds: int
) -> None:
    pld = pytest.importorskip("dp_accounting.pld.privacy_loss_distribution")
    event = Gaussian(gaussian_mu(epsilon, delta) / math.sqrt(rounds))
    own = epsilon_of([event] * rounds, delta)
    assert own == pytest.approx(epsilon, rel=1e-9)
    low, high = (
        pld.from_gaussian_mechanism(
            1 / event.mu, pessimistic_estimate=pessimistic, value_discretization_interval=1e-4
        )
        .self_compose(rounds)
        .get_epsilon_for_delta(delta)
        for pessimistic in (False, True)
    )
    assert low * (1 - ROUNDING) <= own <= high * (1 + ROUNDING)


@pytest.mark.parametrize("rounds", ROUNDS)
@pytest.mark.parametrize("delta", DELTAS)
def test_renyi_accounting_agrees_with_dp_accounting(rounds: int, delta: float) -> None:
    rdp = pytest.importorskip("dp_accounting.rdp")
    accounting = pytest.importorskip("dp_accounting")
    theirs = rdp.RdpAccountant(orders=ORDERS)
    theirs.compose(accounting.GaussianDpEvent(10.0), rounds)
    theirs.compose(accounting.ZCDpEvent(0.002), rounds)
    own = epsilon_of([*[Gaussian(0.1)] * rounds, *[ZCdp(0.002)] * rounds], delta)
    assert own == pytest.approx(theirs.get_epsilon(delta), abs=1e-6)


def randomised_response(epsilon: float, times: int, delta: float) -> float:
    """The exact epsilon of so many rounds of randomised response, by adding up its outcomes."""
    yes = math.exp(epsilon) / (1 + math.exp(epsilon))
    count = np.arange(times + 1)
    with_record = stats.binom.pmf(count, times, yes)
    without = stats.binom.pmf(count, times, 1 - yes)
    losses = sorted((2 * k - times) * epsilon for k in range(times + 1))
    for loss in losses:
        if loss >= 0 and np.maximum(with_record - math.exp(loss) * without, 0).sum() <= delta:
            return loss
    return losses[-1]


@pytest.mark.parametrize("epsilon", [0.05, 0.3, 1.0])
@pytest.mark.parametrize("times", [1, 10, 200])
def test_pure_releases_cost_no_less_than_randomised_response_does(
    epsilon: float, times: int
) -> None:
    step = 2 * epsilon  # the outcomes' losses are that far apart
    own = epsilon_of([Pure(epsilon)] * times, 1e-6)
    assert own >= randomised_response(epsilon, times, 1e-6) - step
    assert own <= times * epsilon * (1 + 1e-12)


def test_many_small_pure_releases_cost_less_than_their_sum() -> None:
    assert epsilon_of([Pure(0.05)] * 200, 1e-6) < 5.0 < 200 * 0.05


def test_without_delta_only_pure_releases_have_an_epsilon() -> None:
    assert epsilon_of([Pure(0.5), Pure(0.25)], 0.0) == 0.75
    for event in (Gaussian(0.1), ZCdp(0.1), Rdp((2.0,), (0.1,)), Approximate(0.1, 1e-9)):
        assert epsilon_of([event], 0.0) == math.inf


def test_deltas_that_do_not_fit_leave_no_epsilon() -> None:
    assert epsilon_of([Approximate(0.5, 1e-6)] * 3, 2e-6) == math.inf
    assert epsilon_of([Approximate(0.1, 1e-6)] * 3, 3e-6) == pytest.approx(0.3)


def test_renyi_releases_meet_at_their_common_orders() -> None:
    first, second = Rdp((2.0, 4.0, 8.0), (0.1, 0.2, 0.4)), Rdp((4.0, 8.0, 16.0), (0.2, 0.4, 0.8))
    together = rdp_to_epsilon([4.0, 8.0], [0.4, 0.8], 1e-5)
    assert epsilon_of([first, second], 1e-5) == together
    assert epsilon_of([first, Rdp((3.0,), (0.1,))], 1e-5) < math.inf  # each alone, then added
    assert bounds_on_epsilon([first, Rdp((3.0,), (0.1,))], 1e-5)["renyi"] == math.inf


events = st.one_of(
    st.builds(Pure, st.floats(0.01, 2)),
    st.builds(Approximate, st.floats(0.01, 2), st.floats(1e-12, 1e-8)),
    st.builds(Gaussian, st.floats(0.01, 2)),
    st.builds(ZCdp, st.floats(0.001, 2)),
)


@given(st.lists(events, max_size=6), events)
def test_one_release_more_never_costs_less(known: list[Pure], more: Pure) -> None:
    assert epsilon_of([*known, more], 1e-6) >= epsilon_of(known, 1e-6) * (1 - 1e-12)


@given(st.lists(events, max_size=6))
def test_a_larger_delta_never_costs_more(known: list[Pure]) -> None:
    assert epsilon_of(known, 1e-4) <= epsilon_of(known, 1e-6) * (1 + 1e-12)


def test_calibration_finds_the_least_noise() -> None:
    def rounds(noise: float) -> list[ZCdp]:
        return [ZCdp(1 / noise**2)] * 10

    noise = calibrate(rounds, 1.0, 1e-6)
    assert epsilon_of(rounds(noise), 1e-6) <= 1.0
    assert epsilon_of(rounds(noise * (1 - 1e-9)), 1e-6) > 1.0


def test_calibration_says_when_no_noise_will_do() -> None:
    with pytest.raises(ValueError, match=r"no noise reaches epsilon = 1\.0"):
        calibrate(lambda noise: [Pure(2.0)], 1.0, 0.0)


def test_dp_accounting_is_asked_only_what_it_knows() -> None:
    pytest.importorskip("dp_accounting")
    events = [Gaussian(0.2)] * 20
    assert dp_accounting_epsilon(events, 1e-5) == pytest.approx(epsilon_of(events, 1e-5), rel=1e-3)
    assert dp_accounting_epsilon(events, 1e-5, method="rdp") >= epsilon_of(events, 1e-5)
    with pytest.raises(ValueError, match="pld accountant does not take Rdp"):
        dp_accounting_epsilon([Rdp((2.0,), (0.1,))], 1e-5)


@pytest.mark.parametrize("wrong", [0, -1.0, float("nan"), float("inf"), "much", None, True])
def test_an_epsilon_that_is_none_is_refused(wrong: object) -> None:
    with pytest.raises(ValueError, match=r"epsilon must be a finite number above 0, got"):
        Pure(wrong)  # type: ignore[arg-type]


@pytest.mark.parametrize("wrong", [0, 1, -1e-9, float("nan"), "small"])
def test_a_delta_that_is_none_is_refused(wrong: object) -> None:
    with pytest.raises(ValueError, match="delta must be a number between 0 and 1"):
        Approximate(1.0, wrong)  # type: ignore[arg-type]


def test_renyi_divergences_that_are_none_are_refused() -> None:
    for orders, values in [((), ()), ((2.0,), (0.1, 0.2)), ((1.0,), (0.1,)), ((2.0,), (-0.1,))]:
        with pytest.raises(ValueError, match="got"):
            Rdp(orders, values)
