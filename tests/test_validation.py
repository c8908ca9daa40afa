"""The random stream and the folds of LIBSVM."""

from __future__ import annotations

import ctypes
import ctypes.util

import numpy as np
import pytest

from dpsvm.svm.validation import GlibcRandom, folds, shuffled


def glibc() -> ctypes.CDLL:
    name = ctypes.util.find_library("c")
    library = ctypes.CDLL(name) if name else None
    if library is None or not hasattr(library, "gnu_get_libc_version"):
        pytest.skip("the C library is not glibc")
    return library


def test_the_stream_starts_as_documented_for_glibc() -> None:
    random = GlibcRandom(1)
    assert [random() for _ in range(5)] == [
        1804289383, 846930886, 1681692777, 1714636915, 1957747793,
    ]  # fmt: skip


@pytest.mark.parametrize("seed", [0, 1, 2, 42, 2**31 - 1, 2**31, 2**32 - 1, 2**32 + 5])
def test_every_seed_gives_the_stream_of_srand(seed: int) -> None:
    library = glibc()
    library.srand(ctypes.c_uint(seed % 2**32))
    random = GlibcRandom(seed)
    assert [random() for _ in range(1000)] == [library.rand() for _ in range(1000)]


def test_a_shuffle_keeps_every_row_once_and_leaves_its_input_alone() -> None:
    rows = np.arange(100)
    order = shuffled(rows, GlibcRandom(3))
    assert sorted(order.tolist()) == rows.tolist()
    assert order.tolist() != rows.tolist()
    assert np.array_equal(rows, np.arange(100))


def test_every_row_is_held_out_once_and_trained_on_in_all_other_folds() -> None:
    groups = [np.arange(0, 50, 2), np.arange(1, 50, 2)]
    parts = folds(groups, 7, GlibcRandom())
    held_out = np.concatenate([rows for _, rows in parts])
    assert sorted(held_out.tolist()) == list(range(50))
    for training, rows in parts:
        assert sorted([*training.tolist(), *rows.tolist()]) == list(range(50))


def test_classes_are_spread_evenly_over_the_folds() -> None:
    groups = [np.arange(23), np.arange(23, 60)]
    for _, rows in folds(groups, 5, GlibcRandom()):
        assert np.count_nonzero(rows < 23) in (4, 5)
        assert np.count_nonzero(rows >= 23) in (7, 8)


def test_more_folds_than_rows_leave_some_folds_empty() -> None:
    sizes = [len(rows) for _, rows in folds([np.arange(3)], 5, GlibcRandom())]
    assert sorted(sizes) == [0, 0, 1, 1, 1]


def test_another_seed_gives_other_folds_and_the_same_seed_the_same() -> None:
    first, again, other = (folds([np.arange(30)], 3, GlibcRandom(seed)) for seed in (1, 1, 2))
    assert all(np.array_equal(a[0], b[0]) for a, b in zip(first, again, strict=True))
    assert any(not np.array_equal(a[1], b[1]) for a, b in zip(first, other, strict=True))


@pytest.mark.parametrize("n_folds", [1, 0, -2])
def test_fewer_than_two_folds_are_refused(n_folds: int) -> None:
    with pytest.raises(ValueError, match=f"at least 2 folds, got {n_folds}"):
        folds([np.arange(3)], n_folds, GlibcRandom())
