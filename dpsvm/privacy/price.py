"""What a private run costs."""

from __future__ import annotations

from dataclasses import dataclass

from dpsvm.privacy.accounting import Event
from dpsvm.privacy.guarantee import Guarantee


@dataclass(frozen=True)
class Price:
    """What a run is charged as, and what is proved of it."""

    event: Event
    guarantee: Guarantee
