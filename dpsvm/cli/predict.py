"""``dpsvm predict``: LIBSVM's svm-predict."""

from __future__ import annotations

from collections.abc import Iterator
from typing import IO, TYPE_CHECKING, Any

import numpy as np

from dpsvm._arrays import Array
from dpsvm._streams import atomic_write, is_json
from dpsvm.cli.files import read_problem, require_folder
from dpsvm.cli.machine_flags import THREADS, table_flag
from dpsvm.cli.options import SEE_HELP, Flag, UsageError, help_page, parse
from dpsvm.cli.scores import scores, told
from dpsvm.svm.model import Model
from dpsvm.svm.training import Problem
from dpsvm.threads import thread_count

if TYPE_CHECKING:
    from dpsvm.cli.models import PrivateModel

FLAGS = (
    table_flag("probability", meaning="whether to predict probability estimates"),
    Flag("-q", "print nothing but warnings and errors", default=False, name="quiet"),
    THREADS,
)
_USAGE = "usage: dpsvm predict [flags] TEST MODEL OUTPUT"
_ROWS_PER_BLOCK = 8192


def help_text() -> str:
    """The help of the command."""
    return help_page(
        _USAGE,
        "Predicts the rows of TEST, a LIBSVM data file, plain or compressed, with MODEL, a "
        "LIBSVM model file or the JSON file of a private model, writes one "
        "prediction a line to OUTPUT, and prints how well they fit the labels of TEST.",
        ("", FLAGS),
    )


def run(arguments: list[str]) -> None:
    """Carry out the command."""
    values, operands = parse(arguments, FLAGS)
    if len(operands) != 3:
        got = f"got {len(operands)} names"
        raise UsageError(f"expected TEST MODEL OUTPUT, {got} ({_USAGE}){SEE_HELP}")
    test, model_path, output = operands
    require_folder(output)
    model = _load(model_path)
    probability = bool(values["probability"])
    notice = _probability_notice(model, model_path, probability)
    problem = _read_test(test, model)
    threads = thread_count(None) if values["threads"] is None else values["threads"]
    try:
        with atomic_write(output, "wb") as file:
            predicted = _write_predictions(file, model, problem.X, probability, threads)
    except ValueError as error:
        raise ValueError(f"{test}: {error}") from error
    if not values["quiet"]:
        print("\n".join(notice + _score(model, predicted, problem.y)))


def _load(path: str) -> Model | PrivateModel:
    if not is_json(path):
        return Model.read(path)
    from dpsvm.cli.models import load

    return load(path)


def _read_test(path: str, model: Model | PrivateModel) -> Problem:
    if not isinstance(model, Model):
        return model.read_rows(path)
    return read_problem(path, classes=False, precomputed=model.parameters.kernel == "precomputed")


def _write_predictions(
    file: IO[bytes], model: Model | PrivateModel, X: Any, probability: bool, threads: int
) -> Array:
    """Write the predictions of all rows, a block at a time, and return them."""
    if probability and model.labels is not None:
        file.write(" ".join(["labels", *map(str, model.labels)]).encode() + b"\n")
    predicted = np.empty(X.shape[0])
    for start in range(0, X.shape[0], _ROWS_PER_BLOCK):
        rows = slice(start, start + _ROWS_PER_BLOCK)
        predicted[rows], lines = _predict(model, X[rows], probability, threads)
        file.write("".join(f"{line}\n" for line in lines).encode())
    return predicted


def _predict(
    model: Model | PrivateModel, X: Any, probability: bool, threads: int
) -> tuple[Array, Iterator[str]]:
    """The predictions of some rows, and the lines of the output file that state them."""
    if not probability or model.labels is None or not isinstance(model, Model):
        predicted = model.predict(X, threads=threads)
        return predicted, (f"{value:.17g}" for value in predicted)
    estimates = model.predict_proba(X, threads=threads)
    labels = model.labels[np.argmax(estimates, axis=1)]
    lines = (
        " ".join([str(label), *(f"{estimate:g}" for estimate in row)])
        for label, row in zip(labels, estimates, strict=True)
    )
    return labels.astype(np.float64), lines


def _probability_notice(model: Model | PrivateModel, path: str, probability: bool) -> list[str]:
    if not isinstance(model, Model) or model.prob_a is None:
        if probability:
            raise ValueError(f"{path}: the model does not support probability estimates")
        return []
    if not probability:
        return ["Model supports probability estimates, but disabled in prediction."]
    if not model.is_regressor:
        return []
    return [
        "Prob. model for test data: target value = predicted value + z,",
        f"z: Laplace distribution e^(-|z|/sigma)/(2sigma),sigma={float(model.prob_a[0]):g}",
    ]


def _score(model: Model | PrivateModel, predicted: Array, target: Array) -> list[str]:
    regression = isinstance(model, Model) and model.is_regressor
    lines = told(scores(predicted, target, regression))
    if regression:
        return [f"{text} (regression)" for text in lines]
    correct = f"{np.count_nonzero(predicted == target)}/{len(target)}"
    return [f"{text} ({correct}) (classification)" for text in lines]
