"""The flags of ``dpsvm vertical``."""

from __future__ import annotations

from dataclasses import replace

from dpsvm.admm.sharing.privacy import MODES
from dpsvm.admm.sharing.regularisers import PENALTIES, Ball, Box
from dpsvm.admm.sharing.terms import METHODS
from dpsvm.cli.options import Flag, number, one_of, positive, reader, whole
from dpsvm.cli.parties import PARTIES
from dpsvm.losses import PREDICTION_LOSSES


def _interval(text: str) -> Box:
    low, high = (float(part) for part in text.split(","))
    return Box(low, high)


_relaxation = number("a number between 0 and 2", lambda value: 0.0 < value < 2.0)
_tolerance = number("a finite number from 0 on", lambda value: value >= 0.0)

MODEL_FLAGS = (
    replace(PARTIES, meaning=f"{PARTIES.meaning}; required"),
    Flag(
        "--loss",
        "loss",
        " ".join(PREDICTION_LOSSES) + "; squared is a regression",
        ("name",),
        one_of(PREDICTION_LOSSES),
        default="logistic",
    ),
    Flag("--width", "width", "of a rounded corner", ("x",), positive, default=0.5),
    Flag("--penalty", "penalty", " ".join(PENALTIES), ("name",), one_of(PENALTIES), default="l2"),
    Flag("--lam", "lam", "weight of the penalty", ("x",), positive, default=1.0),
    Flag("--C", "C", "weight of the losses", ("x",), positive, default=1.0),
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
    Flag(
        "--intercept-party",
        "intercept_party",
        "the party, from 0 on, that adds a constant column",
        ("m",),
        whole(0),
        default_text="none",
    ),
)
RUN_FLAGS = (
    Flag(
        "--method",
        "method",
        "sharing, or jacobi: the paper's, which can diverge",
        ("name",),
        one_of(METHODS),
        default="sharing",
    ),
    Flag("--rounds", "rounds", "the most rounds", ("n",), whole(1), default=20),
    Flag("--tol", "tol", "stop at residuals of this size", ("x",), _tolerance, default=0.0),
    Flag(
        "--rho", "rho", "the step", ("x",), positive, default="auto", default_text="from the loss"
    ),
    Flag(
        "--kappa",
        "kappa",
        "times rho that a party resists a change",
        ("x",),
        positive,
        default_text="the parties, 1 with --method jacobi",
    ),
    Flag("--adaptive-rho", "adaptive_rho", "balance the residuals by changing rho", default=False),
    Flag(
        "--relaxation",
        "relaxation",
        "over-relaxation",
        ("x",),
        _relaxation,
        default_text="1.8; 1 with --privacy, or a kappa other than the parties",
    ),
)
PRIVACY_FLAGS = (
    Flag(
        "--privacy",
        "privacy",
        "row: one row of one party; column: one column; paper: no guarantee",
        ("mode",),
        one_of(MODES),
    ),
    Flag(
        "--epsilon",
        "epsilon",
        "of the whole run; with paper, of a round; required with --privacy",
        ("x",),
        positive,
    ),
    Flag(
        "--delta",
        "delta",
        "likewise; required with --privacy",
        ("x",),
        number("a number between 0 and 1, neither included", lambda value: 0.0 < value < 1.0),
    ),
    Flag("--data-norm", "data_norm", "row: bound on the norm of a row", ("x",), positive),
    Flag("--radius", "radius", "row: bound on the norm of a party's weights", ("x",), positive),
    Flag("--target-bound", "target_bound", "row: clips a step's target", ("x",), positive),
    Flag("--column-norm", "column_norm", "column: bound on a column's norm", ("x",), positive),
    Flag("--target-norm", "target_norm", "column: clips a step's target", ("x",), positive),
    Flag("--b1", "b1", "paper: bound on weights, predictions and dual", ("x",), positive),
    Flag("--c1", "c1", "paper: bound on the penalty's second derivative", ("x",), positive),
    Flag("--ledger", "ledger", "charge the run to this ledger (dpsvm budget)", ("file",), str),
    Flag("--seed", "random_state", "of the noise, for experiments only", ("n",), whole(0)),
)
OUTPUT_FLAGS = (
    Flag("--test", "test", "held-out rows; their losses are printed too", ("file",), str),
    Flag("--more", "more", "also Gauss-Seidel and distributed SGD", default=False),
    Flag("--diagnose", "diagnose", "check what the paper's theorem assumes", default=False),
    Flag("--json", "json", "write everything, every round included", ("file",), str),
    Flag("--plot", "plot", "write a picture (matplotlib)", ("file",), str),
    Flag("-q", "quiet", "print nothing", default=False),
)
