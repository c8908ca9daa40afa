"""What is said when a result carries no privacy guarantee, and to whom a warning is said."""

from __future__ import annotations

import sys
import warnings
from types import FrameType

# What stands between a warning and whoever it is for.
_OURS = ("dpsvm.", "sklearn.", "joblib.", "contextlib.")


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


def warn_caller(message: str, category: type[Warning]) -> None:
    """Warn at the line outside of this library, and of those it runs in, that led here.

    >>> warn_caller("", DeprecationWarning)
    """
    frame: FrameType | None = sys._getframe(1)
    level = 2
    while frame is not None and f"{frame.f_globals.get('__name__')}.".startswith(_OURS):
        frame, level = frame.f_back, level + 1
    warnings.warn(message, category, stacklevel=level)
