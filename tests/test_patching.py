"""dpsvm's classes in the place of scikit-learn's: which names change, which stay, and back."""

from __future__ import annotations

import importlib
import pickle
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
import sklearn.svm
from commands import python
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.datasets import load_iris
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.multiclass import OneVsRestClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC as BOUND_BEFORE
from sklearn.svm import LinearSVC, _classes
from sklearn.utils.discovery import all_estimators

import dpsvm
import dpsvm.patching
from dpsvm.patching import NAMES, patch_sklearn, patched_sklearn, unpatch_sklearn

X, y = load_iris(return_X_y=True)


@pytest.fixture(autouse=True)
def _unpatched() -> Iterator[None]:
    """No test starts or ends with a patch."""
    yield
    assert all(getattr(sklearn.svm, name) is getattr(_classes, name) for name in NAMES)
    assert not [name for name in vars(sklearn.svm) if "dpsvm" in name]


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[object]:
    """A user's module that imported before the patch."""
    (tmp_path / "users_module.py").write_text(
        "from sklearn import svm\n"
        "from sklearn.svm import SVC, SVR as Regression\n"
        "from sklearn.svm._classes import NuSVC\n"
        "import sklearn.svm as machines\n"
        "class Mine(Regression):\n"
        "    def __init__(self, C=1.0):\n"
        "        Regression.__init__(self, C=C)\n"
        "TABLE = {SVC: 'svc'}\n"
        "def late():\n"
        "    from sklearn.svm import OneClassSVM\n"
        "    return OneClassSVM\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    yield importlib.import_module("users_module")
    del sys.modules["users_module"]


@pytest.mark.parametrize("name", NAMES)
def test_the_five_names_and_no_other_change(name: str) -> None:
    with patched_sklearn():
        assert getattr(sklearn.svm, name) is getattr(dpsvm, name)
        assert sklearn.svm.LinearSVC is LinearSVC
    assert getattr(sklearn.svm, name) is getattr(_classes, name)


def test_names_bound_before_change_and_come_back() -> None:
    with patched_sklearn():
        assert BOUND_BEFORE is dpsvm.SVC
    assert BOUND_BEFORE is sklearn.svm.SVC
    assert BOUND_BEFORE.__module__ == "sklearn.svm._classes"


def test_a_users_module_however_it_imported(module: object) -> None:
    genuine = dict(vars(module))
    with patched_sklearn():
        assert module.SVC is module.svm.SVC is module.machines.SVC is dpsvm.SVC
        assert module.NuSVC is dpsvm.NuSVC
        assert module.late() is dpsvm.OneClassSVM
        assert module.TABLE == {_classes.SVC: "svc"}  # a container is no name
    assert vars(module) == genuine
    assert module.late() is _classes.OneClassSVM


def test_a_class_derived_before_goes_on_to_work(module: object) -> None:
    """Its module may call the base class by name, so that the name stays."""
    with patched_sklearn():
        assert module.Regression is _classes.SVR
        assert module.Mine(C=2.0).fit(X, y).C == 2.0
        assert isinstance(module.Mine(), _classes.SVR)


def test_a_name_that_was_given_another_value_keeps_it(module: object) -> None:
    with patched_sklearn():
        module.SVC = LinearSVC
    assert module.SVC is LinearSVC


def test_the_block_may_fail() -> None:
    with pytest.raises(ZeroDivisionError), patched_sklearn():
        _ = 1 / 0
    assert sklearn.svm.SVC is _classes.SVC


def test_patching_twice_is_refused_and_the_first_patch_stays() -> None:
    with patched_sklearn():
        with pytest.raises(RuntimeError, match="scikit-learn is patched already"):
            patch_sklearn()
        with pytest.raises(RuntimeError, match="patched already"), patched_sklearn():
            pass
        assert sklearn.svm.SVC is dpsvm.SVC


def test_unpatching_what_was_not_patched_is_refused() -> None:
    with pytest.raises(RuntimeError, match="scikit-learn is not patched"):
        unpatch_sklearn()


def test_another_librarys_class_in_the_place_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sklearn.svm, "NuSVR", LinearSVC)
    with pytest.raises(RuntimeError, match=r"NuSVR is sklearn\.svm\._classes\.LinearSVC,"):
        patch_sklearn()
    assert sklearn.svm.SVC is _classes.SVC


def test_machines_that_exist_stay_what_they_are() -> None:
    theirs = sklearn.svm.SVC().fit(X, y)
    with patched_sklearn():
        assert type(theirs) is _classes.SVC
        assert not isinstance(theirs, sklearn.svm.SVC)
        assert type(clone(theirs)) is _classes.SVC
        ours = sklearn.svm.SVC().fit(X, y)
    assert isinstance(ours, dpsvm.SVC)
    assert not isinstance(ours, sklearn.svm.SVC)
    assert (ours.predict(X) == theirs.predict(X)).all()


def test_pickles_load_as_what_was_pickled() -> None:
    theirs = sklearn.svm.SVC().fit(X, y)
    before = pickle.dumps(theirs)
    with patched_sklearn():
        ours = pickle.dumps(sklearn.svm.SVC().fit(X, y))
        assert type(pickle.loads(before)) is _classes.SVC
        assert type(pickle.loads(pickle.dumps(theirs))) is _classes.SVC
        assert type(pickle.loads(ours)) is dpsvm.SVC
    assert type(pickle.loads(ours)) is dpsvm.SVC


def test_all_estimators_lists_each_name_once() -> None:
    with patched_sklearn():
        found = [one for one in all_estimators() if one[0] in NAMES]
    assert sorted(found, key=lambda one: one[0]) == sorted(
        ((name, getattr(dpsvm, name)) for name in NAMES), key=lambda one: one[0]
    )


def test_scikit_learns_own_tools_take_the_patched_names() -> None:
    with patched_sklearn():
        from sklearn.svm import SVC

        grid = GridSearchCV(make_pipeline(StandardScaler(), SVC()), {"svc__C": [0.1, 1]}, cv=3)
        assert isinstance(grid.fit(X, y).best_estimator_[-1], dpsvm.SVC)
        many = OneVsRestClassifier(SVC(kernel="linear")).fit(X, y)
        assert all(isinstance(one, dpsvm.SVC) for one in many.estimators_)
        assert CalibratedClassifierCV(SVC(), cv=2).fit(X, y).predict_proba(X).shape == (150, 3)
        assert cross_val_score(SVC(), X, y, cv=3).min() > 0.9


def test_the_patch_is_seen_by_all_threads_and_made_by_one() -> None:
    outcomes: list[str] = []
    together = threading.Barrier(8)

    def attempt() -> None:
        together.wait()
        try:
            patch_sklearn()
        except RuntimeError:
            outcomes.append("refused")
        else:
            outcomes.append("patched")

    threads = [threading.Thread(target=attempt) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sklearn.svm.SVC is dpsvm.SVC
    unpatch_sklearn()
    assert sorted(outcomes) == ["patched"] + ["refused"] * 7


def test_modules_that_are_no_modules_are_passed_over(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "blocked", None)
    monkeypatch.setitem(sys.modules, "an_object", object())
    with patched_sklearn():
        assert sklearn.svm.SVC is dpsvm.SVC


def test_verbose_tells_what_was_taken_over(
    module: object, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("DPSVM_VERBOSE", "1")
    with patched_sklearn():
        taken, left = capsys.readouterr().err.splitlines()
    assert taken.startswith("dpsvm: taken over: ")
    assert {"sklearn.svm.SVC", "sklearn.svm.OneClassSVM", "users_module.NuSVC"} <= set(
        taken.removeprefix("dpsvm: taken over: ").split(", ")
    )
    assert "users_module.Regression" in left
    assert left.startswith("dpsvm: left, since classes are derived from it there: ")
    given = capsys.readouterr().err
    assert given == taken.replace("taken over", "given back") + "\n"


@pytest.mark.parametrize("value", ["", "0"])
def test_it_is_silent_otherwise(
    value: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("DPSVM_VERBOSE", value)
    with patched_sklearn():
        pass
    assert capsys.readouterr() == ("", "")


@pytest.mark.parametrize(
    "words",
    [
        "import dpsvm; dpsvm.patch_sklearn(); from sklearn.svm import SVC",
        "from sklearn.svm import SVC; import dpsvm; dpsvm.patch_sklearn()",
        "import sklearn; import dpsvm; dpsvm.patch_sklearn(); SVC = sklearn.svm.SVC",
        "import sklearn.svm._classes as c; SVC = c.SVC; import dpsvm; dpsvm.patch_sklearn()",
    ],
)
def test_in_any_order_of_imports(words: str) -> None:
    code = f"{words}\nprint(SVC.__module__, SVC().fit([[0.0], [1.0]], [0, 1]).stop_reason_)"
    done = python("-c", code)
    assert (done.returncode, done.stdout) == (0, "dpsvm.svm.classification stationary\n")


def test_dpsvm_itself_does_not_import_scikit_learns_machines() -> None:
    """Under ``dpsvm run``, the import of ``sklearn.svm`` is what imports dpsvm."""
    code = "import sys, dpsvm; print('sklearn.svm' in sys.modules)"
    done = python("-c", code)
    assert (done.returncode, done.stdout) == (0, "False\n")


def test_as_sklearn_gives_genuine_machines_while_patched() -> None:
    with patched_sklearn():
        ours = sklearn.svm.SVC().fit(X, y)
        theirs = ours.as_sklearn()
        assert type(theirs) is _classes.SVC
        back = dpsvm.from_sklearn(pickle.loads(pickle.dumps(theirs)))
        assert type(back) is dpsvm.SVC
        assert type(clone(theirs).fit(X, y)) is _classes.SVC
    np.testing.assert_allclose(back.decision_function(X), ours.decision_function(X), rtol=1e-12)
