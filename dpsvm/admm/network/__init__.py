"""ADMM over a network: one linear model over samples that nodes hold and do not share."""

from __future__ import annotations

from dpsvm.admm.network.graph import Graph, make_graph
from dpsvm.admm.network.node import Iterate, Node
from dpsvm.admm.network.penalties import Penalties, schedule
from dpsvm.admm.network.run import run
from dpsvm.admm.network.shares import Samples
from dpsvm.admm.network.terms import Terms

__all__ = [
    "Graph",
    "Iterate",
    "Node",
    "Penalties",
    "Samples",
    "Terms",
    "make_graph",
    "run",
    "schedule",
]
