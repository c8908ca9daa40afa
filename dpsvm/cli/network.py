"""``dpsvm network``: one model over rows dealt to nodes, beside those it is measured against."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from dpsvm._version import __version__
from dpsvm.admm.network.comparison import Comparison, compare
from dpsvm.admm.network.estimators import NetworkADMM
from dpsvm.admm.network.figure import picture
from dpsvm.admm.network.history import Round
from dpsvm.admm.network.presets import GROWTH
from dpsvm.cli.budget import ChargedLedger, charge_told, charged_fit, open_ledger
from dpsvm.cli.files import warn_of_width
from dpsvm.cli.layout import line, paragraph, table
from dpsvm.cli.network_flags import (
    ALGORITHMS,
    MODEL_FLAGS,
    OUTPUT_FLAGS,
    PRIVACY_FLAGS,
    RUN_FLAGS,
)
from dpsvm.cli.options import UsageError, help_lines, parse
from dpsvm.cli.outputs import check_outputs, write_outputs
from dpsvm.data import load_libsvm
from dpsvm.report.progress import runs_progress

_NAME = "dpsvm network"
_USAGE = "usage: dpsvm network [flags] FILE"
_PUBLIC_CLASSES = (-1, 1)
_COLUMNS = ("model", "objective", "gap", "train loss", "test loss", "test error")


def help_text() -> str:
    """The help of the command."""
    return "\n".join(
        [
            _USAGE,
            "",
            "Deals the rows of FILE, in LIBSVM's format, plain or compressed, to the nodes of a",
            "network, and trains one linear classifier by ADMM between neighbours: each round,",
            "each node sends its weights along its edges. With recycling every second round",
            "reads no data. Prints it beside a model of all the rows in one place, the mean of the",
            "nodes' own models, and a node alone.",
            "",
            "The model",
            *help_lines(MODEL_FLAGS),
            "",
            "The run",
            *help_lines(RUN_FLAGS),
            "",
            "Privacy of one row of one node, its label included, from all who see the messages",
            *help_lines(PRIVACY_FLAGS),
            "",
            "What is compared and written",
            *help_lines(OUTPUT_FLAGS),
        ]
    )


@dataclass(frozen=True, kw_only=True)
class _Job:
    """What the command line asks for."""

    settings: dict[str, Any]  # of the estimator
    algorithm: str
    n_nodes: int
    deal_seed: int
    n_features: int | None  # None: what FILE shows
    ledger: str | None
    data: str
    test: str | None
    diagnose: bool
    json: str | None
    plot: str | None
    quiet: bool


def run(arguments: list[str]) -> None:
    """Carry out the command."""
    job = _read_job(arguments)
    ledger = None if job.ledger is None else open_ledger(job.ledger)
    X, y = load_libsvm(job.data, n_features=job.n_features, labels="class")
    test = None
    if job.test is not None:
        test = load_libsvm(job.test, n_features=X.shape[1], labels="class")
    if job.n_features is None and job.settings["privacy"] is not None:
        warn_of_width(job.data, X.shape[1])
    with charge_told(_NAME, job.ledger, ledger):
        comparison = _compare(job, X, y, test, ledger)
        write_outputs(
            job.json,
            lambda: _record(job, comparison),
            job.plot,
            lambda: picture(comparison, _title(job, comparison)),
        )
    if not job.quiet:
        print("\n".join(_lines(job, comparison)))
        if ledger is not None:
            print(line("ledger", f"{job.ledger}: {ledger.remaining():g} is left"))


def _compare(
    job: _Job, X: Any, y: Any, test: tuple[Any, Any] | None, ledger: ChargedLedger | None
) -> Comparison:
    model = NetworkADMM(**job.settings, accountant=ledger)
    if X.shape[0] < job.n_nodes:
        raise ValueError(f"{job.data}: {X.shape[0]} rows are not enough for {job.n_nodes} nodes")
    nodes = np.random.default_rng(job.deal_seed).permutation(np.arange(len(y)) % job.n_nodes)
    with (
        charged_fit(_NAME, job.ledger, ledger),
        runs_progress("rounds", int(model.rounds), not job.quiet) as tick,
    ):
        return compare(model, X, y, nodes, test=test, measured=True, tick=tick)


def _read_job(arguments: list[str]) -> _Job:
    values, files = parse(arguments, MODEL_FLAGS + RUN_FLAGS + PRIVACY_FLAGS + OUTPUT_FLAGS)
    if len(files) != 1:
        raise UsageError(f"one FILE is needed, got {len(files)}; {_USAGE}")
    names = ("test", "diagnose", "json", "plot", "quiet", "ledger", "n_nodes", "deal_seed")
    own = {name: values.pop(name) for name in (*names, "algorithm", "n_features")}
    grows, values["recycle"] = ALGORITHMS[own["algorithm"]]
    if values["growth"] is not None and not grows:
        raise UsageError(f"--growth goes with madmm or mradmm, not with {own['algorithm']}")
    if values["gamma"] is not None and not values["recycle"]:
        raise UsageError(f"--gamma goes with radmm or mradmm, not with {own['algorithm']}")
    if values["growth"] is None:
        values["growth"] = GROWTH if grows else 1.0
    if values["privacy"] is None:
        for name, flag in (("random_state", "--seed"), ("ledger", "--ledger")):
            if (own if name == "ledger" else values)[name] is not None:
                raise UsageError(f"{flag} goes with --privacy")
    elif values["classes"] is None:
        values["classes"] = _PUBLIC_CLASSES
    check_outputs(
        {"FILE": files[0], "--test": own["test"], "--ledger": own["ledger"]},
        {"--json": own["json"], "--plot": own["plot"]},
    )
    return _Job(settings=values, data=files[0], **own)


def _last(comparison: Comparison) -> Round:
    """The last round that read the data, whose weights are the model's."""
    return comparison.model.history_.updates_only().rounds[-1]


def _title(job: _Job, comparison: Comparison) -> str:
    title = f"{Path(job.data).name} on {comparison.model.n_nodes_} nodes, {job.algorithm}"
    report = comparison.model.privacy_report_
    if report is None:
        return title
    return f"{title}: {report['guarantee']}, {report['protects']}; the curves are outside it"


def _lines(job: _Job, comparison: Comparison) -> list[str]:
    model, last = comparison.model, _last(comparison)
    lines = [
        *_network_lines(job, model),
        line("rounds", f"{model.n_iter_}, of which {model.n_updates_} read the data"),
        line("data accesses", f"{model.data_accesses_} of all nodes"),
        line("bytes sent", f"{int(model.history_['bytes_sent'].sum())}"),
        *_privacy_lines(model.privacy_report_),
        line("L(t)", f"{last.loss:.6f}, each node on its own rows"),
        line("objective of the mean", f"{last.objective:.6g}"),
        line("consensus error", f"{last.consensus:.3g}"),
        line("|sum lambda|", f"{last.dual_sum:.3g}"),
        "",
        *_table(comparison),
        "",
        comparison.verdict or "",
    ]
    if model.privacy_report_ is not None:
        lines += ["the models it is measured against are without privacy"]
    if job.diagnose:
        lines += ["", "What convergence proofs assume:", *map(str, model.conditions_)]
    return lines


def _network_lines(job: _Job, model: NetworkADMM) -> list[str]:
    graph, sizes, shape = model.graph_, model.node_sizes_, job.settings["graph"]
    name = shape if isinstance(shape, str) else "given"
    degrees = f"{_range(graph.degrees)} neighbours each"
    rho, growth = (_shown(job.settings[setting]) for setting in ("rho", "growth"))
    rows = f"{sum(sizes)} rows, {_range(sizes)} at each of {len(sizes)} nodes"
    return [
        line("data", f"{job.data}: {rows}"),
        line("algorithm", job.algorithm),
        line("graph", f"{name}, {len(graph.edges)} edges, {degrees}"),
        line("penalties", f"rho {rho}, growth {growth}, {job.settings['penalty']}"),
    ]


def _privacy_lines(report: dict[str, Any] | None) -> list[str]:
    if report is None:
        return []
    paper = "none for this mode"
    if report["paper"] is not None:
        paper = f"{report['paper']:.4g}; its condition {report['paper_condition']}"
    return [
        *paragraph("guarantee", report["guarantee"]),
        line("", report["protects"]),
        line("tight bound", f"{report['tight']:.4g}"),
        *paragraph("the paper's bound", paper),
        *paragraph("noise", f"{_noise(report)}, from {report['noise_source']}"),
        *paragraph("assumes", report["assumes"]),
        *paragraph("outside", report["outside"]),
    ]


def _noise(report: dict[str, Any]) -> str:
    if report["alphas"] is None:
        return f"on the weights, of scale {_range(report['output_scales'])}"
    return f"a linear term, its norm Gamma(d, 1/alpha), alpha {_range(report['alphas'])}"


def _range(values: Any) -> str:
    low, high = float(np.min(values)), float(np.max(values))
    return f"{low:.4g}" if f"{low:.4g}" == f"{high:.4g}" else f"{low:.4g} to {high:.4g}"


def _table(comparison: Comparison) -> list[str]:
    cells: list[tuple[str, ...]] = [_COLUMNS]
    for one in comparison.outcomes:
        numbers = (one.train_loss, one.test_loss, one.test_error)
        shown = ["-" if value is None else f"{value:.4f}" for value in numbers]
        gap = f"{comparison.gap(one.name):.1e}"
        cells.append((one.name, f"{one.objective:.6g}", gap, *shown))
    return table(cells)


def _record(job: _Job, comparison: Comparison) -> dict[str, Any]:
    model = comparison.model
    outside = [f"history.{name}" for name in model.history_.outside_guarantee()]
    return {
        "dpsvm": __version__,
        "data": job.data,
        "algorithm": job.algorithm,
        "nodes": model.n_nodes_,
        "deal_seed": job.deal_seed,
        "node_sizes": model.node_sizes_,
        "edges": [list(edge) for edge in model.graph_.edges],
        "settings": job.settings,
        "rounds": model.n_iter_,
        "stop_reason": model.stop_reason_,
        "updates": model.n_updates_,
        "data_accesses": model.data_accesses_,
        "privacy": model.privacy_report_,
        "outside_guarantee": [*outside, "outcomes", "verdict"] if outside else [],
        "outcomes": [
            asdict(outcome) | {"gap": comparison.gap(outcome.name)}
            for outcome in comparison.outcomes
        ],
        "verdict": comparison.verdict,
        "conditions": list(map(str, model.conditions_)),
        "coef": model.coef_.tolist(),
        "intercept": model.intercept_.tolist(),
        "history": [asdict(one) for one in model.history_.rounds],
    }


def _shown(value: Any) -> str:
    return ", ".join(f"{one:g}" for one in (value if isinstance(value, list) else [value]))
