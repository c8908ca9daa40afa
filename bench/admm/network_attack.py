"""Attack the bound of objective perturbation over a network, with exact densities.

    python bench/admm/network_attack.py

What a node sends at an update tells its noise: e = -grad of its problem there. So the density of
everything a node has sent in a run is known exactly,

    sum over updates of   -alpha |e_k| + log det Hessian_k   (but for a constant),

and with it the ratio of the densities under two neighbouring data sets, whatever was sent. Tiny
networks, their rows, both versions of the replaced sample and all messages are searched for the
largest ratio: random starts, the best improved by quasi-Newton ascent with numerical gradients. The
logarithm of a ratio must not exceed the sum of the costs that are charged.

Writes results/network_attack.json and .md. Exit code 1 if the bound is exceeded.
"""

from __future__ import annotations

import itertools
import math
import sys
from dataclasses import dataclass
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[2]))

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize

from bench.common import Table, arguments, note, run, write_results
from dpsvm.admm.network import Penalties, Terms, make_graph, schedule
from dpsvm.admm.network.bounds import tight_costs
from dpsvm.admm.network.terms import updates_in
from dpsvm.losses import HuberHinge, Logistic, Loss, SmoothHinge

Array = NDArray[np.float64]

SEED = 0
ROUNDING = 1e-7  # of the attack's own arithmetic
LOSSES: tuple[Loss, ...] = (Logistic(), HuberHinge(0.5), SmoothHinge(0.5))
SCALES = (0.1, 1.0, 10.0, 100.0)  # of the messages that a search starts from


@dataclass(frozen=True)
class Attack:
    """A tiny network whose node 0 is attacked, and the noise it has."""

    terms: Terms
    size: int  # samples of node 0
    dimension: int
    alpha: float

    @property
    def bound(self) -> float:
        """What the updates of node 0 are charged, together."""
        alphas = np.full_like(self.terms.curvatures, self.alpha)
        sizes = [self.size] * self.terms.graph.n_nodes
        return float(tight_costs(self.terms, sizes, alphas)[:, 0].sum())

    @property
    def parameters(self) -> int:
        """How many numbers a search moves: rows, two versions of one, and all messages."""
        messages = self.terms.updates * self.terms.graph.n_nodes
        return (self.size + 1 + messages) * self.dimension

    def unpack(self, world: Array) -> tuple[Array, Array, Array]:
        """Both data sets, each row times its label and at most 1 long, and the messages."""
        rows, messages = np.split(world, [(self.size + 1) * self.dimension])
        rows = rows.reshape(-1, self.dimension)
        rows = rows / np.maximum(1.0, np.linalg.norm(rows, axis=1))[:, None]
        shape = (self.terms.updates, self.terms.graph.n_nodes, self.dimension)
        return rows[1:], np.vstack([rows[:1], rows[2:]]), messages.reshape(shape)

    def log_ratio(self, world: Array) -> float:
        """The log of the ratio of both data sets' densities of what node 0 has sent."""
        one, other, messages = self.unpack(world)
        return self.log_density(one, messages) - self.log_density(other, messages)

    def log_density(self, rows: Array, messages: Array) -> float:
        """Of the messages of node 0, given those of the others; but for a constant."""
        terms, loss = self.terms, self.terms.loss
        n, weight = terms.graph.n_nodes, terms.C / len(rows)
        f, multipliers, total = np.zeros((n, self.dimension)), np.zeros((n, self.dimension)), 0.0
        for k in range(terms.updates):
            W = edge_matrix(terms, k)
            R = W.sum(axis=1)
            new = messages[k]
            own, margins = new[0], rows @ new[0]
            slope = weight * rows.T @ loss.slope(margins) + terms.lam / n * own
            pull = 2.0 * R[0] * own - R[0] * f[0] - W[0] @ f
            noise = -(slope + 2.0 * multipliers[0] + pull)
            hessian = (rows * (weight * loss.curvature(margins))[:, None]).T @ rows
            hessian[np.diag_indices_from(hessian)] += terms.lam / n + 2.0 * R[0]
            total += float(np.linalg.slogdet(hessian)[1]) - self.alpha * float(
                np.linalg.norm(noise)
            )
            multipliers = multipliers + (R[:, None] * new - W @ new) / 2.0
            if terms.gamma is not None:
                moved = 2.0 * W @ new - R[:, None] * f - W @ f
                new = new + moved / (2.0 * R + terms.gamma)[:, None]
            f = new
        return total

    def search(
        self, starts: int, climbs: int, random: np.random.Generator, *, steps: int = 200
    ) -> float:
        """The largest log ratio found, over the bound."""
        rows = (self.size + 1) * self.dimension
        worlds = random.standard_normal((starts, self.parameters))
        worlds[:, rows:] *= random.choice(SCALES, starts)[:, None]
        found = np.array([abs(self.log_ratio(world)) for world in worlds])
        best = float(found.max())
        for at in np.argsort(found)[::-1][:climbs]:
            sign = math.copysign(1.0, self.log_ratio(worlds[at]))
            climbed = minimize(
                lambda world, s=sign: -s * self.log_ratio(world),
                worlds[at],
                options={"maxiter": steps},
            )
            best = max(best, -float(climbed.fun))
        return best / self.bound


def edge_matrix(terms: Terms, k: int) -> Array:
    """W at the update k, counted from 0, of symmetric edges."""
    rho = terms.penalties.table[k]
    return np.asarray(terms.graph.adjacency() * (rho[:, None] + rho) / 2.0)


def make_attack(
    loss: Loss,
    *,
    n_nodes: int = 2,
    size: int = 2,
    dimension: int = 2,
    alpha: float = 1.0,
    rho: float = 0.1,
    growth: float = 1.0,
    gamma: float | None = 0.5,
    rounds: int = 3,
) -> Attack:
    """An attack on a complete graph with C as large as it may be, which hides least."""
    updates = updates_in(rounds, recycle=gamma is not None)
    penalties = Penalties(make_graph("complete", n_nodes), schedule(rho, growth, updates, n_nodes))
    terms = Terms(
        penalties=penalties,
        loss=loss,
        C=float(size),
        lam=0.1,
        rounds=rounds,
        gamma=gamma,
    )
    return Attack(terms, size, dimension, alpha)


def main() -> int:
    options = arguments(__doc__).parse_args()
    starts, climbs, steps = (20, 1, 5) if options.quick else (2000, 10, 200)
    random = np.random.default_rng(SEED)
    table = Table(
        "largest log ratio of exact densities to the bound",
        ("loss", "nodes", "samples", "alpha", "recycling", "bound", "ratio", "holds"),
    )
    cases = itertools.product(LOSSES, (2, 3), (1, 3), (0.1, 10.0), (None, 0.5))
    for loss, n_nodes, size, alpha, gamma in list(cases)[:: 7 if options.quick else 1]:
        attack = make_attack(loss, n_nodes=n_nodes, size=size, alpha=alpha, gamma=gamma)
        ratio = attack.search(starts, climbs, random, steps=steps)
        recycling = "yes" if gamma is not None else "no"
        told = (loss.name, n_nodes, size, alpha, recycling, round(attack.bound, 6))
        table.rows.append((*told, round(ratio, 9), ratio <= 1.0 + ROUNDING))
        note(f"{loss.name:10} N {n_nodes} B {size} alpha {alpha:g} {recycling:4}{ratio:.6f}")
    exceeded = [row for row in table.rows if not row[-1]]
    tightest = max(float(str(row[-2])) for row in table.rows)
    verdicts = [
        f"bounds exceeded: {len(exceeded)} of {len(table.rows)}",
        f"the tightest ratio found is {tightest:.6f}",
    ]
    print(table.text())
    print("\n".join(verdicts))
    if not options.quick:
        config = {
            "seed": SEED,
            "starts": starts,
            "climbs": climbs,
            "steps": steps,
            "rounding": ROUNDING,
        }
        write_results(options.results, "network_attack", [table], config=config, verdicts=verdicts)
    return int(bool(exceeded))


if __name__ == "__main__":
    run(main)
