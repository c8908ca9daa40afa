"""Rows read per second, beside scikit-learn's load_svmlight_file.

    python bench/speed/reading.py ../shared

Both read the same plain file from the page cache in turns, and must give the same matrix; the
median of the rounds counts. Compressed files follow, for dpsvm's streaming alone. Exit code 1
if the matrices differ or dpsvm is less than 5 times as fast on plain text.
"""

from __future__ import annotations

import bz2
import gzip
import lzma
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

sys.path.append(str(Path(__file__).resolve().parents[2]))

import numpy as np

from bench.common import Table, arguments, data_file, note, run, shared_folder, write_results

FACTOR = 5
SETS = ("a9a", "w8a", "ijcnn1", "reuters", "pendigits", "abalone_scale")
COMPRESSED: dict[str, Callable[[bytes], bytes]] = {
    ".gz": gzip.compress,
    ".bz2": bz2.compress,
    ".xz": lzma.compress,
}


def seconds(read: Callable[[str], Any], path: Path) -> float:
    started = time.perf_counter()
    read(str(path))
    return time.perf_counter() - started


def same(first: tuple[Any, Any], second: tuple[Any, Any]) -> bool:
    """Whether two readers found the same entries and labels, bit for bit."""
    (X, y), (Z, z) = first, second
    return (
        X.shape == Z.shape
        and np.array_equal(X.indptr, Z.indptr)
        and np.array_equal(X.indices, Z.indices)
        and X.data.tobytes() == Z.data.tobytes()
        and np.array_equal(y, z)
    )


def plain(shared: Path, names: Sequence[str], rounds: int, folder: Path) -> Table:
    """Rows per second of both readers on plain text."""
    from sklearn.datasets import load_svmlight_file

    from dpsvm.data import load_libsvm

    columns = ("set", "rows", "MB", "dpsvm rows/s", "scikit-learn rows/s", "times", "same matrix")
    table = Table("Plain text", columns)
    for name in names:
        text = lzma.decompress(data_file(shared, name).read_bytes())
        path = folder / name
        path.write_bytes(text)
        own, other = load_libsvm(path), load_svmlight_file(str(path))
        times = [
            (seconds(load_libsvm, path), seconds(load_svmlight_file, path)) for _ in range(rounds)
        ]
        ours, theirs = (statistics.median(column) for column in zip(*times, strict=True))
        rows = len(own[1])
        table.rows.append(
            [
                name,
                rows,
                round(len(text) / 1e6, 2),
                round(rows / ours),
                round(rows / theirs),
                round(theirs / ours, 1),
                "yes" if same(own, other) else "NO",
            ]
        )
        note(" ".join(map(str, table.rows[-1])))
    return table


def compressed(shared: Path, name: str, rounds: int, folder: Path) -> Table:
    """Rows per second of dpsvm on compressed text."""
    from dpsvm.data import load_libsvm

    table = Table(f"Compressed text ({name})", ("compression", "dpsvm rows/s"))
    text = lzma.decompress(data_file(shared, name).read_bytes())
    for suffix, compress in COMPRESSED.items():
        path = folder / f"{name}{suffix}"
        path.write_bytes(compress(text))
        rows = len(load_libsvm(path)[1])
        taken = statistics.median(seconds(load_libsvm, path) for _ in range(rounds))
        table.rows.append([suffix, round(rows / taken)])
    return table


def main(argv: Sequence[str] | None = None) -> int:
    options = arguments(__doc__).parse_args(argv)
    shared = shared_folder(options.shared)
    names, rounds = (SETS[-1:], 1) if options.quick else (SETS, 5)
    with tempfile.TemporaryDirectory() as folder:
        tables = [
            plain(shared, names, rounds, Path(folder)),
            compressed(shared, names[0], rounds, Path(folder)),
        ]
    print("\n\n".join(table.text() for table in tables), end="\n\n")
    equal = all(row[-1] == "yes" for row in tables[0].rows)
    least = min(float(str(row[-2])) for row in tables[0].rows)
    verdicts = [
        f"the same matrices: {'yes' if equal else 'NO'}",
        f"times scikit-learn, at the least: {least} (asked: {FACTOR})",
    ]
    print("\n".join(verdicts))
    if options.quick:
        return 0 if equal else 1
    config = {"rounds": rounds, "factor": FACTOR}
    write_results(options.results, "reading", tables, config=config, verdicts=verdicts)
    return 0 if equal and least >= FACTOR else 1


if __name__ == "__main__":
    run(main)
