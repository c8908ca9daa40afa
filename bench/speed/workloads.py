"""What is fitted: each workload names its data, its estimator and its parameters.

A workload turns into a ``Problem``, saved to a file so that every library reads the same bytes.
"""

from __future__ import annotations

import gzip
import json
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import scipy.sparse as sp

from bench.common import Absent, load

Matrix: TypeAlias = Any  # scipy CSR, or a C-contiguous 2-D array
Source = Callable[[Path], tuple[Matrix, np.ndarray]]

# Where Debian's dataset-fashion-mnist puts its files.
FASHION_MNIST = Path(os.environ.get("FASHION_MNIST", "/usr/share/datasets/fashion-mnist"))


@dataclass(frozen=True)
class Problem:
    """Rows, targets, and what to fit to them, in scikit-learn's words."""

    X: Matrix
    y: np.ndarray
    estimator: str  # SVC, SVR or OneClassSVM
    params: Mapping[str, Any]

    def save(self, path: Path) -> None:
        """Write the problem to an .npz file."""
        if sp.issparse(self.X):
            parts = {"data": self.X.data, "indices": self.X.indices, "indptr": self.X.indptr}
        else:
            parts = {"dense": self.X}
        about = {"estimator": self.estimator, "params": dict(self.params), "shape": self.X.shape}
        np.savez(path, y=self.y, about=np.array(json.dumps(about)), **parts)

    @classmethod
    def read(cls, path: Path) -> Problem:
        """The problem ``save`` wrote."""
        with np.load(path) as file:
            about = json.loads(str(file["about"]))
            if "dense" in file:
                X: Matrix = file["dense"]
            else:
                parts = (file["data"], file["indices"], file["indptr"])
                X = sp.csr_matrix(parts, shape=tuple(about["shape"]))
            return cls(X, file["y"], about["estimator"], about["params"])


@dataclass(frozen=True)
class Workload:
    """One row of the table below; gamma 'auto' and 'scale' are worked out once, for everyone."""

    name: str
    source: Source
    params: Mapping[str, Any]
    estimator: str = "SVC"
    dense: bool = True
    first: bool = False  # among the ones run without --all
    group: str = "reach"  # counted in the bars; "short" and "linear" are not
    libraries: tuple[str, ...] = ()  # the only ones to ask; empty asks all

    def problem(self, shared: Path, dtype: str) -> Problem:
        """Load the data in the workload's layout and the given precision."""
        X, y = self.source(shared)
        params = dict(self.params)
        if "gamma" in params:
            params["gamma"] = _gamma(params["gamma"], X)
        if self.dense:
            X = np.ascontiguousarray(X.toarray() if sp.issparse(X) else X, dtype=dtype)
        else:
            X = sp.csr_matrix(X, dtype=dtype)
            X.indices, X.indptr = X.indices.astype(np.int32), X.indptr.astype(np.int32)
        return Problem(X, y, self.estimator, params)


def _gamma(rule: str | float, X: Matrix) -> float:
    if rule == "auto":
        return 1.0 / int(X.shape[1])
    if rule == "scale":
        mean = X.mean()
        square = X.multiply(X).mean() if sp.issparse(X) else np.square(X).mean()
        return float(1.0 / (X.shape[1] * (square - mean**2)))
    return float(rule)


def libsvm_set(name: str) -> Source:
    """A data set of the shared folder."""
    return lambda shared: load(shared, name)


def fashion(*, two_classes: bool) -> Source:
    """The first 10,000 training images of Fashion-MNIST, pixels over 255."""

    def source(_shared: Path) -> tuple[Matrix, np.ndarray]:
        images = FASHION_MNIST / "train-images-idx3-ubyte.gz"
        if not images.is_file():
            raise Absent("Fashion-MNIST is absent: install dataset-fashion-mnist")
        labels = FASHION_MNIST / "train-labels-idx1-ubyte.gz"
        with gzip.open(images) as stream:
            pixels = np.frombuffer(stream.read(16 + 784 * 10_000), np.uint8, offset=16)
        with gzip.open(labels) as stream:
            y = np.frombuffer(stream.read(8 + 10_000), np.uint8, offset=8).astype(np.float64)
        return pixels.reshape(-1, 784) / 255.0, (y >= 5).astype(np.float64) if two_classes else y

    return source


def synthetic(_shared: Path) -> tuple[Matrix, np.ndarray]:
    """Two overlapping Gaussian classes, 50,000 rows of 100 dense columns, seeded."""
    random = np.random.default_rng(0)
    y = random.integers(0, 2, 50_000).astype(np.float64)
    shift = random.normal(size=100) / 5
    return random.normal(size=(50_000, 100)) + np.outer(2 * y - 1, shift), y


RBF = {"kernel": "rbf", "C": 1.0, "gamma": "auto"}
LINEAR = {"kernel": "linear", "C": 1.0}

BESIDE_W = ("dpsvm", "dpsvm keeping w", "LIBSVM", "liblinear")

WORKLOADS = (
    Workload("a5a", libsvm_set("a5a"), RBF, dense=False, first=True, group="short"),
    Workload("w8a", libsvm_set("w8a"), RBF, dense=False, first=True),
    Workload("ijcnn1", libsvm_set("ijcnn1"), RBF, first=True),
    Workload("fashion", fashion(two_classes=True), RBF | {"gamma": "scale"}, first=True),
    Workload("a9a", libsvm_set("a9a"), RBF, dense=False),
    Workload("ijcnn1-narrow", libsvm_set("ijcnn1"), RBF | {"C": 32.0, "gamma": 2.0}),
    Workload("letter", libsvm_set("letter.scale"), RBF | {"C": 16.0, "gamma": 2.0}),
    Workload("fashion-ten", fashion(two_classes=False), RBF | {"C": 10.0, "gamma": "scale"}),
    Workload("reuters", libsvm_set("reuters"), LINEAR, dense=False),
    Workload("svmguide1-linear", libsvm_set("svmguide1"), LINEAR),
    Workload("a1a", libsvm_set("a1a"), RBF, dense=False),
    Workload("heart", libsvm_set("heart_scale"), RBF),
    Workload("synthetic", synthetic, RBF),
    Workload("abalone", libsvm_set("abalone_scale"), RBF | {"epsilon": 0.1}, estimator="SVR"),
    Workload(
        "ijcnn1-one-class",
        libsvm_set("ijcnn1"),
        {"kernel": "rbf", "nu": 0.1, "gamma": "auto"},
        estimator="OneClassSVM",
    ),
    Workload(
        "a9a-linear", libsvm_set("a9a"), LINEAR, dense=False, group="linear", libraries=BESIDE_W
    ),
    Workload(
        "w8a-linear", libsvm_set("w8a"), LINEAR, dense=False, group="linear", libraries=BESIDE_W
    ),
)
KEEPING_W = ("a9a-linear", "w8a-linear", "reuters")  # where the option that keeps w is judged
