"""A lower bound on the epsilon of any estimator, from training with and without one record.

The bound is empirical and comes with its confidence. It can refute a claim; it never confirms one.
"""

from __future__ import annotations

from dpsvm.privacy.audit.auditing import audit
from dpsvm.privacy.audit.bounds import epsilon_at_least
from dpsvm.privacy.audit.choice import Rule
from dpsvm.privacy.audit.result import AuditResult
from dpsvm.privacy.audit.worlds import CANARIES, NEIGHBOURING, Worlds, make_worlds

__all__ = [
    "CANARIES",
    "NEIGHBOURING",
    "AuditResult",
    "Rule",
    "Worlds",
    "audit",
    "epsilon_at_least",
    "make_worlds",
]
