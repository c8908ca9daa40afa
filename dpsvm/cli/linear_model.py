"""Linear models as files that ``dpsvm predict`` reads; one of a private fit with its guarantee.

Without privacy it is a LIBSVM model file. That has no place for a guarantee, so a private model is
JSON: the privacy report, and the lines of the LIBSVM model file.
"""

from __future__ import annotations

import json
from io import BytesIO
from typing import Any

import numpy as np
from scipy import sparse

from dpsvm._streams import atomic_write, compressor, open_text
from dpsvm.report.plain_json import dumps
from dpsvm.svm.model import Model
from dpsvm.svm.model_file import blocks_of, parse
from dpsvm.svm.parameters import Parameters

FORMAT = "dpsvm private linear model, version 1"


def to_libsvm(model: Any) -> Model:
    """The weights of a fitted linear model as the one support vector of a machine.

    >>> from dpsvm.frank_wolfe import FrankWolfeLasso
    >>> model = FrankWolfeLasso(2.0).fit([[1.0, 0.0], [0.0, 1.0]], [3.0, 0.0])
    >>> to_libsvm(model).predict([[1.0, 1.0], [-1.0, 5.0]])
    array([ 2., -2.])
    """
    machine = "epsilon-svr"
    parts: dict[str, Any] = {"n_support": np.ones(1, dtype=np.int32)}
    if hasattr(model, "classes_"):  # a positive decision is for LIBSVM's first label
        machine = "c-svc"
        labels = np.ascontiguousarray(model.classes_[::-1], dtype=np.int64)
        parts = {"labels": labels, "n_support": np.array([1, 0], dtype=np.int32)}
    return Model(
        parameters=Parameters(machine=machine, kernel="linear"),
        rho=-np.ravel(model.intercept_).astype(np.float64),
        dual_coef=np.ones((1, 1)),
        support_vectors=sparse.csr_array(np.reshape(model.coef_, (1, -1))),
        **parts,
    )


def save_linear(model: Any, path: str) -> None:
    """Write a fitted linear model, whole or not at all."""
    machine = to_libsvm(model)
    if model.privacy_report_ is None:
        machine.save(path)
        return
    document = {
        "format": FORMAT,
        "estimator": type(model).__name__,
        "report": model.privacy_report_,
        "model": b"".join(blocks_of(machine)).decode("ascii").splitlines(),
    }
    with atomic_write(path, "wb") as file, compressor(path, file) as packed:
        packed.write(dumps(document).encode())


def load_linear(path: str) -> Model | None:
    """The model of a JSON file; None if the file is of another kind."""
    with open_text(path) as file:
        text = file.read()
    try:
        document = json.loads(text)
        if document["format"] != FORMAT:
            return None
        lines = [f"{line}\n".encode() for line in document["model"]]
    except (ValueError, KeyError, TypeError, RecursionError):
        return None
    return Model(**parse(BytesIO(b"".join(lines)), path))
