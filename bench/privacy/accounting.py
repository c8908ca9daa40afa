"""The privacy accounting beside dp-accounting's, over a grid of targets.

    python bench/privacy/accounting.py

For each epsilon, delta and number of rounds T: Gaussian noise is calibrated so that T rounds cost
(epsilon, delta), and those rounds are priced again, exactly, by dp-accounting's privacy loss
distributions, which bound the truth from below (optimistic) and from above (pessimistic), and by
Renyi divergences here and there, at the same orders. Exit code 1 if a price lies outside the two
bounds, or if the two Renyi prices differ by more than 1e-6.
"""

from __future__ import annotations

import itertools
import math
import sys
from collections.abc import Sequence
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[2]))

from bench.common import Absent, Table, arguments, note, run, version_of, write_results

EPSILONS = (0.1, 0.5, 1.0, 4.0, 10.0)
DELTAS = (1e-3, 1e-5, 1e-8)
ROUNDS = (1, 20, 500, 5000)
WITHIN = 1e-6
ROUNDING = 1e-9  # of dp-accounting's own floating-point arithmetic
INTERVAL = 1e-4  # of dp-accounting's discretised losses


def price(epsilon: float, delta: float, rounds: int) -> list[float]:
    """Own exact, optimistic and pessimistic epsilon, own and their Renyi epsilon."""
    import dp_accounting
    from dp_accounting.pld.privacy_loss_distribution import from_gaussian_mechanism
    from dp_accounting.rdp import RdpAccountant

    from dpsvm.privacy.accounting import ORDERS, Gaussian, bounds_on_epsilon, gaussian_mu

    event = Gaussian(gaussian_mu(epsilon, delta) / math.sqrt(rounds))
    bounds = bounds_on_epsilon([event] * rounds, delta)
    pld = [
        from_gaussian_mechanism(
            1 / event.mu, pessimistic_estimate=above, value_discretization_interval=INTERVAL
        )
        .self_compose(rounds)
        .get_epsilon_for_delta(delta)
        for above in (False, True)
    ]
    theirs = RdpAccountant(orders=ORDERS)
    theirs.compose(dp_accounting.GaussianDpEvent(1 / event.mu), rounds)
    return [bounds["gaussian"], *pld, bounds["renyi"], theirs.get_epsilon(delta)]


def main(argv: Sequence[str] | None = None) -> int:
    options = arguments(__doc__).parse_args(argv)
    if version_of("dp-accounting") is None:
        raise Absent("dp-accounting is not installed")
    grid = list(itertools.product(EPSILONS, DELTAS, ROUNDS))
    columns = ("epsilon", "delta", "T", "own", "optimistic", "pessimistic", "own Renyi", "theirs")
    table = Table("Epsilon of T Gaussian rounds calibrated to (epsilon, delta)", columns)
    between = agree = 0
    for epsilon, delta, rounds in grid[:4] if options.quick else grid:
        note(f"epsilon {epsilon:g}, delta {delta:g}, {rounds} rounds")
        prices = price(epsilon, delta, rounds)
        own, low, high, renyi, theirs = prices
        between += low * (1 - ROUNDING) <= own <= high * (1 + ROUNDING)
        agree += abs(renyi - theirs) <= WITHIN
        table.rows.append([epsilon, f"{delta:g}", rounds, *(f"{value:.7f}" for value in prices)])
    total = len(table.rows)
    verdicts = [
        f"between dp-accounting's optimistic and pessimistic estimates: {between} of {total}",
        f"Renyi prices within {WITHIN:g} of dp-accounting's: {agree} of {total}",
    ]
    print(table.text(), *verdicts, sep="\n")
    if not options.quick:
        config = {"interval": INTERVAL, "dp-accounting": version_of("dp-accounting")}
        write_results(options.results, "accounting", [table], config=config, verdicts=verdicts)
    return 0 if between == agree == total else 1


if __name__ == "__main__":
    run(main)
