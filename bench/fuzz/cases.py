"""The cases of core_fuzz.py: what is drawn, in which container it is handed over, how it is told.

A case is drawn from ``default_rng([seed, number])`` alone, so that it can be repeated alone.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

MACHINES = ("SVC", "NuSVC", "SVR", "NuSVR", "OneClassSVM")
CLASSIFIERS = ("SVC", "NuSVC")
REGRESSORS = ("SVR", "NuSVR")
KERNELS = ("rbf", "linear", "poly", "sigmoid", "precomputed")
DENSE = ("C", "Fortran", "slice", "read-only", "memory-mapped")
SPARSE = ("csr32", "csr64", "csr unsorted", "csr zeros")
CHARACTERS = ("gauss", "bits", "sparse", "grid", "clusters", "constant")
OFFSETS = (0.0, 0.0, 0.0, 1.0, 10.0, 1e2, 1e3, 1e4)  # standard deviations
QUERIES = 12
MEGABYTE = 2**20
AMPLE = 200.0  # MB of cache, the default of the estimators
FEW_NUMBERS = 600  # are printed


@dataclass(frozen=True)
class Case:
    """A machine and its data. X, queries and what they hold are float64 of the case's dtype.

    For the precomputed kernel X is the kernel matrix, and queries its values with the rows of X.
    """

    seed: int
    number: int
    machine: str
    X: np.ndarray
    y: np.ndarray
    queries: np.ndarray
    params: dict[str, Any]  # the library's and scikit-learn's alike
    semidefinite: bool  # the kernel, in exact arithmetic
    weight: np.ndarray | None = None
    container: str = "C"
    dtype: str = "float64"
    options: dict[str, Any] = field(default_factory=dict)  # dpsvm's own
    cache_size: float = AMPLE
    n_jobs: int = 1
    of_rows: np.ndarray | None = None  # which of those drawn, where some were left out
    of_columns: np.ndarray | None = None

    @property
    def kernel(self) -> str:
        return str(self.params["kernel"])

    @property
    def follows_libsvm(self) -> bool:
        return not {"selector", "solver"} & self.options.keys()

    def rows(self) -> Any:
        return contained(self.X, self.container, self.dtype)

    def asked(self) -> Any:
        return contained(self.queries, self.container, self.dtype)

    def taking(self, rows: np.ndarray) -> Case:
        """The case with some of its rows."""
        square = self.kernel == "precomputed"
        return replace(
            self,
            X=self.X[np.ix_(rows, rows)] if square else self.X[rows],
            queries=self.queries[:, rows] if square else self.queries,
            y=self.y[rows],
            weight=None if self.weight is None else self.weight[rows],
            of_rows=rows if self.of_rows is None else self.of_rows[rows],
        )

    def with_columns(self, columns: np.ndarray) -> Case:
        """The case with some of its columns."""
        return replace(
            self,
            X=self.X[:, columns],
            queries=self.queries[:, columns],
            of_columns=columns if self.of_columns is None else self.of_columns[columns],
        )


def contained(X: np.ndarray, container: str, dtype: str) -> Any:
    """The numbers in a container of some kind."""
    X = np.ascontiguousarray(X, dtype=dtype)
    if container in SPARSE:
        return _compressed(X, container)
    if container == "Fortran":
        return np.asfortranarray(X)
    if container == "slice":
        wide = np.full((2 * X.shape[0], X.shape[1] + 2), np.nan, dtype=dtype)
        wide[::2, 1:-1] = X
        return wide[::2, 1:-1]
    if container == "memory-mapped":
        with tempfile.TemporaryDirectory() as folder:  # the mapping outlives the name
            path = Path(folder) / "X.npy"
            np.save(path, X)
            return np.load(path, mmap_mode="r")
    X.flags.writeable = container != "read-only"
    return X


def _compressed(X: np.ndarray, container: str) -> sp.csr_array:
    index = np.int64 if container == "csr64" else np.int32
    if container == "csr zeros":  # every third entry that is zero is stored
        entries = [np.flatnonzero((x != 0) | (np.arange(len(x)) % 3 == 0)) for x in X]
    else:
        entries = [np.flatnonzero(x) for x in X]
    if container == "csr unsorted":
        entries = [columns[::-1] for columns in entries]
    ends = np.cumsum([0, *map(len, entries)]).astype(index)
    columns = np.concatenate(entries).astype(index)
    values = np.concatenate([x[k] for x, k in zip(X, entries, strict=True)])
    rows = sp.csr_array((values, columns, ends), shape=X.shape)
    rows.indices, rows.indptr = columns, ends  # scipy narrows them
    return rows


def draw(seed: int, number: int) -> Case:
    """Case ``number`` of a seed."""
    rng = np.random.default_rng([seed, number])
    machine = str(rng.choice(MACHINES, p=[0.4, 0.15, 0.2, 0.1, 0.15]))
    kernel = str(rng.choice(KERNELS, p=[0.45, 0.2, 0.15, 0.08, 0.12]))
    n, d = _shape(rng)
    raw = _data(rng, kernel, n + QUERIES, d)
    dtype = str(rng.choice(["float64", "float32"]))
    raw = raw.astype(dtype).astype(np.float64)
    params: dict[str, Any] = {"kernel": kernel, "shrinking": bool(rng.random() < 0.8)}
    params |= _kernel_params(rng, kernel, raw)
    gram = _rough_gram(raw, params)
    y = _targets(rng, machine, raw)[:n]
    X, queries, semidefinite = raw[:n], raw[n:], kernel != "sigmoid"
    if kernel == "precomputed":
        gram = gram.astype(dtype).astype(np.float64)
        X, queries = gram[:n, :n], gram[n:, :n]
        params.pop("gamma")
    squared = np.diag(gram)[:n, None] + np.diag(gram)[:n] - 2 * gram[:n, :n]
    apart = float(np.median(squared[squared > 0])) if (squared > 0).any() else 1.0
    params |= _machine_params(rng, machine, y, apart)
    weight = None
    if rng.random() < 0.3:
        weight = np.exp2(rng.integers(-2, 3, n)) if rng.random() < 0.5 else rng.uniform(0.1, 3, n)
        if rng.random() < 0.2:
            weight[_not_the_first_of_a_class(y, machine) & (rng.random(n) < 0.1)] = 0
    dense = kernel == "precomputed" or rng.random() < 0.65
    return Case(
        seed=seed, number=number, machine=machine, X=X, y=y, queries=queries, params=params,
        semidefinite=semidefinite, weight=weight,
        container=str(rng.choice(DENSE if dense else SPARSE)), dtype=dtype,
        options=_options(rng, kernel), cache_size=cache_of(rng, n), n_jobs=jobs_of(rng),
    )  # fmt: skip


def cache_of(rng: np.random.Generator, n: int) -> float:
    """MB for two or three rows, for some of them, or for all and more."""
    if rng.random() < 0.3:
        return AMPLE
    rows = rng.choice([2.0, 3.0, 9.0, n / 8, n / 4, n / 3, n / 2, 0.8 * n])
    return float(max(rows, 1) * 4 * n / MEGABYTE)


def jobs_of(rng: np.random.Generator) -> int:
    return int(rng.choice([1, 2, 3, 8], p=[0.5, 0.3, 0.1, 0.1]))


def _shape(rng: np.random.Generator) -> tuple[int, int]:
    size = rng.random()
    n = rng.integers(4, 41) if size < 0.5 else rng.integers(41, 151)
    if size > 0.9:
        n = rng.integers(151, 401)
    return int(n), int(rng.integers(1, 31) if rng.random() < 0.7 else rng.integers(1, 4))


def _data(rng: np.random.Generator, kernel: str, n: int, d: int) -> np.ndarray:
    character = str(rng.choice(CHARACTERS))
    if character == "bits":
        return (rng.random((n, d)) < rng.uniform(0.1, 0.9)).astype(np.float64)
    X = rng.normal(size=(n, d))
    if character == "sparse":
        X[rng.random((n, d)) < rng.uniform(0.5, 0.95)] = 0
    elif character == "grid":
        X = rng.integers(-2, 3, (n, d)).astype(np.float64)
    elif character == "clusters":
        X = X / 10 + rng.normal(size=(3, d))[rng.integers(0, 3, n)] * 10 ** rng.uniform(0, 2)
    elif character == "constant":
        X[:, rng.random(d) < 0.5] = 1.0
    X *= 2.0 ** rng.integers(-10, 11) if rng.random() < 0.5 else 10 ** rng.uniform(-3, 3)
    # A dot product far from the origin leaves too few digits of a float to tell rows apart: SMO
    # with rows of floats, whosever it is, then goes round in circles. Once in a while only.
    far = kernel in ("rbf", "precomputed") or rng.random() < 0.02
    offset = rng.choice(OFFSETS if far else OFFSETS[:5])
    if character != "sparse" or rng.random() < 0.2:
        X += offset * X.std() * (1.0 if rng.random() < 0.5 else rng.choice([-1.0, 1.0], d))
    return X


def _kernel_params(rng: np.random.Generator, kernel: str, X: np.ndarray) -> dict[str, Any]:
    if kernel == "linear":
        return {}
    variance = float(X.var()) or 1.0
    if kernel in ("rbf", "precomputed"):
        number = float(f"{10 ** rng.uniform(-2, 1.5) / (X.shape[1] * variance):.3g}")
        named = kernel == "rbf" and rng.random() < 0.5
        # "auto" is a tiny or a huge gamma unless the features are about one apart.
        sane = 1e-3 < variance < 1e2
        name = str(rng.choice(["scale", "auto"] if sane else ["scale"])) if named else None
        return {"gamma": name or number}
    length = float(np.mean((X**2).sum(axis=1))) or 1.0
    if kernel == "sigmoid":
        gamma = 10 ** rng.uniform(-3, -1) / length
        return {"gamma": float(f"{gamma:.3g}"), "coef0": float(rng.choice([0.0, 0.0, -0.5, 0.5]))}
    return {
        "gamma": float(f"{10 ** rng.uniform(-1, 0.5) / length:.3g}"),
        "degree": int(rng.integers(1, 5)),
        "coef0": float(rng.choice([0.0, 1.0, 0.5])),
    }


def _rough_gram(X: np.ndarray, params: dict[str, Any]) -> np.ndarray:
    """The kernel matrix to double precision: what a precomputed case is given."""
    gamma = params.get("gamma", 1.0)
    if isinstance(gamma, str):
        gamma = 1 / (X.shape[1] * (float(X.var()) or 1.0)) if gamma == "scale" else 1 / X.shape[1]
    if params["kernel"] in ("rbf", "precomputed"):
        squared = np.square(X[:, None] - X[None]).sum(axis=2)
        return np.exp(-gamma * squared)
    dots = X @ X.T
    if params["kernel"] == "linear":
        return dots
    inner = gamma * dots + params["coef0"]
    return np.tanh(inner) if params["kernel"] == "sigmoid" else inner ** params["degree"]


def _targets(rng: np.random.Generator, machine: str, X: np.ndarray) -> np.ndarray:
    n = len(X)
    direction = rng.normal(size=X.shape[1])
    score = (X - X.mean(axis=0)) @ direction
    score = score / (score.std() or 1.0) + rng.choice([0.1, 0.5, 2.0]) * rng.normal(size=n)
    if machine in REGRESSORS:
        return np.round(score * 10 ** rng.uniform(-1, 1), int(rng.integers(0, 6)))
    classes = int(rng.choice([2, 2, 2, 3, 4]))
    y = np.digitize(score, np.quantile(score, np.linspace(0, 1, classes + 1)[1:-1]))
    if rng.random() < 0.2 and classes == 2:
        y = (score > np.quantile(score, 0.85)).astype(y.dtype)
    first = rng.permutation(min(len(y) - QUERIES, 2 * classes)) % classes
    y[: len(first)] = first  # every class has a row that stays
    return y.astype(np.float64)


def _not_the_first_of_a_class(y: np.ndarray, machine: str) -> np.ndarray:
    """The rows that may be left out without a class vanishing."""
    first = np.unique(y, return_index=True)[1] if machine in CLASSIFIERS else [0, 1]
    return ~np.isin(np.arange(len(y)), first)


def _machine_params(
    rng: np.random.Generator, machine: str, y: np.ndarray, apart: float
) -> dict[str, Any]:
    """C over decades about the value at which two rows a usual distance apart balance.

    tol is in units of the gradient: of 1, of the targets, and where there are neither of the
    kernel. Below what floats can tell of these no method that keeps rows of floats arrives.
    """
    tol = 10.0 ** -rng.integers(3, 7)
    if machine in ("NuSVC", "OneClassSVM"):
        tol *= max(apart, 1.0)
    params: dict[str, Any] = {"tol": float(f"{tol:.3g}")}
    if machine in ("SVC", "SVR", "NuSVR"):
        spread = 1.0 if machine == "SVC" else float(np.ptp(y)) or 1.0
        params["C"] = float(f"{spread * 10 ** rng.uniform(-2, 2.5) / apart:.3g}")
    if machine in ("NuSVC", "NuSVR", "OneClassSVM"):
        nu = rng.uniform(0.02, 0.98 if machine != "NuSVC" else 0.7)
        params["nu"] = float(np.round(nu, 3) if rng.random() < 0.5 else np.ceil(64 * nu) / 64)
        if machine == "NuSVR" and rng.random() < 0.5:
            params["C"] = float(np.exp2(np.round(np.log2(params["C"]))))
    if machine == "SVR":
        epsilon = rng.choice([0.0, 1e-3, 0.1, 0.5]) * float(y.std())
        params["epsilon"] = float(f"{epsilon:.3g}")
    if machine == "SVC" and rng.random() < 0.3:
        weights = {float(label): float(rng.choice([0.1, 0.5, 2.0, 10.0])) for label in set(y)}
        params["class_weight"] = "balanced" if rng.random() < 0.5 else weights
    return params


def _options(rng: np.random.Generator, kernel: str) -> dict[str, Any]:
    if kernel == "linear" and rng.random() < 0.25:
        return {"solver": "decomposition"}
    if rng.random() < 0.8:
        return {}
    selector = str(rng.choice(["wss1", "wss3", "wss4", "wss-wr", "dpwss"]))
    return {"selector": selector, "random_state": int(rng.integers(100))}


def simpler(case: Case) -> Iterator[Case]:
    """The case with one thing about it made plain, for each thing that is not."""
    plain: list[dict[str, Any]] = [
        {"container": "C"}, {"dtype": "float64"}, {"n_jobs": 1}, {"cache_size": AMPLE},
        {"weight": None}, {"options": {}},
    ]  # fmt: skip
    for change in plain:
        if any(_differs(getattr(case, name), value) for name, value in change.items()):
            yield replace(case, **change)
    plainer = {"class_weight": None, "shrinking": False, "tol": 1e-3, "coef0": 0.0}
    for name, value in plainer.items():
        if case.params.get(name, value) != value:
            yield replace(case, params=case.params | {name: value})
    if case.kernel != "precomputed" and case.X.size <= FEW_NUMBERS:
        both = (case.X, case.queries)
        middle = np.round(case.X.mean(axis=0))
        for changed in ([Z - middle for Z in both], [np.round(Z) for Z in both]):
            X, queries = (Z.astype(case.dtype).astype(np.float64) for Z in changed)
            if _differs(X, case.X):
                yield replace(case, X=X, queries=queries)


def smaller(case: Case) -> Iterator[Case]:
    """The case with fewer rows, then with fewer columns: halves first, single ones last."""
    n, d = case.X.shape
    for keep in _subsets(n):
        if case.machine not in CLASSIFIERS or len(set(case.y[keep])) == len(set(case.y)):
            yield case.taking(keep)
    if case.kernel != "precomputed":
        for keep in _subsets(d):
            yield case.with_columns(keep)


def _subsets(n: int) -> Iterator[np.ndarray]:
    part = n // 2
    while part >= 1 and n > 1:
        for start in range(0, n, part):
            yield np.delete(np.arange(n), slice(start, start + part))
        part //= 2


def _differs(a: Any, b: Any) -> bool:
    return not (np.array_equal(a, b) if isinstance(a, np.ndarray) else a is b or a == b)


def snippet(case: Case) -> str:
    """Python that fits the case with both libraries: its numbers where they are few."""
    arrays = {"X": case.X, "y": case.y, "weight": case.weight, "queries": case.queries}
    lines = ["import numpy as np, dpsvm, sklearn.svm"]
    if case.X.size <= FEW_NUMBERS:
        lines += [f"{name} = {_told(value)}" for name, value in arrays.items()]
    else:
        square = case.kernel == "precomputed"
        rows = "..." if case.of_rows is None else f"{case.of_rows.tolist()}"
        columns = "" if case.of_columns is None else f"[:, {case.of_columns.tolist()}]"
        lines.append(f"from bench.fuzz.cases import draw; case = draw({case.seed}, {case.number})")
        lines.append(f"rows = {rows}; X = case.X[rows]{'[:, rows]' if square else columns}")
        lines.append("y = case.y[rows]")
        lines.append(f"weight = {'None' if case.weight is None else 'case.weight[rows]'}")
    own = {"cache_size": case.cache_size, "n_jobs": case.n_jobs} | case.options
    lines.append(f"own = {own}")
    lines.append(f"params = {case.params}")
    lines.append(f"X = X.astype({case.dtype!r})  # {case.container}")
    for library, words in (("dpsvm", "**params, **own"), ("sklearn.svm", "**params")):
        lines.append(f"print(vars({library}.{case.machine}({words}).fit(X, y, weight)))")
    return "\n".join(lines)


def _told(value: np.ndarray | None) -> str:
    return "None" if value is None else f"np.array({value.tolist()!r})"
