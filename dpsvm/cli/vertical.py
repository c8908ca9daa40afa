"""``dpsvm vertical``: a joint model over split columns, beside those it is measured against."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar, Literal

from dpsvm.admm import SharingADMMClassifier, SharingADMMRegressor
from dpsvm.admm.sharing.agreement import CONSTRAINTS
from dpsvm.admm.sharing.comparison import Outcome, compare
from dpsvm.admm.sharing.estimators import BaseSharingADMM
from dpsvm.admm.sharing.figure import picture
from dpsvm.admm.sharing.regularisers import PENALTIES, Ball, Box
from dpsvm.cli.distributed import DistributedCommand, Done, cell
from dpsvm.cli.distributed_flags import PARTIES, settings_of
from dpsvm.cli.layout import line
from dpsvm.cli.options import Flag, UsageError, number, one_of, positive, reader, share
from dpsvm.names import PREDICTION_LOSSES


def _interval(text: str) -> Box:
    low, high = (float(part) for part in text.split(","))
    return Box(low, high)


_relaxation = number("a number between 0 and 2", lambda value: 0.0 < value < 2.0)
_setting = settings_of(SharingADMMClassifier, CONSTRAINTS)

_MODEL_FLAGS = (
    replace(PARTIES, meaning=f"{PARTIES.meaning}; required"),
    _setting(
        "loss",
        f"{' '.join(PREDICTION_LOSSES)}; squared is a regression",
        "name",
        one_of(PREDICTION_LOSSES),
    ),
    _setting("width", "of a rounded corner", "x", positive),
    _setting("penalty", " ".join(PENALTIES)),
    _setting("lam", "strength of the penalty", "x", positive),
    _setting("C", "weight of the losses", "x", positive),
    Flag(
        "--box",
        "every weight between these two, 0 among or between them",
        "low,high",
        reader(_interval, "two numbers around 0, like -1,1"),
        default_text="none",
    ),
    Flag(
        "--ball",
        "bound on the norm of a party's weights",
        "r",
        lambda text: Ball(positive(text)),
        default_text="none",
    ),
    _setting(
        "intercept_party",
        "the party, from 0 on, that adds a constant column",
        "m",
        default_text="none",
    ),
)
_RUN_FLAGS = (
    _setting("method", "sharing, or jacobi: the paper's, which can diverge"),
    _setting("rounds", "the most rounds"),
    _setting("tol", "stop at residuals of this size"),
    _setting("rho", "the step", "x", positive, default_text="from the loss"),
    _setting(
        "kappa",
        "times rho that a party resists a change",
        "x",
        positive,
        default_text="the parties, 1 with --method jacobi",
    ),
    _setting("adaptive_rho", "balance the residuals by changing rho"),
    _setting(
        "relaxation",
        "over-relaxation",
        "x",
        _relaxation,
        default_text="1.8; 1 with --privacy, or a kappa other than the parties",
    ),
    Flag("--more", "also Gauss-Seidel and distributed SGD", default=False),
    _setting("diagnose", "check what the paper's theorem assumes"),
)
_PRIVACY_FLAGS = (
    _setting("privacy", "row: one row of one party; column: one column; paper: none", "mode"),
    _setting("epsilon", "of the whole run; with paper, of a round; required", "x", positive),
    _setting("delta", "likewise; required", "x", share),
    _setting("data_norm", "row: bound on the norm of a row", "x", positive),
    _setting("radius", "row: bound on the norm of a party's weights", "x", positive),
    _setting("target_bound", "row: clips a step's target", "x", positive),
    _setting("column_norm", "column: bound on a column's norm", "x", positive),
    _setting("target_norm", "column: clips a step's target", "x", positive),
    _setting("b1", "paper: bound on weights, predictions and dual", "x", positive),
    _setting("c1", "paper: bound on the penalty's second derivative", "x", positive),
)


def _estimator(**settings: Any) -> Any:
    if settings.get("loss") != "squared":
        return SharingADMMClassifier(**settings)
    corner = ("loss", "width")
    return SharingADMMRegressor(
        **{name: value for name, value in settings.items() if name not in corner}
    )


class Vertical(DistributedCommand):
    """Columns that may not meet, by ADMM sharing."""

    name = "vertical"
    about = (
        "Splits the columns of FILE, in LIBSVM's format, plain or compressed, among parties, and "
        "trains one linear model of all of them by ADMM sharing: each round, each party sends one "
        "number per row. Prints it beside a model of all the columns in one place and one of the "
        "first party's columns alone."
    )
    model_flags = _MODEL_FLAGS
    sections = (("The run", _RUN_FLAGS),)
    privacy = (
        "Privacy of the messages, with public bounds; labels are not protected",
        _PRIVACY_FLAGS,
    )
    required: ClassVar = {"parties": "how many columns each party has"}
    own = ("parties", "box", "ball", "more")
    compared = ("more",)
    estimator = staticmethod(_estimator)
    compare = staticmethod(compare)
    picture = staticmethod(picture)

    def check(self, values: dict[str, Any], common: Mapping[str, Any], *, private: bool) -> None:
        if values["box"] is not None and values["ball"] is not None:
            raise UsageError("--box and --ball exclude each other")
        values["constraint"] = values["ball"] if values["box"] is None else values["box"]

    def labels(self, settings: dict[str, Any]) -> Literal["any", "class"]:
        return "any" if settings.get("loss") == "squared" else "class"

    def told(self, done: Done) -> Iterator[str]:
        model: BaseSharingADMM = done.model
        up, down = (int(model.history_[f"bytes_{way}"].sum()) for way in ("up", "down"))
        parties = ", ".join(map(str, done.held))
        yield line("data", f"{done.request.data}: {done.rows} rows, parties of {parties}")
        yield line("rounds", f"{model.n_iter_} ({model.stop_reason_})")
        yield line("rho, kappa", f"{model.rho_:g}, {model.kappa_:g}")
        yield line("bytes up, down", f"{up}, {down}")

    def cells(self, done: Done, outcome: Outcome) -> dict[str, str]:
        gap = done.found.gap(outcome.name)
        objective = None if gap is None else outcome.objective / done.rows
        return {
            "objective/n": cell(objective, ".6f"),
            "gap": cell(gap, ".1e"),
            "train loss": cell(outcome.train_loss, ".4f"),
            "test loss": cell(outcome.test_loss, ".4f"),
            "test accuracy": cell(outcome.test_accuracy, ".4f"),
        }

    def diagnosis(self, done: Done) -> tuple[str, Sequence[Any]] | None:
        assumptions = done.model.assumptions_
        return None if assumptions is None else ("What the paper's theorem assumes:", assumptions)

    def facts(self, done: Done) -> dict[str, Any]:
        model: BaseSharingADMM = done.model
        assumptions = None if model.assumptions_ is None else list(map(str, model.assumptions_))
        step = {"rho": model.rho_, "kappa": model.kappa_}
        return {"parties": done.held, **step, "assumptions": assumptions}


COMMAND = Vertical()
help_text, run = COMMAND.help_text, COMMAND.run
