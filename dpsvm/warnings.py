"""What is said when a result carries no privacy guarantee, and to whom a warning is said."""

from __future__ import annotations

import sys
import warnings
from types import FrameType

_OURS = ("dpsvm.", "sklearn.", "joblib.")  # what stands between a warning and whoever it is for


class PrivacyLeakWarning(RuntimeWarning):
    """A result was computed in a way that no privacy guarantee covers.

    >>> import warnings
    >>> from dpsvm import SVC
    >>> with warnings.catch_warnings(record=True) as caught:
    ...     warnings.simplefilter("always")
    ...     fitted = SVC(selector="dpwss", random_state=0).fit([[0.0], [1.0]], [0, 1])
    >>> [warning.category.__name__ for warning in caught]
    ['PrivacyLeakWarning']
    """


def dpwss_notice(selection_epsilon: float, kernel: str) -> str:
    """Return the notice that goes with every model trained with the selector ``dpwss``.

    >>> print(dpwss_notice(0.5, "linear").partition(":")[0])
    selector='dpwss' gives no privacy guarantee
    """
    notice = (
        f"selector='dpwss' gives no privacy guarantee: selection_epsilon={selection_epsilon:g} "
        "sets how sharply each selection prefers the better pair and is no privacy budget. The "
        "pairs that can be drawn depend on the data, so that removing one record can make a "
        "possible selection impossible; every update then reads raw rows; and whatever one "
        "selection costs, the n_selections_ made all add to it. No epsilon is stated for the fit."
    )
    if kernel != "linear":
        notice += f" With the {kernel} kernel the model itself contains training rows."
    return notice


def warn_caller(message: str, category: type[Warning]) -> None:
    """Warn at the line outside of this library, and of those it runs in, that led here.

    >>> warn_caller("", DeprecationWarning)
    """
    frame: FrameType | None = sys._getframe(1)
    level = 2
    while frame is not None and f"{frame.f_globals.get('__name__')}.".startswith(_OURS):
        frame, level = frame.f_back, level + 1
    warnings.warn(message, category, stacklevel=level)
