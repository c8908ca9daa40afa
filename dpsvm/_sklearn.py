"""What differs between the releases of scikit-learn that are supported, 1.6 to 1.9."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

import sklearn
from sklearn.utils._param_validation import StrOptions

Method = TypeVar("Method")

RELEASE: tuple[int, int] = tuple(map(int, sklearn.__version__.split(".")[:2]))  # type: ignore[assignment]

PROBABILITY_DEPRECATED = RELEASE >= (1, 9)
"""Whether ``probability=`` of the classifiers warns that it will be removed."""

PROBABILITY_DEFAULT: Any = "deprecated" if PROBABILITY_DEPRECATED else False


def one_of(*names: str) -> Any:
    """A constraint of scikit-learn's that tells its names in this order, whatever the hash seed.

    >>> print(one_of("ridge", "lasso"))
    a str among {'ridge', 'lasso'}
    """
    return StrOptions(dict.fromkeys(names).keys())


if TYPE_CHECKING or RELEASE >= (1, 9):
    from sklearn.callback import CallbackSupportMixin as CallbackSupportMixin
    from sklearn.callback import with_callbacks as with_callbacks
else:

    class _NoCallbacks:
        """A fit that nobody listens to."""

        def subcontext(self, **_: Any) -> _NoCallbacks:
            return self

        def call_on_fit_task_begin(self, **_: Any) -> None:
            """Tell nobody."""

        def call_on_fit_task_end(self, **_: Any) -> bool:
            return False

    class CallbackSupportMixin:
        """Stands in for a protocol that scikit-learn has from 1.9 on."""

        def _init_callback_context(self, **_: Any) -> _NoCallbacks:
            return _NoCallbacks()

    def with_callbacks(method: Method) -> Method:
        """Return the method as it is."""
        return method
