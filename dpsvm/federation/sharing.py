"""ADMM sharing between sites: the party and the coordinator of :mod:`dpsvm.admm.sharing`."""

from __future__ import annotations

from typing import Any

import numpy as np

from dpsvm._renamed import SHARING
from dpsvm.admm import SharingADMMClassifier, SharingADMMRegressor
from dpsvm.admm.sharing.agreement import Agreement, check_settings
from dpsvm.admm.sharing.comparison import alone
from dpsvm.admm.sharing.estimators import BaseSharingADMM
from dpsvm.admm.sharing.party import Broadcast, Ending
from dpsvm.admm.sharing.regularisers import Ball, Box
from dpsvm.admm.sharing.totals import Total, moved
from dpsvm.federation.fixed_point import Sum
from dpsvm.federation.job import Job
from dpsvm.federation.limits import require_frame
from dpsvm.federation.members import (
    Beside,
    Content,
    Finished,
    Member,
    Shape,
    SumLead,
    agreement_of,
    end_of_run,
    require_kind,
    require_labels,
    settings_of_job,
    with_settings,
)
from dpsvm.federation.messages import Message, Scalar
from dpsvm.federation.site import Refusal, Site
from dpsvm.privacy.noise import Noise

_ELSEWHERE = ("accountant", "random_state", "track", "diagnose", "constraint", "intercept_party")


def settings_of(job: Job) -> BaseSharingADMM:
    """The estimator whose settings a job has; the loss "squared" makes it a regression.

    ``intercept`` names the party that has a constant column; ``ball`` and ``box`` are constraints.

    >>> settings_of(Job("r", "sharing", ("a", "b"), "a", {"loss": "squared", "rounds": 5})).rounds
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
            raise ValueError(f"box must be [low, high], got {box!r}")
        more["constraint"] = Ball(ball) if box is None else Box(*box)
    kind: type[BaseSharingADMM] = SharingADMMClassifier
    if settings.get("loss") == "squared":
        del settings["loss"]
        kind = SharingADMMRegressor
    model = with_settings(kind, settings, without=_ELSEWHERE, renamed=SHARING, **more)
    if model.privacy == "paper":
        raise ValueError("privacy='paper' has no guarantee: it is for comparisons in one place")
    check_settings(model)
    return model


def agree(settings: BaseSharingADMM, shape: Shape) -> Agreement:
    """What the parties and the label owner agree on."""
    require_frame((len(shape.sizes) + 8) * shape.rows, "a snapshot of all parties' numbers")
    return Agreement.of(settings, shape.sizes)


def check_member(job: Job, place: int, site: Site, shape: Shape) -> None:
    """Refuse public numbers that a party's noise is not made for."""
    agreement_of(job, shape).check_sizes(place, shape.rows)


class SharingMember(Member):
    """A party's columns and weights."""

    def __init__(self, job: Job, place: int, site: Site, shape: Shape, noise: Noise) -> None:
        agreed = agreement_of(job, shape)
        table = agreed.clipped(place, site.open().table)
        self._party = agreed.member(place, agreed.columns_of(place, table), noise)
        super().__init__(agreed, self._party)

    def answer(self, message: Message) -> Sum:
        """Its part of every sample's prediction, and how far that has moved."""
        require_kind(message, "price", "a price is")
        price, rho = message.arrays["price"], message.real("rho")
        if not np.all(np.isfinite(price)) or rho <= 0.0:
            raise Refusal("a price of finite numbers and a rho above 0 are needed")
        self.require_round(message)
        broadcast = Broadcast(message.round, price, rho, bool(message.scalars["keep"]))
        last = self._party.sent
        prediction = self._party.answer(broadcast).prediction
        return Sum(prediction, moved(last, prediction))

    def close(self, message: Message) -> dict[str, Any]:
        """Its weights, and the intercept if it has the constant column."""
        restore = bool(message.scalars["restore"])
        self._party.close(Ending(message.round - 1, message.text("reason"), restore))
        weights, intercept = self._party.weights_and_intercept
        return {"weights": weights, "intercept": intercept}


class SharingLead(SumLead):
    """The owner of the labels; it adds no noise."""

    squares = True

    def __init__(self, job: Job, site: Site, shape: Shape, noise: Noise) -> None:
        agreed = agreement_of(job, shape)
        target, self._classes = agreed.target(require_labels(job, site))
        super().__init__(agreed, agreed.lead(target))

    @property
    def ending(self) -> Content | None:
        """What ends the run, once it has converged, diverged or no more rounds."""
        ending = self._keeps.ending
        return None if ending is None else end_of_run(ending.reason, restore=ending.restore)

    def question(self, asked: Broadcast) -> Content:
        """A price."""
        scalars: dict[str, Scalar] = {"rho": float(asked.rho), "keep": bool(asked.keep)}
        return Content("price", {"price": asked.price}, scalars)

    def gather_sum(self, number: int, total: Sum) -> list[Content]:
        """Take the sums of a round; the next price."""
        told = Total(number, total.values, float(total.squares or 0.0))
        return [self.question(self._keeps.gather(told))]

    def result(self) -> dict[str, Any]:
        """The classes; the weights are the parties' own."""
        classes = None if self._classes is None else self._classes.tolist()
        return super().result() | {"classes": classes}


make_member, make_lead = SharingMember, SharingLead


def local_model(run: Finished) -> Beside:
    """The joint model after its last round, beside one of the label owner's columns alone."""
    [table] = run.tables.values()
    local = alone(settings_of_job(run.job), table.columns, table.labels)
    return {name: float(run.history[-1][name]) for name in local}, local
