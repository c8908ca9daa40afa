"""Joint prediction: the sum of every party's partial score, which the coordinator gets to see.

A partial score is w_k . x_k, without noise, for every sample: it tells of the party's weights and
of its columns, and no guarantee of the training covers it. Ask for it only where that is agreed.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np

from dpsvm._memory import Remembers
from dpsvm.distributed.agreement import Agreement
from dpsvm.federation.job import Job
from dpsvm.federation.members import Content, Lead, Member, Shape, end_of_run, require_kind
from dpsvm.federation.messages import Array, Message
from dpsvm.federation.site import Refusal, Site
from dpsvm.privacy.noise import Noise

WARNING = (
    "a joint prediction shows the coordinator each party's partial score of every sample, without "
    "noise, and in a Frank-Wolfe model for weights that the coordinator names: no privacy "
    "guarantee of the training covers it"
)


class _OneRound(Agreement):
    """One round, without privacy."""

    rounds, calibration = 1, None


class _Sum(Remembers):
    """The sum of the parties' scores, once it is there."""

    _memory: ClassVar = ("scores",)
    scores: Array | None = None

    def metrics(self) -> dict[str, Any]:
        """How many samples were scored."""
        return {"samples": 0 if self.scores is None else len(self.scores)}


def settings_of(job: Job) -> None:
    """There are none beside the run that predicts."""


def agree(settings: None, shape: Shape) -> _OneRound:
    """What the sites agree on."""
    return _OneRound()


def check_member(job: Job, place: int, site: Site, shape: Shape) -> None:
    """Refuse a site without a model, or with one that is not made for this."""
    if site.model is None:
        raise Refusal(f"{site.name} has no model of the run that is to predict")
    if site.model["algorithm"] == "network":
        raise Refusal("every node of a network has the whole model: it predicts by itself")


class PredictionMember(Member):
    """A party's columns of the samples to predict, and its weights if they are its own."""

    def __init__(self, job: Job, place: int, site: Site, shape: Shape, noise: Noise) -> None:
        super().__init__(_OneRound(), Remembers())
        check_member(job, place, site, shape)
        assert site.model is not None
        self._table, self._name = site.open().table, site.name
        self._weights, self._intercept = None, 0.0
        if site.model["weights"] is not None:
            self._weights = np.asarray(site.model["weights"], dtype=np.float64)
            self._intercept = float(site.model["intercept"])

    def answer(self, message: Message) -> Content:
        """Its partial score of every sample."""
        require_kind(message, "ask", "a question for scores is")
        self.require_round(message)
        told = message.arrays.get("weights")
        if (told is None) == (self._weights is None):
            raise Refusal(f"the weights of {self._name} must be its own or be told, one of both")
        weights = self._weights if told is None else told
        if weights is None or len(weights) != self._table.shape[1]:
            raise Refusal(f"{self._name} has other columns than the model")
        return Content("score", {"score": np.asarray(self._table @ weights) + self._intercept})


class PredictionLead(Lead):
    """Adds up the scores."""

    def __init__(self, job: Job, site: Site, shape: Shape, noise: Noise) -> None:
        if site.model is None:
            raise Refusal(f"{site.name} has no result of the run that is to predict")
        self._model, self._sum = site.model, _Sum()
        super().__init__(_OneRound(), self._sum)

    @property
    def ending(self) -> Content | None:
        """What ends the run, once it is over."""
        return None if self._sum.scores is None else end_of_run("predicted")

    def open(self, replies: Sequence[Message]) -> list[Content]:
        """The one question."""
        parts = self._model.get("weights")
        if parts is None:
            return [Content("ask")]
        return [Content("ask", {"weights": np.asarray(part, dtype=np.float64)}) for part in parts]

    def gather(self, replies: Sequence[Message]) -> list[Content]:
        """There is no second one."""
        if any(reply.kind != "score" for reply in replies):
            raise Refusal("a score of each party is awaited")
        self._sum.scores = np.add.reduce([reply.arrays["score"] for reply in replies])
        return []

    def result(self) -> dict[str, Any]:
        """Scores, and the class of each where there are classes."""
        scores = np.zeros(0) if self._sum.scores is None else self._sum.scores
        found: dict[str, Any] = {"scores": scores, "warning": WARNING}
        classes = self._model.get("classes")
        if classes is not None:
            found["labels"] = [classes[int(score > 0)] for score in scores]
        return found


make_member, make_lead = PredictionMember, PredictionLead
