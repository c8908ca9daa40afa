"""Private models as files that hold the noisy weights, public numbers and nothing else.

One document of JSON for all families: the weights, the labels and the privacy report, and of a
classifier of this package the parameters too. Random frequencies follow from their public seed and
are not stored. No file holds a training row, nor the seed of the noise where one was used for an
experiment. A linear classifier can also become a LIBSVM model file, which every reader of such
files takes; it has no place for a guarantee.
"""

from __future__ import annotations

import json
import math
import os
from typing import Any, NoReturn

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.utils import check_array
from sklearn.utils.validation import check_is_fitted

from dpsvm._arrays import Array
from dpsvm._streams import atomic_write, compressor, open_text
from dpsvm.privacy.estimators import (
    BasePrivateClassifier,
    PrivateLogisticRegression,
    PrivateSVC,
    public_classes,
)
from dpsvm.privacy.guarantee import Guarantee, check_epsilon, check_neighbouring
from dpsvm.privacy.release import keep_guarantee
from dpsvm.report.plain_json import dumps
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


class LinearModel:
    """What a file tells of a private linear model of another family: it predicts.

    ``estimator`` names what was fitted; ``privacy_guarantee_``, ``epsilon_`` and the like are
    those of the fit, ``message_epsilon_`` where messages alone are covered.
    """

    feature_names_in_: NDArray[Any]

    def __init__(
        self,
        estimator: str,
        classes: NDArray[Any] | None,
        coef: Array,
        intercept: Array,
        guarantee: Guarantee | None,
    ) -> None:
        self.estimator = estimator
        self.coef_, self.intercept_, self.n_features_in_ = coef, intercept, coef.shape[1]
        if classes is not None:
            self.classes_ = classes
        messages = guarantee if guarantee is not None and guarantee.covers == "messages" else None
        self.message_guarantee_ = messages
        self.message_epsilon_ = getattr(messages, "epsilon", None)
        self.message_delta_ = getattr(messages, "delta", None)

    def decision_function(self, X: Any) -> Array:
        """One number per row; of a classifier positive for ``classes_[1]``."""
        rows = check_array(X, accept_sparse="csr", dtype=np.float64)
        return np.asarray(rows @ self.coef_[0] + self.intercept_)

    def predict(self, X: Any) -> NDArray[Any]:
        """The label of each row, or its number where there are no classes."""
        decisions = self.decision_function(X)
        if not hasattr(self, "classes_"):
            return decisions
        return np.asarray(self.classes_[(decisions > 0).astype(np.intp)])


def save_private(model: Any, path: Path, *, form: str | None = None) -> None:
    """Write a fitted private model, whole or not at all.

    Parameters
    ----------
    model : estimator
        Of a private fit: PrivateSVC, PrivateLogisticRegression, or a linear one of another family.
    path : path
        The file; names in .gz, .bz2 and .xz are compressed.
    form : {"libsvm", "json"} or None, default=None
        None takes "libsvm" for a PrivateSVC or PrivateLogisticRegression of a linear kernel and
        "json" for all else. "libsvm" is for linear models and integer labels; "json" also keeps
        the guarantee.

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
    chosen = form or FORMS[getattr(model, "kernel", None) != "linear"]
    if chosen not in FORMS:
        raise ValueError(f"form must be None or {' or '.join(map(repr, FORMS))}, got {form!r}")
    if chosen == "libsvm":
        to_libsvm(model).save(path)
        return
    text = dumps(_document(model))
    with atomic_write(path, "wb") as file, compressor(path, file) as packed:
        packed.write(text.encode())


def to_libsvm(model: Any) -> Model:
    """A fitted linear model in LIBSVM's terms, deciding as ``model.predict`` does.

    The weights of a machine take the place of a support vector. Two classes, or none: one vector
    with coefficient 1. More: LIBSVM lets every pair of classes vote, and the pair (i, j) decides by
    f_i - f_j, which elects the class of the largest f. Labels stand in descending order, because a
    pair at exactly zero votes for its second class and ``predict`` takes the first among equals.

    >>> X, y = [[-1.0], [-0.8], [0.8], [1.0]] * 200, [-1, -1, 1, 1] * 200
    >>> model = PrivateSVC(epsilon=1.0, delta=1e-5, data_norm=1.0, classes=[-1, 1]).fit(X, y)
    >>> to_libsvm(model).predict([[-0.9], [0.9]])
    array([-1.,  1.])
    """
    if getattr(model, "kernel", "linear") != "linear":
        raise ValueError(f"a LIBSVM model file cannot hold kernel={model.kernel!r}: use JSON")
    weights = np.atleast_2d(model.coef_)[::-1]
    bias = np.array(model.intercept_, dtype=np.float64, ndmin=1)[::-1]
    machine, labels, n_support = "epsilon-svr", None, [1]
    dual_coef, rho = np.ones((1, 1)), -bias
    if hasattr(model, "classes_"):
        machine, labels = "c-svc", np.ascontiguousarray(integer_labels(model.classes_)[::-1])
        k = len(labels)
        n_support = [1, 0]
        if k > 2:
            first, second = np.triu_indices(k, 1)  # LIBSVM's order of the pairs
            n_support, rho = [1] * k, bias[second] - bias[first]
            # Column i: against the classes before it (it is the second of the pair), then after it.
            dual_coef = np.where(np.arange(k - 1)[:, None] < np.arange(k), -1.0, 1.0)
    return Model(
        parameters=Parameters(machine=machine, kernel="linear"),
        labels=labels,
        rho=np.ascontiguousarray(rho),
        n_support=np.array(n_support, dtype=np.int32),
        dual_coef=dual_coef,
        support_vectors=sparse.csr_array(weights),
    )


def load_private(path: Path) -> BasePrivateClassifier | LinearModel:
    """Read a private model from its JSON file.

    A PrivateSVC or PrivateLogisticRegression is the fitted estimator again, which predicts to the
    same bit; a model of another family is a :class:`LinearModel`. What is not such a file is a
    ValueError that names it. It cannot be fitted to the same budget again by accident: the
    accountant is not stored. A LIBSVM model file is read by ``dpsvm.Model.load``.

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


def _document(model: Any) -> dict[str, Any]:
    """What a JSON file holds: the released weights, and numbers that were public before."""
    name = type(model).__name__
    restored = isinstance(model, BasePrivateClassifier)
    if getattr(model, "privacy_report_", None) is None or (restored and name not in _ESTIMATORS):
        raise ValueError(
            f"only {', '.join(_ESTIMATORS)} and private linear models can be saved, got {name}"
        )
    if not (np.isfinite(model.coef_).all() and np.isfinite(model.intercept_).all()):
        raise ValueError(f"the weights of this {name} are not finite")
    document = {
        "format": FORMAT,
        "version": VERSION,
        "estimator": name,
        "report": model.privacy_report_,
        "classes": model.classes_.tolist() if hasattr(model, "classes_") else None,
        "n_features": int(model.n_features_in_),
        "intercept": np.ravel(model.intercept_).tolist(),
        "coef": np.atleast_2d(model.coef_).tolist(),
    }
    if hasattr(model, "feature_names_in_"):
        document["feature_names"] = model.feature_names_in_.tolist()
    if restored:
        if model._preparation_for(document["n_features"]) != model._preparation:
            raise ValueError("parameters were changed after the fit: fit it again to save it")
        given = model.get_params(deep=False)
        weights = (model.class_weight or {}).items()
        document["parameters"] = {n: _plain(v) for n, v in given.items() if n not in _NOT_STORED}
        document["class_weight"] = [[_plain(label), _plain(weight)] for label, weight in weights]
    return document


def _model(document: Any) -> BasePrivateClassifier | LinearModel:
    if not isinstance(document, dict):
        raise ValueError("it holds no JSON object")
    if document["format"] != FORMAT:
        raise ValueError(f"its format is {document['format']!r}, not {FORMAT!r}")
    if document["version"] != VERSION:
        raise ValueError(f"its version is {document['version']!r}; this reads version {VERSION}")
    report = document["report"]
    if not isinstance(report, dict):
        raise ValueError("report is no JSON object")
    kind = document["estimator"]
    if not isinstance(kind, str):
        raise ValueError(f"estimator must be a name, got {kind!r}")
    guarantee, n_features = _guarantee(report), _whole(document["n_features"], "n_features")
    model: BasePrivateClassifier | LinearModel
    if kind in _ESTIMATORS or "parameters" in document:
        model = _classifier(document, n_features)
    else:
        model = _linear(document, n_features, guarantee)
    if "feature_names" in document:
        model.feature_names_in_ = np.array(document["feature_names"], dtype=object)
        if model.feature_names_in_.shape != (n_features,):
            raise ValueError(f"feature_names must be {n_features} names")
    keep_guarantee(model, guarantee, report)
    return model


def _classifier(document: dict[str, Any], n_features: int) -> BasePrivateClassifier:
    """The estimator of a file, its parameters checked as its ``fit`` checks them."""
    kind = document["estimator"]
    if kind not in _ESTIMATORS:
        raise ValueError(f"estimator {kind!r} is not one of {', '.join(_ESTIMATORS)}")
    parameters = document["parameters"]
    known = set(_ESTIMATORS[kind]().get_params(deep=False)) - set(_NOT_STORED)
    if not isinstance(parameters, dict) or set(parameters) != known:
        raise ValueError(f"parameters must be {', '.join(sorted(known))}")
    class_weight = dict(document["class_weight"]) or None
    classes = _classes(document["classes"])
    model = _ESTIMATORS[kind](**parameters, classes=classes.tolist(), class_weight=class_weight)
    model._check_settings()
    preparation = model._preparation_for(n_features)
    report = document["report"]
    model.n_features_in_, model.classes_ = n_features, classes
    model._preparation, model.feature_map_ = preparation, preparation.features
    model.C_ = _real(report["public"]["C"], "C")
    model.noise_scale_ = _real(report["noise_scale"], "noise_scale")
    n_weights = preparation.dimension(n_features) - (preparation.constant > 0)
    model.coef_, model.intercept_ = _weights(document, len(classes), n_weights)
    return model


def _linear(document: dict[str, Any], n_features: int, guarantee: Guarantee | None) -> LinearModel:
    kind = document["estimator"]
    classes = None if document["classes"] is None else _classes(document["classes"])
    if classes is not None and len(classes) > 2:
        raise ValueError(f"{kind} tells two classes apart, got {classes.tolist()!r}")
    return LinearModel(kind, classes, *_weights(document, 2, n_features), guarantee)


def _classes(given: Any) -> NDArray[Any]:
    if not isinstance(given, list) or not all(isinstance(one, (int, float, str)) for one in given):
        raise ValueError(f"classes must be a list of labels, got {given!r}")
    return public_classes(given)


def _weights(document: dict[str, Any], n_classes: int, n_weights: int) -> tuple[Array, Array]:
    """Coefficients and intercepts of the machines, one for two classes."""
    machines = 1 if n_classes == 2 else n_classes
    coef = _reals(document["coef"], (machines, n_weights), "coef")
    return coef, _reals(document["intercept"], (machines,), "intercept")


def _guarantee(report: dict[str, Any]) -> Guarantee | None:
    """What a report says is proved; None where it says that nothing is."""
    if report["guarantee"] is None:
        return None
    delta, covers, seeded = _real(report["delta"], "delta"), report["covers"], report["seeded"]
    if not 0 <= delta < 1:
        raise ValueError(f"delta must be a number from 0 to 1, got {delta!r}")
    relation = check_neighbouring(report["neighbouring"])
    if covers not in ("model", "messages"):
        raise ValueError(f"covers must be 'model' or 'messages', got {covers!r}")
    if not isinstance(seeded, bool):
        raise ValueError(f"seeded must be true or false, got {seeded!r}")
    return Guarantee(check_epsilon(report["epsilon"]), delta, relation, covers, seeded)


def _reals(value: Any, shape: tuple[int, ...], name: str) -> Array:
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
