"""Privacy that holds: private classifiers, noise, accounting and a budget.

``dpsvm.privacy.audit`` tests what claims to be private, here or elsewhere.

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
from dpsvm.privacy.estimators import PrivateLogisticRegression, PrivateSVC
from dpsvm.privacy.guarantee import Guarantee
from dpsvm.privacy.model_file import load_private, save_private
from dpsvm.privacy.noise import Noise
from dpsvm.privacy.plan import PrivacyPlan
from dpsvm.privacy.release import Price, Release
from dpsvm.privacy.selection import choose, noisy_best

__all__ = [
    "Approximate",
    "BudgetAccountant",
    "BudgetError",
    "Folded",
    "Gaussian",
    "Guarantee",
    "Noise",
    "Price",
    "PrivacyPlan",
    "PrivateLogisticRegression",
    "PrivateSVC",
    "Pure",
    "Rdp",
    "Release",
    "ZCdp",
    "calibrate",
    "choose",
    "epsilon_of",
    "load_private",
    "noisy_best",
    "save_private",
]
