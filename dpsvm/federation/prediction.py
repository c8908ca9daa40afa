"""Joint prediction: the sum of every party's partial score, which the coordinator gets to see.

A partial score is w_k . x_k, without noise, for every sample: it tells of the party's weights and
of its columns, and no guarantee of the training covers it. Ask for it only where that is agreed.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from dpsvm.federation.job import Job
from dpsvm.federation.members import Content, Shape, require_round
from dpsvm.federation.messages import Array, Message
from dpsvm.federation.site import Refusal, Site
from dpsvm.privacy.noise import Noise
from dpsvm.privacy.release import Price

WARNING = (
    "a joint prediction shows the coordinator each party's partial score of every sample, without "
    "noise, and in a Frank-Wolfe model for weights that the coordinator names: no privacy "
    "guarantee of the training covers it"
)


class PredictionMember:
    """A party's columns of the samples to predict, and its weights if they are its own."""

    price: Price | None = None

    def __init__(self, site: Site) -> None:
        self._table, self._name = site.table, site.name
        self._weights, self._intercept = None, 0.0
        if site.model is None:
            raise Refusal(f"{site.name} has no model of the run that is to predict")
        if site.model["algorithm"] == "network":
            raise Refusal("every node of a network has the whole model: it predicts by itself")
        if site.model["weights"] is not None:
            self._weights = np.asarray(site.model["weights"], dtype=np.float64)
            self._intercept = float(site.model["intercept"])

    def open(self) -> Content:
        """It is ready."""
        return Content("ready")

    def answer(self, message: Message) -> Content:
        """Its partial score of every sample."""
        if message.kind != "ask":
            raise Refusal(f"a question for scores is awaited, got a {message.kind}")
        require_round(message, 1)
        told = message.arrays.get("weights")
        if (told is None) == (self._weights is None):
            raise Refusal(f"the weights of {self._name} must be its own or be told, one of both")
        weights = self._weights if told is None else told
        if weights is None or len(weights) != self._table.shape[1]:
            raise Refusal(f"{self._name} has other columns than the model")
        return Content("score", {"score": np.asarray(self._table @ weights) + self._intercept})

    def close(self, message: Message) -> dict[str, Any]:
        """Nothing is kept."""
        return {"weights": None}

    def remember(self) -> dict[str, Any]:
        """Nothing changes."""
        return {}

    def recall(self, memory: dict[str, Any]) -> None:
        """Nothing to go on from."""


class PredictionLead:
    """Adds up the scores."""

    price: Price | None = None

    def __init__(self, site: Site, shape: Shape) -> None:
        if site.model is None:
            raise Refusal(f"{site.name} has no result of the run that is to predict")
        self._model = site.model
        self._scores: Array | None = None

    @property
    def ending(self) -> Content | None:
        """What ends the run, once it is over."""
        if self._scores is None:
            return None
        return Content("end", scalars={"reason": "predicted", "restore": False})

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
        self._scores = np.add.reduce([reply.arrays["score"] for reply in replies])
        return []

    def metrics(self) -> dict[str, Any]:
        """How many samples were scored."""
        return {"samples": 0 if self._scores is None else len(self._scores)}

    def result(self) -> dict[str, Any]:
        """Scores, and the class of each where there are classes."""
        scores = np.zeros(0) if self._scores is None else self._scores
        found: dict[str, Any] = {"scores": scores, "warning": WARNING}
        classes = self._model.get("classes")
        if classes is not None:
            found["labels"] = [classes[int(score > 0)] for score in scores]
        return found

    def remember(self) -> dict[str, Any]:
        """All that rounds have changed."""
        return {"scores": self._scores}

    def recall(self, memory: dict[str, Any]) -> None:
        """Go on from what another one remembered."""
        self._scores = memory["scores"]


def make_member(job: Job, place: int, site: Site, shape: Shape, noise: Noise) -> PredictionMember:
    """A party."""
    return PredictionMember(site)


def make_lead(job: Job, site: Site, shape: Shape, noise: Noise) -> PredictionLead:
    """The coordinator."""
    return PredictionLead(site, shape)
