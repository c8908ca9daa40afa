"""``dpsvm network``: one model over rows dealt to nodes, beside those it is measured against."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpsvm.admm.network.comparison import Comparison, Outcome, compare
from dpsvm.admm.network.estimators import NetworkADMM
from dpsvm.admm.network.figure import picture
from dpsvm.admm.network.presets import GROWTH
from dpsvm.cli.distributed import DistributedCommand, Request, cell, shown
from dpsvm.cli.files import unknown_label
from dpsvm.cli.layout import line
from dpsvm.cli.network_flags import ALGORITHMS, MODEL_FLAGS, PRIVACY_FLAGS, RUN_FLAGS
from dpsvm.cli.options import UsageError

_PUBLIC_CLASSES = (-1, 1)


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
    model_flags = MODEL_FLAGS
    sections = (("The run", RUN_FLAGS),)
    privacy = (
        "Privacy of one row of one node, its label included, from all who see the messages",
        PRIVACY_FLAGS,
    )
    own = ("n_nodes", "algorithm", "deal_seed", "diagnose")
    columns = ("objective", "gap", "train loss", "test loss", "test error")

    def check(self, values: dict[str, Any], common: Mapping[str, Any], *, private: bool) -> None:
        grows, values["recycle"] = ALGORITHMS[values["algorithm"]]
        if values["growth"] is not None and not grows:
            raise UsageError(f"--growth goes with madmm or mradmm, not with {values['algorithm']}")
        if values["gamma"] is not None and not values["recycle"]:
            raise UsageError(f"--gamma goes with radmm or mradmm, not with {values['algorithm']}")
        if grows and values["growth"] is None:
            values["growth"] = GROWTH
        if private:
            values["classes"] = values["classes"] or _PUBLIC_CLASSES
        elif values["random_state"] is not None:
            raise UsageError("--seed goes with --privacy: nothing else is random")

    def estimator(self, settings: dict[str, Any]) -> NetworkADMM:
        return NetworkADMM(**settings)

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

    def compare(
        self, request: Request, model: NetworkADMM, *data: Any, **options: Any
    ) -> Comparison:
        return compare(model, *data, **options)

    def told(self, request: Request, model: NetworkADMM, X: Any, held: Any) -> Iterator[str]:
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

    def figures(self, found: Comparison) -> Iterator[str]:
        last = found.model.history_.updates_only().rounds[-1]
        yield line("L(t)", f"{last.loss:.6f}, each node on its own rows")
        yield line("objective of the mean", f"{last.objective:.6g}")

    def cells(self, found: Comparison, outcome: Outcome, rows: int) -> Iterable[str]:
        gap = found.gap(outcome.name)
        losses = (outcome.train_loss, outcome.test_loss, outcome.test_error)
        return (
            cell(outcome.objective, ".6g"),
            cell(gap, ".1e"),
            *(cell(one, ".4f") for one in losses),
        )

    def diagnosis(self, request: Request, model: NetworkADMM) -> tuple[str, Sequence[Any]] | None:
        if not request.own["diagnose"]:
            return None
        return "What convergence proofs assume:", model.conditions_

    def split(self, request: Request, held: Any) -> str:
        return f" on {request.own['n_nodes']} nodes, {request.own['algorithm']}"

    def relative(self, found: Comparison, name: str) -> dict[str, Any]:
        return {"gap": found.gap(name)}

    def facts(self, request: Request, model: NetworkADMM, held: Any) -> dict[str, Any]:
        return {
            "algorithm": request.own["algorithm"],
            "deal_seed": request.own["deal_seed"],
            "nodes": model.n_nodes_,
            "node_sizes": model.node_sizes_,
            "edges": [list(edge) for edge in model.graph_.edges],
            "updates": model.n_updates_,
            "data_accesses": model.data_accesses_,
            "conditions": list(map(str, model.conditions_)) if request.own["diagnose"] else None,
        }

    def picture(self, found: Comparison, title: str) -> Any:
        return picture(found, title)


def _listed(value: Any) -> str:
    return ", ".join(f"{one:g}" for one in (value if isinstance(value, list) else [value]))


COMMAND = Network()
help_text, run = COMMAND.help_text, COMMAND.run
