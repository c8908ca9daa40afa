"""Frank-Wolfe: by blocks drawn at random, over columns that parties hold, and with privacy."""

from __future__ import annotations

from dpsvm.frank_wolfe.blocks import BlockCoordinateFrankWolfe
from dpsvm.frank_wolfe.core import FrankWolfe, minimize
from dpsvm.frank_wolfe.curvature import (
    Theorem1,
    curvature_bounds,
    enumerated_curvature,
    expected_curvature,
    theorem_1,
)
from dpsvm.frank_wolfe.distributed import DistributedFrankWolfe, DistributedResult
from dpsvm.frank_wolfe.estimator import FrankWolfeLasso
from dpsvm.frank_wolfe.loop import History, Iteration, Result
from dpsvm.frank_wolfe.messages import Traffic, longest_uplink
from dpsvm.frank_wolfe.objectives import Function, LeastSquares
from dpsvm.frank_wolfe.one_shot import OneShotSketching
from dpsvm.frank_wolfe.private import (
    PrivateDistributedFrankWolfe,
    PrivateFrankWolfe,
    PrivateResult,
)
from dpsvm.frank_wolfe.products import Box, Product, product_of_balls
from dpsvm.frank_wolfe.samplings import (
    Distributed,
    Independent,
    Sampling,
    Serial,
    TauNice,
    UserSampling,
    by_importance,
    elementary,
    least_marginal,
    uniform_serial,
)
from dpsvm.frank_wolfe.sets import Atom, ConvexSet, L1Ball, L2Ball, Simplex
from dpsvm.frank_wolfe.steps import Diminishing, ParallelStep, SerialStep

__all__ = [
    "Atom",
    "BlockCoordinateFrankWolfe",
    "Box",
    "ConvexSet",
    "Diminishing",
    "Distributed",
    "DistributedFrankWolfe",
    "DistributedResult",
    "FrankWolfe",
    "FrankWolfeLasso",
    "Function",
    "History",
    "Independent",
    "Iteration",
    "L1Ball",
    "L2Ball",
    "LeastSquares",
    "OneShotSketching",
    "ParallelStep",
    "PrivateDistributedFrankWolfe",
    "PrivateFrankWolfe",
    "PrivateResult",
    "Product",
    "Result",
    "Sampling",
    "Serial",
    "SerialStep",
    "Simplex",
    "TauNice",
    "Theorem1",
    "Traffic",
    "UserSampling",
    "by_importance",
    "curvature_bounds",
    "elementary",
    "enumerated_curvature",
    "expected_curvature",
    "least_marginal",
    "longest_uplink",
    "minimize",
    "product_of_balls",
    "theorem_1",
    "uniform_serial",
]
