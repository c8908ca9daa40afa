"""ADMM over a network without privacy: the oracles, the references, the node and its messages."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import numpy as np
import pytest
from network_problems import (
    as_printed,
    central,
    gradient,
    make_problem,
    make_terms,
    solve,
    weights,
)
from scipy import sparse
from sklearn.linear_model import LogisticRegression
from sklearn.svm import LinearSVC

import dpsvm.admm.network
from dpsvm.admm.network import Graph, Iterate, Node, Samples, make_graph, schedule
from dpsvm.admm.network.history import (
    History,
    Recorder,
    conditions,
    least_signless,
    objective,
)
from dpsvm.losses import make_loss

SHAPES = ("complete", "ring", "star", "path", "random")


def starts_of(tables, seed=3):
    return np.random.default_rng(seed).standard_normal((len(tables), tables[0].shape[1]))


# The same round as printed


@pytest.mark.parametrize("graph", SHAPES)
@pytest.mark.parametrize("form", ["edge", "per-node"])
def test_every_iterate_is_that_of_the_printed_method(graph: str, form: str) -> None:
    tables, signs = make_problem()
    terms = make_terms(4, graph, rho=[0.5, 0.8, 0.3, 1.0], growth=1.1, form=form, rounds=9)
    starts, found = starts_of(tables), []
    solve(
        tables, signs, terms, tol=1e-13, starts=starts, watch=lambda t, n: found.append(weights(n))
    )
    assert np.abs(np.array(found) - as_printed(tables, signs, terms, starts)).max() < 1e-11


def test_the_even_step_is_the_papers_gradient_step_to_the_last_digits() -> None:
    tables, signs = make_problem(1)
    terms = make_terms(4, "random", rho=[0.5, 0.8, 0.3, 1.0], growth=1.2, rounds=8)
    loss, before = make_loss("logistic"), {}

    def watch(t, nodes):
        if t % 2 == 0:
            for node in nodes:
                state, update = node.state, terms.update_of(t)
                f, heard, multiplier = before[node.index]
                W = terms.penalties.of_edges(node.index, update)
                X, y = node.samples.rows, node.samples.signs
                own = gradient(X, y, f, loss, terms.C, terms.lam / 4)
                pull = W.sum() * f + W @ heard
                step = (own + 2 * multiplier - pull + 2 * W.sum() * f) / (2 * W.sum() + terms.gamma)
                assert np.abs(state.weights - (f - step)).max() <= 1e-13
        for node in nodes:
            state = node.state
            before[node.index] = state.weights, np.array(state.heard), state.dual

    solve(tables, signs, terms, tol=1e-14, starts=starts_of(tables), watch=watch)


# The limit


@pytest.mark.parametrize("gamma", [None, 0.5])
@pytest.mark.parametrize(
    ("graph", "loss"),
    [*((graph, "logistic") for graph in SHAPES), ("random", "huber"), ("random", "smooth")],
)
def test_symmetric_edges_lead_to_the_minimiser(graph: str, loss: str, gamma: float | None) -> None:
    tables, signs = make_problem(2)
    terms = make_terms(
        4, graph, rho=[0.3, 0.5, 0.2, 0.9], loss=loss, gamma=gamma, rounds=151, lam=1.0
    )
    nodes = solve(tables, signs, terms, starts=starts_of(tables))
    wanted = central(tables, signs, terms.loss, terms.C, terms.lam)
    assert np.abs(weights(nodes) - wanted).max() < 1e-8
    assert np.linalg.norm(sum(node.state.dual for node in nodes)) < 1e-12


@pytest.mark.parametrize("gamma", [None, 0.5])
def test_per_node_penalties_lead_to_another_point_the_one_that_is_told(gamma: float | None) -> None:
    tables, signs = make_problem(3)
    rho = np.array([0.2, 0.5, 0.3, 2.0])
    settings = {"rho": rho, "gamma": gamma, "rounds": 301, "lam": 1.0}
    terms = make_terms(4, "ring", form="per-node", **settings)
    found = weights(solve(tables, signs, terms))
    right = central(tables, signs, terms.loss, terms.C, terms.lam)
    wrong = central(tables, signs, terms.loss, terms.C, terms.lam, 1 / rho)
    assert np.abs(found - wrong).max() < 1e-8
    assert np.linalg.norm(wrong - right) > 0.1
    assert "argmin sum_i O_i / rho_i" in terms.penalties.wrong_limit()
    edges = weights(solve(tables, signs, make_terms(4, "ring", **settings)))
    assert np.abs(edges - right).max() < 1e-8


@pytest.mark.parametrize("gamma", [None, 0.5])
def test_the_plain_hinge_leads_to_the_support_vector_machine(gamma: float | None) -> None:
    tables, signs = make_problem(2, sizes=(25, 25, 25))
    terms = make_terms(3, rho=0.4, loss="hinge", gamma=gamma, rounds=151, lam=1.0)
    nodes = solve(tables, signs, terms)
    assert all(0 <= node.state.worst <= 1e-6 for node in nodes)
    other = LinearSVC(
        C=terms.C / (25 * terms.lam), loss="hinge", fit_intercept=False, tol=1e-10, max_iter=10**6
    ).fit(np.vstack(tables), np.concatenate(signs))
    assert np.abs(weights(nodes) - other.coef_[0]).max() < 1e-6


def test_equal_per_node_penalties_are_symmetric_and_told_to_be_right() -> None:
    tables, signs = make_problem(3)
    one, two = (make_terms(4, form=form, growth=1.1) for form in ("edge", "per-node"))
    assert np.allclose(weights(solve(tables, signs, one)), weights(solve(tables, signs, two)))
    assert two.penalties.wrong_limit() is None
    growing = make_terms(4, form="per-node", rho=[1.0, 1.0, 1.0, 2.0], growth=1.1)
    assert "argmin sum_i O_i / rho_i, the nodes weighing" in growing.penalties.wrong_limit()
    unequal = make_terms(4, form="per-node", rho=1.0, growth=[1.1, 1.1, 1.1, 1.2])
    assert "depends on the path" in unequal.penalties.wrong_limit()


def test_the_central_reference_is_scikit_learns_where_all_sizes_are_equal() -> None:
    tables, signs = make_problem(4, sizes=(30, 30, 30))
    C, lam, B = 5.0, 0.3, 30
    found = central(tables, signs, make_loss("logistic"), C, lam)
    other = LogisticRegression(
        C=C / (B * lam), fit_intercept=False, solver="newton-cholesky", tol=1e-12
    ).fit(np.vstack(tables), np.concatenate(signs))
    assert np.abs(found - other.coef_[0]).max() < 1e-8


# Oracles


@pytest.mark.parametrize("gamma", [None, 0.5])
def test_a_growth_of_one_is_the_method_without_growth(gamma: float | None) -> None:
    tables, signs = make_problem(5)
    by_table = make_terms(4, rho=np.full((10 if gamma else 20, 4), 0.7), gamma=gamma)
    plain = make_terms(4, rho=0.7, growth=1.0, gamma=gamma)
    one, two = (weights(solve(tables, signs, terms)) for terms in (by_table, plain))
    assert np.array_equal(one, two)


def test_with_a_huge_gamma_recycled_iterations_are_idle() -> None:
    tables, signs = make_problem(6)
    plain = weights(solve(tables, signs, make_terms(4, gamma=None, rounds=12)))
    recycled = weights(solve(tables, signs, make_terms(4, gamma=1e13, rounds=24)))
    assert np.abs(plain - recycled).max() < 1e-10


def test_multipliers_add_up_to_zero_at_every_round() -> None:
    tables, signs = make_problem(7)
    history = History()
    terms = make_terms(4, "random", rho=[0.5, 0.1, 2.0, 1.0], growth=1.1)
    solve(tables, signs, terms, starts=starts_of(tables), watch=Recorder(history))
    assert history["dual_sum"].max() < 1e-13


@pytest.mark.parametrize("gamma", [None, 0.5])
def test_the_solution_is_a_fixed_point(gamma: float | None) -> None:
    tables, signs = make_problem(8)
    terms = make_terms(4, "random", rho=[0.5, 0.1, 2.0, 1.0], gamma=gamma, rounds=6)
    wanted = central(tables, signs, terms.loss, terms.C, terms.lam)
    nodes = [
        Node(i, Samples(X, y), terms, tol=1e-13, start=wanted)
        for i, (X, y) in enumerate(zip(tables, signs, strict=True))
    ]
    for node, X, y in zip(nodes, tables, signs, strict=True):
        node.state.dual = -gradient(X, y, wanted, terms.loss, terms.C, terms.lam / 4) / 2
    multipliers = [node.state.dual for node in nodes]
    dpsvm.admm.network.run(nodes)
    for node, multiplier in zip(nodes, multipliers, strict=True):
        assert np.abs(node.state.weights - wanted).max() < 1e-12
        assert np.abs(node.state.dual - multiplier).max() < 1e-12


def test_nodes_with_the_same_data_and_start_stay_equal() -> None:
    tables, signs = make_problem(9, sizes=(30,))
    start = np.ones((4, 4)) / 3
    terms = make_terms(4, "ring", rounds=11)
    found = weights(solve(tables * 4, signs * 4, terms, starts=start))
    assert np.abs(found - found[0]).max() < 1e-13


def test_the_order_and_the_form_of_rows_do_not_matter() -> None:
    tables, signs = make_problem(11)
    terms = make_terms(4, rounds=7)
    dense = weights(solve(tables, signs, terms))
    rows = [sparse.csr_array(X) for X in tables]
    assert np.abs(weights(solve(rows, signs, terms)) - dense).max() < 1e-10
    shuffled = [np.random.default_rng(i).permutation(len(y)) for i, y in enumerate(signs)]
    mixed = [X[p] for X, p in zip(tables, shuffled, strict=True)]
    labels = [y[p] for y, p in zip(signs, shuffled, strict=True)]
    assert np.abs(weights(solve(mixed, labels, terms)) - dense).max() < 1e-10


def test_the_numbers_of_the_nodes_do_not_matter() -> None:
    tables, signs = make_problem(15)
    order, edges = [2, 0, 3, 1], [(0, 1), (1, 2), (2, 3), (3, 1)]
    rho = np.array([0.5, 0.1, 2.0, 1.0])
    one = weights(solve(tables, signs, make_terms(4, edges, rho=rho, rounds=9)))
    moved = [(order.index(a), order.index(b)) for a, b in edges]
    terms = make_terms(4, moved, rho=rho[order], rounds=9)
    other = weights(solve([tables[i] for i in order], [signs[i] for i in order], terms))
    assert np.abs(other - one[order]).max() < 1e-10


def test_messages_can_travel() -> None:
    """Nodes that share nothing but messages, each a copy, do the same as those in one process."""
    tables, signs = make_problem(16)
    terms = make_terms(4, "path", rounds=7)
    together = weights(solve(tables, signs, terms))
    apart = [
        Node(i, Samples(X, y), copy.deepcopy(terms), tol=1e-11)
        for i, (X, y) in enumerate(zip(tables, signs, strict=True))
    ]
    posted = [pickle.dumps(node.opening()) for node in apart]
    for _ in range(8):
        for node in apart:
            node.absorb([pickle.loads(posted[other]) for other in reversed(node.neighbours)])
        if apart[0].state.round < 7:
            posted = [pickle.dumps(node.emit()) for node in apart]
    assert np.array_equal(weights(apart), together)


# History


def test_recycling_halves_the_data_accesses_and_the_history_counts_them() -> None:
    tables, signs = make_problem(12)
    counts = {}
    for gamma in (None, 0.5):
        history = History()
        terms = make_terms(4, gamma=gamma, rounds=10)
        nodes = solve(tables, signs, terms, watch=Recorder(history))
        counts[gamma] = history["data_accesses"]
        assert len(history.updates_only()) == terms.updates
        mean = weights(nodes).mean(axis=0)
        assert history["objective"][-1] == pytest.approx(objective(nodes, mean))
        own = [
            np.logaddexp(0, -y * (X @ node.state.weights)).mean()
            for X, y, node in zip(tables, signs, nodes, strict=True)
        ]
        assert history["loss"][-1] == pytest.approx(np.mean(own))
        apart = np.sqrt(np.mean(np.sum((weights(nodes) - mean) ** 2, axis=1)))
        assert history["consensus"][-1] == pytest.approx(apart)
        assert history["gradient_norm"].max() <= 1e-11
        assert np.isnan(history["privacy"]).all()
    assert counts[None][-1] == 2 * counts[0.5][-1] == 40


def test_every_minimiser_is_certified_also_of_rows_longer_than_one() -> None:
    tables, signs = make_problem(13)
    tables = [100 * X for X in tables]
    terms = make_terms(4, rounds=5)
    nodes = solve(tables, signs, terms, tol=1e-8)
    for node, X, y in zip(nodes, tables, signs, strict=True):
        assert 0 < node.state.certificate <= 1e-8
        edges = terms.penalties.of_edges(node.index, 3)
        last = [np.array(node.state.heard_before), node.state.before]
        dual = (
            node.state.dual
            - (edges.sum() * node.state.weights - edges @ np.array(node.state.heard)) / 2
        )
        found = gradient(X, y, node.state.weights, terms.loss, terms.C, terms.lam / 4)
        found = found + 2 * dual + 2 * edges.sum() * node.state.weights
        found = found - edges.sum() * last[1] - edges @ last[0]
        assert np.linalg.norm(found) <= 1e-8


# Graphs and schedules


def test_graphs_from_names_matrices_edges_and_other_libraries_agree() -> None:
    ring = make_graph("ring", 5)
    matrix = ring.adjacency()

    class Other:
        nodes = ("a", "b", "c", "d", "e")
        edges = (("a", "b"), ("b", "c"), ("c", "d"), ("d", "e"), ("e", "a"))

        def is_directed(self):
            return False

    for given in (matrix, matrix.astype(bool), sparse.csr_array(matrix), matrix.tolist()):
        assert make_graph(given, 5) == ring
    for given in (ring, list(ring.edges), np.array(ring.edges), Other()):
        assert make_graph(given, 5) == ring
    assert make_graph([(0, 1), (1, 0)], 2).edges == ((0, 1),)
    assert make_graph("ring", 2).edges == make_graph("path", 2).edges


@pytest.mark.parametrize("seed", range(20))
def test_random_graphs_are_connected_and_repeat_themselves(seed: int) -> None:
    sparse_one = make_graph("random", 12, seed=seed, density=0.0)
    assert len(sparse_one.edges) == 11
    assert sparse_one.bipartite
    assert make_graph("random", 12, seed=seed) == make_graph("random", 12, seed=seed)
    assert len(make_graph("random", 12, seed=seed, density=1.0).edges) == 66


@pytest.mark.parametrize(
    ("neighbours", "told"),
    [
        (((1,), (2,), (0,)), "directed: it has the edge"),
        (((1,), (0,), (3,), (2,)), "not connected: no path leads from node 0 to node 2"),
        (((0,),), "an edge to itself"),
    ],
)
def test_a_graph_is_checked_however_it_is_made(neighbours: tuple[Any, ...], told: str) -> None:
    with pytest.raises(ValueError, match=told):
        Graph(neighbours)


def test_a_networkx_graph_keeps_its_numbers_and_has_no_weights() -> None:
    networkx = pytest.importorskip("networkx")
    star = networkx.Graph([(3, 0), (3, 1), (3, 2)])
    assert make_graph(star, 4).neighbours[3] == (0, 1, 2)
    assert make_graph(networkx.path_graph(["a", "b", "c"]), 3).edges == ((0, 1), (1, 2))
    with pytest.raises(ValueError, match="the graph is directed"):
        make_graph(networkx.DiGraph([(0, 1)]), 2)
    star.add_edge(3, 0, weight=0.5)
    with pytest.raises(ValueError, match="the graph has weights"):
        make_graph(star, 4)


def test_two_edges_in_a_table_are_edges() -> None:
    assert make_graph(np.array([[0, 1], [1, 2]]), 3).edges == ((0, 1), (1, 2))


@pytest.mark.parametrize(("growth", "farthest"), [(1.02, 2e-3), (1.1, 0.5)])
def test_growing_penalties_come_to_rest_near_the_minimiser_and_not_on_it(
    growth: float, farthest: float
) -> None:
    tables, signs = make_problem(2)
    wanted = central(tables, signs, make_loss("logistic"), 5.0, 1.0)
    apart = []
    for updates in (250, 350):
        terms = make_terms(4, "complete", growth=growth, lam=1.0, rounds=updates, gamma=None, C=5.0)
        found = weights(solve(tables, signs, terms, tol=1e-6)).mean(axis=0)
        apart.append(np.linalg.norm(found - wanted) / np.linalg.norm(wanted))
    assert apart[1] == pytest.approx(apart[0], rel=0.2)  # it rests
    assert 1e-5 < apart[1] < farthest
    assert not conditions(terms)[2].holds


@pytest.mark.parametrize(
    ("graph", "n", "told"),
    [
        ([(0, 1), (2, 3)], 4, "not connected: no path leads from node 0 to node 2"),
        (np.array([[0, 1, 0], [0, 0, 1], [0, 0, 0]]), 3, "directed: it has the edge"),
        (np.array([[0, 2], [2, 0]]), 2, "zeros and ones"),
        (np.array([[1, 1], [1, 0]]), 2, "node 0 has an edge to itself"),
        ([(0, 1), (1, 1)], 2, "node 1 has an edge to itself"),
        ("circle", 3, "graph must be one of 'complete', 'ring'"),
        ("ring", 1, "at least 2 nodes, got 1"),
        (np.ones((2, 3)), 2, "square adjacency matrix"),
        ([(0, 1.5)], 2, "whole numbers from 0, got 1.5"),
        ([(0, -1), (0, 1)], 2, "leads to node -1"),
        ([(0, 1)], 5, "has 2 nodes, and the data have 5"),
        (7, 2, "graph must be a name"),
        ([], 2, "graph must be a name"),
        (np.full((2, 2), np.nan), 2, "zeros and ones"),
        ([(0, 10**9), (0, 1)], 5, "has 1000000001 nodes, and the data have 5"),
    ],
)
def test_graphs_that_are_none_are_refused(graph: Any, n: int, told: str) -> None:
    with pytest.raises(ValueError, match=told):
        make_graph(graph, n)


def test_a_directed_graph_of_another_library_is_refused() -> None:
    class Directed:
        nodes, edges = (0, 1), ((0, 1),)

        def is_directed(self):
            return True

    with pytest.raises(ValueError, match="messages have to travel both ways"):
        make_graph(Directed(), 2)


@pytest.mark.parametrize(
    ("rho", "growth", "told"),
    [
        (0.0, 1.0, "rho must hold finite numbers above 0, got 0.0"),
        (np.inf, 1.0, "rho must hold finite numbers above 0, got inf"),
        ("big", 1.0, "rho must hold numbers, got 'big'"),
        (None, 1.0, "rho must hold numbers, got None"),
        (True, 1.0, "rho must hold numbers, got True"),
        (1.0, 0.99, "growth must be at least 1"),
        (1.0, [1.0, 0.5], "growth must be at least 1"),
        ([1.0, 1.0, 1.0], 1.0, "rho has 3 numbers for 2 nodes"),
        (1.0, [1.1], "growth has 1 numbers for 2 nodes"),
        (np.ones((2, 2)), 1.0, "table of shape"),
        (np.ones((3, 2)), 1.1, "growth has no effect on a table"),
        ([[1.0, 1.0], [1.0, 1.0], [1.0, 0.9]], 1.0, "must not decrease: that of node 1"),
        (1.0, 1e60, "too large within 3 updates"),
    ],
)
def test_schedules_that_decrease_or_are_not_positive_are_refused(
    rho: Any, growth: Any, told: str
) -> None:
    with pytest.raises(ValueError, match=told):
        schedule(rho, growth, updates=3, n_nodes=2)


# The node and its messages


def test_a_node_takes_one_message_of_each_neighbour_and_round() -> None:
    tables, signs = make_problem(14, sizes=(5, 5, 5))
    terms = make_terms(3, "path", rounds=1, C=2.0)
    node = Node(1, Samples(tables[1], signs[1]), terms)
    ends = [Iterate(0, 0, np.zeros(4)), Iterate(0, 2, np.zeros(4))]
    with pytest.raises(ValueError, match="node 1 awaits its neighbours' messages of round 0"):
        node.emit()
    for messages, told in [
        (ends[:1], r"one message from each of \[0, 2\]"),
        ([ends[0], ends[0]], r"got messages from \[0, 0\]"),
        ([ends[0], Iterate(0, 1, np.zeros(4))], r"got messages from \[0, 1\]"),
        ([ends[0], Iterate(1, 2, np.zeros(4))], "node 2 sent one of round 1"),
        ([ends[0], Iterate(0, 2, np.zeros(3))], r"node 2 sent \(3,\) weights"),
        ([ends[0], Iterate(0, 2, np.full(4, np.nan))], "node 2 sent weights that are not finite"),
    ]:
        with pytest.raises(ValueError, match=told):
            node.absorb(messages)
    node.absorb(ends)
    with pytest.raises(ValueError, match="one message from each"):
        node.absorb(ends)
    node.emit()
    node.absorb([Iterate(1, 0, np.zeros(4)), Iterate(1, 2, np.zeros(4))])
    with pytest.raises(ValueError, match="the run has 1 rounds, got 2"):
        node.emit()


def test_the_ingredients_of_the_theorem_are_told() -> None:
    for graph, bipartite in (("path", True), ("star", True), ("ring", True), ("complete", False)):
        terms = make_terms(4, graph)
        assert terms.graph.bipartite is bipartite
        assert (least_signless(terms.graph) == 0.0) is bipartite
        assert conditions(terms)[0].holds is not bipartite
    uneven = make_terms(4, form="per-node", rho=[1.0, 2.0, 1.0, 1.0])
    assert [one.name for one in conditions(uneven) if not one.holds] == [
        "smallest eigenvalue of D + A (0: bipartite)",
        "symmetric penalties",
    ]
    assert isinstance(terms.graph, Graph)
