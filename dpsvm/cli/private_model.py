"""A private model on random features, as ``dpsvm predict`` needs it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from dpsvm.data import load_libsvm
from dpsvm.privacy.estimators import BasePrivateClassifier
from dpsvm.privacy.model_file import load_private
from dpsvm.svm.training import Problem


@dataclass(frozen=True)
class PrivateModel:
    """A loaded estimator whose labels are numbers, as those of data files are."""

    estimator: BasePrivateClassifier

    @staticmethod
    def load(path: str) -> PrivateModel:
        """Read a JSON file; one with labels that no data file can have is refused."""
        estimator = load_private(path)
        if estimator.classes_.dtype.kind not in "iuf":
            labels = estimator.classes_.tolist()
            raise ValueError(f"{path}: its labels are no numbers, as in data files: {labels}")
        return PrivateModel(estimator)

    @property
    def labels(self) -> NDArray[Any]:
        """The public set of labels."""
        return np.asarray(self.estimator.classes_)

    def read_rows(self, path: str) -> Problem:
        """The rows of a data file; a feature the model has no frequencies for is an error."""
        X, y = load_libsvm(path, n_features=int(self.estimator.n_features_in_))
        return Problem(sparse.csr_array(X), y)

    def predict(self, X: Any, *, threads: int = 1) -> NDArray[np.float64]:
        """The label of each row; the number of threads is numpy's own affair."""
        return self.estimator.predict(X).astype(np.float64)
