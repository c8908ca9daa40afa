"""What the theory of recycled ADMM asks of a run, as a diagnosis: nothing is refused for it.

The paper's Theorem 1 gives sufficient conditions for convergence, which never hold on bipartite
graphs (a path, a star, an even ring), where D + A, degrees plus adjacency, is singular; the method
converges there all the same. Told here is what such a proof rests on and no data are needed for:
that eigenvalue; gamma above 0, which damps the swing between odd and even iterates; symmetric
penalties, without which the limit is another point; and penalties that do not grow, for the same
reason.
"""

from __future__ import annotations

from scipy.linalg import eigvalsh

from dpsvm.admm.network.graph import Graph
from dpsvm.admm.network.terms import Terms
from dpsvm.distributed.assumption import Assumption

_ZERO = 1e-10  # of the largest eigenvalue


def least_signless(graph: Graph) -> float:
    """The smallest eigenvalue of D + A: 0 if and only if the graph is bipartite.

    >>> from dpsvm.admm.network.graph import make_graph
    >>> least_signless(make_graph("ring", 4))
    0.0
    >>> round(least_signless(make_graph("complete", 4)), 9)
    2.0
    """
    matrix = graph.adjacency()
    matrix[range(graph.n_nodes), range(graph.n_nodes)] += graph.degrees
    values = eigvalsh(matrix)
    return float(values[0]) if values[0] > _ZERO * values[-1] else 0.0


def conditions(terms: Terms) -> list[Assumption]:
    """What convergence proofs of the recycled method rest on and no data are needed for.

    >>> print(conditions(Terms.of("star", 4, C=1.0, lam=1.0, gamma=0.5, rounds=4))[0])
    smallest eigenvalue of D + A (0: bipartite): 0 against 0, does not hold
    """
    symmetric = terms.penalties.form == "edge" or terms.penalties.equal
    found = [
        Assumption(
            "smallest eigenvalue of D + A (0: bipartite)",
            least_signless(terms.graph),
            0.0,
            strict=True,
        ),
        Assumption("symmetric penalties", float(symmetric), 1.0),
        Assumption(
            "first penalty over the last (below 1: the nodes agree before they are done)",
            1.0 / terms.penalties.grown,
            1.0,
        ),
    ]
    if terms.gamma is not None:
        found.append(Assumption("gamma", terms.gamma, 0.0, strict=True))
    return found
