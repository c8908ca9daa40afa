"""One private fit, whichever family makes it: priced, warned of, charged, drawn, told.

A family supplies a price, which follows from public numbers alone, and adds the noise. All else is
here, in this order:

    Release(price, ..)   what can be refused has been; nothing is drawn and nothing charged yet
    release.charge()     warns of a seed, of a search and of a mere claim, charges the accountant,
                         and only then lets the noise be drawn
    tell(model, release) the guarantee, under names that say what it covers, and the report

What a fitted model keeps is what its guarantee covers, and what was public before. Whatever else a
private fit could tell is not computed, or, where somebody asked to watch, is left out of pickles.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from types import FrameType
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, Self
from weakref import WeakKeyDictionary

from dpsvm._renamed import check_names
from dpsvm.privacy.accountant import BudgetAccountant
from dpsvm.privacy.accounting import Event
from dpsvm.privacy.guarantee import Guarantee
from dpsvm.privacy.noise import Noise
from dpsvm.warnings import PrivacyLeakWarning, warn_caller

if TYPE_CHECKING:
    from sklearn.utils import Tags

FLOATING_POINT = (
    "The proof is for real numbers. What is released is rounded to a public grid; noise inside a "
    "solver, and the time a fit takes, are not protected against."
)

FACTS = ("epsilon", "delta", "neighbouring", "covers", "seeded")
"""Of a guarantee, each under its own name in a report; the guarantee's own words say them all."""

_SEARCHES = tuple(
    f"sklearn.model_selection.{name}" for name in ("_search", "_search_successive_halving")
)
_TOLD: WeakKeyDictionary[Any, Any] = WeakKeyDictionary()
"""Searches that were warned of, and the results that each had from an earlier fit."""


class Priced(Protocol):
    """What a family supplies."""

    @property
    def event(self) -> Event:
        """What a release is charged as."""

    @property
    def guarantee(self) -> Guarantee | None:
        """What is proved of it; None where nothing is."""

    @property
    def figures(self) -> dict[str, Any]:
        """What a report tells of it beside that, from public numbers."""


@dataclass(frozen=True)
class Price:
    """What a release costs, and what is proved of it."""

    event: Event
    guarantee: Guarantee
    figures: dict[str, Any] = field(default_factory=dict)


class Release:
    """A release under way.

    price : what it costs, from public numbers
    label : what it is, for the ledger
    random_state : None for the operating system's entropy; a seed warns, and marks the guarantee

    >>> from dpsvm.privacy import BudgetAccountant, Guarantee, Pure
    >>> accountant = BudgetAccountant(1.0)
    >>> price = Price(Pure(0.5), Guarantee(0.5, 0.0, "add-remove"))
    >>> release = Release(price, "count of ravens", accountant=accountant)
    >>> release.noise.laplace(2.0)
    Traceback (most recent call last):
    ...
    RuntimeError: noise is drawn once it is paid for, and not before
    >>> told = 17 + release.charge().laplace(2.0)
    >>> accountant.remaining()
    0.5
    """

    def __init__(
        self,
        price: Priced,
        label: str,
        *,
        accountant: BudgetAccountant | None = None,
        random_state: Any = None,
    ) -> None:
        if price.guarantee is None and accountant is not None:
            raise ValueError(f"{label} has no guarantee, so it cannot charge an accountant")
        self._price, self._label, self._accountant = price, label, accountant
        self.noise = Noise(random_state, held=True)
        self.guarantee: Guarantee | None = None
        if price.guarantee is not None:
            self.guarantee = replace(price.guarantee, seeded=self.noise.seeded)

    @classmethod
    def of(cls, owner: Any, price: Priced, what: str = "") -> Release:
        """The release of an estimator or solver, which has an accountant and a random state."""
        label = f"{type(owner).__name__} {what}".rstrip()
        return cls(price, label, accountant=owner.accountant, random_state=owner.random_state)

    def charge(self) -> Noise:
        """Warn, charge, and only then let the noise be drawn. A charge stands whatever follows."""
        if self.noise.seeded:
            warn_caller(
                "random_state makes the noise repeatable: whoever knows or guesses it can take "
                "the noise away. A seed is for experiments; leave random_state=None to release a "
                "model.",
                PrivacyLeakWarning,
            )
        warn_if_searched()
        if self.guarantee is None:
            warn_caller(
                f"{self._label} gives no privacy guarantee: what its paper claims is reported as "
                "claimed",
                PrivacyLeakWarning,
            )
        elif self._accountant is not None:
            self._accountant.spend(
                self._price.event, label=self._label, neighbouring=self.guarantee.neighbouring
            )
        self.noise.let_go()
        return self.noise

    @property
    def report(self) -> dict[str, Any]:
        """The guarantee, a family's figures, and where the noise is from."""
        return report_of(self.guarantee, self._price.figures, seeded=self.noise.seeded)


def report_of(
    guarantee: Guarantee | None,
    figures: dict[str, Any],
    *,
    seeded: bool,
    source: str = "the operating system",
) -> dict[str, Any]:
    """What is told of a release: the guarantee first, a family's figures, where the noise is from.

    >>> report_of(Guarantee(1.0, 0.0, "replace"), {"rounds": 3}, seeded=False)["guarantee"]
    'epsilon = 1 (replace)'
    """
    return {
        "guarantee": None if guarantee is None else str(guarantee),
        **{name: getattr(guarantee, name, None) for name in FACTS},
        **figures,
        "floating_point": FLOATING_POINT,
        "noise_source": "a seed: for experiments only" if seeded else source,
        "seeded": seeded,
    }


def tell(model: Any, release: Release | None) -> None:
    """Set what a fitted model tells of its privacy, or that it has none."""
    if release is None:
        keep_guarantee(model, None, None)
    else:
        keep_guarantee(model, release.guarantee, release.report)


def keep_guarantee(model: Any, guarantee: Guarantee | None, report: dict[str, Any] | None) -> None:
    """Set what a fitted model tells of its privacy; of a fit without any, None throughout.

    ``epsilon_``, ``delta_``, ``neighbouring_`` and ``privacy_guarantee_`` are of the model itself.

    >>> from types import SimpleNamespace
    >>> model = SimpleNamespace()
    >>> keep_guarantee(model, Guarantee(1.0, 1e-5, "replace"), {})
    >>> model.epsilon_, model.delta_, model.neighbouring_
    (1.0, 1e-05, 'replace')
    >>> keep_guarantee(model, Guarantee(1.0, 1e-5, "row", covers="messages"), {})
    >>> model.epsilon_ is model.privacy_guarantee_ is None
    True
    """
    whole = guarantee if guarantee is not None and guarantee.covers == "model" else None
    model.privacy_guarantee_, model.privacy_report_ = whole, report
    for name in ("epsilon", "delta", "neighbouring"):
        setattr(model, f"{name}_", getattr(whole, name, None))


class PrivateEstimator:
    """What every estimator that can be fitted privately has in common."""

    _gone: ClassVar[Mapping[str, str]] = {}
    """Names of parameters that are gone, and what they are called now."""

    @property
    def _private(self) -> bool:
        """Whether a fit with the present settings is private."""
        own: Any = self
        return getattr(own, "privacy", own.epsilon) is not None

    def _forget(self) -> None:
        """Begin a fit: one that fails leaves no fitted model."""
        for name in [name for name in vars(self) if name.endswith("_")]:
            delattr(self, name)

    def set_params(self, **params: Any) -> Self:
        """Set parameters; who uses a name that is gone is told what it is called now."""
        check_names(params, self._gone, f"{type(self).__name__}: ")
        super().set_params(**params)  # type: ignore[misc]
        return self

    def __sklearn_clone__(self) -> Any:
        if self._private:
            warn_if_searched()
        return super().__sklearn_clone__()  # type: ignore[misc]

    def __sklearn_tags__(self) -> Tags:
        tags: Tags = super().__sklearn_tags__()  # type: ignore[misc]
        tags.input_tags.sparse = True
        return tags

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "coef_")


def warn_if_searched() -> None:
    """Warn, once a search of scikit-learn's that is the caller: no guarantee covers its choice.

    A search has no hook to tell an estimator that it is being searched over, so the frames above
    are looked at: when it clones the estimator, which it does in the caller's own process however
    many others make the fits, and when a fit is charged.
    """
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        searching = frame.f_globals.get("__name__") in _SEARCHES
        search = frame.f_locals.get("self") if searching else None
        if search is not None:  # a generator of the search has no self, its fit has
            earlier = vars(search).get("cv_results_", False)  # set when a fit ends
            if _TOLD.get(search) is not earlier:
                warn_caller(
                    "a search reports the winner on validation rows exactly: every fit is charged, "
                    "but the choice itself is covered by no guarantee. Fit the candidates and take "
                    "dpsvm.privacy.choose, or fix the parameters beforehand.",
                    PrivacyLeakWarning,
                )
                _TOLD[search] = earlier
            return
        frame = frame.f_back
