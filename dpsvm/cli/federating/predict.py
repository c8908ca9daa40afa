"""``dpsvm federation predict``: new samples, scored by the parties of a finished run together."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np

from dpsvm.cli.federating.cast import Cast
from dpsvm.cli.federating.command import Command
from dpsvm.cli.files import check_outputs
from dpsvm.cli.options import Flag, UsageError
from dpsvm.data import atomic_write
from dpsvm.federation.config import SiteConfig
from dpsvm.federation.in_process import InProcessRunner
from dpsvm.federation.job import Job
from dpsvm.federation.models import load_model
from dpsvm.federation.prediction import WARNING
from dpsvm.federation.store import MemoryStore
from dpsvm.warnings import PrivacyLeakWarning

_USAGE = "usage: dpsvm federation predict JOB SITE... --output FILE"
_FORMULA = ("=", "+", "-", "@", "\t", "\r")  # what a cell begins with that a spreadsheet computes


def _predict(*words: str, output: str | None, quiet: bool) -> None:
    if output is None:
        raise UsageError(f"--output is required; {_USAGE}")
    if len(words) < 2:
        raise UsageError(f"JOB and a SITE or more are needed, got {len(words)}; {_USAGE}")
    job = Job.load(words[0])
    if job.algorithm != "predict":
        raise UsageError(f"{words[0]}: the algorithm must be 'predict', got {job.algorithm!r}")
    node = _node_model(job, SiteConfig.load(words[1]))
    if node is not None:
        ids, predicted = _alone(job, words, node, output)
        said = "every node of a network predicts by itself"
    else:
        ids, predicted = _together(job, Cast.load(words, _USAGE), output)
        said = "predicted by all parties together"
    _write(output, ids, predicted)
    if not quiet:
        print(f"{output}: {len(predicted)} samples, {said}")


def _node_model(job: Job, site: SiteConfig) -> dict[str, Any] | None:
    """The model of a node; None if the site's part of the run is of another kind, or not there."""
    model = site.model_if_finished(job)
    return model if model is not None and model["algorithm"] == "network" else None


def _alone(
    job: Job, words: Sequence[str], model: dict[str, Any], output: str
) -> tuple[Sequence[str] | None, list[Any]]:
    if len(words) != 2:
        raise UsageError("every node of a network predicts by itself: give one SITE")
    site = SiteConfig.load(words[1])
    read = {"JOB": words[0], "SITE": words[1]}
    if site.predict is not None:
        read["data"] = str(site.predict.file)
    check_outputs(read, {"--output": output})
    table = site.table(job, labels=False, like=site.model(job))
    scores = table.columns @ np.asarray(model["weights"]) + model["intercept"]
    return table.ids, [model["classes"][int(score > 0)] for score in scores]


def _together(job: Job, cast: Cast, output: str) -> tuple[Sequence[str] | None, list[Any]]:
    check_outputs(cast.files(), {"--output": output})
    coordinator = cast.coordinator.coordinator(job, store=MemoryStore())
    parties = [site.party(job, store=MemoryStore()) for site in cast.parties]
    warnings.warn(WARNING, PrivacyLeakWarning, stacklevel=2)
    runner = InProcessRunner(parties)
    turn = runner.run(coordinator)
    if turn.ended != "done":
        raise ValueError(runner.why(turn))
    result = load_model(coordinator.store.read("result.json") or "", "result.json")
    return coordinator.site.ids if job.ids else None, result.get("labels") or result["scores"]


def _write(path: str, ids: Sequence[str] | None, predicted: Sequence[Any]) -> None:
    with atomic_write(path) as file:
        for place, value in enumerate(predicted):
            row = [value] if ids is None else [ids[place], value]
            file.write(",".join(map(spreadsheet_field, row)) + "\n")


def spreadsheet_field(value: Any) -> str:
    """A value as a field of CSV that no spreadsheet takes for a formula.

    A text that begins with = + - @, a tab or a carriage return gets an apostrophe before it, and
    quotes. A number is one, whatever its sign.

    >>> print(spreadsheet_field("=cmd|' /C calc'!A0"), spreadsheet_field(-0.5))
    "'=cmd|' /C calc'!A0" -0.5
    """
    if not isinstance(value, str):
        return f"{value:.17g}" if isinstance(value, float) else str(value)
    risky = value.startswith(_FORMULA)
    text = f"'{value}" if risky else value
    if risky or any(one in text for one in ',"\r\n'):
        return '"' + text.replace('"', '""') + '"'
    return text


COMMANDS = {
    "predict": Command(
        _USAGE,
        "Predicts the samples of the [predict] files of all sites. The algorithm of JOB is "
        '"predict", and its settings name the finished run: model = RUN. Beware: '
        f"{WARNING}.\n\n"
        "Writes a line for each sample, in the order of the ids: its id, if there are ids, a "
        "comma, and its label, or its score in a regression. A spreadsheet would take an id or a "
        "label for a formula if it begins with = + - @, a tab or a carriage return: it is written "
        "in quotes with an apostrophe before it. A node of a network has the whole model and "
        "predicts by itself: give its SITE alone.",
        _predict,
        (
            Flag("--output", "the file to write; required", "file", str),
            Flag("-q", "print nothing", default=False, name="quiet"),
        ),
    )
}
