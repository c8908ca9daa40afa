"""Small data files in plain text: of the shared folder, or else made from scikit-learn's own."""

from __future__ import annotations

import lzma
from pathlib import Path

from bench.common import Absent, data_file, shared_folder

_ROWS = {"heart_scale": 270, "dna.scale": 300, "housing_scale": 250}


def heart(folder: Path, shared: str | None) -> Path:
    """Two classes: heart_scale."""
    return plain(folder, shared, "heart_scale")


def plain(folder: Path, shared: str | None, name: str, rows: int | None = None) -> Path:
    """The first rows of a data set as a file in a folder.

    heart_scale, dna.scale and housing_scale have stand-ins of about as many rows: breast cancer,
    digits and diabetes.
    """
    path = folder / name
    try:
        text = lzma.decompress(data_file(shared_folder(shared), name).read_bytes())
    except Absent:
        return _stand_in(path, rows)
    path.write_bytes(b"".join(text.splitlines(keepends=True)[:rows]))
    return path


def _stand_in(path: Path, rows: int | None) -> Path:
    from sklearn import datasets
    from sklearn.preprocessing import minmax_scale

    from dpsvm import dump_libsvm

    makers = {
        "heart_scale": datasets.load_breast_cancer,
        "dna.scale": datasets.load_digits,
        "housing_scale": datasets.load_diabetes,
    }
    if path.name not in makers:
        raise Absent(f"no data set {path.name}, and nothing stands in for it")
    X, y = makers[path.name](return_X_y=True)
    first = slice(min(rows or _ROWS[path.name], _ROWS[path.name]))
    dump_libsvm(minmax_scale(X, (-1, 1))[first], y[first], path)
    return path
