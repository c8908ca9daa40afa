"""What a theorem asks of a run, as a diagnosis."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Assumption:
    """One assumption of a convergence theorem, and whether it holds.

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
