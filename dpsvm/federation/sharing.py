"""ADMM sharing between sites: the party and the coordinator of :mod:`dpsvm.admm.sharing`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from dpsvm._renamed import SHARING
from dpsvm.admm import SharingADMMClassifier, SharingADMMRegressor
from dpsvm.admm.sharing.base import BaseSharingADMM
from dpsvm.admm.sharing.columns import Columns
from dpsvm.admm.sharing.coordinator import Coordinator
from dpsvm.admm.sharing.messages import Broadcast, Contribution, Ending
from dpsvm.admm.sharing.party import Party
from dpsvm.admm.sharing.privacy import Calibration
from dpsvm.admm.sharing.regularisers import Ball, Box
from dpsvm.federation.job import Job
from dpsvm.federation.members import Content, Shape, require_round, told_privacy
from dpsvm.federation.messages import Message
from dpsvm.federation.settings import made
from dpsvm.federation.site import Price, Refusal, Site
from dpsvm.losses import Squared
from dpsvm.privacy.noise import Noise

_ELSEWHERE = ("accountant", "random_state", "track", "diagnose", "constraint", "intercept_party")


def estimator_of(job: Job) -> BaseSharingADMM:
    """The estimator whose settings a job has; the loss "squared" makes it a regression.

    ``intercept`` names the party that has a constant column; ``ball`` and ``box`` are constraints.

    >>> estimator_of(Job("r", "sharing", ("a", "b"), "a", {"loss": "squared", "rounds": 5})).rounds
    5
    """
    settings = dict(job.settings)
    intercept, ball, box = (settings.pop(name, None) for name in ("intercept", "ball", "box"))
    more: dict[str, Any] = {}
    if intercept is not None:
        more["intercept_party"] = job.place(str(intercept))
    if ball is not None or box is not None:
        if ball is not None and box is not None:
            raise ValueError("ball and box exclude each other")
        if box is not None and (not isinstance(box, list) or len(box) != 2):
            raise ValueError(f"settings: box must be [low, high], got {box!r}")
        more["constraint"] = Ball(ball) if box is None else Box(*box)
    regression = settings.get("loss") == "squared"
    if regression:
        del settings["loss"]
    kind = SharingADMMRegressor if regression else SharingADMMClassifier
    model: BaseSharingADMM = made(kind, settings, more, without=_ELSEWHERE, renamed=SHARING)
    if model.privacy == "paper":
        raise ValueError("privacy='paper' has no guarantee: it is for comparisons in one place")
    return model


class SharingMember:
    """A party's columns and weights."""

    def __init__(self, job: Job, place: int, site: Site, shape: Shape, noise: Noise) -> None:
        model = estimator_of(job)
        loss, parties = model._loss(), len(job.parties)
        terms = model._terms(loss, parties)
        calibration = model._calibration(terms, list(shape.sizes))
        self.price = _price(calibration)
        self._rounds = int(model.rounds)
        columns = Columns(site.table, constant=place == model.intercept_party)
        self._party = Party(
            place,
            columns,
            terms,
            None if calibration is None else calibration.perturbation(place, noise),
        )

    def open(self) -> Content:
        """It is ready."""
        return Content("ready")

    def answer(self, message: Message) -> Content:
        """Its part of every sample's prediction."""
        if message.kind != "price":
            raise Refusal(f"a price is awaited, got a {message.kind}")
        price, rho = message.arrays["price"], message.real("rho")
        if not np.all(np.isfinite(price)) or rho <= 0.0:
            raise Refusal("a price of finite numbers and a rho above 0 are needed")
        require_round(message, self._rounds)
        broadcast = Broadcast(message.round, price, rho, bool(message.scalars["keep"]))
        return Content("contribution", {"prediction": self._party.answer(broadcast).prediction})

    def close(self, message: Message) -> dict[str, Any]:
        """Its weights; the last one of a constant column is the intercept."""
        restore = bool(message.scalars["restore"])
        self._party.close(Ending(message.round - 1, message.text("reason"), restore))
        weights, intercept = self._party.weights, 0.0
        if self._party.columns.constant:
            weights, intercept = weights[:-1], float(weights[-1])
        return {"weights": weights, "intercept": intercept}

    def remember(self) -> dict[str, Any]:
        """All that rounds have changed."""
        return self._party.remember()

    def recall(self, memory: dict[str, Any]) -> None:
        """Go on from what another one remembered."""
        self._party.recall(memory)


class SharingLead:
    """The owner of the labels."""

    price: Price | None = None  # labels are not protected

    def __init__(self, job: Job, site: Site, shape: Shape) -> None:
        model = self._model = estimator_of(job)
        if site.labels is None:
            raise Refusal(f"{site.name} owns the labels of run {job.run}, and has none")
        target = model._target(site.labels)
        loss = model._loss()
        terms = model._terms(loss, len(job.parties))
        self._calibration = model._calibration(terms, list(shape.sizes))
        self._coordinator = Coordinator(
            target,
            loss,
            terms,
            rounds=int(model.rounds),
            tol=float(model.tol),
            adaptive=bool(model.adaptive_rho),
        )

    @property
    def ending(self) -> Content | None:
        """What ends the run, once it is over."""
        ending = self._coordinator.ending
        if ending is None:
            return None
        return Content("end", scalars={"reason": ending.reason, "restore": ending.restore})

    def open(self, replies: Sequence[Message]) -> list[Content]:
        """The first price."""
        return [_price_of(self._coordinator.open())]

    def gather(self, replies: Sequence[Message]) -> list[Content]:
        """The next price."""
        return [
            _price_of(
                self._coordinator.gather(
                    [
                        Contribution(reply.round, place, _prediction(reply))
                        for place, reply in enumerate(replies)
                    ]
                )
            )
        ]

    def metrics(self) -> dict[str, Any]:
        """Loss and accuracy of the sum of the messages, and how far they are from settled."""
        found = self._coordinator
        metrics = {
            "loss": found.released_loss / (found.terms.C * len(found.target)),
            "primal": found.residuals.primal,
            "dual": found.residuals.dual,
        }
        if not isinstance(found.loss, Squared):
            metrics["accuracy"] = float(np.mean((found.total > 0) == (found.target > 0)))
        return metrics

    def result(self) -> dict[str, Any]:
        """Why it ended, and what was guaranteed; the weights are the parties' own."""
        ending = self._coordinator.ending
        classes = getattr(self._model, "classes_", None)
        return {
            "stop_reason": None if ending is None else ending.reason,
            "rounds": self._coordinator.round,
            "classes": None if classes is None else classes.tolist(),
            **told_privacy(self._calibration),
        }

    def remember(self) -> dict[str, Any]:
        """All that rounds have changed."""
        return self._coordinator.remember()

    def recall(self, memory: dict[str, Any]) -> None:
        """Go on from what another one remembered."""
        self._coordinator.recall(memory)


def make_member(job: Job, place: int, site: Site, shape: Shape, noise: Noise) -> SharingMember:
    """A party."""
    return SharingMember(job, place, site, shape, noise)


def make_lead(job: Job, site: Site, shape: Shape, noise: Noise) -> SharingLead:
    """The owner of the labels; it adds no noise."""
    return SharingLead(job, site, shape)


def _price(calibration: Calibration | None) -> Price | None:
    if calibration is None or calibration.guarantee is None:
        return None
    return Price(calibration.party_event, calibration.guarantee)


def _price_of(broadcast: Broadcast) -> Content:
    scalars: Mapping[str, Any] = {"rho": float(broadcast.rho), "keep": bool(broadcast.keep)}
    return Content("price", {"price": broadcast.price}, dict(scalars))


def _prediction(reply: Message) -> Any:
    if reply.kind != "contribution":
        raise Refusal(f"a contribution is awaited, got a {reply.kind}")
    return reply.arrays["prediction"]
