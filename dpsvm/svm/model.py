"""What a LIBSVM model file holds, as a machine that decides."""

from __future__ import annotations

from dataclasses import dataclass, replace
from os import PathLike, fspath
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpsvm._arrays import Array
from dpsvm._csr import Csr, is_sparse
from dpsvm._streams import open_text
from dpsvm.rows import core_rows
from dpsvm.svm.expansion import Expansion
from dpsvm.svm.model_file import Contents, parse
from dpsvm.svm.parameters import CLASSIFIERS
from dpsvm.svm.probability import class_probabilities
from dpsvm.svm.voting import pair_count, winners


@dataclass(frozen=True, eq=False, kw_only=True)
class Model(Contents):
    """A trained machine in LIBSVM's terms: its classes, their order and its signs.

    >>> from scipy import sparse
    >>> from dpsvm.svm.parameters import Parameters
    >>> model = Model(
    ...     parameters=Parameters(machine="c-svc", kernel="linear"), labels=np.array([1, -1]),
    ...     rho=np.array([0.5]), n_support=np.array([1, 1]), dual_coef=np.array([[1.0, -1.0]]),
    ...     support_vectors=sparse.csr_array([[1.0, 0.0], [0.0, 1.0]]),
    ... )
    >>> model.decision_values([[3.0, 1.0], [0.0, 0.0]]).tolist()
    [[1.5], [-0.5]]
    >>> model.predict([[3.0, 1.0], [0.0, 0.0]]).tolist()
    [1.0, -1.0]
    """

    def __post_init__(self) -> None:
        if self.is_classifier != (self.labels is not None):
            raise ValueError(f"labels belong to classifiers, and this is {self.parameters.machine}")
        if (self.parameters.kernel == "precomputed") != (self.serials is not None):
            raise ValueError("serials belong to the precomputed kernel, and to it alone")
        n_pairs = 1 if self.labels is None else pair_count(len(self.labels))
        if self.is_classifier and (self.prob_a is None) != (self.prob_b is None):
            raise ValueError("prob_a and prob_b come together")
        for name in ("prob_a", "prob_b"):
            values = getattr(self, name)
            if values is not None and (values.shape != (n_pairs,) or not np.isfinite(values).all()):
                raise ValueError(f"{name} must be {n_pairs} finite numbers, got {values!r}")
        self._expansion(0 if self.support_vectors is None else self.support_vectors.shape[1])

    @property
    def is_classifier(self) -> bool:
        """Whether the machine tells classes apart."""
        return self.parameters.machine in CLASSIFIERS

    @property
    def is_regressor(self) -> bool:
        """Whether the machine predicts real numbers."""
        return self.parameters.machine in ("epsilon-svr", "nu-svr")

    def decision_values(self, X: Any, *, threads: int = 1) -> Array:
        """Return ``sum_t coef_t K(x_t, x) - rho`` for each pair of classes, in LIBSVM's signs.

        X may have fewer or more columns than the support vectors: features that are absent are
        zero. For a precomputed kernel, ``X[i, j]`` is the kernel of row i with training row j.
        """
        if self.serials is not None:
            rows = self._kernel_of_support(X)
        else:
            rows = _csr(X)
            rows = _widened(rows, max(rows.shape[1], self.support_vectors.shape[1]))
        if not self.dual_coef.size:
            return np.tile(-self.rho, (rows.shape[0], 1))
        return self._expansion(rows.shape[1]).decision_values(rows, threads=threads)

    def predict(self, X: Any, *, threads: int = 1) -> Array:
        """Return the label with the most votes, the regression value, or +1 and -1 (one-class)."""
        decision = self.decision_values(X, threads=threads)
        if self.is_regressor:
            return decision[:, 0]
        if self.labels is None:
            return np.where(decision[:, 0] > 0, 1.0, -1.0)
        return self.labels[winners(decision, len(self.labels))].astype(np.float64)

    def predict_proba(self, X: Any, *, threads: int = 1) -> Array:
        """Return the probability of each class, columns in the order of ``labels``."""
        if self.labels is None or self.prob_a is None or self.prob_b is None:
            raise ValueError(f"this {self.parameters.machine} model has no class probabilities")
        decision = self.decision_values(X, threads=threads)
        return class_probabilities(decision, self.prob_a, self.prob_b)

    @staticmethod
    def load(path: str | PathLike[str]) -> Model:
        """Read a LIBSVM model file; a malformed one raises ValueError with file and line."""
        model = Model.read(path)
        vectors = model.support_vectors
        return model if vectors is None else replace(model, support_vectors=vectors.to_scipy())

    @staticmethod
    def read(path: str | PathLike[str]) -> Model:
        """What :meth:`load` reads, for the command line, which does without scipy.

        A malformed file raises :class:`~dpsvm.data.LibsvmFormatError`, a ``ValueError`` whose text
        is ``FILE:LINE: reason``.

        >>> import os, tempfile
        >>> text = "svm_type epsilon_svr\\nkernel_type linear\\nnr_class 2\\ntotal_sv 1\\nrho -1\\n"
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     path = os.path.join(folder, "line.model")
        ...     _ = open(path, "w").write(text + "SV\\n2 1:1\\n")
        ...     Model.read(path).predict([[0.0], [1.0]]).tolist()
        [1.0, 3.0]
        """
        with open_text(path) as stream:
            return Model(**parse(stream, fspath(path)))

    def _expansion(self, n_features: int) -> Expansion:
        n_classes = 1 if self.labels is None else len(self.labels)
        n_vectors = 0 if self.serials is None else len(self.serials)
        vectors = self.support_vectors
        return Expansion(
            self.parameters,
            support=np.arange(n_vectors),
            support_vectors=None if vectors is None else _widened(vectors, n_features),
            n_support=self.n_support,
            dual_coef=self.dual_coef,
            rho=self.rho,
            columns=n_vectors if vectors is None else n_features,
            n_classes=n_classes,
        )

    def _kernel_of_support(self, X: Any) -> Array:
        """Return the columns of a kernel matrix that belong to the support vectors."""
        assert self.serials is not None
        kernel: Any = X.toarray() if isinstance(X, Csr) else X
        if not is_sparse(kernel):
            kernel = np.asarray(kernel, dtype=np.float64)
        needed = int(np.max(self.serials, initial=0))
        if kernel.shape[1] < needed:
            raise ValueError(
                f"the model needs the kernel with training row {needed}, "
                f"and the rows end at {kernel.shape[1]}"
            )
        columns = kernel[:, self.serials - 1]
        return np.ascontiguousarray(columns.toarray() if is_sparse(columns) else columns)


def from_estimator(estimator: Any) -> Model:
    """Return the :class:`Model` of a fitted estimator, to be saved as a LIBSVM model file.

    The estimator is one of dpsvm's or of scikit-learn's. Class labels must be integers, since a
    LIBSVM file holds no others.

    >>> from dpsvm import SVC
    >>> svc = SVC(kernel="linear").fit([[0.0], [1.0], [2.0], [3.0]], [0, 0, 1, 1])
    >>> from_estimator(svc).predict([[0.5], [2.5]]).tolist()
    [0.0, 1.0]
    """
    from sklearn.utils.validation import check_is_fitted

    from dpsvm.svm.fitted import FittedSVM
    from dpsvm.svm.interchange import from_sklearn

    if not isinstance(estimator, FittedSVM):
        estimator = from_sklearn(estimator)
    check_is_fitted(estimator)
    expansion, parameters = estimator._expansion(), estimator._parameters
    if estimator._kernel_function is not None:
        raise ValueError("a LIBSVM model file cannot hold a callable kernel")
    labels = integer_labels(estimator.classes_) if parameters.machine in CLASSIFIERS else None
    precomputed = parameters.kernel == "precomputed"
    probabilities = [getattr(estimator, name, ()) for name in ("_probA", "_probB")]
    prob_a, prob_b = (np.array(values) if len(values) else None for values in probabilities)
    return Model(
        parameters=parameters,
        labels=labels,
        rho=expansion.rho,
        dual_coef=expansion.dual_coef,
        n_support=expansion.n_support,
        support_vectors=None if precomputed else _csr(expansion.support_vectors),
        serials=expansion.support.astype(np.int64) + 1 if precomputed else None,
        prob_a=prob_a,
        prob_b=prob_b,
    )


def integer_labels(classes: NDArray[Any]) -> NDArray[np.int64]:
    if classes.dtype.kind not in "iuf" or not np.array_equal(classes, np.rint(classes)):
        raise ValueError(f"a LIBSVM model file holds integer labels only, got {classes.tolist()}")
    if np.abs(classes).max() > np.iinfo(np.int32).max:
        raise ValueError(f"a LIBSVM model file holds labels of 32 bits, got {classes.tolist()}")
    return classes.astype(np.int64)


def _csr(X: Any) -> Any:
    if isinstance(X, Csr):
        return X
    from scipy.sparse import csr_array

    rows = X if is_sparse(X) else np.asarray(X, dtype=np.float64)
    if rows.ndim != 2:
        raise ValueError(f"expected a matrix, got {rows.ndim} dimension(s)")
    return core_rows(csr_array(rows, dtype=np.float64))


def _widened(X: Any, n_features: int) -> Any:
    """Return CSR rows with as many columns as asked for, sharing their arrays."""
    if X.shape[1] == n_features:
        return X
    return type(X)((X.data, X.indices, X.indptr), shape=(X.shape[0], n_features))
