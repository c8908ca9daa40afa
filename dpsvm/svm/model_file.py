"""LIBSVM's text model files, read strictly and written exactly.

A file is a header of ``key value ...`` lines, the line ``SV``, and one line per support vector:
its ``nr_class - 1`` coefficients, then ``index:value`` pairs (``0:serial`` for a precomputed
kernel). A count in the header is a claim, checked against what follows; nothing is allocated on
its word.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from os import PathLike
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from dpsvm._arrays import Array
from dpsvm._csr import Csr
from dpsvm._files import RowReader, format_rows
from dpsvm._streams import atomic_write, chunks_of, compressor
from dpsvm.svm.model_header import Header
from dpsvm.svm.parameters import CLASSIFIERS, KERNELS, MACHINES, Parameters
from dpsvm.svm.voting import pair_count

_MACHINE_NAMES = {name.replace("-", "_"): name for name in MACHINES}
_KERNEL_NAMES = {"polynomial" if name == "poly" else name: name for name in KERNELS}
_KERNEL_KEYS = {
    "poly": ("degree", "gamma", "coef0"),
    "rbf": ("gamma",),
    "sigmoid": ("gamma", "coef0"),
}
_INT32_MIN, _INT32_MAX = -(2**31), 2**31 - 1
_ROWS_PER_WRITE = 4096


@dataclass(frozen=True, eq=False, kw_only=True)
class Contents:
    """What a file holds, in LIBSVM's terms: its classes, their order and its signs."""

    parameters: Parameters  # of which a file holds the machine and the kernel's
    rho: Array  # one per pair of classes; one number without classes
    n_support: NDArray[np.int32]  # support vectors of each class; one number without classes
    dual_coef: Array  # (classes - 1, vectors); one row without classes
    support_vectors: Any = None  # CSR, grouped by class; None if precomputed
    serials: NDArray[np.int64] | None = None  # precomputed: training row of each, from 1
    labels: NDArray[np.int64] | None = None  # one per class; None without classes
    prob_a: Array | None = None  # Platt slope of each pair; Laplace scale of a regression
    prob_b: Array | None = None  # Platt offset of each pair

    def save(self, path: str | PathLike[str]) -> None:
        """Write a LIBSVM model file, whole or not at all.

        Names in .gz, .bz2 and .xz are compressed, which LIBSVM cannot read.

        >>> import os, tempfile
        >>> model = Contents(
        ...     parameters=Parameters(machine="one-class", kernel="precomputed"),
        ...     rho=np.array([0.25]), n_support=np.array([1]), dual_coef=np.array([[0.5]]),
        ...     serials=np.array([7]),
        ... )
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     path = os.path.join(folder, "one.model")
        ...     model.save(path)
        ...     open(path).read().splitlines()[-3:]
        ['rho 0.25', 'SV', '0.5 0:7 ']
        """
        with atomic_write(path, "wb") as file, compressor(path, file) as text:
            for block in blocks_of(self):
                text.write(block)


def parse(stream: BinaryIO, name: str) -> dict[str, Any]:
    """The fields of :class:`Contents` in an open file, whose name errors tell."""
    header = Header(name, stream)
    parameters = _parameters(header)
    parts = _classes(header, parameters.machine)
    parts |= _probability(header, parameters.machine, len(parts["rho"]))
    parts |= _support_vectors(header, stream, parts["n_support"], parameters.kernel)
    return {"parameters": parameters, **parts}


def blocks_of(model: Contents) -> Iterator[bytes]:
    """What a model file holds, in pieces."""
    for key, values in _header_lines(model):
        yield " ".join([key, *map(_text, values)]).encode() + b"\n"
    yield b"SV\n"
    yield from _support_vector_lines(model)


def _parameters(header: Header) -> Parameters:
    machine = header.name("svm_type", _MACHINE_NAMES)
    kernel = header.name("kernel_type", _KERNEL_NAMES)
    values: dict[str, Any] = {}
    for key in ("degree", "gamma", "coef0"):
        if key not in header and key not in _KERNEL_KEYS.get(kernel, ()):
            continue
        if key == "degree":
            [values[key]] = header.integers(key, 1, 0, _INT32_MAX)
        else:
            values[key] = float(header.reals(key, 1)[0])
    if values.get("gamma", 0.0) < 0.0:
        header.fail(f"gamma {values['gamma']:g} is negative", header.lines["gamma"])
    return Parameters(machine=machine, kernel=kernel, **values)


def _classes(header: Header, machine: str) -> dict[str, Any]:
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


def _probability(header: Header, machine: str, n_pairs: int) -> dict[str, Any]:
    allowed = {"c-svc": ("probA", "probB"), "nu-svc": ("probA", "probB"), "one-class": ()}
    present = [key for key in ("probA", "probB") if key in header]
    for key in present:
        if key not in allowed.get(machine, ("probA",)):
            header.fail(f"{key} does not belong to {machine}", header.lines[key])
    if machine in CLASSIFIERS and len(present) == 1:
        header.fail("probA and probB must be given together", header.lines[present[0]])
    names = {"probA": "prob_a", "probB": "prob_b"}
    values = {names[key]: header.reals(key, n_pairs) for key in present}
    if machine not in CLASSIFIERS and values and values["prob_a"][0] < 0.0:
        header.fail("probA, the scale of the residuals, is negative", header.lines["probA"])
    return values


def _support_vectors(
    header: Header, stream: BinaryIO, n_support: NDArray[np.int32], kernel: str
) -> dict[str, Any]:
    precomputed = kernel == "precomputed"
    n_sv = int(n_support.sum(dtype=np.int64))
    reader = RowReader(
        header.path,
        leading=max(len(n_support) - 1, 1),
        leading_name="coefficient",
        first_line=header.end + 1,
        max_rows=n_sv,
        max_index=0 if precomputed else None,
        precomputed=precomputed,
    )
    body = _Body(stream)
    coefficients, data, indices, indptr = reader.read(body)
    n_rows = len(coefficients)
    last = reader.line_of(n_rows - 1) if n_rows else header.end
    if n_rows != n_sv:
        header.fail(f"{n_sv} support vectors announced, {n_rows} found", last)
    if n_rows and not body.ends_in_newline:
        header.fail("the file is cut short: its last line has no end", last)
    if reader.qid_tokens:
        header.fail("a support vector has a qid", None)
    parts: dict[str, Any] = {"dual_coef": np.ascontiguousarray(coefficients.T)}
    if precomputed:
        return parts | {"serials": data.astype(np.int64)}
    shape = (n_rows, reader.n_columns)
    return parts | {"support_vectors": Csr((data, indices, indptr), shape=shape)}


class _Body:
    """What follows the header, in chunks, and how it ends."""

    def __init__(self, stream: BinaryIO) -> None:
        self.stream = stream
        self.ends_in_newline = False

    def __iter__(self) -> Iterator[bytes]:
        for chunk in chunks_of(self.stream):
            self.ends_in_newline = chunk.endswith(b"\n")
            yield chunk


def _header_lines(model: Contents) -> Iterator[tuple[str, Iterable[Any]]]:
    machine_names = {name: text for text, name in _MACHINE_NAMES.items()}
    kernel_names = {name: text for text, name in _KERNEL_NAMES.items()}
    parameters = model.parameters
    yield "svm_type", [machine_names[parameters.machine]]
    yield "kernel_type", [kernel_names[parameters.kernel]]
    for key in _KERNEL_KEYS.get(parameters.kernel, ()):
        yield key, [getattr(parameters, key)]
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


def _support_vector_lines(model: Contents) -> Iterator[bytes]:
    coefficients = model.dual_coef.T
    first_index = 1
    if model.serials is not None:
        n = len(model.serials)
        zeros = np.zeros(n, dtype=np.int64)
        rows = Csr((model.serials.astype(np.float64), zeros, np.arange(n + 1)), shape=(n, 1))
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
            first_index=first_index,
        )


def _text(value: Any) -> str:
    """The fewest digits that read back to the same number."""
    return repr(float(value)).removesuffix(".0") if isinstance(value, float) else str(value)
