"""``dpsvm vertical``: a joint model over split columns, beside those it is measured against."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

from dpsvm._version import __version__
from dpsvm.admm import SharingADMMClassifier, SharingADMMRegressor
from dpsvm.admm.sharing.base import BaseSharingADMM
from dpsvm.admm.sharing.comparison import Comparison, compare
from dpsvm.admm.sharing.figure import picture
from dpsvm.cli.budget import ChargedLedger, charge_told, charged_fit, open_ledger
from dpsvm.cli.layout import line, paragraph, table
from dpsvm.cli.options import UsageError, help_lines, parse
from dpsvm.cli.outputs import check_outputs, write_outputs
from dpsvm.cli.parties import Parties, sizes_of, width_of
from dpsvm.cli.vertical_flags import MODEL_FLAGS, OUTPUT_FLAGS, PRIVACY_FLAGS, RUN_FLAGS
from dpsvm.data import load_libsvm
from dpsvm.report.progress import runs_progress

_NAME = "dpsvm vertical"
_USAGE = "usage: dpsvm vertical --parties K|n,n,... [flags] FILE"
_COLUMNS = ("model", "objective/n", "gap", "train loss", "test loss", "test accuracy")


def help_text() -> str:
    """The help of the command."""
    return "\n".join(
        [
            _USAGE,
            "",
            "Splits the columns of FILE, in LIBSVM's format, plain or compressed, among parties,",
            "and trains one linear model of all of them by ADMM sharing: each round, each party",
            "sends one number per row. Prints it beside a model of all the columns in one place",
            "and one of the first party's columns alone.",
            "",
            "The model",
            *help_lines(MODEL_FLAGS),
            "",
            "The run",
            *help_lines(RUN_FLAGS),
            "",
            "Privacy of the messages, with public bounds; labels are not protected",
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
    ledger: str | None
    parties: Parties
    data: str
    test: str | None
    more: bool
    json: str | None
    plot: str | None
    quiet: bool


def run(arguments: list[str]) -> None:
    """Carry out the command."""
    job = _read_job(arguments)
    ledger = None if job.ledger is None else open_ledger(job.ledger)
    kind: Literal["any", "class"] = "any" if job.settings["loss"] == "squared" else "class"
    X, y = load_libsvm(job.data, n_features=width_of(job.parties), labels=kind)
    sizes = sizes_of(job.parties, X.shape[1])
    test = None
    if job.test is not None:
        test = load_libsvm(job.test, n_features=X.shape[1], labels=kind)
    with charge_told(_NAME, job.ledger, ledger):
        comparison = _compare(job, X, y, sizes, test, ledger)
        write_outputs(
            job.json,
            lambda: _record(job, sizes, comparison),
            job.plot,
            lambda: picture(comparison, _title(job, sizes, comparison)),
        )
    if not job.quiet:
        print("\n".join(_lines(job, sizes, comparison, X.shape[0])))
        if ledger is not None:
            print(line("ledger", f"{job.ledger}: {ledger.remaining():g} is left"))


def _compare(
    job: _Job,
    X: Any,
    y: Any,
    sizes: list[int],
    test: tuple[Any, Any] | None,
    ledger: ChargedLedger | None,
) -> Comparison:
    model = _model(job.settings, ledger)
    with (
        charged_fit(_NAME, job.ledger, ledger),
        runs_progress("rounds", int(model.rounds), not job.quiet) as tick,
    ):
        return compare(model, X, y, sizes, test=test, measured=True, more=job.more, tick=tick)


def _read_job(arguments: list[str]) -> _Job:
    values, files = parse(arguments, MODEL_FLAGS + RUN_FLAGS + PRIVACY_FLAGS + OUTPUT_FLAGS)
    if len(files) != 1:
        raise UsageError(f"one FILE is needed, got {len(files)}; {_USAGE}")
    names = ("parties", "test", "more", "json", "plot", "quiet", "ledger", "box", "ball")
    own = {name: values.pop(name) for name in names}
    box, ball = own.pop("box"), own.pop("ball")
    if box is not None and ball is not None:
        raise UsageError("--box and --ball exclude each other")
    values["constraint"] = ball if box is None else box
    if values["privacy"] is None and values["random_state"] is not None:
        raise UsageError("--seed goes with --privacy: nothing else is random")
    if values["privacy"] is None and own["ledger"] is not None:
        raise UsageError("--ledger goes with --privacy")
    if own["parties"] is None:
        raise UsageError(f"--parties is required: how many columns each party has; {_USAGE}")
    check_outputs(
        {"FILE": files[0], "--test": own["test"], "--ledger": own["ledger"]},
        {"--json": own["json"], "--plot": own["plot"]},
    )
    return _Job(settings=values, data=files[0], **own)


def _model(settings: dict[str, Any], ledger: ChargedLedger | None) -> BaseSharingADMM:
    given = settings | {"accountant": ledger}
    if given["loss"] == "squared":
        del given["loss"], given["width"]
        return SharingADMMRegressor(**given)
    return SharingADMMClassifier(**given)


def _title(job: _Job, sizes: list[int], comparison: Comparison) -> str:
    title = f"{Path(job.data).name} split {'/'.join(map(str, sizes))}"
    report = comparison.model.privacy_report_
    if report is None:
        return title
    if report["guarantee"] is None:
        return f"{title}: claimed {report['claimed']}, not a guarantee"
    return f"{title}: {report['guarantee']}, {report['protects']}; the curves are outside it"


def _lines(job: _Job, sizes: list[int], comparison: Comparison, rows: int) -> list[str]:
    model = comparison.model
    up, down = (int(model.history_[f"bytes_{way}"].sum()) for way in ("up", "down"))
    lines = [
        line("data", f"{job.data}: {rows} rows, parties of {', '.join(map(str, sizes))}"),
        line("rounds", f"{model.n_iter_} ({model.stop_reason_})"),
        line("rho, kappa", f"{model.rho_:g}, {model.kappa_:g}"),
        line("bytes up, down", f"{up}, {down}"),
        *_privacy_lines(model.privacy_report_),
        "",
        *_table(comparison, rows),
        "",
        comparison.verdict or "",
    ]
    if model.assumptions_ is not None:
        lines += ["", "What the paper's theorem assumes:", *map(str, model.assumptions_)]
    return lines


def _privacy_lines(report: dict[str, Any] | None) -> list[str]:
    if report is None:
        return []
    lines = []
    if report["guarantee"] is None:
        lines += [line("guarantee", "none"), line("claimed", report["claimed"])]
        lines += paragraph("", report["reason"])
    else:
        lines += [*paragraph("guarantee", report["guarantee"]), line("", report["protects"])]
    if "whole_record" in report:
        text = f"epsilon = {report['whole_record']:.4g} for a record in all the parties"
        lines += [line("", text)]
    return [
        *lines,
        line("Corollary 1", _corollary(report)),
        line("tight", f"{report['tight']:.4g}"),
        line("noise", ", ".join(f"{scale:.4g}" for scale in report["noise_scales"])),
        line("labels", report["labels"]),
        *paragraph("outside", report["outside"]),
    ]


def _corollary(report: dict[str, Any]) -> str:
    each = report["per_round"]
    remark = "; it needs at most 1" if each > 1.0 else ""
    return f"{report['corollary_1']:.4g}, from {each:.4g} a round{remark}"


def _table(comparison: Comparison, rows: int) -> list[str]:
    cells: list[tuple[str, ...]] = [_COLUMNS]
    for one in comparison.outcomes:
        gap = comparison.gap(one.name)
        objective = "-" if gap is None else f"{one.objective / rows:.6f}"
        numbers = (one.train_loss, one.test_loss, one.test_accuracy)
        shown = ["-" if value is None else f"{value:.4f}" for value in numbers]
        cells.append((one.name, objective, "-" if gap is None else f"{gap:.1e}", *shown))
    return table(cells)


def _record(job: _Job, sizes: list[int], comparison: Comparison) -> dict[str, Any]:
    model = comparison.model
    return {
        "dpsvm": __version__,
        "data": job.data,
        "parties": sizes,
        "settings": job.settings | {"constraint": _shown(job.settings["constraint"])},
        "rho": model.rho_,
        "kappa": model.kappa_,
        "stop_reason": model.stop_reason_,
        "privacy": model.privacy_report_,
        "outside_guarantee": _outside(model),
        "outcomes": [
            asdict(outcome) | {"gap": comparison.gap(outcome.name)}
            for outcome in comparison.outcomes
        ],
        "verdict": comparison.verdict,
        "assumptions": None if model.assumptions_ is None else list(map(str, model.assumptions_)),
        "history": [asdict(one) for one in model.history_.rounds],
    }


def _shown(constraint: Any) -> str | None:
    return None if constraint is None else str(constraint)


def _outside(model: BaseSharingADMM) -> list[str]:
    """The parts of the record that a privacy guarantee does not cover."""
    history = [f"history.{name}" for name in model.history_.outside_guarantee()]
    return [*history, "outcomes", "verdict", "assumptions"] if history else []
