"""Prices by the package dp-accounting, beside which the library's own are tested."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from dpsvm.privacy.accounting import Event, Gaussian, ZCdp


def dp_accounting_epsilon(events: Sequence[Event], delta: float, *, method: str = "pld") -> float:
    """The smallest epsilon of several releases by the accountant "pld" or "rdp".

    An event that the one chosen does not take is a ValueError.
    """
    from dp_accounting import dp_event
    from dp_accounting.pld import PLDAccountant
    from dp_accounting.rdp import RdpAccountant

    accountant = PLDAccountant() if method == "pld" else RdpAccountant()
    makers: dict[type, Callable[[Any], Any]] = {
        Gaussian: lambda e: dp_event.GaussianDpEvent(1 / e.mu),
        ZCdp: lambda e: dp_event.ZCDpEvent(e.rho),
    }
    for event in events:
        make = makers.get(type(event))
        if make is None or not accountant.supports(made := make(event)):
            raise ValueError(f"dp-accounting's {method} accountant does not take {event!r}")
        accountant.compose(made)
    return float(accountant.get_epsilon(delta))
