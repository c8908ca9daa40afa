"""The flags of ``dpsvm audit``."""

from __future__ import annotations

from dataclasses import replace

from dpsvm.cli import private_flags
from dpsvm.cli.machine_flags import CHOICES, KERNEL_FLAGS, NUMBER_FLAGS, table_flag
from dpsvm.cli.options import Flag, number, one_of, positive, reader, several, share, whole
from dpsvm.privacy.audit import CANARIES, NEIGHBOURING
from dpsvm.svm.selectors import NUMBERS, SELECTORS

_delta = number("a number from 0 to below 1", lambda value: 0.0 <= value < 1.0)
_budgets = [
    f"with {one.name} {NUMBERS[one.budget].flag}" for one in SELECTORS.values() if one.budget
]

AUDIT_FLAGS = (
    Flag(
        "--canary",
        "the record that is there in one world and not in the other: mislabelled, natural (of the "
        "data) or unique-feature",
        "kind",
        one_of(CANARIES),
        "mislabelled",
    ),
    Flag(
        "--record",
        "for natural, which record, counted from 0",
        "n",
        whole(0),
        default_text="of ten that move a least-squares fit most the best to tell apart",
    ),
    Flag(
        "--neighbouring",
        "the relation the claim is about: add-remove or replace",
        "relation",
        one_of(NEIGHBOURING),
        default_text="add-remove; replace for --method objective",
    ),
    Flag(
        "--feature-range",
        "public range of the features",
        "low high",
        lambda low, high: (reader(float, "a number")(low), reader(float, "a number")(high)),
        default_text="what FILE shows of each feature",
    ),
    Flag(
        "--claimed-epsilon",
        "the claim to test",
        "x",
        positive,
        default_text=", ".join(["--epsilon", *_budgets]),
    ),
    Flag("--delta", "the delta of the claim", "x", _delta, 0.0),
    Flag("--runs", "test runs of each world", "n", whole(20), 1000),
    Flag(
        "--pilot-runs",
        "pilot runs of each world, which choose the event",
        "n",
        whole(20),
        default_text="a quarter of --runs, at least 100",
    ),
    Flag("--confidence", "of the bound", "x", share, 0.95),
    Flag(
        "--seed",
        "seed of the whole audit",
        "n",
        whole(0),
        default_text="fresh, or that of --resume",
    ),
    Flag(
        "--jobs",
        "processes, -1 for one per core; the result does not depend on it",
        "n",
        several("processes"),
        -1,
    ),
    Flag(
        "--resume",
        "keep the runs in a file as they end; the same command goes on from it",
        "file",
        str,
    ),
)
_OF_TRAINING = {flag.name: flag for flag in private_flags.PRIVATE_FLAGS}
MACHINE_FLAGS = (
    *KERNEL_FLAGS,
    table_flag("C", default=None, default_text="1"),
    table_flag("tol"),
    table_flag("shrinking"),
    table_flag("max_iter", default_text="none"),
    table_flag("selector", default=None, default_text="wss2", choices=CHOICES),
    *NUMBER_FLAGS,
)
PRIVATE_FLAGS = (
    Flag("--private", "audit PrivateSVC instead of SVC", default=False),
    replace(_OF_TRAINING["epsilon"], meaning="its epsilon, which is put to the test"),
    replace(_OF_TRAINING["method"], meaning="its method"),
    _OF_TRAINING["loss"],
    replace(_OF_TRAINING["data_norm"], meaning="public bound on the norm of a row"),
)
OUTPUT_FLAGS = (
    Flag("--json", "write what was found to a JSON file", "file", str),
    Flag(
        "--plot",
        "write the histogram of the statistic (matplotlib), in .png, .svg or .pdf",
        "file",
        str,
    ),
    Flag("-q", "print the findings alone, and show no progress", default=False, name="quiet"),
)
