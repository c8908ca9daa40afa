"""A fitted model beside the models it has to be measured against."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar


class Named(Protocol):
    """How one model did, under its name."""

    @property
    def name(self) -> str: ...


Model = TypeVar("Model")
Outcome = TypeVar("Outcome", bound=Named)


@dataclass(frozen=True)
class Comparison(Generic[Model, Outcome]):
    """The outcomes of a model and of its baselines, found by name."""

    model: Model
    outcomes: tuple[Outcome, ...]

    @property
    def measured(self) -> bool:
        """Whether there are figures on the training data."""
        return len(self.outcomes) > 1

    def __getitem__(self, name: str) -> Outcome:
        return next(outcome for outcome in self.outcomes if outcome.name == name)
