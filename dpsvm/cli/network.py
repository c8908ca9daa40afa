"""``dpsvm network``: one model over rows dealt to nodes, beside those it is measured against."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpsvm.admm.network.agreement import CONSTRAINTS
from dpsvm.admm.network.comparison import Outcome, compare
from dpsvm.admm.network.estimators import NetworkADMM
from dpsvm.admm.network.figure import picture
from dpsvm.admm.network.graph import SHAPES
from dpsvm.admm.network.presets import GROWTH
from dpsvm.cli.distributed import DistributedCommand, Done, Request, cell, shown
from dpsvm.cli.distributed_flags import settings_of
from dpsvm.cli.files import unknown_label
from dpsvm.cli.layout import line
from dpsvm.cli.options import Flag, UsageError, one_of, positive, reader, share, whole
from dpsvm.names import LOSSES

_PUBLIC_CLASSES = (-1, 1)
_ALGORITHMS = {
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

_MODEL_FLAGS = (
    Flag("--nodes", "how many nodes the rows are dealt to", "n", whole(2), 5, name="n_nodes"),
    _setting(
        "graph",
        " ".join(SHAPES) + ", or edges like 0-1,1-2",
        "name",
        reader(_graph, f"one of {' '.join(SHAPES)}, nor edges like 0-1,1-2"),
    ),
    _setting("graph_seed", "of a random graph", default_text="0"),
    _setting(
        "density",
        "of a random graph: the share of edges beyond a spanning tree",
        default_text="2 / nodes",
    ),
    Flag("--deal-seed", "of who is dealt which rows", "n", whole(0), 0),
    _setting("loss", " ".join(LOSSES)),
    _setting("width", "of a rounded corner", default_text="0.5"),
    _setting("C", "weight of a node's mean loss"),
    _setting("lam", "strength of the regularisation"),
    _setting(
        "data_norm",
        "public: longer rows are shortened to it, and all are divided by it",
        default_text="rows as they are",
    ),
    _setting("constant", "a constant feature, for an intercept; needs --data-norm"),
    _setting(
        "classes",
        "the public pair of labels, the larger one positive",
        "a,b",
        reader(_two_labels, "two different whole numbers, like -1,1"),
        default_text="those of FILE, -1,1 with --privacy",
    ),
)
_RUN_FLAGS = (
    Flag(
        "--algorithm",
        "admm; madmm: growing penalties; radmm: recycling; mradmm: both",
        "name",
        one_of(tuple(_ALGORITHMS)),
        "radmm",
    ),
    _setting("rounds", "of both kinds"),
    _setting("rho", "the step, or one for each node", "x,...", _numbers),
    _setting(
        "growth",
        "madmm, mradmm: the factor by which rho grows with each update",
        "x,...",
        _numbers,
        default_text=f"{GROWTH:g}",
    ),
    _setting(
        "penalty",
        "edge: the mean of both ends'; per-node: the paper's, which can lead elsewhere",
        "form",
    ),
    _setting("gamma", "radmm, mradmm: of a recycled step", default_text="0.5"),
    _setting("start_seed", "of random first weights", default_text="start at 0"),
    _setting("tol", "of a node's gradient norm"),
    Flag("--diagnose", "check what proofs of convergence rest on", default=False),
)
_PRIVACY_FLAGS = (
    _setting(
        "privacy", "objective: noise in a node's problem; primal, gaussian: on its weights", "mode"
    ),
    _setting("epsilon", "of the whole run", "x", positive),
    _setting("delta", "gaussian: of the whole run", "x", share),
    _setting(
        "alpha",
        "objective: the rate of the noise, or one for each node; epsilon follows",
        "x,...",
        _numbers,
    ),
    _setting(
        "bound",
        "objective: what epsilon is; tight: proved here; paper: printed there, larger",
        default_text="tight",
    ),
)


class Network(DistributedCommand):
    """Rows that may not meet, by ADMM between neighbours."""

    name = "network"
    about = (
        "Deals the rows of FILE, in LIBSVM's format, plain or compressed, to the nodes of a "
        "network, and trains one linear classifier by ADMM between neighbours: each round, each "
        "node sends its weights along its edges. With recycling every second round reads no data. "
        "Prints it beside a model of all the rows in one place, the mean of the nodes' own models, "
        "and a node alone."
    )
    model_flags = _MODEL_FLAGS
    sections = (("The run", _RUN_FLAGS),)
    privacy = (
        "Privacy of one row of one node, its label included, from all who see the messages",
        _PRIVACY_FLAGS,
    )
    own = ("n_nodes", "algorithm", "deal_seed", "diagnose")
    estimator = NetworkADMM
    compare = staticmethod(compare)
    picture = staticmethod(picture)

    def check(self, values: dict[str, Any], common: Mapping[str, Any], *, private: bool) -> None:
        grows, values["recycle"] = _ALGORITHMS[values["algorithm"]]
        if values["growth"] is not None and not grows:
            raise UsageError(f"--growth goes with madmm or mradmm, not with {values['algorithm']}")
        if values["gamma"] is not None and not values["recycle"]:
            raise UsageError(f"--gamma goes with radmm or mradmm, not with {values['algorithm']}")
        if grows and values["growth"] is None:
            values["growth"] = GROWTH
        if private:
            values["classes"] = values["classes"] or _PUBLIC_CLASSES

    def held(self, request: Request, X: Any) -> NDArray[np.intp]:
        rows, n_nodes = X.shape[0], request.own["n_nodes"]
        if rows < n_nodes:
            raise ValueError(f"{request.data}: {rows} rows are not enough for {n_nodes} nodes")
        return np.random.default_rng(request.own["deal_seed"]).permutation(
            np.arange(rows) % n_nodes
        )

    def check_rows(
        self, request: Request, X: Any, y: NDArray[np.float64]
    ) -> tuple[int, str] | None:
        return unknown_label(y, request.settings["classes"])

    def told(self, done: Done) -> Iterator[str]:
        request, model = done.request, done.model
        graph, sizes, history = model.graph_, model.node_sizes_, model.history_
        name = model.graph if isinstance(model.graph, str) else "given"
        rows = f"{sum(sizes)} rows, {shown(sizes)} at each of {len(sizes)} nodes"
        last = history.updates_only().rounds[-1]
        rho, growth = (_listed(value) for value in (model.rho, model.growth))
        yield line("data", f"{request.data}: {rows}")
        yield line("algorithm", request.own["algorithm"])
        degrees = f"{shown(graph.degrees)} neighbours each"
        yield line("graph", f"{name}, {len(graph.edges)} edges, {degrees}")
        yield line("rho", f"{rho}, growth {growth}, {model.penalty}")
        read = f"of which {model.n_updates_} read the data"
        yield line("rounds", f"{model.n_iter_} ({model.stop_reason_}), {read}")
        yield line("data accesses", f"{model.data_accesses_} of all nodes")
        yield line("bytes sent", f"{int(history['bytes_sent'].sum())}")
        yield line("consensus error", f"{last.consensus:.3g}")
        yield line("|sum lambda|", f"{last.dual_sum:.3g}")

    def figures(self, done: Done) -> Iterator[str]:
        last = done.model.history_.updates_only().rounds[-1]
        yield line("L(t)", f"{last.loss:.6f}, each node on its own rows")
        yield line("objective of the mean", f"{last.objective:.6g}")

    def cells(self, done: Done, outcome: Outcome) -> dict[str, str]:
        return {
            "objective": cell(outcome.objective, ".6g"),
            "gap": cell(done.found.gap(outcome.name), ".1e"),
            "train loss": cell(outcome.train_loss, ".4f"),
            "test loss": cell(outcome.test_loss, ".4f"),
            "test error": cell(outcome.test_error, ".4f"),
        }

    def diagnosis(self, done: Done) -> tuple[str, Sequence[Any]] | None:
        if not done.request.own["diagnose"]:
            return None
        return "What convergence proofs assume:", done.model.conditions_

    def split(self, done: Done) -> str:
        return f" on {done.request.own['n_nodes']} nodes, {done.request.own['algorithm']}"

    def facts(self, done: Done) -> dict[str, Any]:
        model, own = done.model, done.request.own
        return {
            "algorithm": own["algorithm"],
            "deal_seed": own["deal_seed"],
            "nodes": model.n_nodes_,
            "node_sizes": model.node_sizes_,
            "edges": [list(edge) for edge in model.graph_.edges],
            "updates": model.n_updates_,
            "data_accesses": model.data_accesses_,
            "conditions": list(map(str, model.conditions_)) if own["diagnose"] else None,
        }


def _listed(value: Any) -> str:
    return ", ".join(f"{one:g}" for one in (value if isinstance(value, list) else [value]))


COMMAND = Network()
help_text, run = COMMAND.help_text, COMMAND.run
