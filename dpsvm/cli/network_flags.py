"""The flags of ``dpsvm network``."""

from __future__ import annotations

from typing import Any

from dpsvm.admm.network.graph import SHAPES
from dpsvm.admm.network.penalties import FORMS
from dpsvm.admm.network.presets import GROWTH
from dpsvm.admm.network.privacy import BOUNDS, MODES
from dpsvm.cli.options import Flag, number, one_of, positive, reader, whole
from dpsvm.losses import LOSSES

ALGORITHMS = {
    "admm": (False, False),
    "madmm": (True, False),
    "radmm": (False, True),
    "mradmm": (True, True),
}
"""Whether the penalties grow, and whether every second round recycles."""

_from_0 = number("a finite number from 0 on", lambda value: value >= 0.0)
_share = number("a number from 0 to 1", lambda value: 0.0 <= value <= 1.0)


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

MODEL_FLAGS = (
    Flag("--nodes", "n_nodes", "how many nodes the rows are dealt to", ("n",), whole(2), default=5),
    Flag(
        "--graph",
        "graph",
        " ".join(SHAPES) + ", or edges like 0-1,1-2",
        ("name",),
        reader(_graph, f"one of {' '.join(SHAPES)}, nor edges like 0-1,1-2"),
        default="complete",
    ),
    Flag("--graph-seed", "graph_seed", "of a random graph", ("n",), whole(0), default_text="0"),
    Flag(
        "--density",
        "density",
        "of a random graph: the share of edges beyond a spanning tree",
        ("x",),
        _share,
        default_text="2 / nodes",
    ),
    Flag("--deal-seed", "deal_seed", "of who is dealt which rows", ("n",), whole(0), default=0),
    Flag("--loss", "loss", " ".join(LOSSES), ("name",), one_of(LOSSES), default="logistic"),
    Flag("--width", "width", "of a rounded corner", ("x",), positive, default_text="0.5"),
    Flag("--C", "C", "weight of a node's mean loss", ("x",), positive, default=1.0),
    Flag("--lam", "lam", "weight of the penalty", ("x",), positive, default=1.0),
    Flag(
        "--data-norm",
        "data_norm",
        "public: longer rows are shortened to it, and all are divided by it",
        ("x",),
        positive,
        default_text="rows as they are",
    ),
    Flag(
        "--constant",
        "constant",
        "a constant feature, for an intercept; needs --data-norm",
        ("x",),
        _from_0,
        default=0.0,
    ),
    Flag(
        "--n-features",
        "n_features",
        "the public number of features",
        ("n",),
        whole(1),
        default_text="the largest index of FILE",
    ),
    Flag(
        "--classes",
        "classes",
        "the public pair of labels, the larger one positive",
        ("a,b",),
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
    Flag("--rounds", "rounds", "of both kinds", ("n",), whole(1), default=50),
    Flag("--rho", "rho", "the penalty, or one for each node", ("x,...",), _numbers, default=0.5),
    Flag(
        "--growth",
        "growth",
        "madmm, mradmm: the factor by which penalties grow with each update",
        ("x,...",),
        _numbers,
        default_text=f"{GROWTH:g}",
    ),
    Flag(
        "--penalty",
        "penalty",
        "edge: the mean of both ends'; per-node: the paper's, which can lead elsewhere",
        ("form",),
        one_of(FORMS),
        default="edge",
    ),
    Flag(
        "--gamma", "gamma", "radmm, mradmm: of a recycled step", ("x",), _from_0, default_text="0.5"
    ),
    Flag(
        "--start-seed",
        "start_seed",
        "of random first weights",
        ("n",),
        whole(0),
        default_text="start at 0",
    ),
    Flag("--tol", "tol", "of a node's gradient norm", ("x",), positive, default=1e-9),
)
PRIVACY_FLAGS = (
    Flag(
        "--privacy",
        "privacy",
        "objective: noise in a node's problem; primal, gaussian: on its weights",
        ("mode",),
        one_of(MODES),
    ),
    Flag("--epsilon", "epsilon", "of the whole run", ("x",), positive),
    Flag(
        "--delta",
        "delta",
        "gaussian: of the whole run",
        ("x",),
        number("a number between 0 and 1, neither included", lambda value: 0.0 < value < 1.0),
    ),
    Flag(
        "--alpha",
        "alpha",
        "objective: the rate of the noise, or one for each node; epsilon follows",
        ("x,...",),
        _numbers,
    ),
    Flag(
        "--bound",
        "bound",
        "objective: what epsilon is; tight: proved here; paper: printed there, larger",
        ("name",),
        one_of(BOUNDS),
        default_text="tight",
    ),
    Flag("--ledger", "ledger", "charge the run to this ledger (dpsvm budget)", ("file",), str),
    Flag("--seed", "random_state", "of the noise, for experiments only", ("n",), whole(0)),
)
OUTPUT_FLAGS = (
    Flag("--test", "test", "held-out rows; their errors are printed too", ("file",), str),
    Flag("--diagnose", "diagnose", "check what proofs of convergence rest on", default=False),
    Flag("--json", "json", "write everything, every round included", ("file",), str),
    Flag("--plot", "plot", "write a picture (matplotlib)", ("file",), str),
    Flag("-q", "quiet", "print nothing", default=False),
)
