"""What no run can have: numbers beyond their range, and sizes that no message can hold."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from dpsvm.federation.frames import LARGEST
from dpsvm.federation.job import Job
from dpsvm.federation.messages import Array
from dpsvm.federation.site import Refusal

MOST_ROUNDS = 1_000_000
"""Of a run, at most: the metrics of every round are in each snapshot."""

_MOST_NUMBERS = (LARGEST - (1 << 20)) // 8  # of a message, beside its header
_IN_RANGE = ("iterate", "neighbours", "query", "proposal")


class OutOfRange(Refusal):
    """Numbers that are not sent, or not taken.

    Whether a number that noise was added to is one of them is a look at it, as its answer would be.
    """


def require_numbers(job: Job, who: str, kind: str, arrays: Mapping[str, Array]) -> None:
    """Refuse numbers of a message that are not finite, or beyond the range that the job names.

    >>> import numpy as np
    >>> job = Job("r", "network", ("a", "b"), sum_range=10.0)
    >>> require_numbers(job, "a", "iterate", {"weights": np.array([1.0, -11.0])})
    Traceback (most recent call last):
    ...
    dpsvm.federation.limits.OutOfRange: a has a number beyond the sum_range = 10 of run r
    """
    for array in arrays.values():
        if array.dtype.kind != "f" or not array.size or kind == "contribution":  # which sums see to
            continue
        largest = float(max(-array.min(), array.max()))
        if not math.isfinite(largest):
            raise OutOfRange(f"{who} has a number that is not finite")
        if kind in _IN_RANGE and largest > job.sum_range:
            raise OutOfRange(
                f"{who} has a number beyond the sum_range = {job.sum_range:g} of run {job.run}"
            )


def require_frame(numbers: int, what: str) -> None:
    """Refuse what no message and no snapshot can hold, before anything is charged.

    >>> require_frame(2**40, "a price of all rows")
    Traceback (most recent call last):
    ...
    dpsvm.federation.site.Refusal: a price of all rows has 1099511627776 numbers, above 134086656
    """
    if numbers > _MOST_NUMBERS:
        raise Refusal(f"{what} has {numbers} numbers, above {_MOST_NUMBERS}")


def check_rounds(rounds: Any) -> None:
    """Refuse rounds that no run can have; whether it is a number is seen elsewhere.

    >>> check_rounds(10**9)
    Traceback (most recent call last):
    ...
    ValueError: rounds must be at most 1000000, got 1000000000
    """
    if isinstance(rounds, int) and rounds > MOST_ROUNDS:
        raise ValueError(f"rounds must be at most {MOST_ROUNDS}, got {rounds}")
