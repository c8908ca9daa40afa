"""ADMM over a network of sites: the nodes of :mod:`dpsvm.admm.network`, and a relay between them.

A node tells its weights to its neighbours and to nobody else. Where an engine has a hub, the hub
relays them, and so sees them all: the privacy guarantee counts everything that is sent as known to
everyone.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from dpsvm._renamed import NETWORK
from dpsvm.admm.network.agreement import Agreement, check_settings
from dpsvm.admm.network.comparison import beside
from dpsvm.admm.network.estimators import NetworkADMM
from dpsvm.admm.network.node import Iterate
from dpsvm.distributed.labels import checked_labels, two_classes
from dpsvm.federation.job import Job
from dpsvm.federation.limits import require_frame
from dpsvm.federation.members import (
    Beside,
    Content,
    Finished,
    Lead,
    Member,
    Shape,
    agreement_of,
    require_kind,
    with_settings,
)
from dpsvm.federation.messages import Array, Message
from dpsvm.federation.site import Refusal, Site
from dpsvm.privacy.noise import Noise

_ELSEWHERE = ("accountant", "random_state", "track", "n_nodes")


def settings_of(job: Job) -> NetworkADMM:
    """The estimator whose settings a job has. The two classes must be among them.

    >>> settings_of(Job("r", "network", ("a", "b"), None, {"classes": [0, 1], "C": 5.0})).C
    5.0
    """
    settings = dict(job.settings)
    if isinstance(graph := settings.get("graph"), list):
        if not all(isinstance(edge, list) and all(map(_is_node, edge)) for edge in graph):
            raise ValueError(f"graph must be a name or a list of edges, got {graph!r}")
        settings["graph"] = [tuple(edge) for edge in graph]
    model = with_settings(NetworkADMM, settings, without=_ELSEWHERE, renamed=NETWORK)
    if model.classes is None:
        raise ValueError("classes must be given: no node knows the labels of the others")
    if not all(isinstance(one, (str, int, float)) for one in list(model.classes)):
        raise ValueError(f"classes must be two texts or numbers, got {model.classes!r}")
    check_settings(model)
    return model


def agree(settings: NetworkADMM, shape: Shape) -> Agreement:
    """What the nodes agree on; what should be known of it is said once."""
    agreed = Agreement.of(settings, shape.sizes)
    told = int(agreed.terms.graph.degrees.sum()) * (shape.columns + 1)
    require_frame(told + 2 * len(shape.sizes) * (shape.columns + 1), "what all nodes are told")
    for remark in agreed.remarks:
        warnings.warn(remark, ConvergenceWarning, stacklevel=2)
    return agreed


def check_member(job: Job, place: int, site: Site, shape: Shape) -> None:
    """Refuse a node without labels, and public numbers that its noise is not made for."""
    if not site.labelled:
        raise Refusal(f"{site.name} is a node and has no labels")
    agreement_of(job, shape).check_sizes(place, shape.columns)


class Node(Member):
    """A node: what it emits to its neighbours and absorbs from them, round by round."""

    def __init__(self, job: Job, place: int, site: Site, shape: Shape, noise: Noise) -> None:
        check_member(job, place, site, shape)
        agreed, (table, given) = agreement_of(job, shape), site.open()
        labels = checked_labels(given)
        self._classes = two_classes(labels, job.settings["classes"])
        samples = agreed.samples(agreed.clipped(table), labels, self._classes)
        self._node = agreed.member(place, samples, noise)
        super().__init__(agreed, self._node.state)

    def emit(self, number: int) -> dict[int, Iterate]:
        """Take a round, 0 being the start; the message for each neighbour."""
        message = self._node.opening() if number == 0 else self._node.emit()
        return dict.fromkeys(self._node.neighbours, message)

    def absorb(self, number: int, weights: Mapping[int, Array]) -> None:
        """Take the weights that the neighbours told in a round."""
        self._node.absorb([Iterate(number, other, told) for other, told in weights.items()])

    def answer(self, message: Message) -> Content:
        """Absorb what the neighbours told last, and emit."""
        require_kind(message, "neighbours", "the neighbours' weights are")
        weights, others = message.arrays["weights"], self._node.neighbours
        if len(weights) != len(others):
            raise Refusal(f"{len(others)} neighbours' weights are needed, got {len(weights)}")
        self.absorb(message.round - 1, dict(zip(others, weights, strict=True)))
        [told, *_] = self.emit(message.round).values()
        return Content("iterate", {"weights": np.array(told.weights)})

    def close(self, message: Message) -> dict[str, Any]:
        """The weights of its last update, for rows as they were given."""
        return _model(self.agreed, self._node.state.updated) | {"classes": self._classes}


class Hub(Lead):
    """The relay: hands every node its neighbours' weights, round by round. It has no data."""

    def __init__(self, job: Job, site: Site, shape: Shape, noise: Noise) -> None:
        agreed = agreement_of(job, shape)
        self._classes = np.unique(np.asarray(job.settings["classes"]))
        self._starts = agreed.starts(shape.columns)
        super().__init__(agreed, agreed.lead())

    def open(self, replies: Sequence[Message]) -> list[Content]:
        """Where the neighbours start, which is public."""
        return self._relayed(self._starts)

    def gather(self, replies: Sequence[Message]) -> list[Content]:
        """What the neighbours told."""
        widths = {len(reply.arrays["weights"]) for reply in replies if reply.kind == "iterate"}
        if any(reply.kind != "iterate" for reply in replies) or len(widths) != 1:
            raise Refusal("an iterate of each node is awaited, all of one length")
        return self._relayed([reply.arrays["weights"] for reply in replies])

    def _relayed(self, weights: Sequence[Array]) -> list[Content]:
        return [Content("neighbours", {"weights": own}) for own in self._keeps.take(weights)]

    def result(self) -> dict[str, Any]:
        """The mean of the nodes' models, all of which it has relayed."""
        model = _model(self.agreed, self._keeps.updated.mean(axis=0))
        return super().result() | {"classes": self._classes} | model


make_member, make_lead = Node, Hub


def local_model(run: Finished) -> Beside:
    """The loss of the nodes' own models over all rows, on average, beside that of their mean."""
    shares, result = [run.tables[name] for name in run.job.parties], run.result
    sizes = tuple(len(one.labels) for one in shares)
    agreed: Agreement = agreement_of(run.job, Shape(0, sizes, len(result["weights"])))
    classes = np.unique(np.asarray(run.job.settings["classes"]))
    samples = [agreed.samples(one.columns, one.labels, classes) for one in shares]
    joint, mean = beside(agreed, samples, np.asarray(result["weights"]), result["intercept"])
    return {"loss": joint}, {"loss": mean}


def _is_node(value: Any) -> bool:
    return type(value) is int


def _model(agreed: Any, weights: Array) -> dict[str, Any]:
    """Coefficients of the features as they were given, and an intercept."""
    coefs, intercepts = agreed.in_given_units(weights[None, :])
    return {"weights": coefs[0], "intercept": float(intercepts[0])}
