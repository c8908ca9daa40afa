"""What travels between the coordinator and a party, and how much of it there was.

A party proposes a vertex: one signed index, and the sketch of that column. It sends no weight, and
no score either, unless it is asked for bids (Bellet et al. 2015): then all send one signed index
and one score, and only the best of them its column. A score is not private, however noisy the
choice was.
"""

from __future__ import annotations

import operator
from dataclasses import astuple, dataclass

from dpsvm._arrays import Array

_NUMBER = 8  # bytes


@dataclass(frozen=True, eq=False)
class Query:
    """From the coordinator to every party, before a round."""

    round: int
    residual: Array  # q - J y / n, q = J A x / n, m numbers


@dataclass(frozen=True, eq=False)
class Choice:
    """A vertex of a party."""

    round: int
    party: int
    choice: int  # +(i + 1) or -(i + 1): the vertex +e_i or -e_i, i counted within the party

    @property
    def column(self) -> int:
        """The column that is proposed."""
        return abs(self.choice) - 1

    @property
    def sign(self) -> int:
        """The sign of its weight."""
        return 1 if self.choice > 0 else -1


@dataclass(frozen=True, eq=False)
class Proposal(Choice):
    """From a party to the coordinator: a vertex, and how its column looks.

    >>> Proposal(1, 0, -3, None).column, Proposal(1, 0, -3, None).sign
    (2, -1)
    """

    sketch: Array | None  # J a_i / n, in a private mode with noise; None if it was sent before

    @property
    def n_floats(self) -> int:
        """How many numbers describe the column."""
        return 0 if self.sketch is None else len(self.sketch)


@dataclass(frozen=True, eq=False)
class Bid(Choice):
    """From a party to the coordinator: a vertex, and how steeply f falls towards it."""

    slope: float  # <s, gradient> of the vertex s: the least of the party's


@dataclass(frozen=True)
class Traffic:
    """What was sent, rounds and names of senders left out.

    >>> Traffic(up_integers=2, up_floats=200, down_floats=200) + Traffic(1, 100, 100)
    Traffic(up_integers=3, up_floats=300, down_floats=300)
    """

    up_integers: int = 0
    up_floats: int = 0
    down_floats: int = 0

    @property
    def up_bytes(self) -> int:
        """Of what the parties sent, a number being 8 bytes."""
        return _NUMBER * (self.up_integers + self.up_floats)

    @property
    def down_bytes(self) -> int:
        """Of what they were sent."""
        return _NUMBER * self.down_floats

    def __add__(self, other: Traffic) -> Traffic:
        return Traffic(*map(operator.add, astuple(self), astuple(other)))


def longest_uplink(parties: int, rounds: int, size: int) -> Traffic:
    """K T integers and m K T floats up: what a run without a cache sends, no more and no less.

    >>> longest_uplink(parties=4, rounds=20, size=100)
    Traffic(up_integers=80, up_floats=8000, down_floats=8000)
    """
    answers = parties * rounds
    return Traffic(answers, answers * size, answers * size)
