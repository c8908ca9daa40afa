"""What happened in every round of a run."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Round = TypeVar("Round")


@dataclass
class History(Generic[Round]):
    """The rounds of a run.

    private : whether the run was; a pickle then holds nothing that its guarantee does not cover

    >>> from dataclasses import make_dataclass
    >>> one = make_dataclass("One", ["round", "loss"])
    >>> history = History([one(1, 4.0), one(2, None)])
    >>> history["loss"], len(history)
    (array([ 4., nan]), 2)
    """

    rounds: list[Round] = field(default_factory=list)
    private: bool = False

    OUTSIDE: ClassVar[tuple[str, ...]] = ()
    """In a private mode, what no guarantee covers."""

    def __getstate__(self) -> dict[str, Any]:
        unknown: dict[str, Any] = dict.fromkeys(self.outside_guarantee())
        rounds: list[Any] = self.rounds
        return {"rounds": [replace(one, **unknown) for one in rounds], "private": self.private}

    def __len__(self) -> int:
        return len(self.rounds)

    def __getitem__(self, name: str) -> Array:
        """One quantity over all the rounds; NaN where it is not known."""
        return np.array([getattr(one, name) for one in self.rounds], dtype=np.float64)

    def outside_guarantee(self) -> tuple[str, ...]:
        """The quantities that a privacy guarantee of the run does not cover."""
        return self.OUTSIDE if self.private else ()
