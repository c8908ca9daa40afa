"""The flags of ``dpsvm lasso``."""

from __future__ import annotations

from dpsvm.cli.options import Flag, number, one_of, positive, whole
from dpsvm.cli.parties import PARTIES
from dpsvm.frank_wolfe.agreement import SENDERS
from dpsvm.frank_wolfe.coordinator import PROBLEMS
from dpsvm.frank_wolfe.steps import LINE_SEARCH, PAIRWISE

MODEL_FLAGS = (
    Flag(
        "--radius",
        "radius",
        "the most that the weights, without their signs, add up to; required",
        ("r",),
        positive,
    ),
    Flag(
        "--step",
        "step",
        f"{PAIRWISE}: between two vertices; {LINE_SEARCH}: towards one; diminishing: 2/(t+2)",
        ("name",),
        one_of((PAIRWISE, LINE_SEARCH, "diminishing")),
        default_text=f"{PAIRWISE}, with --parties {LINE_SEARCH}, with --epsilon diminishing",
    ),
    Flag("--max-iter", "max_iter", "the most steps", ("n",), whole(1), default_text="1000"),
    Flag(
        "--rounds",
        "rounds",
        "with --parties or --epsilon: how many there are",
        ("n",),
        whole(1),
        default_text="1000, with --epsilon from public numbers",
    ),
    Flag(
        "--tol",
        "tol",
        "stop at a gap of this share of the objective of zero weights",
        ("x",),
        number("a finite number from 0 on", lambda value: value >= 0.0),
        default_text="0.0001",
    ),
    Flag(
        "--n-features",
        "n_features",
        "the public number of columns",
        ("n",),
        whole(1),
        default_text="the largest index of FILE",
    ),
)
PARTY_FLAGS = (
    PARTIES,
    Flag(
        "--problem",
        "problem",
        "l1: --radius is for all the weights; product: for those of each party",
        ("name",),
        one_of(PROBLEMS),
        default_text=PROBLEMS[0],
    ),
    Flag(
        "--sketch",
        "sketch",
        "how many numbers stand for a column",
        ("m",),
        whole(1),
        default_text="all of it, with --epsilon from public numbers",
    ),
    Flag(
        "--sketch-seed",
        "sketch_seed",
        "the public seed of the sketch",
        ("n",),
        whole(0),
        default_text="0",
    ),
    Flag(
        "--tau",
        "tau",
        "how many of its columns a party looks at in a round",
        ("n",),
        whole(1),
        default_text="all",
    ),
    Flag(
        "--send",
        "send",
        "all: every party its column; winner: scores first, then one column",
        ("who",),
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
    Flag("--epsilon", "epsilon", "of the whole run", ("x",), positive),
    Flag(
        "--delta",
        "delta",
        "of the whole run; without --parties it may be left out",
        ("x",),
        number("a number between 0 and 1, neither included", lambda value: 0.0 < value < 1.0),
    ),
    Flag(
        "--entry-bound",
        "entry_bound",
        "public bound on the values of FILE; larger ones are refused; required",
        ("x",),
        positive,
    ),
    Flag(
        "--label-bound",
        "label_bound",
        "public bound on its targets, which are then protected too",
        ("x",),
        positive,
    ),
    Flag(
        "--public-labels",
        "public_labels",
        "with --parties, in its place: targets are public, not protected",
    ),
    Flag("--ledger", "ledger", "charge the run to this ledger (dpsvm budget)", ("file",), str),
    Flag(
        "--seed",
        "random_state",
        "of the noise, for experiments only, and of what --tau looks at",
        ("n",),
        whole(0),
    ),
)
OUTPUT_FLAGS = (
    Flag("--test", "test", "held-out rows; the losses on them are printed too", ("file",), str),
    Flag(
        "--compare",
        "compare",
        "with --epsilon: also what is printed without it, outside the guarantee",
        default=False,
    ),
    Flag("--json", "json", "write everything, every round included", ("file",), str),
    Flag(
        "--model",
        "model",
        "write the weights as a LIBSVM model file, which dpsvm predict reads",
        ("file",),
        str,
    ),
    Flag("--plot", "plot", "write a picture (matplotlib)", ("file",), str),
    Flag("-q", "quiet", "print nothing", default=False),
    Flag("--quiet", "quiet", "the same", default=False),
)
