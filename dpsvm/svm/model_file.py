"""LIBSVM's text model files, read strictly and written exactly.

A file is a header of ``key value ...`` lines, the line ``SV``, and one line per support vector:
its ``nr_class - 1`` coefficients, then ``index:value`` pairs (``0:serial`` for a precomputed
kernel). A count in the header is a claim, checked against what follows; nothing is allocated on
its word.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from os import PathLike, fspath
from typing import Any, BinaryIO, NoReturn

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from dpsvm._errors import LibsvmFormatError
from dpsvm._files import RowReader, format_rows
from dpsvm.data import atomic_write, open_text
from dpsvm.svm.model import Model
from dpsvm.svm.parameters import CLASSIFIERS, KERNELS, MACHINES
from dpsvm.svm.voting import pair_count

_MACHINE_NAMES = {name.replace("-", "_"): name for name in MACHINES}
_KERNEL_NAMES = {"polynomial" if name == "poly" else name: name for name in KERNELS}
_KERNEL_KEYS = {"poly": ("degree", "gamma", "coef0"), "rbf": ("gamma",), "sigmoid": ("gamma", "coef0")}
_SIZED_BY_NR_CLASS = ("rho", "label", "probA", "probB", "nr_sv")
_KEYS = frozenset(
    ("svm_type", "kernel_type", "degree", "gamma", "coef0", "nr_class", "total_sv")
    + _SIZED_BY_NR_CLASS
)
_INTEGER = re.compile(r"[+-]?[0-9]{1,18}")
_REAL = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?")
_INT32_MIN, _INT32_MAX = -(2**31), 2**31 - 1
_CHUNK_BYTES = 1 << 20
_ROWS_PER_WRITE = 4096


def read(path: str | PathLike[str]) -> Model:
    """Read a model file, plain or compressed.

    A malformed file raises :class:`~dpsvm.data.LibsvmFormatError`, a ``ValueError`` whose text is
    ``FILE:LINE: reason``.

    >>> import os, tempfile
    >>> text = "svm_type epsilon_svr\\nkernel_type linear\\nnr_class 2\\ntotal_sv 1\\nrho -1\\n"
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = os.path.join(folder, "line.model")
    ...     _ = open(path, "w").write(text + "SV\\n2 1:1\\n")
    ...     read(path).predict([[0.0], [1.0]]).tolist()
    [1.0, 3.0]
    """
    with open_text(path) as stream:
        header = _Header(fspath(path), stream)
        machine = header.name("svm_type", _MACHINE_NAMES)
        kernel = header.name("kernel_type", _KERNEL_NAMES)
        parts = _kernel_parameters(header, kernel)
        parts |= _classes(header, machine)
        parts |= _probability(header, machine, len(parts["rho"]))
        n_sv = int(np.sum(parts["n_support"]))
        rows = _support_vectors(header, stream, n_sv, len(parts["n_support"]), kernel)
    return Model(machine=machine, kernel=kernel, **parts, **rows)


def write(model: Model, path: str | PathLike[str]) -> None:
    """Write a model file that LIBSVM and :func:`read` take back, whole or not at all.

    >>> import os, tempfile
    >>> model = Model(
    ...     machine="one-class", kernel="precomputed", rho=np.array([0.25]),
    ...     n_support=np.array([1]), dual_coef=np.array([[0.5]]), serials=np.array([7]),
    ... )
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = os.path.join(folder, "one.model")
    ...     write(model, path)
    ...     print(open(path).read().replace("\\n", "; "))
    svm_type one_class; kernel_type precomputed; nr_class 2; total_sv 1; rho 0.25; SV; 0.5 0:7 ; 
    """
    with atomic_write(path, "wb") as file:
        for key, values in _header_lines(model):
            file.write(" ".join([key, *map(_text, values)]).encode() + b"\n")
        file.write(b"SV\n")
        for block in _support_vector_lines(model):
            file.write(block)


class _Header:
    """The lines before ``SV``, each key at most once, with the line number of each."""

    def __init__(self, path: str, stream: BinaryIO) -> None:
        self.path = path
        self.values: dict[str, list[str]] = {}
        self.lines: dict[str, int] = {}
        self.end = 0  # the number of the line that reads SV
        for self.end, line in enumerate(iter(stream.readline, b""), start=1):
            key, *values = self._tokens(line)
            if key == "SV" and not values:
                return
            self._add(key, values)
        self.fail("the file ends before the line SV", self.end or None)

    def _tokens(self, line: bytes) -> list[str]:
        try:
            tokens = line.decode("ascii").split()
        except UnicodeDecodeError:
            self.fail("the header holds characters that are not ASCII", self.end)
        return tokens or self.fail("blank line in the header", self.end)

    def _add(self, key: str, values: list[str]) -> None:
        if key not in _KEYS:
            self.fail(f"unknown key {_quoted(key)}", self.end)
        if key in self.values:
            self.fail(f"{key} was given on line {self.lines[key]} already", self.end)
        if key in _SIZED_BY_NR_CLASS and "nr_class" not in self.values:
            self.fail(f"{key} comes before nr_class", self.end)
        self.values[key], self.lines[key] = values, self.end

    def __contains__(self, key: str) -> bool:
        return key in self.values

    def fail(self, reason: str, line: int | None) -> NoReturn:
        raise LibsvmFormatError(self.path, line, reason)

    def tokens(self, key: str, count: int) -> list[str]:
        if key not in self.values:
            self.fail(f"the header has no {key}", self.end)
        values = self.values[key]
        if len(values) != count:
            self.fail(f"{key} needs {count} value(s), got {len(values)}", self.lines[key])
        return values

    def name(self, key: str, names: dict[str, str]) -> str:
        [token] = self.tokens(key, 1)
        if token not in names:
            self.fail(f"{key} {_quoted(token)} is not one of {', '.join(names)}", self.lines[key])
        return names[token]

    def integers(self, key: str, count: int, low: int, high: int) -> list[int]:
        numbers = []
        for token in self.tokens(key, count):
            if not _INTEGER.fullmatch(token) or not low <= int(token) <= high:
                self.fail(
                    f"{key} {_quoted(token)} is not a whole number from {low} to {high}",
                    self.lines[key],
                )
            numbers.append(int(token))
        return numbers

    def reals(self, key: str, count: int) -> NDArray[np.float64]:
        tokens = self.tokens(key, count)
        for token in tokens:
            if not _REAL.fullmatch(token) or not np.isfinite(float(token)):
                self.fail(f"{key} {_quoted(token)} is not a finite number", self.lines[key])
        return np.array([float(token) for token in tokens])


def _kernel_parameters(header: _Header, kernel: str) -> dict[str, Any]:
    parts: dict[str, Any] = {}
    required = _KERNEL_KEYS.get(kernel, ())
    for key in ("gamma", "coef0"):
        if key in required or key in header:
            parts[key] = float(header.reals(key, 1)[0])
    if parts.get("gamma", 0.0) < 0.0:
        header.fail(f"gamma {parts['gamma']:g} is negative", header.lines["gamma"])
    if "degree" in required or "degree" in header:
        [parts["degree"]] = header.integers("degree", 1, 0, _INT32_MAX)
    return parts


def _classes(header: _Header, machine: str) -> dict[str, Any]:
    [n_classes] = header.integers("nr_class", 1, 2, _INT32_MAX)
    # A regression whose tube holds every target has no support vector; the others always have.
    [total] = header.integers("total_sv", 1, int(not machine.endswith("svr")), _INT32_MAX)
    parts: dict[str, Any] = {"rho": header.reals("rho", pair_count(n_classes))}
    if machine not in CLASSIFIERS:
        if n_classes != 2:
            header.fail(f"nr_class {n_classes}: must be 2 here", header.lines["nr_class"])
        for key in ("label", "nr_sv"):
            if key in header:
                header.fail(f"{key} belongs to classifiers only", header.lines[key])
        return parts | {"n_support": np.array([total], dtype=np.int32)}
    labels = header.integers("label", n_classes, _INT32_MIN, _INT32_MAX)
    if len(set(labels)) != n_classes:
        header.fail("a label is given twice", header.lines["label"])
    n_support = header.integers("nr_sv", n_classes, 0, _INT32_MAX)
    if sum(n_support) != total:
        header.fail(f"nr_sv sums to {sum(n_support)}, total_sv is {total}", header.lines["nr_sv"])
    return parts | {
        "labels": np.array(labels, dtype=np.int64),
        "n_support": np.array(n_support, dtype=np.int32),
    }


def _probability(header: _Header, machine: str, n_pairs: int) -> dict[str, Any]:
    allowed = {"c-svc": ("probA", "probB"), "nu-svc": ("probA", "probB"), "one-class": ()}
    present = [key for key in ("probA", "probB") if key in header]
    for key in present:
        if key not in allowed.get(machine, ("probA",)):
            header.fail(f"{key} does not belong to {machine}", header.lines[key])
    if machine in CLASSIFIERS and len(present) == 1:
        header.fail("probA and probB must be given together", header.lines[present[0]])
    names = {"probA": "prob_a", "probB": "prob_b"}
    return {names[key]: header.reals(key, n_pairs) for key in present}


def _support_vectors(
    header: _Header, stream: BinaryIO, n_sv: int, n_groups: int, kernel: str
) -> dict[str, Any]:
    precomputed = kernel == "precomputed"
    reader = RowReader(
        header.path,
        leading=max(n_groups - 1, 1),
        leading_name="coefficient",
        first_line=header.end + 1,
        max_rows=n_sv,
        max_index=0 if precomputed else None,
        precomputed=precomputed,
    )
    coefficients, data, indices, indptr = reader.read(_chunks(stream))
    n_rows = len(coefficients)
    if n_rows != n_sv:
        last = reader.line_of(n_rows - 1) if n_rows else header.end
        header.fail(f"{n_sv} support vectors announced, {n_rows} found", last)
    if reader.qid_tokens:
        header.fail("a support vector has a qid", None)
    parts: dict[str, Any] = {"dual_coef": np.ascontiguousarray(coefficients.T)}
    if precomputed:
        return parts | {"serials": data.astype(np.int64)}
    shape = (n_rows, reader.n_columns)
    return parts | {"support_vectors": sparse.csr_array((data, indices, indptr), shape=shape)}


def _chunks(stream: BinaryIO) -> Iterator[bytes]:
    return iter(lambda: stream.read(_CHUNK_BYTES), b"")


def _header_lines(model: Model) -> Iterator[tuple[str, Iterable[Any]]]:
    machine_names = {name: text for text, name in _MACHINE_NAMES.items()}
    kernel_names = {name: text for text, name in _KERNEL_NAMES.items()}
    yield "svm_type", [machine_names[model.machine]]
    yield "kernel_type", [kernel_names[model.kernel]]
    for key in _KERNEL_KEYS.get(model.kernel, ()):
        yield key, [getattr(model, key)]
    yield "nr_class", [2 if model.labels is None else len(model.labels)]
    yield "total_sv", [model.dual_coef.shape[1]]
    yield "rho", model.rho
    if model.labels is not None:
        yield "label", model.labels
    if model.prob_a is not None:
        yield "probA", model.prob_a
    if model.prob_b is not None:
        yield "probB", model.prob_b
    if model.labels is not None:
        yield "nr_sv", model.n_support


def _support_vector_lines(model: Model) -> Iterator[bytes]:
    coefficients = model.dual_coef.T
    first_index = 1
    if model.serials is not None:
        n = len(model.serials)
        zeros = np.zeros(n, dtype=np.int64)
        rows = sparse.csr_array((model.serials.astype(np.float64), zeros, np.arange(n + 1)), (n, 1))
        first_index = 0
    else:
        rows = model.support_vectors
    for start in range(0, len(coefficients), _ROWS_PER_WRITE):
        block = rows[start : start + _ROWS_PER_WRITE]
        yield format_rows(
            coefficients[start : start + _ROWS_PER_WRITE],
            block.data,
            block.indices,
            block.indptr,
            digits=17,
            leading_digits=17,
            first_index=first_index,
        )


def _text(value: Any) -> str:
    return f"{value:.17g}" if isinstance(value, float) else str(value)


def _quoted(token: str) -> str:
    return repr(token if len(token) <= 40 else token[:40] + "...")
