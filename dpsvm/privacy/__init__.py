"""Privacy that holds: noise, accounting and a budget.

>>> from dpsvm.privacy import BudgetAccountant, Gaussian
>>> budget = BudgetAccountant(epsilon=1.0, delta=1e-5)
>>> budget.spend(Gaussian(mu=0.2), label="mean age")
>>> round(budget.total().epsilon, 3)
0.726
"""

from __future__ import annotations

from dpsvm.privacy.accountant import BudgetAccountant, BudgetError
from dpsvm.privacy.accounting import (
    Approximate,
    Folded,
    Gaussian,
    Pure,
    Rdp,
    ZCdp,
    calibrate,
    epsilon_of,
)
from dpsvm.privacy.estimators import PrivacyPlan, PrivateLogisticRegression, PrivateSVC
from dpsvm.privacy.guarantee import Guarantee
from dpsvm.privacy.noise import Noise
from dpsvm.privacy.selection import choose, noisy_best

__all__ = [
    "Approximate",
    "BudgetAccountant",
    "BudgetError",
    "Folded",
    "Gaussian",
    "Guarantee",
    "Noise",
    "PrivacyPlan",
    "PrivateLogisticRegression",
    "PrivateSVC",
    "Pure",
    "Rdp",
    "ZCdp",
    "calibrate",
    "choose",
    "epsilon_of",
    "noisy_best",
]
