"""What a LIBSVM model file holds, and how it decides."""

from __future__ import annotations

from dataclasses import dataclass
from os import PathLike
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse

from dpsvm import _core
from dpsvm.svm.parameters import CLASSIFIERS, KERNELS, MACHINES
from dpsvm.svm.probability import class_probabilities
from dpsvm.svm.rows import core_rows
from dpsvm.svm.voting import pair_count, winners

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False, kw_only=True)
class Model:
    """A trained machine in LIBSVM's terms: its classes, order and signs.

    >>> import numpy as np
    >>> from scipy import sparse
    >>> model = Model(
    ...     machine="c-svc", kernel="linear", labels=np.array([1, -1]), rho=np.array([0.5]),
    ...     n_support=np.array([1, 1]), dual_coef=np.array([[1.0, -1.0]]),
    ...     support_vectors=sparse.csr_array([[1.0, 0.0], [0.0, 1.0]]),
    ... )
    >>> model.decision_values([[3.0, 1.0], [0.0, 0.0]]).tolist()
    [[1.5], [-0.5]]
    >>> model.predict([[3.0, 1.0], [0.0, 0.0]]).tolist()
    [1.0, -1.0]
    """

    machine: str  # "c-svc", "nu-svc", "one-class", "epsilon-svr" or "nu-svr"
    kernel: str  # "linear", "poly", "rbf", "sigmoid" or "precomputed"
    rho: Floats  # one per pair of classes; one for regression and one-class
    n_support: NDArray[np.int32]  # support vectors of each class; one number without classes
    dual_coef: Floats  # (classes - 1, support vectors); one row without classes
    support_vectors: Any = None  # CSR, one row each, grouped by class; None if precomputed
    serials: NDArray[np.int64] | None = None  # precomputed: training row of each, from 1
    labels: NDArray[np.int64] | None = None  # one per class; None without classes
    degree: int = 3
    gamma: float = 1.0
    coef0: float = 0.0
    prob_a: Floats | None = None  # Platt slope per pair; Laplace scale for regression
    prob_b: Floats | None = None  # Platt offset per pair

    def __post_init__(self) -> None:
        _require(self.machine in MACHINES, f"unknown machine {self.machine!r}")
        _require(self.kernel in KERNELS, f"unknown kernel {self.kernel!r}")
        self._check_shapes()
        for name in ("rho", "dual_coef", "prob_a", "prob_b", "gamma", "coef0"):
            value = getattr(self, name)
            _require(value is None or bool(np.all(np.isfinite(value))), f"{name} is not finite")

    def _check_shapes(self) -> None:
        n_classes = len(self.labels) if self.labels is not None else 2
        n_sv = int(np.sum(self.n_support))
        n_pairs = pair_count(n_classes)
        _require(self.is_classifier == (self.labels is not None), f"labels of a {self.machine}")
        _require(n_classes >= 2, "a classifier needs at least two classes")
        _require_shape("n_support", self.n_support, (n_classes if self.is_classifier else 1,))
        _require(bool(np.all(self.n_support >= 0)), "n_support is negative")
        _require_shape("rho", self.rho, (n_pairs,))
        _require_shape("dual_coef", self.dual_coef, (n_classes - 1, n_sv))
        if self.kernel == "precomputed":
            _require(self.serials is not None, "a precomputed kernel needs serials")
            _require_shape("serials", self.serials, (n_sv,))
            _require(bool(np.all(self.serials >= 1)), "serials start from 1")
        else:
            _require(self.support_vectors is not None, "support_vectors are missing")
            _require(self.support_vectors.shape[0] == n_sv, f"expected {n_sv} support_vectors")
        if self.is_classifier:
            _require((self.prob_a is None) == (self.prob_b is None), "prob_a without prob_b")
        else:
            _require(self.prob_b is None, f"prob_b of a {self.machine}")
        for name in ("prob_a", "prob_b"):
            if getattr(self, name) is not None:
                _require_shape(name, getattr(self, name), (n_pairs,))

    @property
    def is_classifier(self) -> bool:
        """Whether the machine tells classes apart."""
        return self.machine in CLASSIFIERS

    @property
    def is_regressor(self) -> bool:
        """Whether the machine predicts real numbers."""
        return self.machine in ("epsilon-svr", "nu-svr")

    def decision_values(self, X: ArrayLike, *, threads: int = 1) -> Floats:
        """``sum_t coef_t K(x_t, x) - rho``, one column per pair of classes, in LIBSVM's signs.

        ``X`` may have fewer or more columns than the support vectors: absent features are zero.
        For a precomputed kernel, ``X[i, j]`` is the kernel of row i with training row j.
        """
        support_vectors, support = self.support_vectors, None
        if self.serials is not None:
            X = self._kernel_of_support(X)
            support_vectors, support = None, np.arange(len(self.serials), dtype=np.int32)
        else:
            X = _as_csr(X)
            n_features = max(X.shape[1], support_vectors.shape[1])
            X, support_vectors = _widened(X, n_features), _widened(support_vectors, n_features)
        if not self.dual_coef.size or not X.shape[0]:
            return np.tile(-self.rho, (X.shape[0], 1))
        return _core.decision_values(
            X,
            support_vectors,
            self.dual_coef,
            self.rho,
            self.n_support,
            kernel=self.kernel,
            gamma=self.gamma,
            coef0=self.coef0,
            degree=self.degree,
            support=support,
            classifier=self.is_classifier,
            threads=threads,
        )

    def predict(self, X: ArrayLike, *, threads: int = 1) -> Floats:
        """The label with the most votes, the regression value, or +1 / -1 (one-class)."""
        return self.from_decision(self.decision_values(X, threads=threads))

    def from_decision(self, decision: Floats) -> Floats:
        """What :meth:`predict` returns, from decision values already computed."""
        if self.is_regressor:
            return decision[:, 0]
        if self.labels is None:
            return np.where(decision[:, 0] > 0, 1.0, -1.0)
        return self.labels[winners(decision, len(self.labels))].astype(np.float64)

    def predict_proba(self, X: ArrayLike, *, threads: int = 1) -> Floats:
        """The probability of each class, columns in the order of ``labels``."""
        if not self.is_classifier or self.prob_a is None or self.prob_b is None:
            raise ValueError(f"this {self.machine} model holds no class probabilities")
        decision = self.decision_values(X, threads=threads)
        return class_probabilities(decision, self.prob_a, self.prob_b)

    def save(self, path: str | PathLike[str]) -> None:
        """Write a LIBSVM model file, whole or not at all."""
        from dpsvm.svm import model_file

        model_file.write(self, path)

    @staticmethod
    def load(path: str | PathLike[str]) -> Model:
        """Read a LIBSVM model file; a malformed one raises ``ValueError`` with file and line."""
        from dpsvm.svm import model_file

        return model_file.read(path)

    def _kernel_of_support(self, X: ArrayLike) -> Floats:
        assert self.serials is not None
        kernel = X if sparse.issparse(X) else np.asarray(X, dtype=np.float64)
        needed = int(np.max(self.serials, initial=0))
        if kernel.shape[1] < needed:
            raise ValueError(
                f"the model needs the kernel with training row {needed}, "
                f"the data stop at row {kernel.shape[1]}"
            )
        columns = kernel[:, self.serials - 1]
        return columns.toarray() if sparse.issparse(columns) else columns


def from_estimator(estimator: Any) -> Model:
    """The :class:`Model` of a fitted estimator, to be saved as a LIBSVM model file.

    Class labels must be integers, since that is all a LIBSVM file can hold.

    >>> from dpsvm import SVC
    >>> svc = SVC(kernel="linear").fit([[0.0], [1.0], [2.0], [3.0]], [0, 0, 1, 1])
    >>> from_estimator(svc).predict([[0.5], [2.5]]).tolist()
    [0.0, 1.0]
    """
    machine = _MACHINE_OF_CLASS.get(type(estimator).__name__)
    if machine is None:
        raise ValueError(f"no LIBSVM machine for {type(estimator).__name__}")
    kernel = estimator.kernel
    if callable(kernel):
        raise ValueError("a LIBSVM model file cannot hold a callable kernel")
    dual_coef, intercept = estimator.dual_coef_, np.atleast_1d(estimator.intercept_)
    if sparse.issparse(dual_coef):
        dual_coef = dual_coef.toarray()
    labels = _integer_labels(estimator.classes_) if machine in CLASSIFIERS else None
    # Two classes: the estimators turn the sign so that positive means classes_[1].
    sign = -1.0 if labels is not None and len(labels) == 2 else 1.0
    precomputed = kernel == "precomputed"
    return Model(
        machine=machine,
        kernel=kernel,
        labels=labels,
        rho=-sign * np.asarray(intercept, dtype=np.float64),
        dual_coef=sign * np.asarray(dual_coef, dtype=np.float64),
        n_support=np.atleast_1d(estimator.n_support_).astype(np.int32),
        support_vectors=None if precomputed else _as_csr(estimator.support_vectors_),
        serials=estimator.support_.astype(np.int64) + 1 if precomputed else None,
        degree=int(estimator.degree),
        gamma=float(estimator._gamma),
        coef0=float(estimator.coef0),
    )


_MACHINE_OF_CLASS = {
    "SVC": "c-svc",
    "NuSVC": "nu-svc",
    "OneClassSVM": "one-class",
    "SVR": "epsilon-svr",
    "NuSVR": "nu-svr",
}


def _integer_labels(classes: NDArray[Any]) -> NDArray[np.int64]:
    if classes.dtype.kind not in "iufb" or not np.array_equal(classes, np.trunc(classes)):
        raise ValueError(f"a LIBSVM model file holds integer labels only, got {classes.tolist()}")
    return classes.astype(np.int64)


def _as_csr(X: ArrayLike) -> sparse.csr_array:
    if not sparse.issparse(X):
        X = np.asarray(X, dtype=np.float64)
        if X.ndim != 2:
            raise ValueError(f"expected a matrix, got {X.ndim} dimension(s)")
    return core_rows(sparse.csr_array(X))


def _widened(X: sparse.csr_array, n_features: int) -> sparse.csr_array:
    if X.shape[1] == n_features:
        return X
    return sparse.csr_array((X.data, X.indices, X.indptr), shape=(X.shape[0], n_features))


def _require(condition: bool, reason: str) -> None:
    if not condition:
        raise ValueError(f"malformed model: {reason}")


def _require_shape(name: str, array: Any, shape: tuple[int, ...]) -> None:
    _require(np.shape(array) == shape, f"{name} has shape {np.shape(array)}, expected {shape}")
