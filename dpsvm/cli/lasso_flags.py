"""The flags of ``dpsvm lasso``."""

from __future__ import annotations

from dpsvm.cli.distributed_flags import settings_of, share
from dpsvm.cli.options import Flag, number, one_of, positive, whole
from dpsvm.cli.parties import PARTIES
from dpsvm.frank_wolfe.agreement import SENDERS
from dpsvm.frank_wolfe.coordinator import PROBLEMS
from dpsvm.frank_wolfe.estimator import FrankWolfeLasso
from dpsvm.frank_wolfe.steps import LINE_SEARCH, PAIRWISE

_setting = settings_of(FrankWolfeLasso, {})
_tolerance = number("a finite number from 0 on", lambda value: value >= 0.0)

MODEL_FLAGS = (
    _setting(
        "radius",
        "r",
        "the most that the weights, without their signs, add up to; required",
        positive,
        default_text="",
    ),
    _setting(
        "step",
        "name",
        f"{PAIRWISE}: between two vertices; {LINE_SEARCH}: towards one; diminishing: 2/(t+2)",
        one_of((PAIRWISE, LINE_SEARCH, "diminishing")),
        default_text=f"{PAIRWISE}, with --parties {LINE_SEARCH}, with --epsilon diminishing",
    ),
    _setting("max_iter", "n", "the most steps", whole(1), default_text="1000"),
    _setting(
        "rounds",
        "n",
        "with --parties or --epsilon: how many there are",
        whole(1),
        default_text="1000, with --epsilon from public numbers",
    ),
    _setting(
        "tol",
        "x",
        "stop at a gap of this share of the objective of zero weights",
        _tolerance,
        default_text="0.0001",
    ),
)
PARTY_FLAGS = (
    PARTIES,
    _setting(
        "problem",
        "name",
        "l1: --radius is for all the weights; product: for those of each party",
        one_of(PROBLEMS),
        default_text=PROBLEMS[0],
    ),
    _setting(
        "sketch",
        "m",
        "how many numbers stand for a column",
        whole(1),
        default_text="all of it, with --epsilon from public numbers",
    ),
    _setting("sketch_seed", "n", "the public seed of the sketch", whole(0), default_text="0"),
    _setting(
        "tau",
        "n",
        "how many of its columns a party looks at in a round, drawn by --seed",
        whole(1),
        default_text="all",
    ),
    _setting(
        "send",
        "who",
        "all: every party its column; winner: scores first, then one column",
        one_of(SENDERS),
        default_text=SENDERS[0],
    ),
    Flag(
        "--no-cache",
        "cache",
        "send a column again whenever it is chosen again",
        read=lambda: False,
    ),
)
PRIVACY_FLAGS = (
    _setting("epsilon", "x", "of the whole run", positive),
    _setting("delta", "x", "of the whole run; without --parties it may be left out", share),
    _setting(
        "entry_bound",
        "x",
        "public bound on the values of FILE; larger ones are refused; required",
        positive,
    ),
    _setting(
        "label_bound", "x", "public bound on its targets, which are then protected too", positive
    ),
    _setting(
        "public_labels", "", "with --parties, in its place: targets are public, not protected"
    ),
)
