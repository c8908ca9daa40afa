"""LIBSVM model files: exact both ways, and nothing malformed gets in."""

from __future__ import annotations

import re
import tempfile
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from libsvm_tools import GOLDEN, needs_libsvm, run_tool
from scipy import sparse

from dpsvm import SVC, SVR, NuSVC, NuSVR, OneClassSVM
from dpsvm.data import LibsvmFormatError
from dpsvm.svm import model_file
from dpsvm.svm.model import Model, from_estimator
from dpsvm.svm.parameters import KERNELS, MACHINES, Parameters

LIBSVM_MODELS = {case["case"]: case["model"] for case in GOLDEN["train"] if "model" in case}
BYTES = (b"", b"-", b"0", b"9", b" ", b".", b":", b"\n", b"e", b"nan", b"SV", b"\xff", b"\0")
SVR_MODEL = "svm_type epsilon_svr\nkernel_type linear\nnr_class 2\ntotal_sv 1\nrho 0.5\nSV\n1 1:2\n"


def random_model(machine: str, kernel: str, seed: int = 0, *, n_classes: int = 4) -> Model:
    random = np.random.default_rng(seed)
    classifier = machine in ("c-svc", "nu-svc")
    k = n_classes if classifier else 2
    n_support = random.integers(1, 4, size=k if classifier else 1).astype(np.int32)
    n, pairs = int(n_support.sum()), k * (k - 1) // 2
    rows = sparse.random_array((n, 6), density=0.5, random_state=random, data_sampler=random.normal)
    has_scale = classifier or machine.endswith("svr")
    return Model(
        parameters=Parameters(
            machine=machine, kernel=kernel, degree=2, gamma=float(random.random()), coef0=1 / 3
        ),
        labels=random.permutation(100)[:k].astype(np.int64) - 50 if classifier else None,
        rho=random.normal(size=pairs),
        n_support=n_support,
        dual_coef=random.normal(size=(k - 1, n)),
        support_vectors=None if kernel == "precomputed" else sparse.csr_array(rows),
        serials=random.integers(1, 9, size=n) if kernel == "precomputed" else None,
        prob_a=np.abs(random.normal(size=pairs)) if has_scale else None,
        prob_b=random.normal(size=pairs) if classifier else None,
    )


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("machine", MACHINES)
def test_a_model_saved_and_loaded_is_the_same_to_the_bit(
    machine: str, kernel: str, tmp_path: Path
) -> None:
    model = random_model(machine, kernel)
    model.save(tmp_path / "model")
    loaded = Model.load(tmp_path / "model")
    for name in ("rho", "n_support", "dual_coef", "labels", "serials", "prob_a", "prob_b"):
        assert np.array_equal(getattr(loaded, name), getattr(model, name)), name
    assert loaded.parameters.machine == machine
    X = np.random.default_rng(1).normal(size=(10, 9))
    assert np.array_equal(loaded.decision_values(X), model.decision_values(X))
    assert np.array_equal(loaded.predict(X), model.predict(X))


@given(st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=3, max_size=3))
@settings(max_examples=50, deadline=None)
def test_every_double_survives_the_text(values: list[float]) -> None:
    model = Model(
        parameters=Parameters(machine="nu-svr", kernel="linear"),
        rho=np.array(values[:1]),
        n_support=np.array([1], dtype=np.int32),
        dual_coef=np.array([values[1:2]]),
        support_vectors=sparse.csr_array((values[2:], [0], [0, 1]), shape=(1, 1)),
    )
    with tempfile.TemporaryDirectory() as folder:
        model.save(f"{folder}/model")
        loaded = Model.load(f"{folder}/model")
    assert loaded.rho.tobytes() == model.rho.tobytes()
    assert loaded.dual_coef.tobytes() == model.dual_coef.tobytes()
    assert loaded.support_vectors.data.tobytes() == model.support_vectors.data.tobytes()


@pytest.mark.parametrize("case", LIBSVM_MODELS)
def test_a_model_written_by_libsvm_is_written_back_with_the_same_numbers(
    case: str, tmp_path: Path
) -> None:
    (tmp_path / "theirs").write_text(LIBSVM_MODELS[case])
    Model.load(tmp_path / "theirs").save(tmp_path / "ours")
    theirs = LIBSVM_MODELS[case].splitlines()
    ours = (tmp_path / "ours").read_text().splitlines()
    for our_line, their_line in zip(ours, theirs, strict=True):
        assert list(map(number, our_line.split())) == list(map(number, their_line.split()))


def number(word: str) -> tuple[str, float | str]:
    """The index and the value of a word, which need not be a number."""
    index, _, value = word.rpartition(":")
    return index, float(value) if re.fullmatch(r"[-+0-9.e]+", value) else value


def test_a_model_is_written_with_the_fewest_digits_that_read_back(tmp_path: Path) -> None:
    model = Model(
        parameters=Parameters(machine="nu-svr", kernel="rbf", gamma=0.1),
        rho=np.array([2.0]),
        n_support=np.array([1], dtype=np.int32),
        dual_coef=np.array([[0.1]]),
        support_vectors=sparse.csr_array([[1e-7, 0.0, 1 / 3]]),
    )
    model.save(tmp_path / "model")
    lines = (tmp_path / "model").read_text().splitlines()
    assert {"gamma 0.1", "rho 2"} <= set(lines)
    assert lines[-1] == "0.1 1:1e-07 3:0.3333333333333333 "


@pytest.mark.parametrize("case", ["two -b 1", "three", "curve -s 3 -b 1", "gram -t 4"])
def test_a_model_cut_anywhere_is_rejected(case: str, tmp_path: Path) -> None:
    text = LIBSVM_MODELS[case]
    path = tmp_path / "cut"
    for length in range(0, len(text), 7):
        path.write_text(text[:length])
        with pytest.raises(LibsvmFormatError):
            Model.load(path)


def test_mutated_models_are_read_or_refused_with_the_file_named(tmp_path: Path) -> None:
    random = np.random.default_rng(0)
    path = tmp_path / "mutated"
    models = [text.encode() for text in LIBSVM_MODELS.values()]
    outcomes = set()
    for _ in range(2000):
        text = bytearray(models[random.integers(len(models))])
        for _ in range(random.integers(1, 4)):
            at = random.integers(min(len(text), 400))
            text[at : at + random.integers(3)] = BYTES[random.integers(len(BYTES))]
        path.write_bytes(text)
        try:
            Model.load(path)
            outcomes.add("read")
        except LibsvmFormatError as error:
            outcomes.add("refused" if str(error).startswith(str(path)) else str(error))
    assert outcomes == {"read", "refused"}


def test_the_header_may_come_in_another_order_and_with_crlf(tmp_path: Path) -> None:
    text = "nr_class 2\nrho 0.5\ntotal_sv 1\nkernel_type linear\nsvm_type epsilon_svr\nSV\n1 1:2\n"
    (tmp_path / "model").write_bytes(text.replace("\n", "\r\n").encode())
    assert Model.load(tmp_path / "model").predict([[1.0]]).tolist() == [1.5]


def test_a_regression_without_support_vectors_is_a_constant(tmp_path: Path) -> None:
    text = SVR_MODEL.replace("total_sv 1", "total_sv 0").replace("1 1:2\n", "")
    (tmp_path / "model").write_text(text)
    model = Model.load(tmp_path / "model")
    assert model.predict([[1.0], [7.0]]).tolist() == [-0.5, -0.5]


@pytest.mark.parametrize("suffix", [".gz", ".bz2", ".xz"])
def test_a_compressed_model_reads_back(suffix: str, tmp_path: Path) -> None:
    model = random_model("c-svc", "rbf")
    path = tmp_path / f"model{suffix}"
    model.save(path)
    assert not path.read_bytes().startswith(b"svm_type")
    assert np.array_equal(Model.load(path).dual_coef, model.dual_coef)


def test_a_failed_write_leaves_the_old_model(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "model"
    path.write_text("old")

    def fail(*_: object, **__: object) -> bytes:
        raise KeyboardInterrupt

    monkeypatch.setattr(model_file, "format_rows", fail)
    with pytest.raises(KeyboardInterrupt):
        random_model("c-svc", "rbf").save(path)
    assert path.read_text() == "old"
    assert [file.name for file in tmp_path.iterdir()] == ["model"]


@pytest.mark.parametrize(
    "changes",
    [
        {"rho": np.zeros(2)},
        {"rho": np.full(6, np.nan)},
        {"dual_coef": np.zeros((2, 3))},
        {"n_support": np.array([-1, 2, 2, 2], dtype=np.int32)},
        {"labels": None},
        {"prob_b": None},
        {"prob_a": np.zeros(5)},
        {"support_vectors": sparse.csr_array((1, 6))},
        {"serials": np.array([1, 2])},
    ],
    ids=lambda changes: next(iter(changes)),
)
def test_arrays_that_do_not_fit_together_make_no_model(changes: dict[str, object]) -> None:
    with pytest.raises(ValueError, match=r"."):
        replace(random_model("c-svc", "rbf"), **changes)


def test_features_beyond_the_model_or_missing_from_the_data_count_as_zero() -> None:
    model = random_model("epsilon-svr", "rbf")
    X = np.random.default_rng(2).normal(size=(5, 6))
    wide = np.hstack([X, np.zeros((5, 3))])
    assert np.array_equal(model.predict(wide), model.predict(X))
    X[:, 4:] = 0.0
    assert np.array_equal(model.predict(X[:, :4]), model.predict(X))


def test_a_precomputed_model_says_which_kernel_column_is_missing() -> None:
    model = replace(random_model("one-class", "precomputed"), serials=np.array([1, 2, 8]))
    with pytest.raises(ValueError, match="training row 8, and the rows end at 7"):
        model.predict(np.ones((2, 7)))


def test_probabilities_of_a_model_without_them_are_refused() -> None:
    with pytest.raises(ValueError, match="epsilon-svr model has no class probabilities"):
        random_model("epsilon-svr", "rbf").predict_proba([[1.0]])


@pytest.mark.parametrize("rows", [np.asarray, sparse.csr_array], ids=["dense", "sparse"])
@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("estimator", [SVC(), NuSVC(nu=0.2), SVC(kernel="poly", coef0=1)])
def test_a_classifier_and_its_model_file_predict_the_same(
    estimator: SVC, n_classes: int, rows: object, tmp_path: Path
) -> None:
    random = np.random.default_rng(3)
    y = np.arange(60) % n_classes * 3 - 1
    X = random.normal(size=(60, 4)) + y[:, None] / 2
    estimator.fit(rows(X), y)
    from_estimator(estimator).save(tmp_path / "model")
    loaded = Model.load(tmp_path / "model")
    assert np.array_equal(loaded.predict(X), estimator.predict(rows(X)))


@pytest.mark.parametrize("estimator", [SVR(), NuSVR(), OneClassSVM(nu=0.3)])
def test_a_regression_and_its_model_file_predict_the_same(estimator: SVR, tmp_path: Path) -> None:
    random = np.random.default_rng(3)
    X = random.normal(size=(40, 3))
    estimator.fit(X, X[:, 0])
    from_estimator(estimator).save(tmp_path / "model")
    loaded = Model.load(tmp_path / "model")
    np.testing.assert_allclose(loaded.predict(X), estimator.predict(X), rtol=1e-12)


def test_a_precomputed_estimator_keeps_its_training_rows_as_serials() -> None:
    X = np.arange(8.0)[:, None]
    gram = X @ X.T
    svc = SVC(kernel="precomputed").fit(gram, np.arange(8) // 4)
    model = from_estimator(svc)
    assert model.serials.tolist() == (svc.support_ + 1).tolist()
    assert np.array_equal(model.predict(gram), svc.predict(gram))


@pytest.mark.parametrize("y", [["no", "yes"] * 3, [0, 2**40] * 3])
def test_labels_a_file_cannot_hold_are_refused(y: list[object]) -> None:
    svc = SVC().fit(np.arange(6.0)[:, None], y)
    with pytest.raises(ValueError, match="a LIBSVM model file holds"):
        from_estimator(svc)


def test_a_callable_kernel_is_refused() -> None:
    svc = SVC(kernel=lambda a, b: a @ b.T).fit(np.eye(2), [0, 1])
    with pytest.raises(ValueError, match="callable kernel"):
        from_estimator(svc)


@needs_libsvm
@pytest.mark.parametrize("machine", MACHINES)
def test_libsvm_reads_our_models_and_agrees(machine: str, tmp_path: Path) -> None:
    model = replace(random_model(machine, "poly", seed=5), prob_a=None, prob_b=None)
    X = np.random.default_rng(6).normal(size=(20, 6))
    model.save(tmp_path / "model")
    lines = [" ".join(["0", *(f"{i}:{v!r}" for i, v in enumerate(row.tolist(), 1))]) for row in X]
    (tmp_path / "data").write_text("\n".join(lines) + "\n")
    run_tool("svm-predict", "data", "model", "out", folder=tmp_path)
    np.testing.assert_allclose(np.loadtxt(tmp_path / "out"), model.predict(X), rtol=1e-10)
