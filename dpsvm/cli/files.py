"""The files a command reads, and those it writes: what cannot be is refused before any work."""

from __future__ import annotations

import errno
import os
import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from dpsvm._csr import Csr
from dpsvm._extras import missing
from dpsvm._files import RowReader
from dpsvm._streams import chunks_of, open_text
from dpsvm.cli.options import UsageError
from dpsvm.data import LibsvmFormatError, atomic_write, read_libsvm
from dpsvm.report.picture import check_format, write
from dpsvm.report.plain_json import dumps
from dpsvm.svm.training import Problem
from dpsvm.warnings import PrivacyLeakWarning

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from scipy import sparse


def read_problem(path: str, *, classes: bool, precomputed: bool) -> Problem:
    """The rows of a data file; ``classes`` asks for whole-number labels."""
    X, y = read_libsvm(path, labels="class" if classes else "any", precomputed=precomputed)
    if not precomputed:
        return Problem(X, y)
    first = X.indptr[:-1]  # of each row the serial, as the reader has made sure
    indptr = X.indptr - np.arange(len(X.indptr))
    arrays = (np.delete(X.data, first), np.delete(X.indices, first) - 1, indptr)
    values = Csr(arrays, shape=(len(y), X.shape[1] - 1))
    return Problem(values, y, X.data[first].astype(np.int64))


def read_private(
    path: str, n_features: int | None
) -> tuple[sparse.csr_array, NDArray[np.float64], Callable[[int], int]]:
    """The rows and labels of a data file for a private fit, and the line that each row stands on.

    n_features : the public width; None takes the largest index, at least 1

    ``load_libsvm`` is not used here: it warns of how many qid tokens a file holds, and forgets the
    lines, which a refusal names.
    """
    from scipy import sparse

    reader = RowReader(path, max_index=n_features)
    with open_text(path) as file:
        leading, data, indices, indptr = reader.read(chunks_of(file))
    labels = leading[:, 0]
    if not len(labels):
        raise LibsvmFormatError(path, None, "the file has no rows")
    width = n_features or max(int(indices.max(initial=0)) + 1, 1)
    rows = sparse.csr_array((data, indices, indptr), shape=(len(labels), width))
    return rows, labels, reader.line_of


def unknown_label(labels: NDArray[np.float64], classes: Sequence[int]) -> tuple[int, str] | None:
    """The first row whose label is not among the public ones, and what is wrong with it.

    >>> unknown_label(np.array([1.0, -1.0, 3.0]), (-1, 1))
    (2, 'label 3 is not in --classes -1,1')
    """
    unknown = np.flatnonzero(~np.isin(labels, classes))
    if not unknown.size:
        return None
    row, listed = int(unknown[0]), ",".join(map(str, classes))
    return row, f"label {labels[row]:g} is not in --classes {listed}"


def warn_of_width(path: str, width: int) -> None:
    """Warn that the width of a private fit was found in its data."""
    warnings.warn(
        f"{path}: the number of features is the largest index of the rows; a guarantee needs it "
        f"public, which --n-features {width} states",
        PrivacyLeakWarning,
        stacklevel=3,
    )


def require_serials_in_range(path: str, problem: Problem) -> None:
    """Raise unless every training row has its column among the kernel values."""
    if problem.serials is None:
        return
    n_values = problem.X.shape[1]
    beyond = np.flatnonzero(problem.serials > n_values)
    if beyond.size:
        serial = problem.serials[beyond[0]]
        reason = f"serial number {serial} has no kernel values: the rows end at {n_values}"
        raise LibsvmFormatError(path, None, reason)


def require_folder(path: str | None) -> None:
    """Raise OSError, before any work is done, if a file cannot be written; None is no file."""
    if path is None:
        return
    if not path:
        raise FileNotFoundError(errno.ENOENT, "the name of a file to write is empty")
    folder = os.path.dirname(path) or "."
    if not os.path.isdir(folder):
        raise FileNotFoundError(errno.ENOENT, "the folder to write to does not exist", path)
    if os.path.isdir(path):
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), path)
    if not os.path.exists(path) and not os.access(folder, os.W_OK):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), path)


def require_apart(files: Mapping[str, str | None]) -> None:
    """Refuse to write over what is read: a ledger that is written over is a budget reset.

    files : by the role each plays; the lock and the key beside a "--ledger" are among them

    >>> require_apart({"FILE": "train", "--json": "train"})
    Traceback (most recent call last):
    ...
    dpsvm.cli.options.UsageError: train cannot be both FILE and --json
    """
    ledger = files.get("--ledger")
    beside = ("lock", "key") if ledger else ()
    its_own = {f"the ledger's {one}": f"{os.path.realpath(ledger or '')}.{one}" for one in beside}
    seen: dict[str, str] = {}
    for role, path in (its_own | dict(files)).items():
        if path:
            other = seen.setdefault(os.path.realpath(path), role)
            if other != role:
                raise UsageError(f"{path} cannot be both {other} and {role}")


def require_matplotlib(flag: str = "--plot") -> None:
    """Refuse a flag whose pictures nothing could draw."""
    if (words := missing("matplotlib", flag)) is not None:
        raise UsageError(words)


def check_outputs(read: Mapping[str, str | None], written: Mapping[str, str | None]) -> None:
    """Refuse files that could not be written, or that are read as well.

    read, written : by flag, or "FILE"; None where a flag was not given

    >>> check_outputs({"FILE": "train"}, {"--json": "train"})
    Traceback (most recent call last):
    ...
    dpsvm.cli.options.UsageError: train cannot be both FILE and --json
    """
    require_apart({**read, **written})
    for path in written.values():
        require_folder(path)
    if (plot := written.get("--plot")) is not None:
        require_matplotlib()
        check_format(plot)


def write_json(path: str, record: dict[str, Any]) -> None:
    """Write a record, whole or not at all; what JSON cannot say (NaN, infinity) becomes null."""
    with atomic_write(path) as file:
        file.write(dumps(record))


def write_outputs(
    json: str | None,
    record: Callable[[], dict[str, Any]],
    plot: str | None,
    picture: Callable[[], Figure],
) -> None:
    """Write the record and the picture of a run, each if it was asked for."""
    if json is not None:
        write_json(json, record())
    if plot is not None:
        write(picture(), plot)
