"""Do the tools that read scikit-learn's machines read dpsvm's, given as ``as_sklearn()``?

    python bench/interop/interchange.py

Machines of every kind are fitted by dpsvm and handed on: to scikit-learn itself, which must decide
the same to rounding; to skl2onnx, whose model onnxruntime runs in single precision; to
sklearn2pmml, whose model JPMML-Evaluator runs (both need Java); and to shap, whose KernelExplainer
must explain both objects alike, and completely. Labels must be the same on every row, and values
within the tolerance of the tool, relative to the largest. Rows are rounded to single precision
before the fit, so that all read the same numbers.

A tool that is not installed, or does not take scikit-learn's own machine of the release that is
here, is left out, and named. Exit code 1 if anything disagrees.
"""

from __future__ import annotations

import shutil
import sys
import tempfile
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from types import SimpleNamespace
from typing import Any

sys.path.append(str(Path(__file__).resolve().parents[2]))

import numpy as np
import sklearn
from sklearn.datasets import load_breast_cancer, load_diabetes, load_digits, load_iris
from sklearn.preprocessing import scale
from sklearn.svm import SVC

from bench.common import Table, arguments, note, run, version_of, write_results


@dataclass(frozen=True)
class Case:
    """A machine of dpsvm, fitted to data that come with scikit-learn."""

    name: str
    estimator: str
    data: Callable[..., Any]
    options: dict[str, Any]

    def fitted(self) -> tuple[Any, np.ndarray]:
        """Return the machine and rows to decide."""
        import dpsvm

        X, y = self.data(return_X_y=True)
        X = scale(X).astype(np.float32).astype(np.float64)
        y = scale(y) if self.data is load_diabetes else y
        machine = getattr(dpsvm, self.estimator)(**self.options)
        return machine.fit(X[::2], y[::2]), X


CASES = (
    Case("two classes", "SVC", load_breast_cancer, {}),
    Case("two classes, linear", "SVC", load_breast_cancer, {"kernel": "linear", "C": 0.1}),
    Case("three classes", "SVC", load_iris, {}),
    Case("three classes, pairs", "SVC", load_iris, {"decision_function_shape": "ovo"}),
    Case("ten classes", "SVC", load_digits, {"kernel": "poly", "degree": 2, "coef0": 1.0}),
    Case("two classes", "NuSVC", load_breast_cancer, {"nu": 0.2}),
    Case("three classes", "NuSVC", load_iris, {"nu": 0.2}),
    Case("numbers", "SVR", load_diabetes, {}),
    Case("numbers", "NuSVR", load_diabetes, {"kernel": "sigmoid", "gamma": 0.01}),
    Case("no labels", "OneClassSVM", load_breast_cancer, {"nu": 0.1}),
)
QUICK = (CASES[2], CASES[7], CASES[9])


@dataclass(frozen=True)
class Answer:
    """What a tool says of rows; a part that it does not tell is None."""

    labels: np.ndarray | None
    values: np.ndarray | None


def answer(machine: Any, X: np.ndarray) -> Answer:
    """Return labels and decision values; a regressor has values alone."""
    if not hasattr(machine, "decision_function"):
        return Answer(None, machine.predict(X))
    return Answer(machine.predict(X), machine.decision_function(X))


def by_sklearn(machine: Any, X: np.ndarray) -> Answer:
    """Ask the genuine object."""
    return answer(machine.as_sklearn(), X)


def by_onnx(machine: Any, X: np.ndarray) -> Answer:
    """Ask onnxruntime with skl2onnx's model."""
    import onnxruntime
    from skl2onnx import to_onnx

    genuine, rows = machine.as_sklearn(), X.astype(np.float32)
    classifier = hasattr(genuine, "classes_")
    options = {id(genuine): {"zipmap": False, "raw_scores": True}} if classifier else None
    model = to_onnx(genuine, rows[:1], options=options)
    session = onnxruntime.InferenceSession(
        model.SerializeToString(), providers=["CPUExecutionProvider"]
    )
    first, *rest = session.run(None, {"X": rows})
    if not rest:
        return Answer(None, first.ravel())
    scores = rest[0]
    if scores.shape[1] == 1 or (classifier and len(genuine.classes_) == 2):
        scores = scores[:, -1]
    return Answer(first.ravel(), scores)


def by_pmml(machine: Any, X: np.ndarray) -> Answer:
    """Ask JPMML-Evaluator with sklearn2pmml's model."""
    import pandas
    from jpmml_evaluator import make_evaluator
    from jpmml_evaluator.py4j import Py4JBackend
    from sklearn2pmml import sklearn2pmml
    from sklearn2pmml.pipeline import PMMLPipeline

    columns = [f"x{i}" for i in range(X.shape[1])]
    pipeline = PMMLPipeline([("machine", machine.as_sklearn())])
    pipeline.active_fields = np.array(columns)
    pipeline.target_fields = np.array(["y"])
    with tempfile.TemporaryDirectory() as folder:
        path = str(Path(folder, "machine.pmml"))
        sklearn2pmml(pipeline, path)
        evaluator = make_evaluator(path, backend=Py4JBackend())
        found = evaluator.evaluateAll(pandas.DataFrame(X, columns=columns))
    if hasattr(machine, "classes_"):
        return Answer(found["y"].astype(machine.classes_.dtype).to_numpy(), None)
    if "outlier" in found:
        values = found["decisionFunction"].astype(float).to_numpy()
        return Answer(np.where(found["outlier"].astype(bool), -1, 1), values)
    return Answer(None, found["y"].astype(float).to_numpy())


def by_shap(machine: Any, X: np.ndarray) -> Answer:
    """Explain both objects alike; return what the explanations of some rows add up to."""
    import shap

    rows, background = X[:5], X[::40]
    totals = []
    for one in (machine, machine.as_sklearn()):
        function = getattr(one, "decision_function", one.predict)
        np.random.seed(0)  # noqa: NPY002  shap draws from numpy's global stream
        explainer = shap.KernelExplainer(function, background)
        shares = np.asarray(explainer.shap_values(rows, nsamples=100, silent=True))
        totals.append(shares.sum(axis=1) + explainer.expected_value)
    scale_of = np.abs(totals[0]).max()
    if np.abs(totals[0] - totals[1]).max() > 1e-9 * scale_of:
        raise RuntimeError("shap explains the two objects differently")
    return Answer(None, totals[1])


@dataclass(frozen=True)
class Tool:
    """One that reads scikit-learn's machines."""

    name: str
    ask: Callable[[Any, np.ndarray], Answer]
    needs: tuple[str, ...]  # importable modules
    tolerance: float  # of values, relative to the largest
    program: str | None = None

    def unusable(self) -> str | None:
        """Return why it can judge nothing here, or None."""
        missing = [name for name in self.needs if find_spec(name) is None]
        if self.program is not None and shutil.which(self.program) is None:
            missing.append(self.program)
        if missing:
            return f"{', '.join(missing)} not installed"
        X, y = load_iris(return_X_y=True)
        theirs = SVC().fit(X, y)
        methods = {name: getattr(theirs, name) for name in ("predict", "decision_function")}
        wrapped = SimpleNamespace(as_sklearn=lambda: theirs, classes_=theirs.classes_, **methods)
        try:
            self.ask(wrapped, X)
        except Exception:
            return f"it does not take scikit-learn {sklearn.__version__}'s own SVC"
        return None


TOOLS = (
    Tool("scikit-learn", by_sklearn, ("sklearn",), 1e-12),
    Tool("skl2onnx + onnxruntime", by_onnx, ("skl2onnx", "onnxruntime"), 1e-5),
    Tool(
        "sklearn2pmml + JPMML",
        by_pmml,
        ("sklearn2pmml", "jpmml_evaluator", "py4j", "pandas"),
        1e-9,
        program="java",
    ),
    Tool("shap", by_shap, ("shap",), 1e-9),
)


def judge(tool: Tool, case: Case) -> list[object]:
    """Return a row of the table."""
    machine, X = case.fitted()
    given = tool.ask(machine, X)
    own = answer(machine, X)
    labels, apart = None, None
    if given.labels is not None:
        labels = int(np.count_nonzero(given.labels != own.labels))
    if given.values is not None:
        values = own.values[: len(given.values)]
        apart = float(np.abs(given.values - values).max() / np.abs(own.values).max())
    agrees = not labels and (apart is None or apart <= tool.tolerance)
    rows = len(X) if given.values is None else len(given.values)
    shown = None if apart is None else f"{apart:.1e}"
    verdict = "yes" if agrees else "NO"
    return [tool.name, case.estimator, case.name, rows, labels, shown, verdict]


def main(argv: Sequence[str] | None = None) -> int:
    """Compare every tool that is here on every machine."""
    options = arguments(__doc__).parse_args(argv)
    columns = ("tool", "machine", "data", "rows", "labels that differ", "values", "agrees")
    table = Table("Machines handed on by as_sklearn()", columns)
    left_out = []
    for tool in TOOLS:
        if reason := tool.unusable():
            left_out.append(f"left out: {tool.name} ({reason})")
            continue
        for case in QUICK if options.quick else CASES:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", FutureWarning)
                table.rows.append(judge(tool, case))
            note(" ".join(map(str, table.rows[-1])))
    agree = sum(row[-1] == "yes" for row in table.rows)
    verdicts = [f"{table.title}: {agree} of {len(table.rows)} agree", *left_out]
    print(table.text(), *verdicts, sep="\n")
    if not options.quick:
        distributions = ("skl2onnx", "onnxruntime", "sklearn2pmml", "jpmml-evaluator", "shap")
        config = {name: version_of(name) for name in distributions}
        write_results(options.results, "interchange", [table], config=config, verdicts=verdicts)
    return 0 if agree == len(table.rows) else 1


if __name__ == "__main__":
    run(main)
