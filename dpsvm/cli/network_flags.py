"""The flags of ``dpsvm network``."""

from __future__ import annotations

from typing import Any

from dpsvm.admm import NetworkADMM
from dpsvm.admm.network.agreement import CONSTRAINTS
from dpsvm.admm.network.graph import SHAPES
from dpsvm.admm.network.presets import GROWTH
from dpsvm.cli.distributed_flags import settings_of, share
from dpsvm.cli.options import Flag, one_of, positive, reader, whole
from dpsvm.names import LOSSES

ALGORITHMS = {
    "admm": (False, False),
    "madmm": (True, False),
    "radmm": (False, True),
    "mradmm": (True, True),
}
"""Whether the penalties grow, and whether every second round recycles."""


def _graph(text: str) -> str | list[tuple[int, int]]:
    if text in SHAPES:
        return text
    pairs = [part.split("-") for part in text.split(",")]
    edges = [(int(a), int(b)) for a, b in pairs]
    if min(map(min, edges)) < 0:
        raise ValueError
    return edges


def _one_or_each(text: str) -> Any:
    values = [positive(part) for part in text.split(",")]
    return values[0] if len(values) == 1 else values


def _two_labels(text: str) -> tuple[int, int]:
    first, second = (int(label) for label in text.split(","))
    if first == second or max(abs(first), abs(second)) > 2**31 - 1:
        raise ValueError
    return first, second


_numbers = reader(_one_or_each, "a number above 0, or one for each node separated by commas")
_setting = settings_of(NetworkADMM, CONSTRAINTS)

MODEL_FLAGS = (
    Flag("--nodes", "n_nodes", "how many nodes the rows are dealt to", ("n",), whole(2), default=5),
    _setting(
        "graph",
        "name",
        " ".join(SHAPES) + ", or edges like 0-1,1-2",
        reader(_graph, f"one of {' '.join(SHAPES)}, nor edges like 0-1,1-2"),
    ),
    _setting("graph_seed", "n", "of a random graph", default_text="0"),
    _setting(
        "density",
        "x",
        "of a random graph: the share of edges beyond a spanning tree",
        default_text="2 / nodes",
    ),
    Flag("--deal-seed", "deal_seed", "of who is dealt which rows", ("n",), whole(0), default=0),
    _setting("loss", "name", " ".join(LOSSES)),
    _setting("width", "x", "of a rounded corner", default_text="0.5"),
    _setting("C", "x", "weight of a node's mean loss"),
    _setting("lam", "x", "strength of the regularisation"),
    _setting(
        "data_norm",
        "x",
        "public: longer rows are shortened to it, and all are divided by it",
        default_text="rows as they are",
    ),
    _setting("constant", "x", "a constant feature, for an intercept; needs --data-norm"),
    _setting(
        "classes",
        "a,b",
        "the public pair of labels, the larger one positive",
        reader(_two_labels, "two different whole numbers, like -1,1"),
        default_text="those of FILE, -1,1 with --privacy",
    ),
)
RUN_FLAGS = (
    Flag(
        "--algorithm",
        "algorithm",
        "admm; madmm: growing penalties; radmm: recycling; mradmm: both",
        ("name",),
        one_of(tuple(ALGORITHMS)),
        default="radmm",
    ),
    _setting("rounds", "n", "of both kinds"),
    _setting("rho", "x,...", "the step, or one for each node", _numbers),
    _setting(
        "growth",
        "x,...",
        "madmm, mradmm: the factor by which rho grows with each update",
        _numbers,
        default_text=f"{GROWTH:g}",
    ),
    _setting(
        "penalty",
        "form",
        "edge: the mean of both ends'; per-node: the paper's, which can lead elsewhere",
    ),
    _setting("gamma", "x", "radmm, mradmm: of a recycled step", default_text="0.5"),
    _setting("start_seed", "n", "of random first weights", default_text="start at 0"),
    _setting("tol", "x", "of a node's gradient norm"),
    Flag("--diagnose", "diagnose", "check what proofs of convergence rest on", default=False),
)
PRIVACY_FLAGS = (
    _setting(
        "privacy", "mode", "objective: noise in a node's problem; primal, gaussian: on its weights"
    ),
    _setting("epsilon", "x", "of the whole run", positive),
    _setting("delta", "x", "gaussian: of the whole run", share),
    _setting(
        "alpha",
        "x,...",
        "objective: the rate of the noise, or one for each node; epsilon follows",
        _numbers,
    ),
    _setting(
        "bound",
        "name",
        "objective: what epsilon is; tight: proved here; paper: printed there, larger",
        default_text="tight",
    ),
)
