"""``dpsvm lasso``: a sparse linear model by Frank-Wolfe, with or without parties and privacy."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from dpsvm.cli.distributed import DistributedCommand, Done, Request, cell
from dpsvm.cli.distributed_flags import PARTIES, settings_of, width_of
from dpsvm.cli.layout import line
from dpsvm.cli.options import Flag, UsageError, number, one_of, positive, share, whole
from dpsvm.constraints import Boolean
from dpsvm.frank_wolfe.agreement import SENDERS
from dpsvm.frank_wolfe.comparison import MODEL, PRIVATE, Comparison, Outcome, compare
from dpsvm.frank_wolfe.coordinator import PROBLEMS
from dpsvm.frank_wolfe.estimator import FrankWolfeLasso
from dpsvm.frank_wolfe.figure import picture
from dpsvm.frank_wolfe.messages import Traffic
from dpsvm.frank_wolfe.steps import LINE_SEARCH, PAIRWISE

_APART = f"{PRIVATE}: another run at the same epsilon, charged to no ledger, so not to be released"
_setting = settings_of(FrankWolfeLasso, {"public_labels": [Boolean()]})
_tolerance = number("a finite number from 0 on", lambda value: value >= 0.0)

_MODEL_FLAGS = (
    _setting(
        "radius",
        "the most that the weights, without their signs, add up to; required",
        "r",
        positive,
        default_text="",
    ),
    _setting(
        "step",
        f"{PAIRWISE}: between two vertices; {LINE_SEARCH}: towards one; diminishing: 2/(t+2)",
        "name",
        one_of((PAIRWISE, LINE_SEARCH, "diminishing")),
        default_text=f"{PAIRWISE}, with --parties {LINE_SEARCH}, with --epsilon diminishing",
    ),
    _setting("max_iter", "the most steps", "n", whole(1), default_text="1000"),
    _setting(
        "rounds",
        "with --parties or --epsilon: how many there are",
        "n",
        whole(1),
        default_text="1000, with --epsilon from public numbers",
    ),
    _setting(
        "tol",
        "stop at a gap of this share of the objective of zero weights",
        "x",
        _tolerance,
        default_text="0.0001",
    ),
)
_PARTY_FLAGS = (
    PARTIES,
    _setting(
        "problem",
        "l1: --radius is for all the weights; product: for those of each party",
        "name",
        one_of(PROBLEMS),
        default_text=PROBLEMS[0],
    ),
    _setting(
        "sketch",
        "how many numbers stand for a column",
        "m",
        whole(1),
        default_text="all of it, with --epsilon from public numbers",
    ),
    _setting("sketch_seed", "the public seed of the sketch", "n", whole(0), default_text="0"),
    _setting(
        "tau",
        "how many of its columns a party looks at in a round, drawn by --seed",
        "n",
        whole(1),
        default_text="all",
    ),
    _setting(
        "send",
        "all: every party its column; winner: scores first, then one column",
        "who",
        one_of(SENDERS),
        default_text=SENDERS[0],
    ),
    Flag(
        "--no-cache",
        "send a column again whenever it is chosen again",
        read=lambda: False,
        name="cache",
    ),
)
_PRIVACY_FLAGS = (
    _setting("epsilon", "of the whole run", "x", positive),
    _setting("delta", "of the whole run; without --parties it may be left out", "x", share),
    _setting(
        "entry_bound",
        "public bound on the values of FILE; larger ones are refused; required",
        "x",
        positive,
    ),
    _setting(
        "label_bound", "public bound on its targets, which are then protected too", "x", positive
    ),
    _setting("public_labels", "with --parties, in its place: targets are public, not protected"),
)


class Lasso(DistributedCommand):
    """Columns in one place or in several, by Frank-Wolfe."""

    name = "lasso"
    about = (
        "Least squares over the columns of FILE, in LIBSVM's format, plain or compressed, its "
        "labels being any numbers, under a bound on the sum of the absolute weights, by "
        "Frank-Wolfe: most weights are 0. There is no intercept: centre the data, for privacy by "
        "public constants. Prints the model beside zero weights, and with parties or privacy "
        "beside a model of all columns in one place."
    )
    model_flags = _MODEL_FLAGS
    sections = (
        (
            "Parties that hold the columns: each round, each sends an index and a sketch",
            _PARTY_FLAGS,
        ),
    )
    privacy = "Privacy, with public bounds; with --parties, of all that they send", _PRIVACY_FLAGS
    required: ClassVar = {"radius": "it has no default"}
    own = ("parties",)
    random = ("tau",)
    protects: ClassVar = {
        "features": "all the features of one record, whoever holds them; labels are public",
        "replace": "one record, its label included",
    }
    estimator = FrankWolfeLasso
    compare = staticmethod(compare)
    picture = staticmethod(picture)

    def check(self, values: dict[str, Any], common: Mapping[str, Any], *, private: bool) -> None:
        if private and values["parties"] is None and common["plot"]:
            raise UsageError("--plot with --epsilon needs --parties: another has no curve")
        sizes = width_of(values["parties"])
        if sizes is not None and common["n_features"] not in (None, sizes):
            wide = common["n_features"]
            raise UsageError(f"--parties are {sizes} columns, --n-features says {wide}")

    def labels(self, settings: dict[str, Any]) -> Literal["any", "class"]:
        return "any"

    def check_rows(
        self, request: Request, X: Any, y: NDArray[np.float64]
    ) -> tuple[int, str] | None:
        for name, what, numbers in (("entry_bound", "value", X.data), ("label_bound", "label", y)):
            bound = request.settings.get(name, np.inf)
            above = np.flatnonzero(np.abs(numbers) > bound)
            if above.size:
                place = int(above[0])
                row = place if numbers is y else int(np.searchsorted(X.indptr, place, "right")) - 1
                flag = f"--{name.replace('_', '-')} {bound:g}"
                return row, f"{what} {numbers[place]:g} is beyond {flag}"
        return None

    def rounds(self, model: FrankWolfeLasso, held: Any) -> tuple[str, int | None]:
        name = "steps" if held is None else "rounds"
        return name, model.most_steps(distributed=held is not None)

    def told(self, done: Done) -> Iterator[str]:
        model: FrankWolfeLasso = done.model
        weights = model.coef_
        apart = done.held is not None
        parties = f", parties of {', '.join(map(str, done.held))}" if apart else ""
        bounded = "|w|_1 of each party" if model.problem == "product" else "|w|_1"
        some = f"{np.count_nonzero(weights)} of {len(weights)} are not 0"
        size = f"{done.rows} rows, {len(weights)} columns{parties}"
        yield line("data", f"{done.request.data}: {size}")
        yield line("constraint", f"{bounded} at most {model.radius:g}")
        yield line("rounds" if apart else "steps", f"{model.n_iter_} ({model.stop_reason_})")
        yield line("weights", f"{some}, |w|_1 = {np.sum(np.abs(weights)):.6g}")
        counted, predicted = model.traffic_, model.predicted_traffic_
        if counted is not None and predicted is not None:
            yield line("value by the messages", f"{model.history_[-1].released_value:.6g}")
            yield line("sent up", _up(counted))
            yield line("predicted", f"{_up(predicted)}, by proposals without a cache")
            yield line("sent down", f"{counted.down_floats} numbers, {counted.down_bytes} bytes")

    def figures(self, done: Done) -> Iterator[str]:
        yield line("objective", f"{done.found[MODEL].objective:.6g}")
        yield line("gap", f"{done.found[MODEL].gap:.3g}")

    def cells(self, done: Done, outcome: Outcome) -> dict[str, str]:
        return {
            "objective": cell(outcome.objective, ".6g"),
            "of zero's": cell(done.found.share(outcome.name), ".4f"),
            "gap": cell(outcome.gap, ".1e"),
            "weights": str(outcome.nonzeros),
            "test loss": cell(outcome.test_loss, ".6g"),
            "test R2": cell(outcome.test_r2, ".4f"),
        }

    def remark(self, found: Comparison) -> str | None:
        return _APART if any(one.name == PRIVATE for one in found.outcomes) else None

    def split(self, done: Done) -> str:
        return f"{super().split(done)}, radius {done.request.settings['radius']:g}"

    def relative(self, found: Comparison, name: str) -> dict[str, Any]:
        return {"share": found.share(name)}

    def facts(self, done: Done) -> dict[str, Any]:
        counted, predicted = done.model.traffic_, done.model.predicted_traffic_
        return {
            "parties": done.held,
            "traffic": None if counted is None else asdict(counted),
            "predicted_traffic": None if predicted is None else asdict(predicted),
        }

    def history(self, model: FrankWolfeLasso) -> Iterable[Any]:
        return getattr(model.history_, "iterations", model.history_) or ()


def _up(traffic: Traffic) -> str:
    return f"{traffic.up_integers} integers, {traffic.up_floats} numbers, {traffic.up_bytes} bytes"


COMMAND = Lasso()
help_text, run = COMMAND.help_text, COMMAND.run
