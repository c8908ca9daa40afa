"""One contract for all the estimators that can be fitted privately, and mutants that break it.

Every line of the contract is a function that raises AssertionError (or pytest's Failed) where an
estimator does not keep it. The mutants at the end break the library on purpose, each line in its
own way, and the line has to notice.
"""

from __future__ import annotations

import copy
import io
import math
import pickle
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import joblib
import numpy as np
import pytest
from sklearn.base import clone, is_classifier
from sklearn.model_selection import GridSearchCV

import dpsvm.frank_wolfe.estimator
import dpsvm.privacy.model_file
import dpsvm.privacy.release
from dpsvm.admm import NetworkADMM, SharingADMMClassifier, SharingADMMRegressor
from dpsvm.admm.sharing.privacy import Calibration as SharingCalibration
from dpsvm.distributed.history import History
from dpsvm.frank_wolfe import FrankWolfeLasso
from dpsvm.losses import HuberHinge, Logistic
from dpsvm.privacy import (
    BudgetAccountant,
    BudgetError,
    Guarantee,
    PrivateLogisticRegression,
    PrivateSVC,
    epsilon_of,
    load_private,
    save_private,
)
from dpsvm.privacy.accounting import Pure
from dpsvm.privacy.ledger import Ledger
from dpsvm.privacy.methods import METHODS
from dpsvm.privacy.noise import Noise
from dpsvm.privacy.release import PrivateEstimator, Release
from dpsvm.warnings import PrivacyLeakWarning

ROWS, COLUMNS = 40, 3
RNG = np.random.default_rng(0)
X = RNG.uniform(-0.5, 0.5, (ROWS, COLUMNS))
Y = (X[:, 0] + 0.2 * RNG.standard_normal(ROWS) > 0).astype(int)
OTHER_X, OTHER_Y = -X[::-1] * 0.9, Y[::-1].copy()
LARGE = 1e9  # an epsilon that everything fits into


@dataclass(frozen=True)
class Case:
    """An estimator in one of its private modes."""

    kind: Any
    settings: dict[str, Any]
    grid: dict[str, list[Any]]
    relation: str
    fit: dict[str, Any] = field(default_factory=dict)
    bad_rows: Any = None  # a row that the public bounds refuse; None where none is
    messages_only: bool = False
    smallest: float | None = 1e-4  # an epsilon that hides everything; None where none so small is

    def model(self, **more: Any) -> Any:
        return self.kind(**{**self.settings, **more})

    def fitted(self, X: Any = X, y: Any = Y, *, model: Any = None, **more: Any) -> Any:
        """A fit whose warnings are tested elsewhere."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return (self.model(**more) if model is None else model).fit(X, y, **self.fit)

    def ledger(self, path: Any = None, epsilon: float = LARGE, **more: Any) -> BudgetAccountant:
        settings = {"neighbouring": self.relation, "path": path, "create": path is not None, **more}
        return BudgetAccountant(epsilon, 1e-5, **settings)


LONG = np.vstack([X[:-1], np.full((1, COLUMNS), 9.0)])
SVC = {"delta": 1e-5, "data_norm": 1.0, "classes": [0, 1]}
ROW = {"data_norm": 1.0, "radius": 1.0, "target_bound": 2.0}
COLUMN = {"column_norm": 8.0, "target_norm": 4.0}
SHARING = {"epsilon": 1.0, "delta": 1e-5, "rounds": 4}
NETWORK = {"graph": "path", "n_nodes": 2, "rounds": 4, "classes": [0, 1], "epsilon": 9.0}
LASSO = {"radius": 1.0, "epsilon": 1.0, "delta": 1e-5, "rounds": 4, "entry_bound": 0.5}
SPLIT = {"parties": [2, 1]}


def svc(kind: Any, method: str) -> Case:
    relation = "replace" if method == "objective" else "add-remove"
    return Case(kind, SVC | {"epsilon": 1.0, "method": method}, {"C": [0.01, 0.02]}, relation)


def sharing(kind: Any, mode: str, bounds: dict[str, float]) -> Case:
    settings = SHARING | {"privacy": mode} | bounds
    bad = {"row": LONG, "column": LONG * 9.0}[mode]
    return Case(kind, settings, {"lam": [1.0, 2.0]}, mode, SPLIT, bad, messages_only=True)


def network(mode: str) -> Case:
    settings = NETWORK | {"privacy": mode} | ({"delta": 1e-5} if mode == "gaussian" else {})
    least = None if mode == "objective" else 1e-4
    return Case(NetworkADMM, settings, {"lam": [1.0, 2.0]}, "replace", {}, LONG, smallest=least)


def lasso(relation: str, fit: dict[str, Any], **more: Any) -> Case:
    settings = LASSO | more
    return Case(FrankWolfeLasso, settings, {"radius": [0.5, 1.0]}, relation, fit, LONG)


CASES = {
    **{f"PrivateSVC {method}": svc(PrivateSVC, method) for method in METHODS},
    **{
        f"PrivateLogisticRegression {method}": svc(PrivateLogisticRegression, method)
        for method in ("objective-gaussian", "output")
    },
    "SharingADMMClassifier row": sharing(SharingADMMClassifier, "row", ROW),
    "SharingADMMClassifier column": sharing(SharingADMMClassifier, "column", COLUMN),
    "SharingADMMRegressor row": sharing(SharingADMMRegressor, "row", ROW),
    "SharingADMMRegressor column": sharing(SharingADMMRegressor, "column", COLUMN),
    **{f"NetworkADMM {mode}": network(mode) for mode in ("objective", "primal", "gaussian")},
    "FrankWolfeLasso": lasso("replace", {}, label_bound=1.0),
    "FrankWolfeLasso pure": lasso("replace", {}, label_bound=1.0, delta=None),
    "FrankWolfeLasso parties": lasso("features", SPLIT, public_labels=True, sketch=8),
    "FrankWolfeLasso parties, labels": lasso("replace", SPLIT, label_bound=1.0, sketch=8),
}
ONE_OF_EACH = (
    "PrivateSVC output",
    "PrivateLogisticRegression objective-gaussian",
    "SharingADMMClassifier row",
    "NetworkADMM objective",
    "FrankWolfeLasso",
    "FrankWolfeLasso parties",
)
PAPER = Case(
    SharingADMMClassifier,
    SHARING | {"privacy": "paper", "b1": 1.0, "c1": 1.0},
    {"lam": [1.0, 2.0]},
    "row",
    SPLIT,
    messages_only=True,
)

every_case = pytest.mark.parametrize("case", CASES.values(), ids=CASES)


class Source:
    """Bytes of a seed, and how much was charged whenever some were drawn."""

    def __init__(self, ledger: BudgetAccountant | None = None, seed: int = 0) -> None:
        self._rng, self._ledger = np.random.default_rng(seed), ledger
        self.charges: list[int] = []

    def bytes(self, count: int) -> bytes:
        self.charges.append(0 if self._ledger is None else len(self._ledger.charges))
        return self._rng.bytes(count)

    def __deepcopy__(self, memo: Any) -> Source:
        return self


# The contract


def charges_once_before_it_draws(case: Case, tmp_path: Any) -> None:
    ledger = case.ledger()
    source = Source(ledger)
    case.fitted(accountant=ledger, random_state=source)
    assert source.charges
    assert min(source.charges) == max(source.charges) == len(ledger.charges) == 1
    assert ledger.charges[0].label


def charges_at_least_what_it_states(case: Case, tmp_path: Any) -> None:
    ledger = case.ledger()
    model = case.fitted(accountant=ledger)
    stated = guarantee_of(model)
    spent = epsilon_of([charge.event for charge in ledger.charges], stated.delta)
    assert spent >= stated.epsilon * (1.0 - 1e-4)  # a pure charge, at a delta
    assert ledger.total().neighbouring == stated.neighbouring == case.relation


def copies_charge_the_same_ledger(case: Case, tmp_path: Any) -> None:
    ledger = case.ledger(tmp_path / "ledger.json")
    model = case.model(accountant=ledger)
    case.fitted(model=clone(model))
    case.fitted(model=copy.deepcopy(model))
    case.fitted(model=pickle.loads(pickle.dumps(model)))
    assert len(ledger.charges) == 3
    alone = case.model(accountant=case.ledger())  # without a file, a copy elsewhere is closed
    with pytest.raises(BudgetError):
        case.fitted(model=pickle.loads(pickle.dumps(alone)))


def searches_are_charged_and_warned_of_once(
    case: Case, tmp_path: Any, n_jobs: int | None = None, refit: bool = True
) -> None:
    ledger = case.ledger(tmp_path / "ledger.json")
    search = GridSearchCV(
        case.model(accountant=ledger), case.grid, cv=2, n_jobs=n_jobs, refit=refit,
        error_score="raise",
    )  # fmt: skip
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        search.fit(X, Y, **case.fit)
    told = [one for one in caught if "winner on validation rows" in str(one.message)]
    assert len(ledger.charges) == 4 + refit
    assert len(told) == 1
    assert told[0].category is PrivacyLeakWarning
    assert told[0].filename == __file__


def parallel_searches_without_a_refit_are_warned_of(case: Case, tmp_path: Any) -> None:
    searches_are_charged_and_warned_of_once(case, tmp_path, 2, refit=False)


def a_refusal_leaves_no_charge(case: Case, tmp_path: Any) -> None:
    poor = case.ledger(epsilon=1e-3)
    source = Source(poor)
    model = case.model(accountant=poor, random_state=source)
    with pytest.raises(BudgetError):
        case.fitted(model=model)
    assert poor.charges == ()
    assert source.charges == []
    assert not hasattr(model, "coef_")
    rich = case.ledger()
    wrong = BudgetAccountant(LARGE, 1e-5, neighbouring=other_than(case.relation))
    with pytest.raises(BudgetError, match="cannot be charged to a budget"):
        case.fitted(accountant=wrong)
    holes = X.copy()
    holes[3, 1] = np.nan
    with pytest.raises(ValueError, match=r"NaN|finite"):
        case.fitted(holes, accountant=rich)
    with pytest.raises(ValueError, match="random_state"):
        case.fitted(accountant=rich, random_state="today")
    with pytest.raises(ValueError, match="epsilon"):
        case.fitted(accountant=rich, epsilon=-1.0)
    if case.bad_rows is not None:
        with pytest.raises(ValueError, match=r"above|beyond|at most"):
            case.fitted(case.bad_rows, accountant=rich)
    elif is_classifier(case.model()):
        with pytest.raises(ValueError, match="label 7"):
            case.fitted(y=np.where(Y == 0, 7, Y), accountant=rich)
    assert rich.charges == wrong.charges == ()


def a_seed_marks_the_guarantee(case: Case, tmp_path: Any) -> None:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        seeded = case.model(random_state=0).fit(X, Y, **case.fit)
    told = [one for one in caught if "random_state makes the noise" in str(one.message)]
    assert len(told) == 1
    assert told[0].filename == __file__
    for model in (seeded, *copies_of(seeded, tmp_path), from_file(seeded, tmp_path)):
        marked = guarantee_of(model)
        assert marked.seeded
        assert "from a seed" in str(marked)
        assert model.privacy_report_["guarantee"] == str(marked)
        assert model.privacy_report_["seeded"] is True
    plain = case.fitted()
    for model in (plain, *copies_of(plain, tmp_path), from_file(plain, tmp_path)):
        assert not guarantee_of(model).seeded
        assert "seed" not in model.privacy_report_["guarantee"]
        assert model.privacy_report_["seeded"] is False


def states_an_epsilon_for_what_it_covers(case: Case, tmp_path: Any) -> None:
    """An epsilon of a model hides its data: the same noise on other data gives much the same."""
    model = case.fitted()
    if case.messages_only:
        assert model.message_epsilon_ == case.settings["epsilon"]
        assert model.message_delta_ == case.settings["delta"]
        assert "of the messages alone" in model.privacy_report_["guarantee"]
    else:
        assert model.epsilon_ == case.settings["epsilon"]
    if case.smallest is None:
        return
    one, other = (
        case.fitted(rows, labels, epsilon=case.smallest, random_state=7)
        for rows, labels in ((X, Y), (OTHER_X, OTHER_Y))
    )
    apart = np.linalg.norm(one.coef_ - other.coef_) / np.linalg.norm(one.coef_)
    if one.epsilon_ is not None:
        assert apart < 0.05
        assert one.privacy_guarantee_.epsilon == one.epsilon_
    else:
        assert apart > 0.05  # or it could state one
        assert one.privacy_guarantee_ is one.delta_ is one.neighbouring_ is None


PUBLIC = {
    "privacy_report_", "privacy_guarantee_", "epsilon_", "delta_", "neighbouring_", "classes_",
    "n_features_in_", "n_iter_", "stop_reason_",
}  # fmt: skip
RELEASED = {"coef_", "intercept_"}
KEPT = {
    PrivateSVC: {"C_", "noise_scale_", "feature_map_", "_preparation"},
    PrivateLogisticRegression: {"C_", "noise_scale_", "feature_map_", "_preparation"},
    # coef_ of sharing is no released quantity: no epsilon is stated for it.
    SharingADMMClassifier: {
        "message_epsilon_", "message_delta_", "message_guarantee_", "n_parties_", "rho_", "kappa_",
        "history_", "_layout",
    },
    NetworkADMM: {
        "coefs_", "intercepts_", "history_", "graph_", "n_nodes_", "node_sizes_", "n_updates_",
        "data_accesses_", "conditions_",
    },
    FrankWolfeLasso: {"history_", "traffic_", "predicted_traffic_", "_layout"},
}  # fmt: skip
KEPT[SharingADMMRegressor] = KEPT[SharingADMMClassifier]


def keeps_nothing_without_noise(case: Case, tmp_path: Any) -> None:
    allowed = PUBLIC | RELEASED | KEPT[case.kind]
    model = case.fitted()
    observed = model
    if case.kind in WATCHED:  # somebody asked to watch: that stays out of pickles
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            observed = case.model().fit(X, Y, measured=True, evaluate_on=(X, Y), **case.fit)
    for one in (model, *copies_of(model, tmp_path), *copies_of(observed, tmp_path)):
        told = {name for name, value in vars(one).items() if value is not None}
        extra = told - allowed - set(one.get_params())
        assert not extra, extra
        known = np.array(sorted(numbers_of(vars(one))))
        if case.kind in WATCHED:
            assert all(np.isnan(one.history_[name]).all() for name in one.history_.OUTSIDE)
        for figure in figures_on_the_data(one):
            assert not np.any(np.isclose(known, figure, rtol=1e-10, atol=0.0)), figure
        stored = pickle.dumps(one)
        assert not any(value.tobytes() in stored for value in X.ravel())


WATCHED = (SharingADMMClassifier, SharingADMMRegressor, NetworkADMM)


# What the lines are made of


def guarantee_of(model: Any) -> Guarantee:
    found = model.privacy_guarantee_ or getattr(model, "message_guarantee_", None)
    assert found is not None
    return found


def other_than(relation: str) -> str:
    return "add-remove" if relation != "add-remove" else "replace"


def copies_of(model: Any, tmp_path: Any) -> list[Any]:
    """The model, stored in every way there is and loaded again."""
    buffer = io.BytesIO()
    joblib.dump(model, buffer)
    buffer.seek(0)
    found = [pickle.loads(pickle.dumps(model)), joblib.load(buffer), copy.deepcopy(model)]
    if isinstance(model, (PrivateSVC, PrivateLogisticRegression)):
        found.append(from_file(model, tmp_path))
    return found


def from_file(model: Any, tmp_path: Any) -> Any:
    save_private(model, tmp_path / "model.json", form="json")
    return load_private(tmp_path / "model.json")


@every_case
def test_a_file_keeps_the_model_and_its_guarantee(case: Case, tmp_path: Any) -> None:
    model = case.fitted(random_state=0)
    loaded = from_file(model, tmp_path)
    assert loaded.privacy_report_ == model.privacy_report_
    assert loaded.n_features_in_ == model.n_features_in_
    names = ("privacy_guarantee_", "epsilon_", "delta_", "neighbouring_")
    for name in (*names, "message_guarantee_", "message_epsilon_", "message_delta_"):
        assert getattr(loaded, name, None) == getattr(model, name, None)
    assert np.array_equal(np.ravel(loaded.coef_), np.ravel(model.coef_))
    assert np.array_equal(np.ravel(loaded.intercept_), np.ravel(model.intercept_))
    assert np.allclose(loaded.predict(X), model.predict(X), rtol=1e-12)


def numbers_of(value: Any, seen: set[int] | None = None) -> set[float]:
    """All the numbers that can be reached from a value."""
    seen = set() if seen is None else seen
    if isinstance(value, (bool, np.bool_)) or value is None or id(value) in seen:
        return set()
    if isinstance(value, (int, float, np.number)):
        return {float(value)} if math.isfinite(value) else set()
    seen.add(id(value))
    if isinstance(value, np.ndarray):
        flat = value.ravel()
        return set(flat[np.isfinite(flat)].tolist()) if flat.dtype.kind in "iuf" else set()
    if isinstance(value, dict):
        return set().union(*(numbers_of(one, seen) for one in value.values()))
    if isinstance(value, (list, tuple, set)):
        return set().union(*(numbers_of(one, seen) for one in value))
    if hasattr(value, "__dict__") and not isinstance(value, type):
        return numbers_of(vars(value), seen)
    return set()


def figures_on_the_data(model: Any) -> list[float]:
    """What could be told of the training rows: how well the model does on them."""
    found = []
    if is_classifier(model):
        margins = (2.0 * Y - 1.0) * model.decision_function(X)
        losses = [loss.value(margins) for loss in (Logistic(), HuberHinge(0.5), HuberHinge(0.7))]
        losses.append((1.0 - margins) ** 2 / 2.0)
    else:
        losses = [(model.predict(X) - Y) ** 2 / 2.0, (model.predict(X) - Y) ** 2]
    for loss in losses:
        found += [float(loss.sum()), float(loss.mean())]
    return [figure for figure in found if figure != round(figure)]


# All of them keep it

LINES = (
    charges_once_before_it_draws,
    charges_at_least_what_it_states,
    copies_charge_the_same_ledger,
    a_refusal_leaves_no_charge,
    a_seed_marks_the_guarantee,
    states_an_epsilon_for_what_it_covers,
)


@every_case
@pytest.mark.parametrize("line", LINES, ids=lambda line: line.__name__)
def test_every_private_estimator(line: Callable[..., None], case: Case, tmp_path: Any) -> None:
    line(case, tmp_path)


@every_case
@pytest.mark.parametrize("n_jobs", [None, 2])
def test_a_search_is_charged_for_every_fit_and_warned_of_once(
    case: Case, n_jobs: int | None, tmp_path: Any
) -> None:
    searches_are_charged_and_warned_of_once(case, tmp_path, n_jobs)


@pytest.mark.parametrize("name", ONE_OF_EACH)
def test_a_parallel_search_that_refits_nothing_is_warned_of_too(name: str, tmp_path: Any) -> None:
    parallel_searches_without_a_refit_are_warned_of(CASES[name], tmp_path)


@pytest.mark.parametrize("case", [*CASES.values(), PAPER], ids=[*CASES, "paper"])
def test_nothing_without_noise_survives(case: Case, tmp_path: Any) -> None:
    keeps_nothing_without_noise(case, tmp_path)


def test_a_claim_states_no_epsilon_and_charges_nothing(tmp_path: Any) -> None:
    with pytest.warns(PrivacyLeakWarning, match="gives no privacy guarantee"):
        model = PAPER.model().fit(X, Y, **PAPER.fit)
    assert model.privacy_guarantee_ is model.message_guarantee_ is model.message_epsilon_ is None
    assert model.privacy_report_["guarantee"] is model.privacy_report_["epsilon"] is None
    ledger = PAPER.ledger()
    with pytest.raises(ValueError, match="cannot charge an accountant"):
        PAPER.fitted(accountant=ledger)
    assert ledger.charges == ()


# Mutants: every line notices what it is there for

Mutant = Callable[[pytest.MonkeyPatch], None]
CHARGE, SPEND = Release.charge, BudgetAccountant.spend
KEEP = dpsvm.privacy.release.keep_guarantee


def draws_before_it_charges(patch: pytest.MonkeyPatch) -> None:
    def charge(self: Release) -> Any:
        self.noise.let_go()
        self.noise.uniform(1)
        return CHARGE(self)

    patch.setattr(Release, "charge", charge)


def charges_twice(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Release, "charge", lambda self: (CHARGE(self), CHARGE(self))[1])


def never_charges(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(BudgetAccountant, "spend", lambda *_, **__: None)


def charges_too_little(patch: pytest.MonkeyPatch) -> None:
    def spend(self: Any, event: Any, **options: Any) -> None:
        SPEND(self, Pure(1e-3), **options)

    patch.setattr(BudgetAccountant, "spend", spend)


def charges_any_relation(patch: pytest.MonkeyPatch) -> None:
    def spend(self: Any, event: Any, *, label: str = "", neighbouring: Any = None) -> None:
        SPEND(self, event, label=label)

    patch.setattr(BudgetAccountant, "spend", spend)


def forks_the_budget_when_cloned(patch: pytest.MonkeyPatch) -> None:
    def fork(self: Any, memo: Any = None) -> BudgetAccountant:
        return BudgetAccountant(LARGE, 1e-5, neighbouring=self.total().neighbouring)

    patch.setattr(BudgetAccountant, "__deepcopy__", fork)


def forks_the_budget_when_pickled(patch: pytest.MonkeyPatch) -> None:
    def reduce(self: Any) -> Any:
        relation = self.total().neighbouring
        return partial(BudgetAccountant, LARGE, 1e-5, neighbouring=relation), ()

    patch.setattr(BudgetAccountant, "__reduce__", reduce)


def charges_a_label_once(patch: pytest.MonkeyPatch) -> None:
    def spend(self: Any, event: Any, **options: Any) -> None:
        if options["label"] not in [charge.label for charge in self.charges]:
            SPEND(self, event, **options)

    patch.setattr(BudgetAccountant, "spend", spend)


def never_warns_of_a_search(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(dpsvm.privacy.release, "warn_if_searched", lambda: None)


def warns_of_every_fit_of_a_search(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(dpsvm.privacy.release, "_TOLD", Forgetful())


class Forgetful(dict[Any, Any]):
    def __setitem__(self, one: Any, value: Any) -> None:
        pass


def warns_when_it_charges_alone(patch: pytest.MonkeyPatch) -> None:
    patch.delattr(PrivateEstimator, "__sklearn_clone__")


def charges_before_it_checks(patch: pytest.MonkeyPatch) -> None:
    forget = PrivateEstimator._forget

    def early(self: Any) -> None:
        forget(self)
        if self.accountant is not None:
            self.accountant.spend(Pure(1e-6))

    patch.setattr(PrivateEstimator, "_forget", early)


def refuses_no_budget(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Ledger, "require", lambda *_: None)


def forgets_that_noise_was_seeded(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(dpsvm.privacy.release, "replace", lambda guarantee, **_: guarantee)


def says_nothing_of_a_seed(patch: pytest.MonkeyPatch) -> None:
    def silent(message: str, category: Any) -> None:
        if "random_state" not in message:
            warnings.warn(message, category, stacklevel=2)

    patch.setattr(dpsvm.privacy.release, "warn_caller", silent)


def loads_a_guarantee_without_its_mark(patch: pytest.MonkeyPatch) -> None:
    load = dpsvm.privacy.model_file._guarantee

    def unmarked(report: Any) -> Guarantee:
        return replace(load(report), seeded=False)

    patch.setattr(dpsvm.privacy.model_file, "_guarantee", unmarked)


def calls_messages_the_model(patch: pytest.MonkeyPatch) -> None:
    def guarantee(self: SharingCalibration) -> Guarantee:
        return Guarantee(self.epsilon, self.delta, self.mode)

    patch.setattr(SharingCalibration, "guarantee", property(guarantee))


def adds_next_to_no_noise(patch: pytest.MonkeyPatch) -> None:
    for law in ("gaussian", "laplace", "gumbel"):
        exact = getattr(Noise, law)
        faint = lambda self, scale, size=1, exact=exact: exact(self, scale * 1e-6, size)  # noqa: E731
        patch.setattr(Noise, law, faint)
    spherical = Noise.spherical
    patch.setattr(Noise, "spherical", lambda self, d, scale: spherical(self, d, scale * 1e-6))


def tells_a_loss(patch: pytest.MonkeyPatch) -> None:
    def told(model: Any, guarantee: Any, report: Any) -> None:
        KEEP(model, guarantee, report)
        model.train_loss_ = 0.123

    patch.setattr(dpsvm.privacy.release, "keep_guarantee", told)
    patch.setattr(dpsvm.frank_wolfe.estimator, "keep_guarantee", told)


def hides_a_figure_in_the_report(patch: pytest.MonkeyPatch) -> None:
    """A figure on the data under a name that is allowed."""
    for kind in {case.kind for case in CASES.values()}:
        fit = kind.fit

        def leaky(self: Any, X: Any, y: Any, *rest: Any, fit: Any = fit, **more: Any) -> Any:
            fit(self, X, y, *rest, **more)
            decide = self.decision_function if is_classifier(self) else self.predict
            error = 2.0 * y - 1.0 - decide(X) if is_classifier(self) else y - decide(X)
            self.privacy_report_["quality"] = float((error**2).mean() / 2.0)
            return self

        patch.setattr(kind, "fit", leaky)


def watches_uninvited(patch: pytest.MonkeyPatch) -> None:
    make = History.__init__

    def init(self: History, *parts: Any, **named: Any) -> None:
        make(self, *parts, **named | {"measured": True})

    patch.setattr(History, "__init__", init)


def pickles_what_was_watched(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(History, "__getstate__", lambda self: dict(vars(self)))


SVMS, ALL = ONE_OF_EACH[:2], ONE_OF_EACH
WATCHING = ("SharingADMMClassifier row", "NetworkADMM objective")
STATING = (*SVMS, "NetworkADMM primal", *ALL[4:])
MUTANTS: list[tuple[Callable[..., None], Mutant, tuple[str, ...]]] = [
    (charges_once_before_it_draws, draws_before_it_charges, ALL),
    (charges_once_before_it_draws, charges_twice, ALL),
    (charges_once_before_it_draws, never_charges, ALL),
    (charges_at_least_what_it_states, charges_too_little, ALL),
    (copies_charge_the_same_ledger, forks_the_budget_when_cloned, ALL),
    (copies_charge_the_same_ledger, forks_the_budget_when_pickled, ALL),
    (searches_are_charged_and_warned_of_once, charges_a_label_once, ALL),
    (searches_are_charged_and_warned_of_once, never_warns_of_a_search, ALL),
    (searches_are_charged_and_warned_of_once, warns_of_every_fit_of_a_search, ALL),
    (parallel_searches_without_a_refit_are_warned_of, warns_when_it_charges_alone, ALL),
    (a_refusal_leaves_no_charge, charges_before_it_checks, ALL),
    (a_refusal_leaves_no_charge, refuses_no_budget, ALL),
    (a_refusal_leaves_no_charge, charges_any_relation, ALL),
    (a_refusal_leaves_no_charge, draws_before_it_charges, ALL),
    (a_seed_marks_the_guarantee, forgets_that_noise_was_seeded, ALL),
    (a_seed_marks_the_guarantee, says_nothing_of_a_seed, ALL),
    (a_seed_marks_the_guarantee, loads_a_guarantee_without_its_mark, ALL),
    (states_an_epsilon_for_what_it_covers, calls_messages_the_model, WATCHING[:1]),
    (states_an_epsilon_for_what_it_covers, adds_next_to_no_noise, STATING),
    (keeps_nothing_without_noise, tells_a_loss, ALL),
    (keeps_nothing_without_noise, hides_a_figure_in_the_report, ALL),
    (keeps_nothing_without_noise, watches_uninvited, WATCHING),
    (keeps_nothing_without_noise, pickles_what_was_watched, WATCHING),
]


@pytest.mark.parametrize(
    ("line", "mutant", "name"),
    [
        pytest.param(line, mutant, name, id=f"{mutant.__name__}-{name}")
        for line, mutant, names in MUTANTS
        for name in names
    ],
)
def test_a_mutant_is_noticed(
    line: Callable[..., None],
    mutant: Mutant,
    name: str,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Any,
) -> None:
    mutant(monkeypatch)
    with pytest.raises((AssertionError, pytest.fail.Exception)):
        line(CASES[name], tmp_path)
