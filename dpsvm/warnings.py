"""What is said when a result carries no privacy guarantee."""

from __future__ import annotations


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
