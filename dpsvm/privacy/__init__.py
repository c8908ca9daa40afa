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
    Gaussian,
    Pure,
    Rdp,
    ZCdp,
    calibrate,
    epsilon_of,
)
from dpsvm.privacy.guarantee import Guarantee
from dpsvm.privacy.noise import Noise

__all__ = [
    "Approximate",
    "BudgetAccountant",
    "BudgetError",
    "Gaussian",
    "Guarantee",
    "Noise",
    "Pure",
    "Rdp",
    "ZCdp",
    "calibrate",
    "epsilon_of",
]
