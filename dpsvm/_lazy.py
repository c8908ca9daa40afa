"""Names of a package that are imported when they are first asked for (PEP 562)."""

from __future__ import annotations

import sys

TYPE_CHECKING = False  # typing itself would take a fifth of the time of ``dpsvm --version``
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import Any


def lazily(
    package: str, homes: Mapping[str, Sequence[str]], modules: Sequence[str] = ()
) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """Return a package's ``__getattr__`` and ``__dir__``.

    homes : the names that stand in each module
    modules : submodules that are names of the package as well

    >>> find, names = lazily("dpsvm", {"dpsvm.svm": ["SVC"]}, ["data"])
    >>> find("SVC").__name__, find("data").__name__
    ('SVC', 'dpsvm.data')
    >>> "SVC" in names()
    True
    """
    home_of = {name: home for home, names in homes.items() for name in names}

    def find(name: str) -> Any:
        from importlib import import_module

        if name in home_of:
            return getattr(import_module(home_of[name]), name)
        if name in modules:
            return import_module(f"{package}.{name}")
        raise AttributeError(f"module {package!r} has no attribute {name!r}", name=name)

    def names() -> list[str]:
        return sorted({*vars(sys.modules[package]), *home_of, *modules})

    return find, names
