"""Private models as files: they predict the same, and hold nothing but public numbers and noise."""

from __future__ import annotations

import dataclasses
import json
import math
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from libsvm_tools import needs_libsvm, run_tool
from sklearn.datasets import make_blobs
from sklearn.exceptions import NotFittedError

from dpsvm._streams import is_json
from dpsvm.admm import NetworkADMM
from dpsvm.data import dump_libsvm
from dpsvm.frank_wolfe import FrankWolfeLasso
from dpsvm.privacy.accountant import BudgetAccountant
from dpsvm.privacy.estimators import PrivateLogisticRegression, PrivateSVC
from dpsvm.privacy.methods import METHODS
from dpsvm.privacy.model_file import load_private, save_private, to_libsvm
from dpsvm.privacy.preparation import Preparation
from dpsvm.privacy.release import Price, Release, tell
from dpsvm.svm.model import Model
from dpsvm.warnings import PrivacyLeakWarning

N = 397  # a prime that no other size comes near
RBF = {"kernel": "rbf", "gamma": 0.05, "n_components": 6, "feature_seed": 11}


def data(k, n_features=4):
    """Overlapping classes, so that rows lie on every side of every border."""
    return make_blobs(N, n_features, centers=k, cluster_std=3.0, random_state=k)


def fitted(k=2, kind=PrivateSVC, **settings):
    X, y = data(k)
    given = {"data_norm": 15.0, "delta": 1e-5, "classes": list(range(k)), "random_state": 5}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PrivacyLeakWarning)
        return kind(**({"epsilon": 2.0} | given | settings)).fit(X, y)


def numbers_of(value):
    """Every number in a JSON document."""
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, list):
        return [number for item in value for number in numbers_of(item)]
    return [value] if isinstance(value, (int, float)) and not isinstance(value, bool) else []


@pytest.mark.parametrize("k", [2, 3, 5])
def test_a_linear_model_file_predicts_what_the_estimator_predicts(k: int, tmp_path: Path) -> None:
    model = fitted(k, epsilon=20.0)
    save_private(model, tmp_path / "m")
    rows = np.random.default_rng(0).normal(scale=20.0, size=(5000, 4))
    loaded = Model.load(tmp_path / "m")
    assert np.array_equal(loaded.predict(rows), model.predict(rows))
    assert set(loaded.predict(rows)) == set(range(k))


@needs_libsvm
@pytest.mark.parametrize("k", [2, 3, 5])
def test_svm_predict_reads_a_linear_model_and_predicts_the_same(k: int, tmp_path: Path) -> None:
    model = fitted(k, fit_intercept=k != 3)
    X, y = data(k)
    dump_libsvm(X, y, tmp_path / "rows")
    save_private(model, tmp_path / "m")
    run_tool("svm-predict", "rows", "m", "out", folder=tmp_path)
    assert np.array_equal(np.loadtxt(tmp_path / "out"), model.predict(X))


@pytest.mark.parametrize("k", [2, 4])
def test_ties_go_to_the_same_class(k: int) -> None:
    model = fitted(k)
    model.coef_ = np.round(model.coef_ / np.abs(model.coef_).max())
    model.intercept_ = np.zeros_like(model.intercept_)
    rows = np.stack(np.meshgrid(*[[-1.0, 0.0, 1.0]] * 4), axis=-1).reshape(-1, 4)
    decisions = model.decision_function(rows)
    best = np.sort(decisions, axis=1) if k > 2 else np.column_stack([decisions * 0, decisions])
    assert np.sum(best[:, -1] == best[:, -2]) > 5
    assert np.array_equal(to_libsvm(model).predict(rows), model.predict(rows))


def test_the_decision_of_a_pair_is_the_difference_of_its_machines() -> None:
    model = fitted(4)
    X, _ = data(4)
    f = model.decision_function(X)[:, ::-1]  # labels descend in the file
    pairs = [(i, j) for i in range(4) for j in range(i + 1, 4)]
    expected = np.column_stack([f[:, i] - f[:, j] for i, j in pairs])
    np.testing.assert_allclose(to_libsvm(model).decision_values(X), expected, atol=1e-12)


@pytest.mark.parametrize("kind", [PrivateSVC, PrivateLogisticRegression])
@pytest.mark.parametrize("k", [2, 3])
@pytest.mark.parametrize("kernel", [{}, RBF])
def test_a_json_model_predicts_to_the_same_bit(
    kind: type, k: int, kernel: dict[str, Any], tmp_path: Path
) -> None:
    model = fitted(k, kind, class_weight={0: 2.0}, **kernel)
    X, _ = data(k)
    save_private(model, tmp_path / "m.gz", form="json")
    loaded = load_private(tmp_path / "m.gz")
    assert type(loaded) is kind
    assert np.array_equal(loaded.decision_function(X), model.decision_function(X))
    assert np.array_equal(loaded.predict(X), model.predict(X))
    assert loaded.privacy_guarantee_ == model.privacy_guarantee_
    assert loaded.privacy_report_ == model.privacy_report_
    assert loaded.class_weight == {0: 2.0}
    assert (loaded.C_, loaded.noise_scale_) == (model.C_, model.noise_scale_)


def test_labels_and_feature_names_survive(tmp_path: Path) -> None:
    pd = pytest.importorskip("pandas")
    X, y = data(2)
    frame = pd.DataFrame(X, columns=["age", "dose", "height", "weight"])
    labels = np.array(["no", "yes"])[y]
    model = PrivateSVC(2.0, 1e-5, data_norm=15.0, classes=["yes", "no"]).fit(frame, labels)
    save_private(model, tmp_path / "m", form="json")
    loaded = load_private(tmp_path / "m")
    assert loaded.feature_names_in_.tolist() == list(frame.columns)
    assert np.array_equal(loaded.predict(frame), model.predict(frame))
    with pytest.raises(ValueError, match="integer labels only"):
        save_private(model, tmp_path / "libsvm")


def released_weights(monkeypatch, **settings):
    """A fitted model and what its mechanism released, in units of prepared rows."""
    caught = []
    real = Preparation.unprepare
    monkeypatch.setattr(
        Preparation, "unprepare", lambda self, w: caught.append(w.copy()) or real(self, w)
    )
    model = fitted(**settings)
    monkeypatch.undo()
    [weights] = caught
    return model, weights


def by_hand(weights, divisor):
    """Coefficients and intercepts from released weights: a bias of constant feature 0.3."""
    norm = math.sqrt(1.0 + 0.3**2) * (1.0 + 2.0**-30)
    return weights[:, :-1] / (norm * divisor), weights[:, -1] * (0.3 / norm)


@pytest.mark.parametrize("k", [2, 3])
def test_every_number_of_a_linear_file_follows_from_the_released_weights(
    k: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model, weights = released_weights(monkeypatch, k=k)
    save_private(model, tmp_path / "m")
    coef, intercept = by_hand(weights, 15.0)
    header, vectors = (tmp_path / "m").read_text().split("SV\n")
    labels = list(range(k))[::-1]
    if k == 2:
        rho, counts = [-intercept[0]], [1, 0]
        rows = ["1 " + pairs(coef[0])]
    else:
        i, j = np.triu_indices(k, 1)
        rho, counts = intercept[::-1][j] - intercept[::-1][i], [1] * k
        signs = ["1 1 ", "-1 1 ", "-1 -1 "]
        rows = [sign + pairs(row) for sign, row in zip(signs, coef[::-1], strict=True)]
    assert header.splitlines() == [
        "svm_type c_svc",
        "kernel_type linear",
        f"nr_class {k}",
        f"total_sv {len(rows)}",
        "rho " + " ".join(repr(float(value)) for value in rho),
        "label " + " ".join(map(str, labels)),
        "nr_sv " + " ".join(map(str, counts)),
    ]
    assert [line.strip() for line in vectors.splitlines()] == rows


def pairs(row):
    return " ".join(f"{index}:{float(value)!r}" for index, value in enumerate(row, start=1))


NUMBERS = ("n_steps", "batch_rate", "tol", "width", "intercept_scaling")


@pytest.mark.parametrize("k", [2, 3])
def test_every_number_of_a_json_file_is_a_released_weight_or_a_public_number(
    k: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model, weights = released_weights(monkeypatch, k=k, **RBF)
    save_private(model, tmp_path / "m")
    document = json.loads((tmp_path / "m").read_text())
    coef, intercept = by_hand(weights, 1.0)
    assert document.pop("coef") == coef.tolist()
    assert document.pop("intercept") == intercept.tolist()
    public = {"data_norm": 15.0, "classes": range(k), "n_classes": k, **RBF}
    plan = PrivateSVC.plan(2.0, 1e-5, n=1, d=4, **public)  # without data; n is not in the file
    calibrated = [plan.noise_scale, plan.weight_noise, plan.C, plan.machines, *plan.facts.values()]
    flags = [2.0, 1e-5, 15.0, *range(k), 4, 1, *(v for v in RBF.values() if v != "rbf")]
    defaults = [PrivateSVC().get_params()[n] for n in NUMBERS]
    dimension = [2 * RBF["n_components"] + 1]
    explained = {*calibrated, *flags, *defaults, *dimension}
    left = [number for number in numbers_of(document) if number not in explained]
    assert left == []


@pytest.mark.parametrize("kernel", [{}, RBF])
@pytest.mark.parametrize("method", METHODS)
def test_a_model_that_never_saw_the_data_writes_the_same_file(
    kernel: dict[str, Any], method: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model, weights = released_weights(monkeypatch, k=3, method=method, **kernel)
    twin = PrivateSVC(**model.get_params())
    twin.n_features_in_ = 4
    preparation = twin._preparation_for(4)
    mechanism = twin._mechanism(preparation.dimension(4), 3)
    twin._keep(weights, np.arange(3), preparation, mechanism)
    price = Price(mechanism.event, mechanism.guarantee, twin._figures(mechanism, np.arange(3)))
    tell(twin, Release.of(twin, price, method))
    for form in ("json",) if kernel else ("json", "libsvm"):
        save_private(model, tmp_path / "ours", form=form)
        save_private(twin, tmp_path / "twins", form=form)
        assert (tmp_path / "ours").read_bytes() == (tmp_path / "twins").read_bytes()


def sizes(value, seen):
    """The sizes of everything that can be reached from a value."""
    if id(value) in seen or isinstance(value, (type, type(None), bool, int, float)):
        return
    seen.add(id(value))
    if isinstance(value, np.ndarray):
        yield from value.shape
        yield value.size
    elif isinstance(value, (str, bytes, list, tuple, set, dict)):
        yield len(value)
        items = value.values() if isinstance(value, dict) else value
        if not isinstance(value, (str, bytes)):
            for item in items:
                yield from sizes(item, seen)
    elif dataclasses.is_dataclass(value) or hasattr(value, "__dict__"):
        yield from sizes(vars(value), seen)


@pytest.mark.parametrize("kernel", [{}, RBF])
@pytest.mark.parametrize("method", METHODS)
def test_a_fitted_model_holds_nothing_of_the_size_of_the_data(
    method: str, kernel: dict[str, Any]
) -> None:
    relation = "replace" if method == "objective" else "add-remove"
    budget = BudgetAccountant(9.0, 1e-4, neighbouring=relation)
    model = fitted(3, method=method, accountant=budget, **kernel)
    model.predict(data(3)[0])
    X, _ = data(3)
    found = list(sizes(vars(model), set()))
    assert len(found) > 20
    assert not {N, X.size, N * len(model.classes_)} & set(found)


def test_the_seed_of_the_noise_and_the_ledger_are_not_in_the_file(tmp_path: Path) -> None:
    budget = BudgetAccountant(3.0, 1e-4)
    model = fitted(2, random_state=982451653, accountant=budget, **RBF)
    save_private(model, tmp_path / "m")
    text = (tmp_path / "m").read_text()
    assert "982451653" not in text
    assert "random_state" not in text
    assert "accountant" not in text
    assert load_private(tmp_path / "m").accountant is None


def without(name):
    return lambda document: document.pop(name)


def changed(name, value):
    return lambda document: document.update({name: value})


def parameter(name, value):
    return lambda document: document["parameters"].update({name: value})


def reported(name, value):
    return lambda document: document["report"].update({name: value})


def assert_refused_for(damage: Any, reason: str, path: Path) -> None:
    """A file that is damaged is refused in words that name it."""
    document = json.loads(path.read_text())
    damage(document)
    path.write_text(json.dumps(document))
    with pytest.raises(ValueError, match="not a private model") as caught:
        load_private(path)
    assert str(caught.value).startswith(f"{path}: not a private model: ")
    assert reason in str(caught.value)


@pytest.mark.parametrize(
    ("damage", "reason"),
    [
        (without("coef"), "'coef' is missing"),
        (without("report"), "'report' is missing"),
        (changed("format", "other"), "its format is 'other', not 'dpsvm private model'"),
        (changed("version", 2), "its version is 2; this reads version 1"),
        (changed("estimator", "SVC"), "estimator 'SVC' is not one of PrivateSVC"),
        (changed("coef", [[1.0]]), "coef must be 1 x 12 numbers"),
        (changed("coef", [["1"] * 12]), "coef must be a number, got '1'"),
        (changed("coef", [[True] * 12]), "coef must be a number, got True"),
        (changed("coef", [[10**400] * 12]), "coef must be finite"),
        (changed("coef", 3), "coef must be 1 x 12 numbers"),
        (changed("intercept", [0.0, 0.0]), "intercept must be 1 numbers"),
        (changed("n_features", 0), "n_features must be a whole number from 1"),
        (changed("n_features", 2.0), "n_features must be a whole number from 1"),
        (changed("classes", [1]), "classes must be a list of at least two labels"),
        (changed("classes", [1, None]), "classes must be a list of labels"),
        (changed("class_weight", 3), "not iterable"),
        (changed("feature_names", ["a"]), "feature_names must be 4 names"),
        (changed("report", []), "report is no JSON object"),
        (changed("parameters", {}), "parameters must be C, batch_rate"),
        (without("parameters"), "'parameters' is missing"),
        (parameter("gamma", -1.0), "gamma"),
        (parameter("epsilon", 0), "epsilon must be a finite number above 0, got 0"),
        (parameter("kernel", "poly"), "kernel"),
        (parameter("n_components", 7), "coef must be 1 x 14 numbers"),
        (parameter("random_state", 3), "parameters must be"),
        (reported("epsilon", None), "epsilon must be a finite number above 0, got None"),
        (reported("delta", 1), "delta must be a number from 0 to 1"),
        (reported("neighbouring", "none"), "neighbouring must be"),
        (reported("covers", "all"), "covers must be 'model' or 'messages', got 'all'"),
        (reported("noise_scale", "much"), "noise_scale must be a number"),
        (reported("public", {}), "'C' is missing"),
    ],
)
def test_a_malformed_json_model_is_an_error_with_file_and_reason(
    damage: Any, reason: str, tmp_path: Path
) -> None:
    path = tmp_path / "m.json"
    save_private(fitted(2, **RBF), path)
    assert_refused_for(damage, reason, path)


@pytest.mark.parametrize(
    ("damage", "reason"),
    [
        (without("classes"), "'classes' is missing"),
        (changed("classes", [0, 1, 2]), "NetworkADMM tells two classes apart, got [0, 1, 2]"),
        (changed("classes", [0, 0]), "classes must not hold a label twice"),
        (changed("estimator", 3), "estimator must be a name, got 3"),
        (changed("estimator", ["a"]), "estimator must be a name, got ['a']"),
        (changed("estimator", "PrivateSVC"), "'parameters' is missing"),
        (changed("coef", [0.0] * 4), "coef must be 1 x 4 numbers"),
        (changed("coef", [[0.0] * 3 + [None]]), "coef must be a number, got None"),
        (changed("intercept", 0.0), "intercept must be 1 numbers"),
        (changed("n_features", 5), "coef must be 1 x 5 numbers"),
        (without("report"), "'report' is missing"),
        (reported("seeded", 1), "seeded must be true or false, got 1"),
        (reported("epsilon", -1), "epsilon must be a finite number above 0, got -1"),
    ],
)
def test_a_malformed_model_of_another_family_is_no_less_of_an_error(
    damage: dict[str, Any], reason: str, tmp_path: Path
) -> None:
    path = tmp_path / "m.json"
    X, y = data(2)
    settings = {"graph": "path", "n_nodes": 2, "rounds": 2, "classes": [0, 1]}
    settings |= {"privacy": "objective", "epsilon": 9.0}
    save_private(NetworkADMM(**settings).fit(X / 100.0, y), path)
    assert_refused_for(damage, reason, path)


def test_a_model_that_is_not_private_or_not_finite_is_refused(tmp_path: Path) -> None:
    lasso = FrankWolfeLasso(2.0).fit([[1.0, 0.0], [0.0, 1.0]], [3.0, 0.0])
    with pytest.raises(ValueError, match="can be saved, got FrankWolfeLasso"):
        save_private(lasso, tmp_path / "m")
    model = fitted(2)
    model.coef_[0, 0] = np.inf
    with pytest.raises(ValueError, match="the weights of this PrivateSVC are not finite"):
        save_private(model, tmp_path / "m", form="json")
    assert list(tmp_path.iterdir()) == []


def test_a_regression_in_libsvms_terms_decides_as_it_does() -> None:
    model = FrankWolfeLasso(2.0).fit([[1.0, 0.0], [0.0, 1.0]], [3.0, 0.0])
    assert to_libsvm(model).predict([[1.0, 1.0], [-1.0, 5.0]]).tolist() == [2.0, -2.0]


@pytest.mark.parametrize(
    "text",
    [b"", b"{", b"[1, 2]", b"null", b'{"format": NaN}', b"\xff{}", b"[" * 10**5, b"svm_type"],
)
def test_what_is_no_json_object_is_an_error_that_names_the_file(
    text: bytes, tmp_path: Path
) -> None:
    (tmp_path / "m").write_bytes(text)
    with pytest.raises(ValueError, match="not a private model"):
        load_private(tmp_path / "m")


def test_what_cannot_be_saved_is_refused_and_leaves_no_file(tmp_path: Path) -> None:
    path = tmp_path / "m"
    with pytest.raises(NotFittedError):
        save_private(PrivateSVC(), path)
    with pytest.raises(ValueError, match="cannot hold kernel='rbf'"):
        save_private(fitted(2, **RBF), path, form="libsvm")
    with pytest.raises(ValueError, match="form must be None or 'libsvm' or 'json', got 'xml'"):
        save_private(fitted(2), path, form="xml")
    assert list(tmp_path.iterdir()) == []


def test_json_is_told_from_a_libsvm_model_by_its_beginning(tmp_path: Path) -> None:
    save_private(fitted(2), tmp_path / "linear")
    save_private(fitted(2, **RBF), tmp_path / "features.xz")
    assert [is_json(tmp_path / name) for name in ("linear", "features.xz", "none")] == [
        False,
        True,
        False,
    ]
    assert not is_json(tmp_path)
    assert Path(tmp_path / "linear").read_text().startswith("svm_type c_svc\n")


def test_parameters_changed_after_the_fit_are_not_saved_as_if_they_were_its_own(
    tmp_path: Path,
) -> None:
    model = fitted(**RBF)
    model.set_params(gamma=9.0)
    with pytest.raises(ValueError, match="parameters were changed after the fit"):
        save_private(model, tmp_path / "m")
    assert not (tmp_path / "m").exists()
