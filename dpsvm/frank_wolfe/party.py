"""The party's side: columns that never leave it."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from scipy import sparse

from dpsvm._arrays import Array
from dpsvm._memory import Remembers
from dpsvm.frank_wolfe.checks import check_count
from dpsvm.frank_wolfe.messages import Bid, Proposal, Query
from dpsvm.frank_wolfe.privacy import PartyNoise
from dpsvm.frank_wolfe.sketches import Sketch


class Party(Remembers):
    """A party k with its columns a_i, whose sketches J a_i / n are formed once.

    In every round it draws ``tau`` of its columns (all of them if that is None), finds the gradient
    g_i = (J a_i)'(q - J y / n) of each from the coordinator's message, and proposes the vertex
    -sign(g_i) e_i of the largest |g_i|. With ``cache`` the sketch goes with a column only the first
    time that it is proposed.

    >>> party = Party(0, np.array([[1.0, 0.0], [0.0, 2.0]]), Sketch(2))
    >>> message = party.answer(Query(1, np.array([-0.5, -0.5])))
    >>> message.choice, message.sketch
    (2, array([0., 1.]))
    >>> party.answer(Query(2, np.array([-0.5, -0.4]))).sketch is None
    True
    """

    _memory: ClassVar = ("perturbation", "_sent", "_round", "_rng")

    def __init__(
        self,
        index: int,
        columns: Any,
        sketch: Sketch,
        *,
        tau: int | None = None,
        cache: bool = True,
        rng: np.random.Generator | None = None,
        perturbation: PartyNoise | None = None,
    ) -> None:
        self.index, self.n_features = index, int(columns.shape[1])
        name = f"tau, of the {self.n_features} columns of party {index},"
        self.tau = None if tau is None else check_count(tau, name, most=self.n_features)
        if perturbation is not None:
            perturbation.check(columns, sketch, index)
        self.perturbation, self._cache = perturbation, cache
        self._rng = np.random.default_rng() if rng is None else rng
        self._n = sketch.n_samples
        sketched = sketch.of(columns)
        if sparse.issparse(sketched):
            self._rows: Any = sparse.csr_array(sketched.T) / self._n
        else:
            self._rows = np.ascontiguousarray(np.asarray(sketched).T) / self._n
        self._sent: set[int] = set()
        self._round = 0
        self._bid: Bid | None = None  # that may still be taken

    def answer(self, query: Query) -> Proposal:
        """The proposal of a round."""
        column, sign, _ = self._choose(query)
        return Proposal(query.round, self.index, sign * (column + 1), self._sketch(column))

    def bid(self, query: Query) -> Bid:
        """The choice of a round with its score, which no noise hides."""
        if self.perturbation is not None:
            raise ValueError("a bid tells a score, which is not private: ask for proposals")
        column, sign, score = self._choose(query)
        self._bid = Bid(query.round, self.index, sign * (column + 1), sign * score)
        return self._bid

    def deliver(self) -> Proposal:
        """The column of the bid of this round."""
        if self._bid is None:
            raise ValueError(f"party {self.index} has made no bid in round {self._round}")
        bid, self._bid = self._bid, None
        return Proposal(bid.round, self.index, bid.choice, self._sketch(bid.column))

    def remember(self) -> dict[str, Any]:
        """Everything that rounds have changed, but for a bid that may still be taken."""
        plain = {"_sent": sorted(self._sent), "_rng": self._rng.bit_generator.state}
        return super().remember() | plain

    def recall(self, memory: dict[str, Any]) -> None:
        """Go on from what another one remembered."""
        rng = self._rng
        rng.bit_generator.state = memory["_rng"]
        super().recall(memory | {"_sent": set(memory["_sent"]), "_rng": rng})

    def _choose(self, query: Query) -> tuple[int, int, float]:
        """A column, the sign of its weight, and its gradient."""
        self._check(query)
        drawn = None
        if self.tau is not None:
            drawn = np.sort(self._rng.choice(self.n_features, self.tau, replace=False))
        rows = self._rows if drawn is None else self._rows[drawn]
        residual = query.residual if self.perturbation is None else of_size_1(query.residual)
        scores = self._n * np.asarray(rows @ residual)
        if self.perturbation is None:
            place = int(np.argmax(np.abs(scores)))
            sign = -1 if scores[place] >= 0.0 else 1
        else:
            place, sign = self.perturbation.choose(scores, residual)
        return place if drawn is None else int(drawn[place]), sign, float(scores[place])

    def _sketch(self, column: int) -> Array | None:
        if self._cache and column in self._sent:
            return None
        self._sent.add(column)
        row = self._rows[[column]]
        dense = row.toarray().ravel() if sparse.issparse(row) else np.asarray(row)[0].copy()
        return dense if self.perturbation is None else self.perturbation.release(dense)

    def _check(self, query: Query) -> None:
        """Refuse what is out of turn or of another shape."""
        if query.round != self._round + 1:
            raise ValueError(
                f"party {self.index} awaits round {self._round + 1}, got round {query.round}"
            )
        size = self._rows.shape[1]
        if query.residual.shape != (size,) or not np.all(np.isfinite(query.residual)):
            raise ValueError(
                f"a residual of {size} finite numbers is needed, got shape {query.residual.shape}"
            )
        self._round, self._bid = query.round, None


def of_size_1(residual: Array) -> Array:
    """A residual times the power of two that brings its largest number between 1/2 and 1.

    Choices depend on its direction alone. A query whose scores are still numbers while their
    sensitivity is rounded to 0, or overflows, would get an answer without noise.

    >>> of_size_1(np.array([3.0, -0.5]))
    array([ 0.75 , -0.125])
    >>> of_size_1(np.array([5e-324, 0.0]))
    array([0.5, 0. ])
    """
    _, exponent = np.frexp(np.max(np.abs(residual), initial=0.0))
    return np.asarray(np.ldexp(residual, -int(exponent)))
