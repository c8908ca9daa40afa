"""Small vertically split problems, and plain references that share no code with the package."""

from __future__ import annotations

import numpy as np
from scipy import sparse

from dpsvm.admm.sharing import Columns, Coordinator, Party, Terms, run
from dpsvm.losses import make_prediction_loss


def make_problem(seed=0, n=60, sizes=(4, 3, 2), *, regression=False):
    """Blocks of columns and labels (or numbers) that they explain, but for noise."""
    rng = np.random.default_rng(seed)
    blocks = [rng.standard_normal((n, size)) / np.sqrt(sum(sizes)) for size in sizes]
    score = sum(block @ rng.standard_normal(block.shape[1]) for block in blocks)
    score = 2 * score + rng.standard_normal(n) / 2
    return blocks, score if regression else np.where(score > 0, 1.0, -1.0)


def members(blocks, terms, perturbation=None):
    """A party for every block."""
    return [Party(m, Columns(block), terms, perturbation) for m, block in enumerate(blocks)]


def solve(blocks, y, loss="logistic", *, rounds=50, tol=0.0, adaptive=False, watch=None, **terms):
    """Run the parties; return the coordinator and the parties."""
    settled = Terms.of(parties=len(blocks), **({"rho": 0.3} | terms))
    parties = members(blocks, settled)
    coordinator = Coordinator(
        y, make_prediction_loss(loss), settled, rounds=rounds, tol=tol, adaptive=adaptive
    )
    run(coordinator, parties, watch)
    return coordinator, parties


def weights(parties):
    """All the weights, one party after the other."""
    return np.concatenate([party.weights for party in parties])


def boyd(blocks, y, loss, *, lam, C, rho, rounds):
    """Sharing ADMM as printed in Boyd et al. 2011, section 7.3, scaled form; rho is theirs.

    The three steps go round from that of z: the first x step follows it.
    """
    loss, count = make_prediction_loss(loss), len(blocks)
    x = [np.zeros(D.shape[1]) for D in blocks]
    mean = u = np.zeros(len(y))
    for _ in range(rounds):
        z = loss.prox(count * (u + mean), y, C * count / rho) / count
        u = u + mean - z
        wanted = [D @ xm + z - mean - u for D, xm in zip(blocks, x, strict=True)]
        x = [
            np.linalg.solve(lam * np.eye(D.shape[1]) + rho * D.T @ D, rho * D.T @ goal)
            for D, goal in zip(blocks, wanted, strict=True)
        ]
        mean = sum(D @ xm for D, xm in zip(blocks, x, strict=True)) / count
    return np.concatenate(x)


def two_blocks(blocks, y, loss, *, lam, C, rho, relaxation, rounds):
    """ADMM with a copy z_m of every D_m x_m, none of it eliminated; rho is that of a copy."""
    loss, count, n = make_prediction_loss(loss), len(blocks), len(y)
    fitted, u = np.zeros((count, n)), np.zeros((count, n))
    for _ in range(rounds):
        ahead = fitted + u
        total = loss.prox(ahead.sum(axis=0), y, C * count / rho)
        z = ahead + (total - ahead.sum(axis=0)) / count
        u = u + fitted - z
        x = [
            np.linalg.solve(lam * np.eye(D.shape[1]) + rho * D.T @ D, rho * D.T @ (zm - um))
            for D, zm, um in zip(blocks, z, u, strict=True)
        ]
        fitted = np.array([D @ xm for D, xm in zip(blocks, x, strict=True)])
        fitted = relaxation * fitted + (1 - relaxation) * z
    return np.concatenate(x)


def sparse_blocks(blocks, seed=1):
    """The blocks with most entries made 0, dense and sparse."""
    rng = np.random.default_rng(seed)
    thin = [np.where(rng.random(block.shape) < 0.3, block, 0.0) for block in blocks]
    return thin, [sparse.csr_matrix(block) for block in thin]
