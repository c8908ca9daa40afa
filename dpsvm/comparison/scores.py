"""How well a decision function separates two classes, in the measures of the paper."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.stats import rankdata


@dataclass(frozen=True)
class Scores:
    """The measures of Table 3; NaN where one is not defined.

    >>> right = np.array([True, True, False])
    >>> Scores.of(np.array([2.0, -1.0, -1.0]), right, right).auc
    0.75
    """

    auc: float  # ties count one half
    auc_stable: float  # as in the paper: a stable descending sort, ties in the order of the rows
    accuracy: float
    precision: float
    recall: float
    f1: float
    mcc: float

    @staticmethod
    def of(
        score: NDArray[np.float64], predicted: NDArray[np.bool_], positive: NDArray[np.bool_]
    ) -> Scores:
        """Measure scores (larger is more positive) and predictions against the truth."""
        tp = float(np.count_nonzero(predicted & positive))
        fp = float(np.count_nonzero(predicted & ~positive))
        fn = float(np.count_nonzero(~predicted & positive))
        tn = len(positive) - tp - fp - fn
        spread = math.sqrt((tp + fp) * (tp + fn) * (tn + fp) * (tn + fn))
        return Scores(
            auc=auc(score, positive),
            auc_stable=auc_stable(score, positive),
            accuracy=_ratio(tp + tn, len(positive)),
            precision=_ratio(tp, tp + fp),
            recall=_ratio(tp, tp + fn),
            f1=_ratio(2 * tp, 2 * tp + fp + fn),
            mcc=_ratio(tp * tn - fp * fn, spread),
        )


def auc(score: NDArray[np.float64], positive: NDArray[np.bool_]) -> float:
    """The chance that a positive scores above a negative, a tie counting one half.

    >>> auc(np.array([1.0, 1.0]), np.array([False, True]))
    0.5
    """
    n = int(np.count_nonzero(positive))
    rank_sum = float(rankdata(score)[positive].sum())
    return _ratio(rank_sum - n * (n + 1) / 2, n * (len(positive) - n))


def auc_stable(score: NDArray[np.float64], positive: NDArray[np.bool_]) -> float:
    """The same with every tie decided by the order of the rows, as the paper counts.

    >>> auc_stable(np.array([1.0, 1.0]), np.array([False, True]))
    0.0
    """
    ranked = positive[np.argsort(-score, kind="stable")]
    n = int(np.count_nonzero(ranked))
    above = np.cumsum(ranked)
    return _ratio(float(above[~ranked].sum()), n * (len(ranked) - n))


def _ratio(part: float, whole: float) -> float:
    return part / whole if whole else math.nan
