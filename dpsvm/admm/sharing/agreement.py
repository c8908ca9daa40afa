"""What the parties and the label owner agree on (:mod:`dpsvm.distributed.agreement`)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from numbers import Integral, Real
from typing import Any

from numpy.typing import NDArray

from dpsvm._arrays import Array
from dpsvm.admm.sharing.columns import Columns
from dpsvm.admm.sharing.coordinator import Coordinator
from dpsvm.admm.sharing.party import Party
from dpsvm.admm.sharing.privacy import BOUNDS, MODES, Calibration, PublicBounds, calibrate
from dpsvm.admm.sharing.regularisers import PENALTIES, Ball, Box
from dpsvm.admm.sharing.terms import METHODS, Terms, automatic_rho
from dpsvm.constraints import Boolean, Instance, Interval, Names, Nothing, Table
from dpsvm.constraints import check_settings as check_table
from dpsvm.distributed import agreement as distributed
from dpsvm.distributed.agreement import check_goes_with
from dpsvm.distributed.labels import (
    checked_labels,
    checked_numbers,
    known_signs,
    signs_of,
    two_classes,
)
from dpsvm.losses import PredictionLoss, Squared, make_prediction_loss
from dpsvm.names import PREDICTION_LOSSES
from dpsvm.privacy.accountant import BudgetAccountant
from dpsvm.privacy.noise import Noise
from dpsvm.privacy.release import Price
from dpsvm.privacy.rounding import check_scale

_RELAXATION = 1.8
_PRIVATE = ("epsilon", "delta", *BOUNDS, "accountant")

CONSTRAINTS: Table = {
    "penalty": [Names(PENALTIES)],
    "method": [Names(METHODS)],
    "adaptive_rho": [Boolean()],
    "constraint": [Instance(Box), Instance(Ball), Nothing()],
    "rounds": [Interval(Integral, 1, None, closed="left")],
    "tol": [Interval(Real, 0, None, closed="left")],
    "intercept_party": [Interval(Integral, 0, None, closed="left"), Nothing()],
    "privacy": [Names(MODES), Nothing()],
    "accountant": [Instance(BudgetAccountant), Nothing()],
    "track": [Boolean()],
    "diagnose": [Boolean()],
}
"""What the settings may be; those that are left out are checked where they are used."""

_OF_LOSSES: Table = {
    "loss": [Names(PREDICTION_LOSSES)],
    "width": [Interval(Real, 0, None, closed="neither")],
}


def check_settings(settings: Any) -> None:
    """Refuse what is wrong by itself, by name and value."""
    check_table(settings, CONSTRAINTS)
    if hasattr(settings, "loss"):
        check_table(settings, _OF_LOSSES)


@dataclass(frozen=True, kw_only=True, eq=False)
class Agreement(distributed.Agreement):
    """The terms of a run, its loss, its noise and its price.

    >>> from dpsvm.admm import SharingADMMClassifier
    >>> agreed = Agreement.of(SharingADMMClassifier(rounds=9), sizes=[3, 4])
    >>> agreed.rounds, agreed.price, agreed.terms.parties
    (9, None, 2)
    >>> bounds = {"data_norm": 1.0, "radius": 1.0, "target_bound": 2.0}
    >>> private = SharingADMMClassifier(privacy="row", epsilon=1.0, delta=1e-5, **bounds)
    >>> print(Agreement.of(private, sizes=[3, 4]).member_price.guarantee)
    epsilon = 1, delta = 1e-05 (row), of the messages alone
    """

    sizes: tuple[int, ...]
    loss: PredictionLoss
    regression: bool
    terms: Terms
    rounds: int
    tol: float
    adaptive: bool
    intercept_party: int | None
    calibration: Calibration | None

    @classmethod
    def of(cls, settings: Any, sizes: Sequence[int]) -> Agreement:
        """The agreement of settings, those of an estimator, for parties with so many columns.

        Settings without a loss are those of a regression.
        """
        check_settings(settings)
        constant = None if settings.intercept_party is None else int(settings.intercept_party)
        if constant is not None and constant >= len(sizes):
            raise ValueError(
                f"intercept_party must be below {len(sizes)}, the number of parties, got "
                f"{constant!r}"
            )
        loss: PredictionLoss = Squared()
        if not (regression := not hasattr(settings, "loss")):
            loss = make_prediction_loss(settings.loss, float(settings.width))
        terms = _terms(settings, loss, len(sizes))
        with_constant = [size + (place == constant) for place, size in enumerate(sizes)]
        return cls(
            sizes=tuple(sizes),
            loss=loss,
            regression=regression,
            terms=terms,
            rounds=int(settings.rounds),
            tol=float(settings.tol),
            adaptive=bool(settings.adaptive_rho),
            intercept_party=constant,
            calibration=_calibration(settings, terms, with_constant),
        )

    @property
    def member_price(self) -> Price | None:
        """Of one party's messages; a whole fit pays for a record that lies in all the parties."""
        made_for, whole = self.calibration, self.price
        return replace(whole, event=made_for.party_event) if made_for and whole else None

    def columns(self, tables: Sequence[Any]) -> list[Columns]:
        """The columns of every party, with the constant one where one was asked for."""
        return [self.columns_of(place, table) for place, table in enumerate(tables)]

    def check_sizes(self, place: int, n_samples: int) -> None:
        """Refuse public numbers that the noise of a party is not made for."""
        if self.calibration is not None:
            constant = place == self.intercept_party
            if constant:
                self.calibration.check_clips()
            features = self.sizes[place] + constant
            self.calibration.check_sizes(n_samples, features, constant=constant)

    def clipped(self, place: int, table: Any) -> Any:
        """A table within the public bounds of its rows or columns, each a function of itself."""
        made_for = self.calibration
        if made_for is None:
            return table
        return made_for.clipped(table, constant=place == self.intercept_party)

    def columns_of(self, place: int, table: Any) -> Columns:
        """The columns of one party."""
        return Columns(table, constant=place == self.intercept_party)

    def target(self, y: Any) -> tuple[Array, NDArray[Any] | None]:
        """What is predicted, and the classes, of which the second is +1; None in a regression."""
        if self.regression:
            return checked_numbers(y), None
        labels = checked_labels(y)
        classes = two_classes(labels, None)
        return signs_of(labels, classes), classes

    def known_target(self, y: Any, classes: NDArray[Any] | None) -> Array:
        """The same of other samples, which have no other classes."""
        return checked_numbers(y) if classes is None else known_signs(y, classes)

    def member(self, place: int, columns: Columns, noise: Noise) -> Party:
        """A party."""
        made_for = self.calibration
        perturbation = None if made_for is None else made_for.perturbation(place, noise)
        return Party(place, columns, self.terms, perturbation)

    def lead(self, target: Array) -> Coordinator:
        """The owner of the labels, which are not protected."""
        return Coordinator(
            target,
            self.loss,
            self.terms,
            rounds=self.rounds,
            tol=self.tol,
            adaptive=self.adaptive,
        )


def _terms(settings: Any, loss: PredictionLoss, parties: int) -> Terms:
    C = check_scale(settings.C, "C")
    jacobi = settings.method == "jacobi"
    kappa = None if settings.kappa is None else check_scale(settings.kappa, "kappa")
    if jacobi and kappa not in (None, 1.0):
        raise ValueError(f"method='jacobi' is kappa = 1, got kappa = {settings.kappa!r}")
    kappa = 1.0 if jacobi else kappa
    relaxation = settings.relaxation
    if relaxation is None:
        standard = kappa is None or kappa == parties
        plain = standard and not jacobi and settings.privacy is None
        relaxation = _RELAXATION if plain else 1.0
    constraint = settings.constraint
    if settings.privacy == "row" and constraint is None and settings.radius is not None:
        constraint = Ball(check_scale(settings.radius, "radius"))
    rho = settings.rho
    if isinstance(rho, str):
        if rho != "auto":
            raise ValueError(f"rho must be 'auto' or a finite number above 0, got {rho!r}")
        rho = automatic_rho(loss, C, parties)
    return Terms.of(
        parties=parties,
        C=C,
        lam=settings.lam,
        rho=rho,
        kappa=kappa,
        relaxation=relaxation,
        penalty=settings.penalty,
        constraint=constraint,
    )


def _calibration(settings: Any, terms: Terms, sizes: list[int]) -> Calibration | None:
    """The noise of a private mode; without one, nothing that goes with it may be given."""
    mode = settings.privacy
    rows = [(_PRIVATE, mode is not None, "a private mode")]
    check_goes_with(settings, rows, "got {name}={value!r} and privacy=None")
    if mode is None:
        return None
    if settings.diagnose:
        raise ValueError("diagnose reads the columns without noise: fit without privacy for it")
    if settings.adaptive_rho:
        raise ValueError("a private mode needs a fixed rho, got adaptive_rho=True")
    if settings.epsilon is None or settings.delta is None:
        missing = "an epsilon" if settings.epsilon is None else "a delta"
        raise ValueError(f"privacy={mode!r} needs {missing}, got None")
    bounds = PublicBounds(**{name: getattr(settings, name) for name in BOUNDS})
    return calibrate(
        mode, terms, sizes, int(settings.rounds), settings.epsilon, settings.delta, bounds
    )
