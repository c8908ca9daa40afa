"""``dpsvm lasso``: a sparse linear model by Frank-Wolfe, with or without parties and privacy."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from dpsvm.cli.distributed import DistributedCommand, Request, cell
from dpsvm.cli.lasso_flags import MODEL_FLAGS, PARTY_FLAGS, PRIVACY_FLAGS
from dpsvm.cli.layout import line
from dpsvm.cli.options import UsageError
from dpsvm.cli.parties import sizes_of, width_of
from dpsvm.frank_wolfe.comparison import MODEL, PRIVATE, Comparison, Outcome, compare
from dpsvm.frank_wolfe.estimator import FrankWolfeLasso
from dpsvm.frank_wolfe.figure import picture
from dpsvm.frank_wolfe.messages import Traffic

_APART = f"{PRIVATE}: another run at the same epsilon, charged to no ledger, so not to be released"


class Lasso(DistributedCommand):
    """Columns in one place or in several, by Frank-Wolfe."""

    name = "lasso"
    needs = "--radius r "
    about = (
        "Least squares over the columns of FILE, in LIBSVM's format, plain or compressed, its "
        "labels being any numbers, under a bound on the sum of the absolute weights, by "
        "Frank-Wolfe: most weights are 0. There is no intercept: centre the data, for privacy by "
        "public constants. Prints the model beside zero weights, and with parties or privacy "
        "beside a model of all columns in one place."
    )
    model_flags = MODEL_FLAGS
    sections = (
        (
            "Parties that hold the columns: each round, each sends an index and a sketch",
            PARTY_FLAGS,
        ),
    )
    privacy = "Privacy, with public bounds; with --parties, of all that they send", PRIVACY_FLAGS
    own = ("parties",)
    columns = ("objective", "of zero's", "gap", "weights", "test loss", "test R2")
    draws_messages = True
    protects: ClassVar = {
        "features": "all the features of one record, whoever holds them; labels are public",
        "replace": "one record, its label included",
    }

    def check(self, values: dict[str, Any], common: Mapping[str, Any], *, private: bool) -> None:
        if values["radius"] is None:
            raise UsageError("--radius is required: it has no default")
        if not private and values["random_state"] is not None and values["tau"] is None:
            raise UsageError("--seed goes with --epsilon or --tau: nothing else is random")
        if private and values["parties"] is None and common["plot"]:
            raise UsageError("--plot with --epsilon needs --parties: another has no curve")
        sizes = width_of(values["parties"])
        if sizes is not None and common["n_features"] not in (None, sizes):
            wide = common["n_features"]
            raise UsageError(f"--parties are {sizes} columns, --n-features says {wide}")

    def estimator(self, settings: dict[str, Any]) -> FrankWolfeLasso:
        return FrankWolfeLasso(**settings)

    def labels(self, settings: dict[str, Any]) -> Literal["any", "class"]:
        return "any"

    def width(self, request: Request) -> int | None:
        return width_of(request.own["parties"]) or request.n_features

    def held(self, request: Request, X: Any) -> list[int] | None:
        parties = request.own["parties"]
        return None if parties is None else sizes_of(parties, X.shape[1])

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

    def compare(
        self, request: Request, model: FrankWolfeLasso, *data: Any, **options: Any
    ) -> Comparison:
        return compare(model, *data, **options)

    def told(
        self, request: Request, model: FrankWolfeLasso, X: Any, held: list[int] | None
    ) -> Iterator[str]:
        weights = model.coef_
        parties = "" if held is None else f", parties of {', '.join(map(str, held))}"
        bounded = "|w|_1 of each party" if model.problem == "product" else "|w|_1"
        some = f"{np.count_nonzero(weights)} of {len(weights)} are not 0"
        yield line("data", f"{request.data}: {X.shape[0]} rows, {len(weights)} columns{parties}")
        yield line("constraint", f"{bounded} at most {model.radius:g}")
        yield line("steps" if held is None else "rounds", f"{model.n_iter_} ({model.stop_reason_})")
        yield line("weights", f"{some}, |w|_1 = {np.sum(np.abs(weights)):.6g}")
        counted, predicted = model.traffic_, model.predicted_traffic_
        if counted is not None and predicted is not None:
            yield line("value by the messages", f"{model.history_[-1].released_value:.6g}")
            yield line("sent up", _up(counted))
            yield line("predicted", f"{_up(predicted)}, by proposals without a cache")
            yield line("sent down", f"{counted.down_floats} numbers, {counted.down_bytes} bytes")

    def figures(self, found: Comparison) -> Iterator[str]:
        yield line("objective", f"{found[MODEL].objective:.6g}")
        yield line("gap", f"{found[MODEL].gap:.3g}")

    def cells(self, found: Comparison, outcome: Outcome, rows: int) -> Iterable[str]:
        return (
            cell(outcome.objective, ".6g"),
            cell(found.share(outcome.name), ".4f"),
            cell(outcome.gap, ".1e"),
            str(outcome.nonzeros),
            cell(outcome.test_loss, ".6g"),
            cell(outcome.test_r2, ".4f"),
        )

    def remark(self, found: Comparison) -> str | None:
        return _APART if any(one.name == PRIVATE for one in found.outcomes) else None

    def split(self, request: Request, held: list[int] | None) -> str:
        parties = "" if held is None else f" split {'/'.join(map(str, held))}"
        return f"{parties}, radius {request.settings['radius']:g}"

    def relative(self, found: Comparison, name: str) -> dict[str, Any]:
        return {"share": found.share(name)}

    def facts(
        self, request: Request, model: FrankWolfeLasso, held: list[int] | None
    ) -> dict[str, Any]:
        counted, predicted = model.traffic_, model.predicted_traffic_
        return {
            "parties": held,
            "traffic": None if counted is None else asdict(counted),
            "predicted_traffic": None if predicted is None else asdict(predicted),
        }

    def history(self, model: FrankWolfeLasso) -> Iterable[Any]:
        return getattr(model.history_, "iterations", model.history_) or ()

    def picture(self, found: Comparison, title: str) -> Any:
        return picture(found, title)


def _up(traffic: Traffic) -> str:
    return f"{traffic.up_integers} integers, {traffic.up_floats} numbers, {traffic.up_bytes} bytes"


COMMAND = Lasso()
help_text, run = COMMAND.help_text, COMMAND.run
