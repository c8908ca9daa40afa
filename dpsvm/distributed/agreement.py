"""What all sides of a run agree on before it begins: settings and public sizes, and no data.

Every family has an ``Agreement``, made by ``Agreement.of(settings, sizes, ..)``, settings being an
unfitted estimator or solver. It refuses what cannot be run, and has

    rounds                        how many there are at most
    price, member_price, lead_price
                                  of a whole fit, and of what one side's own data pay for: None
                                  where nothing is private
    member(place, data, noise)    a party or a node
    lead(..)                      the coordinator, which has the labels, or a network's relay

Estimators run a member and a lead of it in one process; across organisations everybody makes their
own from the same settings.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from dpsvm.privacy.release import Price


class Agreement:
    """What an agreement of any family tells of its privacy."""

    rounds: int
    calibration: Any
    """The noise of a private run, and what it costs; None without privacy."""

    @property
    def price(self) -> Price | None:
        """Of a whole fit."""
        found = self.calibration
        if found is None or found.guarantee is None:
            return None
        return Price(found.event, found.guarantee)

    @property
    def member_price(self) -> Price | None:
        """Of what one member has."""
        return self.price

    @property
    def lead_price(self) -> Price | None:
        """Of what the lead has."""
        return None


def check_goes_with(
    settings: Any,
    rows: Iterable[tuple[Sequence[str], bool, str]],
    told: str = "got {value!r} without it",
) -> None:
    """Refuse settings that are given and would have no effect.

    rows : names of settings, whether they have an effect, and what they go with

    >>> from types import SimpleNamespace
    >>> check_goes_with(SimpleNamespace(gamma=0.5), [(["gamma"], False, "recycle=True")])
    Traceback (most recent call last):
    ...
    ValueError: gamma goes with recycle=True, got 0.5 without it
    """
    for names, used, other in rows:
        for name in names if not used else ():
            if (value := getattr(settings, name)) is not None:
                got = told.format(name=name, value=value)
                raise ValueError(f"{name} goes with {other}, {got}")
