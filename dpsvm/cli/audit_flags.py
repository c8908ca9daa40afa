"""The flags of ``dpsvm audit``."""

from __future__ import annotations

from dataclasses import replace

from dpsvm.cli.compare_flags import KERNEL_FLAGS
from dpsvm.cli.distributed_flags import settings_of
from dpsvm.cli.options import Flag, number, one_of, positive, reader, several, table_flag, whole
from dpsvm.cli.selector_flags import CHOICES, NUMBER_FLAGS
from dpsvm.losses import LOSSES
from dpsvm.privacy import PrivateSVC
from dpsvm.privacy.audit import CANARIES, NEIGHBOURING, audit
from dpsvm.privacy.methods import METHODS
from dpsvm.svm.selectors import NUMBERS, SELECTORS

_share = number("a number between 0 and 1", lambda value: 0.0 < value < 1.0)
_delta = number("a number from 0 to below 1", lambda value: 0.0 <= value < 1.0)
_budgets = [
    f"with {one.name} {NUMBERS[one.budget].flag}" for one in SELECTORS.values() if one.budget
]

_asked, _private = settings_of(audit, {}), settings_of(PrivateSVC, {})

AUDIT_FLAGS = (
    _asked(
        "canary",
        "kind",
        "the record that is there in one world and not in the other: mislabelled, natural (of the "
        "data) or unique-feature",
        one_of(CANARIES),
    ),
    _asked(
        "record",
        "n",
        "for natural, which record, counted from 0",
        whole(0),
        default_text="of ten that move a least-squares fit most the best to tell apart",
    ),
    _asked(
        "neighbouring",
        "relation",
        "the relation the claim is about: add-remove or replace",
        one_of(NEIGHBOURING),
        default_text="add-remove; replace for --method objective",
    ),
    Flag(
        "--feature-range",
        "feature_range",
        "public range of the features",
        ("low", "high"),
        lambda low, high: (reader(float, "a number")(low), reader(float, "a number")(high)),
        default_text="what FILE shows of each feature",
    ),
    _asked(
        "claimed_epsilon",
        "x",
        "the claim to test",
        positive,
        default_text=", ".join(["--epsilon", *_budgets]),
    ),
    _asked("delta", "x", "the delta of the claim", _delta),
    _asked("runs", "n", "test runs of each world", whole(20)),
    _asked(
        "pilot_runs",
        "n",
        "pilot runs of each world, which choose the event",
        whole(20),
        default_text="a quarter of --runs, at least 100",
    ),
    _asked("confidence", "x", "of the bound", _share),
    _asked(
        "random_state",
        "n",
        "seed of the whole audit",
        whole(0),
        spelling="--seed",
        default_text="fresh, or that of --resume",
    ),
    Flag(
        "--jobs",
        "n_jobs",
        "processes, -1 for one per core; the result does not depend on it",
        ("n",),
        several("processes"),
        default=-1,
    ),
    _asked(
        "resume_path",
        "file",
        "keep the runs in a file as they end; the same command goes on from it",
        str,
        spelling="--resume",
    ),
)
MACHINE_FLAGS = (
    *(flag for flag in KERNEL_FLAGS if flag.name in ("kernel", "degree", "gamma", "coef0")),
    table_flag("C", "cost", default=None, default_text="1"),
    table_flag("tol", "tolerance"),
    table_flag("shrinking", "0|1"),
    table_flag("max_iter", "n", default_text="none"),
    table_flag(
        "selector",
        "name",
        default=None,
        default_text="wss2",
        choices=CHOICES,
    ),
    *NUMBER_FLAGS,
)
PRIVATE_FLAGS = (
    Flag("--private", "private", "audit PrivateSVC instead of SVC", default=False),
    _private("epsilon", "x", "its epsilon, which is put to the test", positive, default_text=""),
    replace(
        _private("method", "name", "its method", one_of(METHODS)),
        choices=("  " + " ".join(METHODS),),
    ),
    replace(
        _private("loss", "name", "its loss", one_of(LOSSES)), choices=("  " + " ".join(LOSSES),)
    ),
    _private("data_norm", "x", "public bound on the norm of a row", positive),
)
OUTPUT_FLAGS = (
    Flag("--json", "json", "write what was found to a JSON file", ("file",), str),
    Flag(
        "--plot",
        "plot",
        "write the histogram of the statistic (matplotlib), in .png, .svg or .pdf",
        ("file",),
        str,
    ),
    Flag("-q", "quiet", "print the findings alone, and show no progress", default=False),
)
