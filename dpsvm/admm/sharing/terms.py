"""What the parties and the coordinator agree on before the first round: public numbers, no data."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from dpsvm._arrays import Array
from dpsvm.admm.sharing.regularisers import Constraint, Penalty, make_penalty
from dpsvm.constraints import real
from dpsvm.losses import PredictionLoss
from dpsvm.privacy.rounding import check_scale

METHODS = ("sharing", "jacobi")
"""kappa = M, which converges for every rho, or kappa = 1, the paper's, which need not."""


@dataclass(frozen=True, kw_only=True)
class Terms:
    """The terms of a run.

        minimise  C sum_i l(z_i; y_i) + lam sum_m R(x_m)  subject to  z = sum_m D_m x_m,  x_m in X

    >>> terms = Terms.of(parties=3, rho=0.1)
    >>> terms.kappa
    3.0
    >>> Terms.of(parties=2, lam=0.0, rho=1.0)
    Traceback (most recent call last):
    ...
    ValueError: lam must be a finite number above 0, got 0.0
    """

    parties: int  # M
    C: float = 1.0
    lam: float = 1.0
    rho: float  # the first one, if it adapts
    kappa: float  # how much more than rho a party resists changing its contribution
    relaxation: float = 1.0  # 1 for none
    penalty: Penalty
    constraint: Constraint | None = None

    def __post_init__(self) -> None:
        if not 0.0 < real(self.relaxation) < 2.0:
            raise ValueError(f"relaxation must lie between 0 and 2, got {self.relaxation!r}")
        if self.relaxation != 1.0 and self.kappa != self.parties:
            raise ValueError(
                f"relaxation = {self.relaxation:g} needs kappa = {self.parties}, the number of "
                f"parties, got kappa = {self.kappa:g}"
            )
        for name in ("C", "lam", "rho"):
            object.__setattr__(self, name, check_scale(getattr(self, name), name))

    @classmethod
    def of(
        cls, *, parties: int, kappa: float | None = None, penalty: str = "l2", **others: Any
    ) -> Terms:
        """Checked terms; ``kappa`` is the number of parties if it is not given."""
        resistance = float(parties) if kappa is None else check_scale(kappa, "kappa")
        return cls(parties=parties, kappa=resistance, penalty=make_penalty(penalty), **others)

    def proved_to_converge(self, loss: PredictionLoss) -> bool:
        """Whether the iteration converges for every rho: convex, and kappa at least M.

        That rho adapts in the first rounds changes nothing: from some round on it is fixed.
        """
        return self.convex(loss) and self.kappa >= self.parties

    def convex(self, loss: PredictionLoss) -> bool:
        """Whether the loss and the penalty are."""
        return min(loss.least_curvature, self.penalty.least_curvature) >= 0.0

    def project(self, weights: Array) -> Array:
        """The nearest point of X."""
        return weights if self.constraint is None else self.constraint.project(weights)

    def mu(self, rho: float) -> float:
        """lam / (kappa rho), all that a party's step depends on besides its target."""
        return self.lam / (self.kappa * rho)


def automatic_rho(loss: PredictionLoss, C: float, parties: int) -> float:
    """A rho from public numbers: 0.4 of the loss's largest curvature, that of a kink as 1, over M.

    z moves freely where its own curvature and rho are alike, and most samples of a fitted model
    have a curvature well below the largest. Over M, because a party resists M times rho: its own
    problem should not depend on how many others there are.

    >>> from dpsvm.losses import make_prediction_loss
    >>> automatic_rho(make_prediction_loss("logistic"), C=1.0, parties=2)
    0.05
    """
    return 0.4 * C * min(loss.smoothness, 1.0) / parties
