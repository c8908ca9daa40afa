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
