"""The flags of ``dpsvm vertical``."""

from __future__ import annotations

from dataclasses import replace

from dpsvm.admm import SharingADMMClassifier
from dpsvm.admm.sharing.agreement import CONSTRAINTS
from dpsvm.admm.sharing.regularisers import PENALTIES, Ball, Box
from dpsvm.cli.distributed_flags import settings_of, share
from dpsvm.cli.options import Flag, number, one_of, positive, reader
from dpsvm.cli.parties import PARTIES
from dpsvm.names import PREDICTION_LOSSES


def _interval(text: str) -> Box:
    low, high = (float(part) for part in text.split(","))
    return Box(low, high)


_relaxation = number("a number between 0 and 2", lambda value: 0.0 < value < 2.0)
_setting = settings_of(SharingADMMClassifier, CONSTRAINTS)

MODEL_FLAGS = (
    replace(PARTIES, meaning=f"{PARTIES.meaning}; required"),
    _setting(
        "loss",
        "name",
        f"{' '.join(PREDICTION_LOSSES)}; squared is a regression",
        one_of(PREDICTION_LOSSES),
    ),
    _setting("width", "x", "of a rounded corner", positive),
    _setting("penalty", "name", " ".join(PENALTIES)),
    _setting("lam", "x", "strength of the penalty", positive),
    _setting("C", "x", "weight of the losses", positive),
    Flag(
        "--box",
        "box",
        "every weight between these two, 0 among or between them",
        ("low,high",),
        reader(_interval, "two numbers around 0, like -1,1"),
        default_text="none",
    ),
    Flag(
        "--ball",
        "ball",
        "bound on the norm of a party's weights",
        ("r",),
        lambda text: Ball(positive(text)),
        default_text="none",
    ),
    _setting(
        "intercept_party",
        "m",
        "the party, from 0 on, that adds a constant column",
        default_text="none",
    ),
)
RUN_FLAGS = (
    _setting("method", "name", "sharing, or jacobi: the paper's, which can diverge"),
    _setting("rounds", "n", "the most rounds"),
    _setting("tol", "x", "stop at residuals of this size"),
    _setting("rho", "x", "the step", positive, default_text="from the loss"),
    _setting(
        "kappa",
        "x",
        "times rho that a party resists a change",
        positive,
        default_text="the parties, 1 with --method jacobi",
    ),
    _setting("adaptive_rho", "", "balance the residuals by changing rho"),
    _setting(
        "relaxation",
        "x",
        "over-relaxation",
        _relaxation,
        default_text="1.8; 1 with --privacy, or a kappa other than the parties",
    ),
)
PRIVACY_FLAGS = (
    _setting("privacy", "mode", "row: one row of one party; column: one column; paper: none"),
    _setting("epsilon", "x", "of the whole run; with paper, of a round; required", positive),
    _setting("delta", "x", "likewise; required", share),
    _setting("data_norm", "x", "row: bound on the norm of a row", positive),
    _setting("radius", "x", "row: bound on the norm of a party's weights", positive),
    _setting("target_bound", "x", "row: clips a step's target", positive),
    _setting("column_norm", "x", "column: bound on a column's norm", positive),
    _setting("target_norm", "x", "column: clips a step's target", positive),
    _setting("b1", "x", "paper: bound on weights, predictions and dual", positive),
    _setting("c1", "x", "paper: bound on the penalty's second derivative", positive),
)
CHECK_FLAGS = (
    Flag("--more", "more", "also Gauss-Seidel and distributed SGD", default=False),
    _setting("diagnose", "", "check what the paper's theorem assumes"),
)
