"""The rounds of a run, as an observer sees them, and what a private one may tell of them."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray


@dataclass
class BaseHistory:
    """The rounds of a run.

    A private run notes only what its messages tell, and the rest where somebody asked to watch:
    then that does not travel with a pickled model.

    measured : whether quantities of ``OUTSIDE`` are noted, too
    """

    rounds: list[Any] = field(default_factory=list)
    private: bool = False
    measured: bool = True

    OUTSIDE: ClassVar[tuple[str, ...]] = ()
    """In a private mode, what no guarantee covers."""

    def __getstate__(self) -> dict[str, Any]:
        if not self.private:
            return dict(vars(self))
        unknown: dict[str, Any] = dict.fromkeys(self.OUTSIDE)
        kept = [replace(one, **unknown) for one in self.rounds]
        return vars(self) | {"rounds": kept, "measured": False}

    def __len__(self) -> int:
        return len(self.rounds)

    def __getitem__(self, name: str) -> NDArray[np.float64]:
        """One quantity over all the rounds; NaN where it is not known."""
        return np.array([getattr(one, name) for one in self.rounds], dtype=np.float64)

    def outside_guarantee(self) -> tuple[str, ...]:
        """The quantities here that a privacy guarantee of the run does not cover."""
        if not self.private:
            return ()
        noted = [vars(one) for one in self.rounds]
        return tuple(n for n in self.OUTSIDE if any(one[n] is not None for one in noted))
