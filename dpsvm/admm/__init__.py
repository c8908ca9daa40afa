"""Distributed optimisation by the alternating direction method of multipliers.

:class:`SharingADMMClassifier` and :class:`SharingADMMRegressor` fit one model over columns that
several parties hold. Their machinery, party and coordinator apart, is in ``dpsvm.admm.sharing``.
"""

from __future__ import annotations

from dpsvm.admm.sharing.estimators import SharingADMMClassifier, SharingADMMRegressor
from dpsvm.admm.sharing.regularisers import Ball, Box

__all__ = ["Ball", "Box", "SharingADMMClassifier", "SharingADMMRegressor"]
