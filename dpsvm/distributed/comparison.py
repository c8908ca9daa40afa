"""A fitted model beside the models it has to be measured against."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Generic, Protocol, Self, TypeVar

from sklearn.base import clone

from dpsvm.distributed.callbacks import Tick
from dpsvm.distributed.estimator import AgreedEstimator


class Named(Protocol):
    """How one model did, under its name."""

    @property
    def name(self) -> str: ...

    @property
    def test_loss(self) -> float | None: ...


Model = TypeVar("Model")
Outcome = TypeVar("Outcome", bound=Named)


@dataclass(frozen=True)
class Comparison(Generic[Model, Outcome]):
    """The outcomes of a model and of its baselines, found by name."""

    model: Model
    outcomes: tuple[Outcome, ...]

    @classmethod
    def of(
        cls,
        model: Any,
        X: Any,
        y: Any,
        owners: Any = None,
        *,
        test: tuple[Any, Any] | None = None,
        measured: bool | None = None,
        more: bool = False,
        tick: Tick | None = None,
    ) -> Self:
        """Fit a model and those to measure it against.

        owners : of the columns or of the rows of X, as ``fit`` takes them
        test : held-out samples and their targets, seen by no fit
        measured : whether any figure is computed on X and y, but for those of the fit; None is
            True unless the model is private
        more : also baselines that take longer, where there are some
        tick : called after every step or round of the model
        """
        fitted = clone(model)
        measured = not fitted._private if measured is None else measured
        noted: dict[str, Any] = {}
        if isinstance(fitted, AgreedEstimator):
            noted = {"evaluate_on": test, "measured": measured}
        fitted._fit(X, y, owners, tick=tick, **noted)
        if not measured and test is None:
            return cls(fitted, ())
        return cls(fitted, tuple(cls._outcomes(fitted, (X, y, owners), test, measured, more)))

    @staticmethod
    def _outcomes(model: Any, data: Any, test: Any, measured: bool, more: bool) -> Iterable[Any]:
        """Of the fitted model and, if they are measured, of its baselines."""
        raise NotImplementedError

    @property
    def measured(self) -> bool:
        """Whether there are figures on the training data."""
        return len(self.outcomes) > 1

    def __getitem__(self, name: str) -> Outcome:
        return next(outcome for outcome in self.outcomes if outcome.name == name)

    def beats(self, name: str, other: str, figure: str = "train_loss") -> bool:
        """Whether a model has less of a figure than another, or less loss on the held-out data."""
        figure = figure if self[name].test_loss is None else "test_loss"
        return bool(getattr(self[name], figure) < getattr(self[other], figure))
