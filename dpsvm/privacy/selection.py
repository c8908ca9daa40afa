"""Choosing among private models without looking at validation rows for free.

A grid search charges every fit, but the winner it reports is an exact function of the validation
rows: no budget covers that choice. :func:`choose` makes it privately instead.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import column_or_1d

from dpsvm.names import OF_RECORDS
from dpsvm.privacy.accountant import BudgetAccountant
from dpsvm.privacy.accounting import Pure
from dpsvm.privacy.guarantee import Guarantee, check_epsilon, check_neighbouring
from dpsvm.privacy.release import Price, Release


def noisy_best(
    errors: ArrayLike,
    epsilon: float,
    *,
    neighbouring: str = "add-remove",
    accountant: BudgetAccountant | None = None,
    random_state: Any = None,
) -> int:
    """The position of a small error count, chosen privately.

    errors : numbers of wrongly labelled validation rows, one for each candidate
    epsilon : what the choice costs
    neighbouring : "add-remove" or "replace"
    accountant : charged before the noise is drawn
    random_state : None for the operating system's entropy; a seed warns

    Guarantee: epsilon-differential privacy with respect to the validation rows. Exponential noise
    is taken from each count and the least is reported. Proof: fix the noise of the others; the
    winner stays the winner if its own noise grows by the most that its lead can shrink, which has
    probability exp(-growth / scale) of what it was, or more. One record more or less moves all
    counts by 0 or 1 in the same direction, so a lead shrinks by at most 1: scale 1 / epsilon. One
    record replaced moves counts either way, leads by at most 2: scale 2 / epsilon.
    (Report-noisy-max; with exponential noise it is permute-and-flip, McKenna and Sheldon 2020, Ding
    et al. 2021.) Rounding: none beyond floats.

    >>> noisy_best([5, 400, 300], epsilon=10.0)
    0
    """
    counts = np.asarray(errors, dtype=np.float64)
    if counts.ndim != 1 or len(counts) == 0 or not np.all(np.isfinite(counts)):
        raise ValueError(f"errors must be a list of at least one finite count, got {errors!r}")
    check_epsilon(epsilon)
    check_neighbouring(neighbouring, OF_RECORDS)
    price = Price(Pure(epsilon), Guarantee(float(epsilon), 0.0, neighbouring))
    noise = Release(
        price, "choice of a model", accountant=accountant, random_state=random_state
    ).charge()
    scale = (1.0 if neighbouring == "add-remove" else 2.0) / epsilon
    return int(np.argmin(counts - noise.exponential(scale, len(counts))))


def choose(
    models: Sequence[Any],
    X: Any,
    y: ArrayLike,
    epsilon: float,
    *,
    neighbouring: str = "add-remove",
    accountant: BudgetAccountant | None = None,
    random_state: Any = None,
) -> int:
    """The position of a fitted model that errs little on validation rows, chosen privately.

    models : fitted classifiers; what they cost is charged by their own fits
    X, y : validation rows. If a record may be here and among the training rows too, this choice
        and the fits add up, as they do in an accountant they share.

    The other parameters, and the guarantee, are those of :func:`noisy_best`. Only the winner is
    told: its score, and the other scores, are not.

    >>> from sklearn.dummy import DummyClassifier
    >>> rows, labels = np.zeros((300, 1)), np.ones(300)
    >>> models = [DummyClassifier(strategy="constant", constant=label) for label in (0, 1)]
    >>> models = [model.fit(rows, [0, 1] * 150) for model in models]
    >>> choose(models, rows, labels, epsilon=1.0)
    1
    """
    labels = column_or_1d(y)
    errors = [_errors(model.predict(X), labels) for model in models]
    return noisy_best(
        errors,
        epsilon,
        neighbouring=neighbouring,
        accountant=accountant,
        random_state=random_state,
    )


def _errors(predicted: ArrayLike, labels: NDArray[Any]) -> int:
    """How many predictions are wrong; one record counts once, so the shapes must be the same."""
    found = column_or_1d(predicted)
    if found.shape != labels.shape:
        raise ValueError(f"y has {len(labels)} labels, and {len(found)} rows were predicted")
    return int(np.sum(found != labels))
