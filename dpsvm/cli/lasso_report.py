"""What ``dpsvm lasso`` tells of a model: lines for a terminal, a record, a model file."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from dpsvm._version import __version__
from dpsvm.cli.layout import line, paragraph, table
from dpsvm.frank_wolfe.comparison import MODEL, PRIVATE, Comparison
from dpsvm.frank_wolfe.distributed import Round
from dpsvm.frank_wolfe.estimator import FrankWolfeLasso
from dpsvm.frank_wolfe.messages import Traffic
from dpsvm.privacy.release import FACTS
from dpsvm.svm.model import Model
from dpsvm.svm.parameters import Parameters

_COLUMNS = ("model", "objective", "over zero's", "gap", "weights", "test loss", "test R2")
_PROTECTS = {
    "features": "all the features of one record, whoever holds them; labels are public",
    "replace": "one record, its label included",
}
_OUTSIDE = "outside the guarantee, because computed on the data:"
_TESTED = "outside the guarantee, for the rows of the test file:"
_APART = f"{PRIVATE}: another run at the same epsilon, charged to no ledger, so not to be released"


def lines(found: Comparison, data: str, rows: int, sizes: list[int] | None) -> list[str]:
    """A model and what it is measured against, for a terminal."""
    model = found.model
    weights = model.coef_
    held = "" if sizes is None else f", parties of {', '.join(map(str, sizes))}"
    bounded = "|w|_1 of each party" if model.problem == "product" else "|w|_1"
    some = f"{np.count_nonzero(weights)} of {len(weights)} are not 0"
    told = [
        line("data", f"{data}: {rows} rows, {len(weights)} columns{held}"),
        line("constraint", f"{bounded} at most {model.radius:g}"),
        line("steps" if sizes is None else "rounds", f"{model.n_iter_} ({model.stop_reason_})"),
        line("weights", f"{some}, |w|_1 = {np.sum(np.abs(weights)):.6g}"),
    ]
    if found.measured and model.epsilon is None:
        told += [line("objective", f"{found[MODEL].objective:.6g}")]
        told += [line("gap", f"{found[MODEL].gap:.3g}")]
    if model.traffic_ is not None and model.predicted_traffic_ is not None:
        told += _traffic_lines(model.traffic_, model.predicted_traffic_, model.history_)
    if model.privacy_report_ is not None:
        told += _privacy_lines(model)
    if found.outcomes:
        told += ["", *_compared(found)]
    return told


def _traffic_lines(counted: Traffic, predicted: Traffic, rounds: list[Round]) -> list[str]:
    return [
        line("value by the messages", f"{rounds[-1].released_value:.6g}"),
        line("sent up", _up(counted)),
        line("predicted", f"{_up(predicted)}, by proposals without a cache"),
        line("sent down", f"{counted.down_floats} numbers, {counted.down_bytes} bytes"),
    ]


def _up(traffic: Traffic) -> str:
    return f"{traffic.up_integers} integers, {traffic.up_floats} numbers, {traffic.up_bytes} bytes"


def _privacy_lines(model: FrankWolfeLasso) -> list[str]:
    """The guarantee, whom it protects, and all the figures of the report."""
    report = dict(model.privacy_report_ or {})
    told = [
        *paragraph("guarantee", report.pop("guarantee")),
        line("", _PROTECTS[str(model.neighbouring_)]),
    ]
    for name, value in report.items():
        if name in FACTS:
            continue
        shown = f"{value:.4g}" if isinstance(value, float) else str(value)
        told += paragraph(name.replace("_", " "), shown)
    return told


def _compared(found: Comparison) -> list[str]:
    private = found.model.epsilon is not None
    told = [_OUTSIDE if found.measured else _TESTED, ""] if private else []
    cells: list[tuple[str, ...]] = [_COLUMNS]
    for one in found.outcomes:
        share = found.share(one.name)
        cells.append(
            (
                one.name,
                _cell(one.objective, ".6g"),
                _cell(share, ".4f"),
                _cell(one.gap, ".1e"),
                str(one.nonzeros),
                _cell(one.test_loss, ".6g"),
                _cell(one.test_r2, ".4f"),
            )
        )
    told += table(cells)
    if found.verdict is not None:
        told += ["", found.verdict]
    if any(one.name == PRIVATE for one in found.outcomes):
        told += [_APART]
    return told


def _cell(value: float | None, form: str) -> str:
    return "-" if value is None else format(value, form)


def title(found: Comparison, data: str, sizes: list[int] | None) -> str:
    """Of a picture."""
    split = "" if sizes is None else f" split {'/'.join(map(str, sizes))}"
    start = f"{Path(data).name}{split}, radius {found.model.radius:g}"
    if found.model.privacy_guarantee_ is None:
        return start
    outside = "; the levels are outside it" if found.measured else ""
    return f"{start}: {found.model.privacy_guarantee_}{outside}"


def record(
    found: Comparison, data: str, rows: int, sizes: list[int] | None, settings: dict[str, Any]
) -> dict[str, Any]:
    """Everything there is to tell, for JSON."""
    model = found.model
    history = (
        [] if model.history_ is None else getattr(model.history_, "iterations", model.history_)
    )
    outside = ["outcomes", *(["verdict"] if found.measured else [])] if found.outcomes else []
    return {
        "dpsvm": __version__,
        "data": data,
        "rows": rows,
        "parties": sizes,
        "settings": settings,
        "iterations" if sizes is None and model.epsilon is None else "rounds": model.n_iter_,
        "stop_reason": model.stop_reason_,
        "traffic": None if model.traffic_ is None else asdict(model.traffic_),
        "predicted_traffic": (
            None if model.predicted_traffic_ is None else asdict(model.predicted_traffic_)
        ),
        "privacy": model.privacy_report_,
        "outside_guarantee": [] if model.privacy_report_ is None else outside,
        "outcomes": [asdict(one) | {"share": found.share(one.name)} for one in found.outcomes],
        "verdict": found.verdict,
        "coef": model.coef_.tolist(),
        "history": [asdict(one) for one in history],
    }


def to_libsvm(model: FrankWolfeLasso) -> Model:
    """The weights as the one support vector of a linear regression machine, without an offset.

    >>> model = FrankWolfeLasso(radius=2.0).fit([[1.0, 0.0], [0.0, 1.0]], [3.0, 0.0])
    >>> to_libsvm(model).predict([[1.0, 1.0], [-1.0, 5.0]])
    array([ 2., -2.])
    """
    return Model(
        parameters=Parameters(machine="epsilon-svr", kernel="linear"),
        rho=np.zeros(1),
        n_support=np.ones(1, dtype=np.int32),
        dual_coef=np.ones((1, 1)),
        support_vectors=sparse.csr_array(model.coef_[None, :]),
    )
