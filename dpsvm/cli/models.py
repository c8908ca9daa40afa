"""The models that commands write beside those of LIBSVM, and how ``dpsvm predict`` reads them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from dpsvm._arrays import Array
from dpsvm.data import load_libsvm
from dpsvm.privacy.estimators import BasePrivateClassifier
from dpsvm.privacy.model_file import LinearModel, load_private, save_private, to_libsvm
from dpsvm.svm.model import Model
from dpsvm.svm.training import Problem


@dataclass(frozen=True)
class PrivateModel:
    """A loaded estimator whose labels are numbers, as those of data files are."""

    estimator: BasePrivateClassifier

    @property
    def labels(self) -> NDArray[Any]:
        """The public set of labels."""
        return np.asarray(self.estimator.classes_)

    def read_rows(self, path: str) -> Problem:
        """The rows of a data file; a feature the model has no frequencies for is an error."""
        X, y = load_libsvm(path, n_features=int(self.estimator.n_features_in_))
        return Problem(sparse.csr_array(X), y)

    def predict(self, X: Any, *, threads: int = 1) -> Array:
        """The label of each row; the number of threads is numpy's own affair."""
        return self.estimator.predict(X).astype(np.float64)


def load(path: str) -> Model | PrivateModel:
    """Read a private model; one with labels that no data file can have is refused."""
    model = load_private(path)
    labels = getattr(model, "classes_", np.empty(0))
    if labels.dtype.kind not in "iuf":
        raise ValueError(f"{path}: its labels are no numbers, as in data files: {labels.tolist()}")
    if not isinstance(model, LinearModel):
        return PrivateModel(model)
    try:
        return to_libsvm(model)
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from error


def save_linear(model: Any, path: str) -> None:
    """Write a fitted linear model: of LIBSVM's kind, or, if it is private, with its guarantee."""
    if model.privacy_report_ is None:
        to_libsvm(model).save(path)
    else:
        save_private(model, path, form="json")
