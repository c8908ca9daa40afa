"""Joint prediction: the sum of every party's partial score, which the coordinator gets to see.

A partial score is w_k . x_k, without noise, for every sample. Masked, the coordinator sees the sum
of them, and no single one; in the open it sees each. Either tells of the parties' weights and of
their columns, and no guarantee of the training covers it. Ask for it only where that is agreed.

Where the coordinator holds the model, it tells every party its own weights, and all of them the
digests of everybody's: each finds its own at its place, and masks cancel between parties that were
shown the same list. That binds the weights, and does not choose them: a coordinator can name any,
zero for all parties but one, so that the sum is that party's score, or one that singles a column
out. A masked sum does not hide this, and a party cannot see it in digests.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np

from dpsvm._memory import Remembers
from dpsvm.distributed.agreement import Agreement
from dpsvm.federation.fixed_point import Sum
from dpsvm.federation.job import Job
from dpsvm.federation.members import (
    Content,
    Member,
    Shape,
    SumLead,
    end_of_run,
    require_kind,
)
from dpsvm.federation.messages import Array, Message
from dpsvm.federation.site import Refusal, Site
from dpsvm.privacy.noise import Noise

WARNING = (
    "a joint prediction shows the coordinator the sum of the parties' partial scores of every "
    "sample, without noise, with open sums each of them, and in a Frank-Wolfe model for weights "
    "that the coordinator names, which can single out a party: no privacy guarantee of the "
    "training covers it"
)


class _OneRound(Agreement):
    """One round, without privacy."""

    rounds, calibration = 1, None


class _Scores(Remembers):
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
        self._parties = len(job.parties)
        self._table, self._name, self._place = site.open().table, site.name, place
        self._weights, self._intercept = None, 0.0
        if site.model["weights"] is not None:
            self._weights = np.asarray(site.model["weights"], dtype=np.float64)
            self._intercept = float(site.model["intercept"])

    def common(self, message: Message) -> Message:
        """All but its own weights, whose digest is among those that all are told."""
        told, digests = message.arrays.get("weights"), message.arrays.get("digests")
        if told is None and digests is None:
            return message
        if told is None or digests is None or len(digests) != self._parties:
            raise Refusal(f"{self._name} is to be told weights, and the digests of all parties'")
        if not np.array_equal(digests[self._place], digest_of_weights(told)):
            raise Refusal(f"the weights told to {self._name} are not those of the list of digests")
        return Message(message.run, message.round, message.kind, {"digests": digests})

    def answer(self, message: Message) -> Sum:
        """Its partial score of every sample."""
        require_kind(message, "ask", "a question for scores is")
        self.require_round(message)
        told = message.arrays.get("weights")
        if (told is None) == (self._weights is None):
            raise Refusal(f"the weights of {self._name} must be its own or be told, one of both")
        weights = self._weights if told is None else told
        if weights is None or len(weights) != self._table.shape[1]:
            raise Refusal(f"{self._name} has other columns than the model")
        return Sum(np.asarray(self._table @ weights) + self._intercept)


class PredictionLead(SumLead):
    """Adds up the scores."""

    def __init__(self, job: Job, site: Site, shape: Shape, noise: Noise) -> None:
        if site.model is None:
            raise Refusal(f"{site.name} has no result of the run that is to predict")
        self._model, self._sum = site.model, _Scores()
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
        told = [np.asarray(part, dtype=np.float64) for part in parts]
        digests = np.array([digest_of_weights(part) for part in told])
        return [Content("ask", {"weights": part, "digests": digests}) for part in told]

    def gather_sum(self, number: int, total: Sum) -> list[Content]:
        """There is no second one."""
        self._sum.scores = total.values
        return []

    def result(self) -> dict[str, Any]:
        """Scores, and the class of each where there are classes."""
        scores = np.zeros(0) if self._sum.scores is None else self._sum.scores
        found: dict[str, Any] = {"scores": scores, "warning": WARNING}
        classes = self._model.get("classes")
        if classes is not None:
            found["labels"] = [classes[int(score > 0)] for score in scores]
        return found


def digest_of_weights(weights: Array) -> Array:
    """By which parties know that others were told the same of their weights.

    >>> digest_of_weights(np.ones(2)).shape
    (4,)
    """
    data = np.ascontiguousarray(weights, dtype="<f8").tobytes()
    return np.frombuffer(hashlib.sha256(data).digest(), "<i8").astype(np.int64)


make_member, make_lead = PredictionMember, PredictionLead
