"""What happened in every round of a run, and what a theorem asks of it."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Generic, TypeVar

import numpy as np

from dpsvm._arrays import Array

Round = TypeVar("Round")


@dataclass
class History(Generic[Round]):
    """The rounds of a run.

    private : whether the run was: it then notes what its messages tell
    measured : whether quantities of ``OUTSIDE`` are noted as well, which somebody asked for: they
        do not travel with a pickled private model

    >>> from dataclasses import make_dataclass
    >>> one = make_dataclass("One", ["round", "loss"])
    >>> history = History([one(1, 4.0), one(2, None)])
    >>> history["loss"], len(history)
    (array([ 4., nan]), 2)
    """

    rounds: list[Round] = field(default_factory=list)
    private: bool = False
    measured: bool = True

    OUTSIDE: ClassVar[tuple[str, ...]] = ()
    """In a private mode, what no guarantee covers."""

    def __getstate__(self) -> dict[str, Any]:
        unknown: dict[str, Any] = dict.fromkeys(self.outside_guarantee())
        rounds: list[Any] = self.rounds
        kept = [replace(one, **unknown) for one in rounds]
        return vars(self) | {"rounds": kept, "measured": self.measured and not self.private}

    def __len__(self) -> int:
        return len(self.rounds)

    def __getitem__(self, name: str) -> Array:
        """One quantity over all the rounds; NaN where it is not known."""
        return np.array([getattr(one, name) for one in self.rounds], dtype=np.float64)

    def outside_guarantee(self) -> tuple[str, ...]:
        """The quantities noted here that a privacy guarantee of the run does not cover."""
        if not self.private:
            return ()
        noted = [vars(one) for one in self.rounds]
        return tuple(n for n in self.OUTSIDE if any(one[n] is not None for one in noted))


@dataclass(frozen=True)
class Assumption:
    """One assumption of a convergence theorem, as a diagnosis, and whether it holds.

    >>> print(Assumption("rho >= L", 0.05, 0.25))
    rho >= L: 0.05 against 0.25, does not hold
    """

    name: str
    value: float
    wanted: float
    strict: bool = False

    @property
    def holds(self) -> bool:
        """Whether the value is at least (or more than) what is wanted."""
        return self.value > self.wanted if self.strict else self.value >= self.wanted

    def __str__(self) -> str:
        verdict = "holds" if self.holds else "does not hold"
        return f"{self.name}: {self.value:.4g} against {self.wanted:.4g}, {verdict}"
