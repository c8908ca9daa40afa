"""Private models as files that hold the noisy weights, public numbers and nothing else.

A linear model becomes a LIBSVM model file, which every reader of such files takes; it has no place
for a guarantee. A model on random Fourier features becomes JSON: the weights, the parameters and
the privacy report. The frequencies follow from the public seed and are not stored. Neither file
holds a training row, nor the seed of the noise where one was used for an experiment.
"""

from __future__ import annotations

import json
import math
import os
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.utils.validation import check_is_fitted

from dpsvm._streams import atomic_write, compressor, open_text
from dpsvm.privacy.estimators import (
    BasePrivateClassifier,
    PrivateLogisticRegression,
    PrivateSVC,
    public_classes,
)
from dpsvm.privacy.guarantee import Guarantee, check_epsilon, check_neighbouring
from dpsvm.privacy.release import keep_guarantee
from dpsvm.svm.model import Model, integer_labels
from dpsvm.svm.parameters import Parameters

FORMAT = "dpsvm private model"
VERSION = 1
FORMS = ("libsvm", "json")
"""The kinds of files, the one for linear models first."""

_ESTIMATORS: dict[str, type[BasePrivateClassifier]] = {
    kind.__name__: kind for kind in (PrivateSVC, PrivateLogisticRegression)
}
_NOT_STORED = ("accountant", "random_state", "classes", "class_weight")  # the latter two apart
_LARGEST_INDEX = 2**31 - 1

Path = str | os.PathLike[str]


def save_private(model: BasePrivateClassifier, path: Path, *, form: str | None = None) -> None:
    """Write a fitted private classifier, whole or not at all.

    Parameters
    ----------
    model : PrivateSVC or PrivateLogisticRegression
        The fitted model.
    path : path
        The file; names in .gz, .bz2 and .xz are compressed.
    form : {"libsvm", "json"} or None, default=None
        None takes "libsvm" for a linear kernel and "json" for random features. "libsvm" is for
        linear kernels and integer labels; "json" also keeps the guarantee.

    Examples
    --------
    >>> import os, tempfile
    >>> X, y = [[-1.0], [-0.8], [0.8], [1.0]] * 200, ["no", "no", "yes", "yes"] * 200
    >>> model = PrivateSVC(epsilon=1.0, delta=1e-5, data_norm=1.0, classes=["no", "yes"]).fit(X, y)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = os.path.join(folder, "answer.json")
    ...     save_private(model, path, form="json")
    ...     again = load_private(path)
    >>> again.predict([[-0.9], [0.9]])
    array(['no', 'yes'], dtype='<U3')
    >>> print(again.privacy_guarantee_)
    epsilon = 1, delta = 1e-05 (add-remove)
    """
    check_is_fitted(model)
    chosen = form or FORMS[model.kernel != "linear"]
    if chosen not in FORMS:
        raise ValueError(f"form must be None or {' or '.join(map(repr, FORMS))}, got {form!r}")
    if chosen == "libsvm":
        to_libsvm(model).save(path)
        return
    text = json.dumps(_document(model), indent=1, allow_nan=False) + "\n"
    with atomic_write(path, "wb") as file, compressor(path, file) as packed:
        packed.write(text.encode())


def to_libsvm(model: BasePrivateClassifier) -> Model:
    """A fitted private linear classifier in LIBSVM's terms, deciding as ``model.predict`` does.

    The weights of a machine take the place of a support vector. Two classes: one vector with
    coefficient 1. More: LIBSVM lets every pair of classes vote, and the pair (i, j) decides by
    f_i - f_j, which elects the class of the largest f. Labels stand in descending order, because a
    pair at exactly zero votes for its second class and ``predict`` takes the first among equals.

    >>> X, y = [[-1.0], [-0.8], [0.8], [1.0]] * 200, [-1, -1, 1, 1] * 200
    >>> model = PrivateSVC(epsilon=1.0, delta=1e-5, data_norm=1.0, classes=[-1, 1]).fit(X, y)
    >>> to_libsvm(model).predict([[-0.9], [0.9]])
    array([-1.,  1.])
    """
    check_is_fitted(model)
    if model.kernel != "linear":
        raise ValueError(f"a LIBSVM model file cannot hold kernel={model.kernel!r}: use JSON")
    labels = integer_labels(model.classes_)[::-1]
    weights, bias = model.coef_[::-1], model.intercept_[::-1]
    k = len(labels)
    if k == 2:
        n_support, dual_coef, rho = [1, 0], np.ones((1, 1)), -bias
    else:
        first, second = np.triu_indices(k, 1)  # LIBSVM's order of the pairs
        n_support, rho = [1] * k, bias[second] - bias[first]
        # Column i: against the classes before it (it is the second of the pair), then after it.
        dual_coef = np.where(np.arange(k - 1)[:, None] < np.arange(k), -1.0, 1.0)
    return Model(
        parameters=Parameters(machine="c-svc", kernel="linear"),
        labels=np.ascontiguousarray(labels),
        rho=np.ascontiguousarray(rho),
        n_support=np.array(n_support, dtype=np.int32),
        dual_coef=dual_coef,
        support_vectors=sparse.csr_array(weights),
    )


def load_private(path: Path) -> BasePrivateClassifier:
    """Read a private model from its JSON file: a fitted estimator that predicts to the same bit.

    What is not such a file is a ValueError that names it. It cannot be fitted to the same budget
    again by accident: the accountant is not stored. A LIBSVM model file is read by
    ``dpsvm.Model.load``.

    >>> import pathlib, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder, "poem.json")
    ...     _ = path.write_bytes(b'{"format": "a poem"}')
    ...     try:
    ...         load_private(path)
    ...     except ValueError as error:
    ...         print(str(error).rpartition(": ")[2])
    its format is 'a poem', not 'dpsvm private model'
    """
    with open_text(path) as file:
        text = file.read()
    try:
        return _model(json.loads(text, parse_constant=_no_constant))
    except RecursionError:
        reason: object = "it is nested too deeply"
    except KeyError as error:
        reason = f"{error.args[0]!r} is missing"
    except (ValueError, TypeError) as error:
        reason = error
    raise ValueError(f"{os.fspath(path)}: not a private model: {reason}")


def _document(model: BasePrivateClassifier) -> dict[str, Any]:
    """What a JSON file holds: the released weights, and numbers that were public before."""
    name = type(model).__name__
    if name not in _ESTIMATORS:
        raise ValueError(f"only {' and '.join(_ESTIMATORS)} can be saved, got {name}")
    given = model.get_params(deep=False)
    if model._preparation_for(int(model.n_features_in_)) != model._preparation:
        raise ValueError("parameters were changed after the fit: fit the model again to save it")
    document = {
        "format": FORMAT,
        "version": VERSION,
        "estimator": name,
        "report": model.privacy_report_,
        "parameters": {n: _plain(value) for n, value in given.items() if n not in _NOT_STORED},
        "class_weight": [
            [_plain(label), _plain(weight)]
            for label, weight in (model.class_weight or {}).items()  # type: ignore[union-attr]
        ],
        "classes": model.classes_.tolist(),
        "n_features": int(model.n_features_in_),
        "intercept": model.intercept_.tolist(),
        "coef": model.coef_.tolist(),
    }
    if hasattr(model, "feature_names_in_"):
        document["feature_names"] = model.feature_names_in_.tolist()
    return document


def _model(document: Any) -> BasePrivateClassifier:
    if not isinstance(document, dict):
        raise ValueError("it holds no JSON object")
    if document["format"] != FORMAT:
        raise ValueError(f"its format is {document['format']!r}, not {FORMAT!r}")
    if document["version"] != VERSION:
        raise ValueError(f"its version is {document['version']!r}; this reads version {VERSION}")
    kind = document["estimator"]
    if kind not in _ESTIMATORS:
        raise ValueError(f"estimator {kind!r} is not one of {', '.join(_ESTIMATORS)}")
    model = _unfitted(_ESTIMATORS[kind], document)
    classes = public_classes(model.classes)
    n_features = _whole(document["n_features"], "n_features")
    preparation = model._preparation_for(n_features)
    machines = 1 if len(classes) == 2 else len(classes)
    n_weights = preparation.dimension(n_features) - (preparation.constant > 0)
    coef = _reals(document["coef"], (machines, n_weights), "coef")
    intercept = _reals(document["intercept"], (machines,), "intercept")
    report = document["report"]
    if not isinstance(report, dict):
        raise ValueError("report is no JSON object")
    guarantee = _guarantee(report)
    model.n_features_in_ = n_features
    if "feature_names" in document:
        model.feature_names_in_ = np.array(document["feature_names"], dtype=object)
        if model.feature_names_in_.shape != (n_features,):
            raise ValueError(f"feature_names must be {n_features} names")
    model.classes_ = classes
    model._preparation = preparation
    model.feature_map_ = preparation.features
    model.C_ = _real(report["public"]["C"], "C")
    keep_guarantee(model, guarantee, report)
    model.noise_scale_ = _real(report["noise_scale"], "noise_scale")
    model.coef_, model.intercept_ = coef, intercept
    return model


def _unfitted(kind: type[BasePrivateClassifier], document: dict[str, Any]) -> BasePrivateClassifier:
    """The estimator with the parameters of the file, checked as its ``fit`` checks them."""
    parameters = document["parameters"]
    known = set(kind().get_params(deep=False)) - set(_NOT_STORED)
    if not isinstance(parameters, dict) or set(parameters) != known:
        raise ValueError(f"parameters must be {', '.join(sorted(known))}")
    classes = document["classes"]
    if not isinstance(classes, list) or not all(isinstance(c, (int, float, str)) for c in classes):
        raise ValueError(f"classes must be a list of labels, got {classes!r}")
    class_weight = dict(document["class_weight"]) or None
    model = kind(**parameters, classes=classes, class_weight=class_weight)
    model._check_settings()
    return model


def _guarantee(report: dict[str, Any]) -> Guarantee:
    delta = _real(report["delta"], "delta")
    if not 0 <= delta < 1:
        raise ValueError(f"delta must be a number from 0 to 1, got {delta!r}")
    relation = check_neighbouring(report["neighbouring"])
    seeded = report["seeded"]
    if not isinstance(seeded, bool):
        raise ValueError(f"seeded must be true or false, got {seeded!r}")
    return Guarantee(check_epsilon(report["epsilon"]), delta, relation, seeded=seeded)


def _reals(value: Any, shape: tuple[int, ...], name: str) -> NDArray[np.float64]:
    """Nested lists of finite numbers, of a shape, as an array."""
    rows = value if len(shape) == 2 else [value]
    width = shape[-1]
    right = isinstance(rows, list) and (len(shape) == 1 or len(rows) == shape[0])
    if not right or not all(isinstance(row, list) and len(row) == width for row in rows):
        raise ValueError(f"{name} must be {' x '.join(map(str, shape))} numbers")
    numbers = [[_real(number, name) for number in row] for row in rows]
    return np.array(numbers, dtype=np.float64).reshape(shape)


def _real(value: Any, name: str) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise ValueError(f"{name} must be a number, got {value!r}")
    try:
        number = float(value)
    except OverflowError:
        number = math.inf
    if not math.isfinite(number):
        raise ValueError(f"{name} must be finite, got {number!r}")
    return number


def _whole(value: Any, name: str) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= _LARGEST_INDEX:
        raise ValueError(f"{name} must be a whole number from 1 to {_LARGEST_INDEX}, got {value!r}")
    return value


def _no_constant(text: str) -> NoReturn:
    raise ValueError(f"{text} is no number of JSON")


def _plain(value: Any) -> Any:
    """A numpy scalar as a plain number, anything else as it is."""
    return value.item() if isinstance(value, np.generic) else value
