"""``dpsvm vertical``: a joint model over split columns, beside those it is measured against."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Literal

from dpsvm.admm import SharingADMMClassifier, SharingADMMRegressor
from dpsvm.admm.sharing.comparison import Comparison, Outcome, compare
from dpsvm.admm.sharing.estimators import BaseSharingADMM
from dpsvm.admm.sharing.figure import picture
from dpsvm.cli.distributed import DistributedCommand, Request, cell
from dpsvm.cli.layout import line
from dpsvm.cli.options import UsageError
from dpsvm.cli.parties import sizes_of, width_of
from dpsvm.cli.vertical_flags import CHECK_FLAGS, MODEL_FLAGS, PRIVACY_FLAGS, RUN_FLAGS


class Vertical(DistributedCommand):
    """Columns that may not meet, by ADMM sharing."""

    name = "vertical"
    needs = "--parties K|n,n,... "
    about = (
        "Splits the columns of FILE, in LIBSVM's format, plain or compressed, among parties, and "
        "trains one linear model of all of them by ADMM sharing: each round, each party sends one "
        "number per row. Prints it beside a model of all the columns in one place and one of the "
        "first party's columns alone."
    )
    model_flags = MODEL_FLAGS
    sections = (("The run", (*RUN_FLAGS, *CHECK_FLAGS)),)
    privacy = "Privacy of the messages, with public bounds; labels are not protected", PRIVACY_FLAGS
    own = ("parties", "box", "ball", "more")
    columns = ("objective/n", "gap", "train loss", "test loss", "test accuracy")

    def check(self, values: dict[str, Any], common: Mapping[str, Any], *, private: bool) -> None:
        if values["parties"] is None:
            raise UsageError("--parties is required: how many columns each party has")
        if values["box"] is not None and values["ball"] is not None:
            raise UsageError("--box and --ball exclude each other")
        if not private and values["random_state"] is not None:
            raise UsageError("--seed goes with --privacy: nothing else is random")
        values["constraint"] = values["ball"] if values["box"] is None else values["box"]

    def estimator(self, settings: dict[str, Any]) -> BaseSharingADMM:
        if settings.get("loss") != "squared":
            return SharingADMMClassifier(**settings)
        corner = ("loss", "width")
        return SharingADMMRegressor(
            **{name: value for name, value in settings.items() if name not in corner}
        )

    def labels(self, settings: dict[str, Any]) -> Literal["any", "class"]:
        return "any" if settings.get("loss") == "squared" else "class"

    def width(self, request: Request) -> int | None:
        return width_of(request.own["parties"]) or request.n_features

    def held(self, request: Request, X: Any) -> list[int]:
        return sizes_of(request.own["parties"], X.shape[1])

    def compare(
        self, request: Request, model: BaseSharingADMM, *data: Any, **options: Any
    ) -> Comparison:
        return compare(model, *data, more=request.own["more"], **options)

    def told(
        self, request: Request, model: BaseSharingADMM, X: Any, held: list[int]
    ) -> Iterator[str]:
        up, down = (int(model.history_[f"bytes_{way}"].sum()) for way in ("up", "down"))
        parties = ", ".join(map(str, held))
        yield line("data", f"{request.data}: {X.shape[0]} rows, parties of {parties}")
        yield line("rounds", f"{model.n_iter_} ({model.stop_reason_})")
        yield line("rho, kappa", f"{model.rho_:g}, {model.kappa_:g}")
        yield line("bytes up, down", f"{up}, {down}")

    def cells(self, found: Comparison, outcome: Outcome, rows: int) -> Iterable[str]:
        gap = found.gap(outcome.name)
        objective = None if gap is None else outcome.objective / rows
        losses = (outcome.train_loss, outcome.test_loss, outcome.test_accuracy)
        return cell(objective, ".6f"), cell(gap, ".1e"), *(cell(one, ".4f") for one in losses)

    def diagnosis(
        self, request: Request, model: BaseSharingADMM
    ) -> tuple[str, Sequence[Any]] | None:
        assumptions = model.assumptions_
        return None if assumptions is None else ("What the paper's theorem assumes:", assumptions)

    def split(self, request: Request, held: list[int]) -> str:
        return f" split {'/'.join(map(str, held))}"

    def relative(self, found: Comparison, name: str) -> dict[str, Any]:
        return {"gap": found.gap(name)}

    def facts(self, request: Request, model: BaseSharingADMM, held: list[int]) -> dict[str, Any]:
        assumptions = None if model.assumptions_ is None else list(map(str, model.assumptions_))
        step = {"rho": model.rho_, "kappa": model.kappa_}
        return {"parties": held, **step, "assumptions": assumptions}

    def picture(self, found: Comparison, title: str) -> Any:
        return picture(found, title)


COMMAND = Vertical()
help_text, run = COMMAND.help_text, COMMAND.run
