"""LIBSVM data files in and out.

A file is read strictly: what the format does not allow is a LibsvmFormatError that names file,
line and reason.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import numpy.typing as npt

from dpsvm._csr import Csr, is_sparse
from dpsvm._errors import LibsvmFormatError
from dpsvm._files import RowReader, format_rows
from dpsvm._streams import atomic_write, chunks_of, compressor, open_text
from dpsvm.scaling import Range

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix

__all__ = [
    "LibsvmFormatError",
    "Range",
    "atomic_write",
    "dump_libsvm",
    "format_libsvm",
    "load_libsvm",
    "open_text",
    "read_libsvm",
]

_LARGEST_INT = 2**31 - 1
_ENTRIES_PER_BLOCK = 1 << 17


def load_libsvm(
    path: str | os.PathLike[str],
    *,
    n_features: int | None = None,
    dtype: npt.DTypeLike = np.float64,
    labels: Literal["any", "class"] = "any",
    precomputed: bool = False,
) -> tuple[csr_matrix, npt.NDArray[np.float64]]:
    """Read a LIBSVM data file, plain or in .gz, .bz2 or .xz, as a CSR matrix and its labels.

    Parameters
    ----------
    path : the file.
    n_features : columns of the matrix, and the largest index allowed; None takes the largest found.
    dtype : float64 or float32.
    labels : "class" accepts only the whole numbers that LIBSVM takes as class labels.
    precomputed : the rows hold kernel values, ``label 0:serial 1:K(x, x1) 2:K(x, x2) ...``. Column
        0 of the matrix is then the serial number, column j the value against training row j.

    >>> import pathlib, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder, "two")
    ...     _ = path.write_bytes(b"+1 1:0.5 3:2  # a comment\\n-1 2:1\\n")
    ...     X, y = load_libsvm(path)
    >>> X.toarray()
    array([[0.5, 0. , 2. ],
           [0. , 1. , 0. ]])
    >>> y
    array([ 1., -1.])
    """
    from scipy.sparse import csr_matrix

    X, y = read_libsvm(
        path, n_features=n_features, dtype=dtype, labels=labels, precomputed=precomputed
    )
    return csr_matrix(X.to_scipy()), y


def read_libsvm(
    path: str | os.PathLike[str],
    *,
    n_features: int | None = None,
    dtype: npt.DTypeLike = np.float64,
    labels: Literal["any", "class"] = "any",
    precomputed: bool = False,
) -> tuple[Csr, npt.NDArray[np.float64]]:
    """What :func:`load_libsvm` reads, for the command line, which does without scipy.

    >>> import tempfile
    >>> with tempfile.NamedTemporaryFile() as file:
    ...     _ = file.write(b"+1 1:0.5 3:2")
    ...     file.flush()
    ...     read_libsvm(file.name)[0].indices.tolist()
    [0, 2]
    """
    if labels not in ("any", "class"):
        raise ValueError(f"labels must be 'any' or 'class', got {labels!r}")
    if np.dtype(dtype) not in (np.float32, np.float64):
        raise ValueError(f"dtype must be float32 or float64, got {dtype!r}")
    if n_features is not None and not 0 <= n_features <= _LARGEST_INT:
        raise ValueError(f"n_features must be from 0 to {_LARGEST_INT}, got {n_features!r}")
    reader = RowReader(os.fspath(path), max_index=n_features, precomputed=precomputed)
    with open_text(path) as file:
        leading, data, indices, indptr = reader.read(chunks_of(file))
    y = leading[:, 0]
    if not len(y):
        raise LibsvmFormatError(reader.path, None, "the file has no rows")
    if labels == "class":
        _check_classes(y, reader)
    if reader.qid_tokens:
        warnings.warn(f"{reader.path}: {reader.qid_tokens} qid tokens were ignored", stacklevel=3)
    values = data if np.dtype(dtype) == np.float64 else _to_single(data, indptr, reader)
    width = reader.n_columns if n_features is None else n_features + precomputed
    return Csr((values, indices, indptr), shape=(len(y), width)), y


def _check_classes(y: npt.NDArray[np.float64], reader: RowReader) -> None:
    wrong = np.flatnonzero((y != np.rint(y)) | (np.abs(y) > _LARGEST_INT))
    if wrong.size:
        row = int(wrong[0])
        reason = f"label {float(y[row])} is not a class: classes are whole numbers of 32 bits"
        raise LibsvmFormatError(reader.path, reader.line_of(row), reason)


def _to_single(
    data: npt.NDArray[np.float64], indptr: npt.NDArray[np.int64], reader: RowReader
) -> npt.NDArray[np.float32]:
    with np.errstate(over="ignore"):
        single = data.astype(np.float32)
    infinite = np.flatnonzero(np.isinf(single))
    if infinite.size:
        row = int(np.searchsorted(indptr, infinite[0], side="right")) - 1
        reason = f"value {float(data[infinite[0]])} is too large for float32"
        raise LibsvmFormatError(reader.path, reader.line_of(row), reason)
    return single


def format_libsvm(
    X: Any, y: npt.ArrayLike, *, digits: int | None = None, label_digits: int | None = None
) -> Iterator[bytes]:
    """The text of a LIBSVM data file, a block of rows at a time.

    ``digits`` are the significant digits of the values and ``label_digits`` those of the labels, as
    in C's ``%.6g``; None writes the fewest digits that read back to the same double. The stored
    zeros of a sparse matrix are written, the zeros of a dense one are not.

    >>> b"".join(format_libsvm([[0.0, 1 / 3], [2.0, 0.0]], [1, -1], digits=6))
    b'1 2:0.333333 \\n-1 1:2 \\n'
    """
    X, y = _checked(X, y)
    rows_per_block = max(1, _ENTRIES_PER_BLOCK * len(y) // max(1, _size(X)))
    for start in range(0, len(y), rows_per_block):
        rows = slice(start, start + rows_per_block)
        block = Csr.of(X[rows])
        yield format_rows(
            y[rows, None],
            block.data,
            block.indices,
            block.indptr,
            digits=digits,
            leading_digits=label_digits,
        )


def _size(X: Any) -> int:
    return int(X.nnz if isinstance(X, Csr) else X.size)


def _checked(X: Any, y: npt.ArrayLike) -> tuple[Any, npt.NDArray[np.float64]]:
    """X with sorted rows and y as an array, once both are known to be finite and to match."""
    if is_sparse(X):
        X = Csr.of(X)
    elif not isinstance(X, Csr):
        X = np.asarray(X)
    y = np.asarray(y, dtype=np.float64)
    if len(X.shape) != 2 or y.shape != X.shape[:1]:
        raise ValueError(f"X must be a matrix with one row per label, got {X.shape} and {y.shape}")
    if X.shape[1] > _LARGEST_INT:
        raise ValueError(f"X has {X.shape[1]} columns; the format allows {_LARGEST_INT}")
    if not np.isfinite(X.data if isinstance(X, Csr) else X).all():
        raise ValueError("X holds NaN or infinity, which LIBSVM files cannot")
    if not np.isfinite(y).all():
        raise ValueError("y holds NaN or infinity, which LIBSVM files cannot")
    return X, y


def dump_libsvm(X: Any, y: npt.ArrayLike, path: str | os.PathLike[str]) -> None:
    """Write a LIBSVM data file whose values read back to the bit, whole or not at all.

    Names in .gz, .bz2 and .xz are compressed.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     dump_libsvm([[0.0, 0.1], [2.0, 0.0]], [1, -1], f"{folder}/two.gz")
    ...     X, y = load_libsvm(f"{folder}/two.gz")
    >>> X.toarray()
    array([[0. , 0.1],
           [2. , 0. ]])
    """
    with atomic_write(path, "wb") as file, compressor(path, file) as text:
        for block in format_libsvm(X, y):
            text.write(block)
