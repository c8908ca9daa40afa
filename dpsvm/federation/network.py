"""ADMM over a network of sites: the nodes of :mod:`dpsvm.admm.network`, and a relay between them.

A node tells its weights to its neighbours and to nobody else. Where an engine has a hub, the hub
relays them, and so sees them all: the privacy guarantee counts everything that is sent as known to
everyone.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from dpsvm._renamed import NETWORK
from dpsvm.admm.network.estimators import NetworkADMM
from dpsvm.admm.network.messages import Iterate
from dpsvm.admm.network.node import Samples
from dpsvm.admm.network.privacy import Calibration
from dpsvm.distributed.labels import checked_labels, signs_of, two_classes
from dpsvm.federation.job import Job
from dpsvm.federation.members import Content, Shape, told_privacy
from dpsvm.federation.messages import Array, Message
from dpsvm.federation.settings import made
from dpsvm.federation.site import Price, Refusal, Site
from dpsvm.privacy.noise import Noise

_ELSEWHERE = ("accountant", "random_state", "track", "n_nodes")


def estimator_of(job: Job) -> NetworkADMM:
    """The estimator whose settings a job has. The two classes must be among them.

    >>> estimator_of(Job("r", "network", ("a", "b"), None, {"classes": [0, 1], "C": 5.0})).C
    5.0
    """
    settings = dict(job.settings)
    if isinstance(graph := settings.get("graph"), list):
        if not all(isinstance(edge, list) for edge in graph):
            raise ValueError(f"settings: graph must be a name or a list of edges, got {graph!r}")
        settings["graph"] = [tuple(edge) for edge in graph]
    model: NetworkADMM = made(NetworkADMM, settings, {}, without=_ELSEWHERE, renamed=NETWORK)
    if model.classes is None:
        raise ValueError("settings: classes must be given: no node knows the labels of the others")
    model._check_settings()
    return model


class Node:
    """A node: what it emits to its neighbours and absorbs from them, round by round."""

    def __init__(self, job: Job, place: int, site: Site, shape: Shape, noise: Noise) -> None:
        model = estimator_of(job)
        if site.labels is None:
            raise Refusal(f"{site.name} is a node and has no labels")
        labels = checked_labels(site.labels)
        self._classes = two_classes(labels, model.classes)
        terms = model._terms(list(shape.sizes))
        calibration = model._calibration(terms, list(shape.sizes))
        self.price = _price(calibration)
        self._preparation = model._preparation()
        rows = site.table if self._preparation is None else self._preparation(site.table)
        self._node = model._member(
            place, Samples(rows, signs_of(labels, self._classes)), terms, calibration, noise
        )
        self._model = model

    def emit(self, number: int) -> dict[int, Iterate]:
        """Take a round, 0 being the start; the message for each neighbour."""
        message = self._node.opening() if number == 0 else self._node.emit()
        return dict.fromkeys(self._node.neighbours, message)

    def absorb(self, number: int, weights: Mapping[int, Array]) -> None:
        """Take the weights that the neighbours told in a round."""
        self._node.absorb([Iterate(number, other, told) for other, told in weights.items()])

    def open(self) -> Content:
        """Where it starts."""
        return self._told(0)

    def answer(self, message: Message) -> Content:
        """Absorb what the neighbours told last, and emit."""
        if message.kind != "neighbours":
            raise Refusal(f"the neighbours' weights are awaited, got a {message.kind}")
        weights, others = message.arrays["weights"], self._node.neighbours
        if len(weights) != len(others):
            raise Refusal(f"{len(others)} neighbours' weights are needed, got {len(weights)}")
        self.absorb(message.round - 1, dict(zip(others, weights, strict=True)))
        return self._told(message.round)

    def close(self, message: Message) -> dict[str, Any]:
        """The weights of its last update, for rows as they were given."""
        return model_of(self._model, self._node.state.updated) | {"classes": self._classes}

    def remember(self) -> dict[str, Any]:
        """All that rounds have changed."""
        return self._node.state.remember()

    def recall(self, memory: dict[str, Any]) -> None:
        """Go on from what another one remembered."""
        self._node.state.recall(memory)

    def _told(self, number: int) -> Content:
        [message, *_] = self.emit(number).values()
        return Content("iterate", {"weights": np.array(message.weights)})


class Relay:
    """Hands every node its neighbours' weights, round by round. It has no data."""

    price: Price | None = None

    def __init__(self, job: Job, site: Site, shape: Shape) -> None:
        self._model = estimator_of(job)
        self._terms = self._model._terms(list(shape.sizes))
        self._calibration = self._model._calibration(self._terms, list(shape.sizes))
        self._round = 0
        self._weights = np.zeros((len(shape.sizes), 0))  # f_i(t)
        self._updated = self._weights  # f_i of the last update

    @property
    def ending(self) -> Content | None:
        """What ends the run, once it is over."""
        if self._round < self._terms.rounds:
            return None
        return Content("end", scalars={"reason": "rounds", "restore": False})

    def open(self, replies: Sequence[Message]) -> list[Content]:
        """Where the neighbours start."""
        self._weights = self._updated = _stacked(replies)
        return self._relayed()

    def gather(self, replies: Sequence[Message]) -> list[Content]:
        """What the neighbours told."""
        self._weights = _stacked(replies)
        self._round += 1
        if self._terms.is_update(self._round):
            self._updated = self._weights
        return self._relayed()

    def metrics(self) -> dict[str, Any]:
        """How far the nodes are from agreeing."""
        apart = self._weights - self._weights.mean(axis=0)
        spent = None if self._calibration is None else self._calibration.spent
        found: dict[str, Any] = {"apart": float(np.linalg.norm(apart, axis=1).max())}
        if spent is not None:
            found["spent"] = float(spent[self._terms.update_of(self._round) - 1])
        return found

    def result(self) -> dict[str, Any]:
        """The mean of the nodes' models, all of which it has relayed."""
        return {
            "stop_reason": "rounds",
            "rounds": self._round,
            **told_privacy(self._calibration),
            "classes": np.unique(np.asarray(self._model.classes)),
            **model_of(self._model, self._updated.mean(axis=0)),
        }

    def remember(self) -> dict[str, Any]:
        """All that rounds have changed."""
        return {
            "round": self._round,
            "weights": self._weights,
            "updated": self._updated,
        }

    def recall(self, memory: dict[str, Any]) -> None:
        """Go on from what another one remembered."""
        self._round = memory["round"]
        self._weights, self._updated = memory["weights"], memory["updated"]

    def _relayed(self) -> list[Content]:
        neighbours = self._terms.graph.neighbours
        return [Content("neighbours", {"weights": self._weights[list(own)]}) for own in neighbours]


def make_member(job: Job, place: int, site: Site, shape: Shape, noise: Noise) -> Node:
    """A node."""
    return Node(job, place, site, shape, noise)


def make_lead(job: Job, site: Site, shape: Shape, noise: Noise) -> Relay:
    """The relay."""
    return Relay(job, site, shape)


def model_of(model: NetworkADMM, weights: Array) -> dict[str, Any]:
    """Coefficients of the features as they were given, and an intercept."""
    preparation = model._preparation()
    if preparation is None:
        return {"weights": weights, "intercept": 0.0}
    coefs, intercepts = preparation.unprepare(weights[None, :])
    return {"weights": coefs[0], "intercept": float(intercepts[0])}


def _price(calibration: Calibration | None) -> Price | None:
    return None if calibration is None else Price(calibration.event, calibration.guarantee)


def _stacked(replies: Sequence[Message]) -> Array:
    widths = {len(reply.arrays["weights"]) for reply in replies if reply.kind == "iterate"}
    if any(reply.kind != "iterate" for reply in replies) or len(widths) != 1:
        raise Refusal("an iterate of each node is awaited, all of one length")
    return np.array([reply.arrays["weights"] for reply in replies])
