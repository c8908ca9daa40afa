"""Scaling and range files, beside svm-scale where it is installed."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_matrix

from dpsvm.data import Range, dump_libsvm, format_libsvm, load_libsvm

SVM_SCALE = shutil.which("svm-scale")
needs_svm_scale = pytest.mark.skipif(SVM_SCALE is None, reason="svm-scale is not installed")

# Limits that single precision holds: Debian's svm-scale reads its options so.
LIMITS = [((-1.0, 1.0), None), ((0.0, 1.0), None), ((-3.0, 0.75), (0.0, 10.0))]

entries = st.dictionaries(
    st.integers(0, 6), st.floats(-1e6, 1e6) | st.sampled_from([0.0, 1.0, -2.0]), max_size=6
)
tables = st.lists(st.tuples(st.floats(-1e9, 1e9), entries), min_size=1, max_size=8)


def scaled_text(scaling: Range, X: csr_matrix, y: np.ndarray) -> bytes:
    return b"".join(
        text
        for rows, block in scaling.blocks(X)
        for text in format_libsvm(block, scaling.apply_labels(y[rows]), digits=6, label_digits=17)
    )


def svm_scale(*arguments: object) -> bytes:
    command = [str(SVM_SCALE), *map(str, arguments)]
    return subprocess.run(command, capture_output=True, check=True).stdout


def write_table(rows: list[tuple[float, dict[int, float]]], path: Path) -> None:
    X = np.zeros((len(rows), 7))
    for row, (_, row_entries) in enumerate(rows):
        X[row, list(row_entries)] = list(row_entries.values())
    dump_libsvm(X, [label for label, _ in rows], path)


def check_against_svm_scale(data: Path, folder: Path) -> None:
    """Scaled text and range file are svm-scale's, byte for byte, for every one of LIMITS."""
    X, y = load_libsvm(data)
    for (lower, upper), y_limits in LIMITS:
        options = ["-l", lower, "-u", upper, *(["-y", *y_limits] if y_limits else [])]
        theirs = svm_scale(*options, "-s", folder / "theirs", data)
        scaling = Range.fit(X, y, lower=lower, upper=upper, y_limits=y_limits)
        scaling.write(folder / "ours")
        assert scaled_text(scaling, X, y) == theirs
        assert (folder / "ours").read_text() == (folder / "theirs").read_text()
        assert scaled_text(Range.read(folder / "theirs"), X, y) == theirs


@needs_svm_scale
@settings(max_examples=25, deadline=None)
@given(tables)
def test_any_table_is_scaled_to_the_text_svm_scale_prints(
    tmp_path_factory: pytest.TempPathFactory, rows: list[tuple[float, dict[int, float]]]
) -> None:
    folder = tmp_path_factory.mktemp("scale")
    write_table(rows, folder / "data")
    check_against_svm_scale(folder / "data", folder)


@needs_svm_scale
@settings(max_examples=25, deadline=None)
@given(tables, tables)
def test_a_range_of_other_data_is_restored_as_svm_scale_does(
    tmp_path_factory: pytest.TempPathFactory,
    first: list[tuple[float, dict[int, float]]],
    second: list[tuple[float, dict[int, float]]],
) -> None:
    folder = tmp_path_factory.mktemp("restore")
    write_table(first, folder / "first")
    write_table(second, folder / "second")
    for (lower, upper), _ in LIMITS:
        svm_scale("-l", lower, "-u", upper, "-s", folder / "range", folder / "first")
        X, y = load_libsvm(folder / "second")
        theirs = svm_scale("-r", folder / "range", folder / "second")
        if b"inf" in theirs or b"nan" in theirs:
            with pytest.raises(ValueError, match="not finite"):
                scaled_text(Range.read(folder / "range"), X, y)
        else:
            assert scaled_text(Range.read(folder / "range"), X, y) == theirs


def test_a_value_that_scales_beyond_doubles_is_refused() -> None:
    narrow = Range.fit([[0.0], [5e-324]])
    for X in ([[1.0]], csr_matrix([[1.0]])):
        with pytest.raises(ValueError, match=r"the value 1 .* not finite"):
            narrow.apply(X)


def test_both_ends_of_a_range_are_met_exactly() -> None:
    X = np.array([[0.1], [0.3], [0.7]])
    scaled = Range.fit(X, lower=-0.1, upper=0.3).apply(X).toarray()
    assert scaled[0, 0] == -0.1
    assert scaled[2, 0] == 0.3


def test_features_that_do_not_vary_are_dropped() -> None:
    X = np.array([[1.0, 5.0, 0.0], [2.0, 5.0, 0.0]])
    scaling = Range.fit(X)
    assert scaling.features.tolist() == [1]
    assert scaling.apply(X).toarray().tolist() == [[-1, 0, 0], [1, 0, 0]]


def test_sparse_data_stay_sparse_when_zero_is_scaled_to_zero() -> None:
    X = csr_matrix(([4.0, 2.0], ([0, 1], [0, 10**8])), shape=(2, 10**8 + 1))
    scaling = Range.fit(X, lower=0, upper=1)
    assert scaling.features.tolist() == [1, 10**8 + 1]
    scaled = scaling.apply(X)
    assert scaled.nnz == 2
    assert scaled.data.tolist() == [1, 1]


def test_a_feature_of_the_range_alone_is_added_where_zero_is_moved() -> None:
    scaling = Range(-1.0, 1.0, np.array([1, 4]), np.array([0.0, 1.0]), np.array([4.0, 3.0]))
    assert scaling.apply([[2.0, 9.0]]).toarray().tolist() == [[0, 0, 0, -2]]


def test_features_the_range_never_saw_are_named_and_scaled_to_zero() -> None:
    scaling = Range.fit([[0.0, 1.0, 1.0], [1.0, 1.0, 1.0]])
    X = [[0.0, 2.0, 1.0], [1.0, 3.0, 1.0]]
    assert scaling.unseen(X).tolist() == [2]
    assert scaling.apply(X).toarray().tolist() == [[-1, 0, 0], [1, 0, 0]]


def test_blocks_of_rows_join_to_the_whole() -> None:
    X = np.random.default_rng(3).normal(size=(1000, 700))
    scaling = Range.fit(X)
    blocks = list(scaling.blocks(X))
    assert len(blocks) > 1
    assert [rows.start for rows, _ in blocks[1:]] == [rows.stop for rows, _ in blocks[:-1]]
    low, high = X.min(axis=0), X.max(axis=0)
    assert np.allclose(scaling.apply(X).toarray(), 2 * (X - low) / (high - low) - 1, atol=1e-12)


@pytest.mark.parametrize("bounds", [(1.0, 1.0), (2.0, 1.0), (np.nan, 1.0), (0.0, np.inf)])
def test_limits_must_be_finite_and_ascend(bounds: tuple[float, float]) -> None:
    with pytest.raises(ValueError, match="must be finite and ascend"):
        Range.fit([[0.0], [1.0]], lower=bounds[0], upper=bounds[1])
    with pytest.raises(ValueError, match="must be finite and ascend"):
        Range.fit([[0.0], [1.0]], [1, 2], y_limits=bounds)


def test_a_range_too_wide_for_doubles_is_refused() -> None:
    with pytest.raises(ValueError, match=r"from -1e\+308 to 1e\+308 is too wide"):
        Range.fit([[-1e308], [1e308]])


@pytest.mark.parametrize("X", [[[np.nan]], csr_matrix([[np.inf]])])
def test_values_that_are_not_finite_are_refused(X: object) -> None:
    with pytest.raises(ValueError, match="NaN or infinity"):
        Range.fit(X)
    with pytest.raises(ValueError, match="NaN or infinity"):
        Range.fit([[1.0], [2.0]]).apply(X)
