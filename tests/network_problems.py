"""Small problems on networks, and plain references that share no code with the package."""

from __future__ import annotations

import numpy as np

from dpsvm.admm.network import Node, Penalties, Samples, Terms, make_graph, run, schedule
from dpsvm.admm.network.terms import updates_in
from dpsvm.losses import make_loss


def make_problem(seed=0, sizes=(30, 20, 25, 40), d=4):
    """Rows of norm at most 1 and signs for each node; the nodes differ in what they see."""
    rng = np.random.default_rng(seed)
    truth = rng.standard_normal(d)
    tables, signs = [], []
    for size in sizes:
        X = rng.standard_normal((size, d)) + rng.standard_normal(d) / 2
        X /= np.maximum(1.0, np.linalg.norm(X, axis=1))[:, None] * (1 + 1e-9)
        tables.append(X)
        noise = rng.standard_normal(size) / 2
        signs.append(np.where(X @ truth + noise > 0, 1.0, -1.0))
    return tables, signs


def make_terms(
    n_nodes, graph="ring", *, rho=0.5, growth=1.0, form="edge", loss="logistic", width=0.5, **others
):
    """Terms with a table of penalties; gamma is the recycling's, None for none."""
    settings = {"C": 5.0, "lam": 0.3, "rounds": 20, "gamma": 0.5} | others
    updates = updates_in(settings["rounds"], recycle=settings["gamma"] is not None)
    network = make_graph(graph, n_nodes)
    penalties = Penalties(network, schedule(rho, growth, updates, n_nodes), form)
    return Terms(penalties=penalties, loss=make_loss(loss, width), **settings)


def solve(tables, signs, terms, *, tol=1e-11, starts=None, watch=None):
    """Run the nodes of a problem; return them."""
    nodes = [
        Node(i, Samples(X, y), terms, tol=tol, start=None if starts is None else starts[i])
        for i, (X, y) in enumerate(zip(tables, signs, strict=True))
    ]
    run(nodes, watch)
    return nodes


def weights(nodes):
    """The weights of every node, of shape (N, d)."""
    return np.array([node.state.weights for node in nodes])


def gradient(X, y, f, loss, C, shrink):
    """Of one node's objective."""
    margins = y * (X @ f)
    return C / len(y) * X.T @ (y * loss.slope(margins)) + shrink * f


def hessian(X, y, f, loss, C, shrink):
    """Of one node's objective."""
    curvature = C / len(y) * loss.curvature(y * (X @ f))
    return (X * curvature[:, None]).T @ X + shrink * np.eye(len(f))


def newton(slope, curvature, start, steps=100):
    """Damped Newton steps until the gradient is rounding errors."""
    f = start.copy()
    for _ in range(steps):
        g = slope(f)
        step = np.linalg.solve(curvature(f), g)
        length = 1.0
        while length > 1e-8 and np.linalg.norm(slope(f - length * step)) > np.linalg.norm(g):
            length /= 2
        if length <= 1e-8:
            return f
        f = f - length * step
    return f


def central(tables, signs, loss, C, lam, shares=None):
    """The minimiser of sum_i s_i O_i, s_i = 1 if no shares are given."""
    n = len(tables)
    shares = np.ones(n) if shares is None else shares
    data = list(zip(shares, tables, signs, strict=True))

    def slope(f):
        return sum(s * gradient(X, y, f, loss, C, lam / n) for s, X, y in data)

    def curvature(f):
        return sum(s * hessian(X, y, f, loss, C, lam / n) for s, X, y in data)

    return newton(slope, curvature, np.zeros(tables[0].shape[1]))


def as_printed(tables, signs, terms, starts):
    """Recycled ADMM with the paper's even step, which looks at the gradient; all iterates."""
    n, d = starts.shape
    loss, C, shrink = terms.loss, terms.C, terms.lam / n
    f, multipliers, found = starts.copy(), np.zeros((n, d)), []
    adjacency = terms.graph.adjacency()
    for t in range(1, terms.rounds + 1):
        rho = terms.penalties.table[terms.update_of(t) - 1]
        W = adjacency * (
            (rho[:, None] + rho) / 2 if terms.penalties.form == "edge" else rho[:, None]
        )
        new = np.empty_like(f)
        for i, (X, y) in enumerate(zip(tables, signs, strict=True)):
            R, pull = W[i].sum(), W[i].sum() * f[i] + W[i] @ f
            if terms.is_update(t):

                def slope(v, X=X, y=y, R=R, linear=2 * multipliers[i] - pull):
                    return gradient(X, y, v, loss, C, shrink) + 2 * R * v + linear

                def curvature(v, X=X, y=y, R=R):
                    return hessian(X, y, v, loss, C, shrink + 2 * R)

                new[i] = newton(slope, curvature, f[i])
            else:
                own = gradient(X, y, f[i], loss, C, shrink) + 2 * multipliers[i] - pull
                new[i] = (terms.gamma * f[i] - own) / (2 * R + terms.gamma)
        f = new
        if terms.is_update(t):
            multipliers = multipliers + (W.sum(axis=1)[:, None] * f - W @ f) / 2
        found.append(f)
    return np.array(found)
