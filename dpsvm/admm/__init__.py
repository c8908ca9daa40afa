"""Distributed optimisation by the alternating direction method of multipliers.

:class:`SharingADMMClassifier` and :class:`SharingADMMRegressor` fit one model over columns that
several parties hold. Their machinery, party and coordinator apart, is in ``dpsvm.admm.sharing``.

:class:`NetworkADMM` fits one model over samples that the nodes of a network hold, and ``ADMM``,
``MADMM``, ``RADMM`` and ``MRADMM`` are its four forms by name. Its machinery, node and messages
apart, is in ``dpsvm.admm.network``.
"""

from __future__ import annotations

from dpsvm.admm.network.estimators import NetworkADMM
from dpsvm.admm.network.presets import ADMM, MADMM, MRADMM, RADMM
from dpsvm.admm.sharing.estimators import SharingADMMClassifier, SharingADMMRegressor
from dpsvm.admm.sharing.regularisers import Ball, Box

__all__ = [
    "ADMM",
    "MADMM",
    "MRADMM",
    "RADMM",
    "Ball",
    "Box",
    "NetworkADMM",
    "SharingADMMClassifier",
    "SharingADMMRegressor",
]
