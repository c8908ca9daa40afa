"""The four algorithms by the paper's names: the penalty constant or growing, recycling or not."""

from __future__ import annotations

from typing import Any

from dpsvm.admm.network.estimators import NetworkADMM

GROWTH = 1.02
"""The growth of the penalties where a name asks for growth and none is given."""


def ADMM(graph: Any = "complete", **settings: Any) -> NetworkADMM:
    """Constant penalties, no recycling; with privacy="objective", dual variable perturbation.

    >>> ADMM("ring", C=2.0)
    NetworkADMM(C=2.0, graph='ring', recycle=False)
    """
    return NetworkADMM(graph, recycle=False, **_constant(settings, "ADMM"))


def MADMM(graph: Any = "complete", *, growth: Any = GROWTH, **settings: Any) -> NetworkADMM:
    """Growing penalties, no recycling; with privacy="objective", penalty perturbation.

    >>> MADMM("ring", growth=1.1)
    NetworkADMM(graph='ring', growth=1.1, recycle=False)
    """
    return NetworkADMM(graph, recycle=False, growth=growth, **settings)


def RADMM(graph: Any = "complete", **settings: Any) -> NetworkADMM:
    """Constant penalties, every second round recycled.

    >>> RADMM("ring", gamma=1.0)
    NetworkADMM(gamma=1.0, graph='ring')
    """
    return NetworkADMM(graph, recycle=True, **_constant(settings, "RADMM"))


def MRADMM(graph: Any = "complete", *, growth: Any = GROWTH, **settings: Any) -> NetworkADMM:
    """Growing penalties, every second round recycled.

    >>> MRADMM("ring").growth
    1.02
    """
    return NetworkADMM(graph, recycle=True, growth=growth, **settings)


def _constant(settings: dict[str, Any], name: str) -> dict[str, Any]:
    if "growth" in settings:
        raise ValueError(f"{name} has constant penalties: M{name} is the one that takes a growth")
    return settings
