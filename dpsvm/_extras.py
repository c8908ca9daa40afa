"""Packages that an extra adds: what to say where one is missing."""

from __future__ import annotations

from importlib.util import find_spec


def missing(module: str, use: str) -> str | None:
    """What to say where a module of the extra ``report`` is needed; None if it is installed.

    >>> missing("no_such_module", "--plot")
    "--plot needs no_such_module: pip install 'dpsvm[report]'"
    """
    if find_spec(module) is not None:
        return None
    return f"{use} needs {module}: pip install 'dpsvm[report]'"
