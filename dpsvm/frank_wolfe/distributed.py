"""Frank-Wolfe over columns that K parties hold: the loop in one process, settings and results.

Every round each party sends one signed index and m numbers, none of them a score or a weight:
K T integers and at most m K T numbers in T rounds, counted in the result. Or it sends a signed
index and a score, and only the winner its column, as Bellet et al. (2015) do: K T integers and at
most (K + m) T numbers for the same iterates, in two exchanges a round, and nothing of it private.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from scipy import sparse

from dpsvm._arrays import Array
from dpsvm.constraints import check_choice
from dpsvm.frank_wolfe.agreement import SENDERS, Agreement
from dpsvm.frank_wolfe.checks import canonical_columns, check_vector
from dpsvm.frank_wolfe.messages import Traffic, longest_uplink
from dpsvm.privacy.guarantee import Guarantee
from dpsvm.privacy.noise import Noise


@dataclass(frozen=True)
class Round:
    """One round, as whoever sees the messages and the labels knows it."""

    round: int  # from 1
    released_value: float  # f_J(x) after it, from messages and labels
    step: float  # 0 if every proposal pointed uphill
    traffic: Traffic  # of all the rounds so far


Watch = Callable[[Round, Sequence[Array]], Any]
"""Called after every round with the weights of the parties; true ends the run, if not private."""


@dataclass(frozen=True, kw_only=True, eq=False)
class DistributedResult:
    """A model over the parties' columns, and what it took."""

    x: Array  # of all the columns, in the order of the parties
    weights: list[Array]  # x_(k), of each party
    released_value: float  # f_J(x), from messages and labels; in a private run noise adds to it
    value: float | None  # f(x); None of a private run, which does not tell it
    n_rounds: int
    traffic: Traffic
    predicted: Traffic  # by proposals without a cache: K T integers, m K T numbers
    rounds: list[Round] = field(default_factory=list)
    guarantee: Guarantee | None = None
    report: dict[str, Any] | None = None


def check_blocks(blocks: Any, target: Any) -> tuple[list[Any], Array]:
    """Tables of the same rows, one for each party, and their labels."""
    if not isinstance(blocks, (list, tuple)) or not blocks:
        raise ValueError("blocks must be a list of tables, one for each party")
    tables = [canonical_columns(one) for one in blocks]
    y = check_vector(target, "y")
    for k, table in enumerate(tables):
        if table.ndim != 2 or table.shape[0] != len(y) or table.shape[1] == 0:
            raise ValueError(
                f"party {k} must have a table of {len(y)} rows and a column or more, got shape "
                f"{table.shape}"
            )
        if not np.all(np.isfinite(table.data if sparse.issparse(table) else table)):
            raise ValueError(f"party {k} must have finite numbers, got nan or infinity")
    return tables, y


@dataclass(frozen=True, kw_only=True, eq=False)
class DistributedFrankWolfe:
    """The lasso over columns that parties hold, by proposals and sketches.

    radius : of the l1 ball; in problem "product" one for all the parties, or one for each
    problem : "l1" or "product", see :mod:`~dpsvm.frank_wolfe.coordinator`
    sketch, sketch_seed : m, and the public seed of J; None sends whole columns
    tau : how many columns a party looks at in a round; None is all of them
    step : "diminishing" 2/(p t + 2), p = min tau / d_k, "line-search" in the sketch, or a callable
    cache : send the sketch of a column only once
    send : "all", a proposal of every party, or "winner", bids first and then one column; for
        problem "l1"

    >>> A = np.random.default_rng(0).standard_normal((50, 6))
    >>> solver = DistributedFrankWolfe(radius=1.0, rounds=40)
    >>> found = solver.solve([A[:, :4], A[:, 4:]], A[:, 0])
    >>> found.traffic.up_integers, [len(part) for part in found.weights]
    (80, [4, 2])
    """

    radius: Any
    problem: str = "l1"
    rounds: int = 100
    sketch: int | None = None
    sketch_seed: int = 0
    tau: int | None = None
    step: Any = "diminishing"
    cache: bool = True
    send: str = "all"
    random_state: Any = None

    def solve(self, blocks: Any, y: Any, watch: Watch | None = None) -> DistributedResult:
        """Run the parties and the coordinator in this process."""
        tables, target = check_blocks(blocks, y)
        check_choice(self.send, "send", SENDERS)
        agreed = Agreement.of(self, [table.shape[1] for table in tables], len(target))
        rng = np.random.default_rng(self.random_state)
        return run(agreed, tables, target, rng, watch=watch, send=self.send)


def run(
    agreed: Agreement,
    tables: Sequence[Any],
    target: Array,
    rng: np.random.Generator,
    *,
    noise: Noise | None = None,
    watch: Watch | None = None,
    send: str = "all",
) -> DistributedResult:
    """Query, answer, gather: all sides of an agreement in one process, every round noted.

    noise : of a private run, which tells no f(x) and is not ended early
    """
    parties = [agreed.member(k, table, noise, rng) for k, table in enumerate(tables)]
    coordinator = agreed.lead(target, noise)
    weights, query, rounds = coordinator.weights, coordinator.open(), []
    for _ in range(agreed.rounds):
        if send == "all":
            query = coordinator.gather([party.answer(query) for party in parties])
        else:
            winner = coordinator.award([party.bid(query) for party in parties])
            query = coordinator.take(parties[winner].deliver())
        value, step = coordinator.released_value, coordinator.step
        rounds.append(Round(coordinator.round, value, step, coordinator.traffic))
        stop = watch is not None and watch(rounds[-1], [part.copy() for part in weights])
        if stop and noise is None:
            break
    exact: float | None = None
    if noise is None:
        fitted = [np.asarray(table @ x) for table, x in zip(tables, weights, strict=True)]
        residual = np.add.reduce(fitted) - target
        exact = float(residual @ residual) / (2.0 * len(target))
    return DistributedResult(
        x=np.concatenate(weights),
        weights=weights,
        released_value=coordinator.released_value,
        value=exact,
        n_rounds=coordinator.round,
        traffic=coordinator.traffic,
        predicted=longest_uplink(len(parties), coordinator.round, agreed.sketch.size),
        rounds=rounds,
    )
