"""dpsvm's classes in the place of scikit-learn's, for code that asks for ``sklearn.svm``.

A patch changes names, never objects. A name in any loaded module that stands for one of
scikit-learn's five classes comes to stand for dpsvm's, whenever and however it was imported, and
what is imported later finds dpsvm's in ``sklearn.svm``. Left as they are:

- ``sklearn.svm._classes``, where pickles look: a pickle made by scikit-learn loads as what it was;
- the names of a class in modules that derive others from it, and may call it as their base;
- machines that exist already, and classes kept in containers, closures or default arguments.

The patch belongs to the process: all threads see it, and one lock keeps two of them from patching
at once. A name that another thread imports meanwhile is bound to one class or the other.
With ``DPSVM_VERBOSE=1`` standard error is told what was taken over.
"""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import ModuleType
from typing import Any, NamedTuple

NAMES = ("SVC", "NuSVC", "SVR", "NuSVR", "OneClassSVM")
"""The classes that are put in."""

_HOME = "sklearn.svm._classes"
_RECORD = "__dpsvm_patch__"  # in sklearn.svm, beside what it tells of: one for the process
_LOCK = threading.Lock()


class _Binding(NamedTuple):
    """A name in a module, and what stood there."""

    module: ModuleType
    name: str
    theirs: type
    ours: type

    def __str__(self) -> str:
        return f"{self.module.__name__}.{self.name}"


def patch_sklearn() -> None:
    """Put dpsvm's five classes in the place of scikit-learn's, until :func:`unpatch_sklearn`.

    RuntimeError if they are there already, or if another library has put its own there.

    >>> from sklearn.svm import SVC
    >>> patch_sklearn()
    >>> import sklearn.svm
    >>> sklearn.svm.SVC
    <class 'dpsvm.svm.classification.SVC'>
    >>> unpatch_sklearn()
    >>> sklearn.svm.SVC
    <class 'sklearn.svm._classes.SVC'>
    """
    import sklearn.svm

    import dpsvm.svm
    from dpsvm.svm.sklearn_form import their_class

    with _LOCK:
        if _RECORD in vars(sklearn.svm):
            raise RuntimeError(
                "scikit-learn is patched already: its SVMs are dpsvm's, by patch_sklearn, "
                "patched_sklearn or dpsvm run"
            )
        pairs = [(their_class(name), getattr(dpsvm.svm, name)) for name in NAMES]
        for theirs, _ in pairs:
            found = getattr(sklearn.svm, theirs.__name__)
            if found is not theirs:
                raise RuntimeError(
                    f"sklearn.svm.{theirs.__name__} is {found.__module__}.{found.__qualname__}, "
                    "not scikit-learn's own: undo that first"
                )
        bindings, left = _find(pairs)
        for binding in bindings:
            vars(binding.module)[binding.name] = binding.ours
        vars(sklearn.svm)[_RECORD] = bindings
    _tell("taken over", bindings)
    _tell("left, since classes are derived from it there", left)


def unpatch_sklearn() -> None:
    """Give scikit-learn's classes their names back, wherever :func:`patch_sklearn` took them.

    A name that was given another value since keeps it, and one that was imported while dpsvm's
    classes were in place goes on to stand for dpsvm's. RuntimeError if there is no patch to undo.

    >>> unpatch_sklearn()
    Traceback (most recent call last):
    ...
    RuntimeError: scikit-learn is not patched: there is nothing to undo
    """
    import sklearn.svm

    with _LOCK:
        bindings: list[_Binding] | None = vars(sklearn.svm).pop(_RECORD, None)
        if bindings is None:
            raise RuntimeError("scikit-learn is not patched: there is nothing to undo")
        for module, name, theirs, ours in bindings:
            if vars(module).get(name) is ours:
                vars(module)[name] = theirs
    _tell("given back", bindings)


@contextmanager
def patched_sklearn() -> Iterator[None]:
    """Put dpsvm's classes in the place of scikit-learn's for the length of a block.

    >>> import sklearn.svm
    >>> with patched_sklearn():
    ...     machine = sklearn.svm.SVC()
    >>> type(machine)
    <class 'dpsvm.svm.classification.SVC'>
    """
    patch_sklearn()
    try:
        yield
    finally:
        unpatch_sklearn()


def _find(pairs: list[tuple[type, type]]) -> tuple[list[_Binding], list[_Binding]]:
    """Return the names to take over in the loaded modules, and those to leave."""
    known = {id(theirs): (theirs, ours) for theirs, ours in pairs}
    modules = {id(one): one for one in sys.modules.copy().values() if isinstance(one, ModuleType)}
    modules.pop(id(sys.modules[_HOME]))
    bindings: list[_Binding] = []
    left: list[_Binding] = []
    for module in modules.values():
        for name, value in vars(module).copy().items():
            if id(value) in known:
                binding = _Binding(module, name, *known[id(value)])
                kept = any(sys.modules.get(one.__module__) is module for one in _derived(value))
                (left if kept else bindings).append(binding)
    return bindings, left


def _derived(base: type) -> Iterator[type]:
    one: type
    for one in type.__subclasses__(base):
        yield one
        yield from _derived(one)


def _tell(what: str, bindings: list[Any]) -> None:
    if bindings and os.environ.get("DPSVM_VERBOSE", "0") not in ("", "0"):
        print(f"dpsvm: {what}: {', '.join(map(str, bindings))}", file=sys.stderr, flush=True)
