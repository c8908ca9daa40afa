"""From decision values to probabilities, as LIBSVM does it.

Classifiers: a sigmoid per pair of classes, fitted by Newton's method with backtracking (Lin, Lin
and Weng, "A note on Platt's probabilistic outputs for support vector machines", 2007), and the
second coupling of Wu, Lin and Weng ("Probability estimates for multi-class classification by
pairwise coupling", JMLR 2004) for more than two classes. Regression: the scale of a Laplace
distribution of the residuals (Lin and Weng, "Simple probabilistic predictions for support vector
regression", 2004). The constants and stopping rules are LIBSVM's, so that the results agree.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from dpsvm._arrays import Array
from dpsvm.svm.validation import Random, Rows, folds

Decide = Callable[[Rows, Rows], Array]
"""From training rows and rows held out to decisions on the latter, positive for the first class."""

PROBABILITY_FOLDS = 5

_NEWTON_STEPS = 100
_GRADIENT_TOL = 1e-5
_RIDGE = 1e-12
_MIN_STEP = 1e-10
_ARMIJO = 1e-4
_COUPLING_STEPS = 100
_COUPLING_TOL = 0.005
_MIN_PAIR_PROBABILITY = 1e-7
_OUTLIER_SCALE = 5.0


def sigmoid(decision: Array, a: float | Array, b: float | Array) -> Array:
    """Platt's ``1 / (1 + exp(a * decision + b))``, without overflow.

    >>> sigmoid(np.array([-1000.0, 0.0, 1000.0]), -1.0, 0.0).tolist()
    [0.0, 0.5, 1.0]
    """
    z = decision * a + b
    small = np.exp(-np.abs(z))
    return np.where(z >= 0, small, 1.0) / (1.0 + small)


def fit_sigmoid(decision: Array, positive: NDArray[np.bool_]) -> tuple[float, float]:
    """The ``(a, b)`` that minimise the cross entropy of :func:`sigmoid` against Platt's targets.

    >>> a, b = fit_sigmoid(np.array([-2.0, -1.0, 1.0, 2.0]), np.array([False, False, True, True]))
    >>> a < 0, abs(b) < 1e-6
    (True, True)
    """
    n_positive = int(np.count_nonzero(positive))
    n_negative = len(positive) - n_positive
    target = np.where(positive, (n_positive + 1.0) / (n_positive + 2.0), 1.0 / (n_negative + 2.0))

    def loss(a: float, b: float) -> float:
        z = decision * a + b
        return float(np.sum(target * z + np.maximum(-z, 0.0) + np.log1p(np.exp(-np.abs(z)))))

    a, b = 0.0, float(np.log((n_negative + 1.0) / (n_positive + 1.0)))
    value = loss(a, b)
    for _ in range(_NEWTON_STEPS):
        p = sigmoid(decision, a, b)
        residual, curvature = target - p, p * (1.0 - p)
        grad_a, grad_b = float(decision @ residual), float(np.sum(residual))
        if abs(grad_a) < _GRADIENT_TOL and abs(grad_b) < _GRADIENT_TOL:
            break
        h_aa = float(decision**2 @ curvature) + _RIDGE
        h_bb = float(np.sum(curvature)) + _RIDGE
        h_ab = float(decision @ curvature)
        det = h_aa * h_bb - h_ab * h_ab
        step_a = -(h_bb * grad_a - h_ab * grad_b) / det
        step_b = -(h_aa * grad_b - h_ab * grad_a) / det
        slope = grad_a * step_a + grad_b * step_b
        size = 1.0
        while size >= _MIN_STEP:
            candidate = loss(a + size * step_a, b + size * step_b)
            if candidate < value + _ARMIJO * size * slope:
                break
            size /= 2.0
        else:
            break
        a, b, value = a + size * step_a, b + size * step_b, candidate
    return a, b


def held_out_sigmoid(
    positive: NDArray[np.bool_], random: Random, decide: Decide
) -> tuple[float, float]:
    """Return the sigmoid ``(a, b)`` of one pair of classes.

    ``positive`` tells which rows of the pair are of its first class. Folds whose training rows are
    all of one class decide for it, by one.

    >>> from dpsvm.svm.validation import GlibcRandom
    >>> line = np.linspace(-1, 1, 20)
    >>> a, b = held_out_sigmoid(line > 0, GlibcRandom(), lambda rows, held_out: line[held_out])
    >>> a < 0
    True
    """
    decision = np.zeros(len(positive))
    for rows, held_out in folds([np.arange(len(positive))], PROBABILITY_FOLDS, random):
        seen = positive[rows]
        if not len(seen):
            continue
        if seen.all() or not seen.any():
            decision[held_out] = 1.0 if seen[0] else -1.0
        else:
            decision[held_out] = decide(rows, held_out)
    return fit_sigmoid(decision, positive)


def class_probabilities(decision: Array, a: Array, b: Array, *, couple_two: bool = False) -> Array:
    """Class probabilities, one row per row of ``decision``, whose columns are the pairs of classes.

    Pairs come in LIBSVM's order (0, 1), (0, 2), ..., (1, 2), ...; ``a`` and ``b`` hold one sigmoid
    per pair. The LIBSVM inside scikit-learn couples two classes, too, to the same tolerance as
    more, and so does ``couple_two``.

    >>> class_probabilities(np.array([[0.0]]), np.array([-1.0]), np.array([0.0])).tolist()
    [[0.5, 0.5]]
    """
    first = np.clip(sigmoid(decision, a, b), _MIN_PAIR_PROBABILITY, 1.0 - _MIN_PAIR_PROBABILITY)
    n_rows, n_pairs = first.shape
    n_classes = round((1.0 + np.sqrt(1.0 + 8.0 * n_pairs)) / 2.0)
    if n_classes == 2 and not couple_two:
        return np.hstack([first, 1.0 - first])
    pairwise = np.zeros((n_rows, n_classes, n_classes))
    rows, columns = np.triu_indices(n_classes, 1)
    pairwise[:, rows, columns] = first
    pairwise[:, columns, rows] = 1.0 - first
    return couple(pairwise)


def couple(pairwise: Array) -> Array:
    """The class probabilities ``p`` that minimise ``sum_ij (r_ji p_i - r_ij p_j)**2`` in each row.

    ``pairwise[row, i, j]`` is ``r_ij``, the probability of class i among classes i and j, with a
    zero diagonal. Gauss-Seidel sweeps over the optimality condition ``Qp = (p'Qp) e``; a row leaves
    the iteration once it meets the tolerance, so its result does not depend on the other rows.

    >>> r = np.array([[[0.0, 0.5, 0.5], [0.5, 0.0, 0.5], [0.5, 0.5, 0.0]]])
    >>> couple(r).round(12).tolist()
    [[0.333333333333, 0.333333333333, 0.333333333333]]
    """
    n_rows, n_classes, _ = pairwise.shape
    q = -pairwise * pairwise.transpose(0, 2, 1)
    diagonal = np.arange(n_classes)
    q[:, diagonal, diagonal] = np.sum(pairwise**2, axis=1)

    result = np.full((n_rows, n_classes), 1.0 / n_classes)
    active = np.arange(n_rows)
    for _ in range(max(_COUPLING_STEPS, n_classes)):
        p = result[active]
        qp = np.einsum("rij,rj->ri", q, p)
        pqp = np.sum(p * qp, axis=1)
        moving = np.max(np.abs(qp - pqp[:, None]), axis=1) >= _COUPLING_TOL / n_classes
        active, q, p, qp, pqp = active[moving], q[moving], p[moving], qp[moving], pqp[moving]
        if not len(active):
            break
        for t in range(n_classes):
            q_tt = q[:, t, t]
            diff = (pqp - qp[:, t]) / q_tt
            scale = 1.0 + diff
            p[:, t] += diff
            pqp = (pqp + diff * (diff * q_tt + 2.0 * qp[:, t])) / scale / scale
            qp = (qp + diff[:, None] * q[:, t]) / scale[:, None]
            p /= scale[:, None]
        result[active] = p
    return result


def laplace_scale(residuals: Array) -> float:
    """The scale of a Laplace distribution of ``residuals``, outliers left out.

    The mean absolute residual, over those within five standard deviations.

    >>> laplace_scale(np.array([1.0, -1.0, 3.0, -3.0]))
    2.0
    """
    size = np.abs(residuals)
    deviation = np.sqrt(2.0) * np.mean(size)
    return float(np.mean(size[size <= _OUTLIER_SCALE * deviation]))
