"""``dpsvm vertical``: a joint model over split columns, beside those it is measured against."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from importlib.util import find_spec
from pathlib import Path
from textwrap import wrap
from typing import Any, Literal

from dpsvm._version import __version__
from dpsvm.admm import SharingADMMClassifier, SharingADMMRegressor
from dpsvm.admm.sharing.comparison import Comparison, compare
from dpsvm.admm.sharing.estimators import BaseSharingADMM
from dpsvm.cli.files import require_folder
from dpsvm.cli.options import UsageError, help_lines, parse
from dpsvm.cli.vertical_flags import MODEL_FLAGS, OUTPUT_FLAGS, PRIVACY_FLAGS, RUN_FLAGS
from dpsvm.data import atomic_write, load_libsvm
from dpsvm.report.plain_json import dumps

_USAGE = "usage: dpsvm vertical --split n,n,... [flags] FILE"
_LABEL_WIDTH = 24
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
    split: tuple[int, ...]
    data: str
    test: str | None
    more: bool
    json: str | None
    plot: str | None
    quiet: bool


def run(arguments: list[str]) -> None:
    """Carry out the command."""
    job = _read_job(arguments)
    model = _model(job.settings)
    kind: Literal["any", "class"] = "any" if isinstance(model, SharingADMMRegressor) else "class"
    width = sum(job.split)
    X, y = load_libsvm(job.data, n_features=width, labels=kind)
    test = None
    if job.test is not None:
        test = load_libsvm(job.test, n_features=width, labels=kind)
    comparison = compare(model, X, y, list(job.split), test=test, more=job.more)
    if not job.quiet:
        print("\n".join(_lines(job, comparison, X.shape[0])))
    if job.json is not None:
        with atomic_write(job.json) as file:
            file.write(dumps(_record(job, comparison)))
    if job.plot is not None:
        from dpsvm.admm.sharing.figure import save

        save(comparison, job.plot, _title(job, comparison))


def _read_job(arguments: list[str]) -> _Job:
    values, files = parse(arguments, MODEL_FLAGS + RUN_FLAGS + PRIVACY_FLAGS + OUTPUT_FLAGS)
    if len(files) != 1:
        raise UsageError(f"one FILE is needed, got {len(files)}; {_USAGE}")
    own = {name: values.pop(name) for name in ("split", "test", "more", "json", "plot", "quiet")}
    if own["split"] is None:
        raise UsageError(f"--split is required: how many columns each party has; {_USAGE}")
    for path in (own["json"], own["plot"]):
        if path is not None:
            require_folder(path)
    if own["plot"] is not None and find_spec("matplotlib") is None:
        raise UsageError("--plot needs matplotlib, which is not installed")
    return _Job(settings=values, data=files[0], **own)


def _model(settings: dict[str, Any]) -> BaseSharingADMM:
    given = dict(settings)
    if given["loss"] == "squared":
        del given["loss"], given["width"]
        return SharingADMMRegressor(**given)
    return SharingADMMClassifier(**given)


def _title(job: _Job, comparison: Comparison) -> str:
    title = f"{Path(job.data).name} split {'/'.join(map(str, job.split))}"
    report = comparison.model.privacy_report_
    if report is None:
        return title
    if report["guarantee"] is None:
        return f"{title}: claimed {report['claimed']}, not a guarantee"
    return f"{title}: {report['guarantee']}, {report['protects']}; the curves are outside it"


def _lines(job: _Job, comparison: Comparison, rows: int) -> list[str]:
    model = comparison.model
    up, down = (int(model.history_[f"bytes_{way}"].sum()) for way in ("up", "down"))
    lines = [
        _line("data", f"{job.data}: {rows} rows, parties of {', '.join(map(str, job.split))}"),
        _line("rounds", f"{model.n_iter_} ({model.ending_})"),
        _line("rho, kappa", f"{model.rho_:g}, {model.kappa_:g}"),
        _line("bytes up, down", f"{up}, {down}"),
        *_privacy_lines(model.privacy_report_),
        "",
        *_table(comparison, rows),
        "",
        comparison.verdict,
    ]
    if model.assumptions_ is not None:
        lines += ["", "What the paper's theorem assumes:", *map(str, model.assumptions_)]
    return lines


def _privacy_lines(report: dict[str, Any] | None) -> list[str]:
    if report is None:
        return []
    lines = []
    if report["guarantee"] is None:
        lines += [_line("guarantee", "none"), _line("claimed", report["claimed"])]
        lines += [_line("", text) for text in wrap(report["reason"], 76)]
    else:
        lines += [_line("guarantee", f"{report['guarantee']}: {report['protects']}")]
    if "whole_record" in report:
        text = f"epsilon = {report['whole_record']:.4g} for a record in all the parties"
        lines += [_line("", text)]
    return [
        *lines,
        _line("Corollary 1", _corollary(report)),
        _line("tight", f"{report['tight']:.4g}"),
        _line("noise", ", ".join(f"{scale:.4g}" for scale in report["noise_scales"])),
        _line("labels", report["labels"]),
        *(_line("outside" * (not i), text) for i, text in enumerate(wrap(report["outside"], 76))),
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
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    return ["  ".join(map(str.ljust, row, widths)).rstrip() for row in cells]


def _record(job: _Job, comparison: Comparison) -> dict[str, Any]:
    model = comparison.model
    return {
        "dpsvm": __version__,
        "data": job.data,
        "split": list(job.split),
        "settings": job.settings,
        "rho": model.rho_,
        "kappa": model.kappa_,
        "ending": model.ending_,
        "privacy": model.privacy_report_,
        "outside_guarantee": list(model.history_.outside_guarantee()),
        "outcomes": [
            asdict(outcome) | {"gap": comparison.gap(outcome.name)}
            for outcome in comparison.outcomes
        ],
        "verdict": comparison.verdict,
        "history": [asdict(one) for one in model.history_.rounds],
    }


def _line(label: str, value: Any) -> str:
    return f"{label:<{_LABEL_WIDTH}}{value}"
