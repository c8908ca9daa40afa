"""LIBSVM data files, read and written."""

from __future__ import annotations

import bz2
import gzip
import lzma
import pickle
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import coo_array, csr_matrix, random_array
from shared_data import SHARED, needs_data
from sklearn.datasets import load_svmlight_file

from dpsvm.data import LibsvmFormatError, dump_libsvm, format_libsvm, load_libsvm, open_text

COMPRESS = {"": bytes, ".gz": gzip.compress, ".bz2": bz2.compress, ".xz": lzma.compress}
TEXT = b"+1 1:0.5 3:-2\n-1 2:1e-3\n"

finite = st.floats(allow_nan=False, allow_infinity=False)


def write(folder: Path, text: bytes, name: str = "data") -> Path:
    path = folder / name
    path.write_bytes(text)
    return path


def assert_same_matrix(X: csr_matrix, Z: csr_matrix) -> None:
    assert X.shape == Z.shape
    assert np.array_equal(X.indptr, Z.indptr)
    assert np.array_equal(X.indices, Z.indices)
    assert X.data.tobytes() == Z.data.tobytes()


@pytest.mark.parametrize("suffix", COMPRESS)
def test_plain_and_compressed_files_give_the_same_rows(suffix: str, tmp_path: Path) -> None:
    X, y = load_libsvm(write(tmp_path, COMPRESS[suffix](TEXT), f"data{suffix}"))
    assert y.tolist() == [1, -1]
    assert X.toarray().tolist() == [[0.5, 0, -2], [0, 1e-3, 0]]


@pytest.mark.parametrize("suffix", [".gz", ".bz2", ".xz"])
@pytest.mark.parametrize("damage", ["truncated", "corrupt", "plain text"])
def test_a_damaged_stream_names_the_file(suffix: str, damage: str, tmp_path: Path) -> None:
    packed = COMPRESS[suffix](b"".join(b"%d 1:%d\n" % (k % 7, k * k) for k in range(5000)))
    middle = len(packed) // 2
    text = {
        "truncated": packed[:-9],
        "corrupt": packed[:middle] + bytes(byte ^ 0x5A for byte in packed[middle:]),
        "plain text": TEXT,
    }[damage]
    path = write(tmp_path, text, f"data{suffix}")
    with pytest.raises(LibsvmFormatError) as caught:
        load_libsvm(path)
    assert str(caught.value).startswith(f"{path}")
    if caught.value.line is None:
        assert f"the {suffix} stream is damaged" in caught.value.reason


def test_the_error_survives_pickling() -> None:
    error = pickle.loads(pickle.dumps(LibsvmFormatError("data", 3, "why")))
    assert (error.path, error.line, error.reason, str(error)) == ("data", 3, "why", "data:3: why")


@pytest.mark.parametrize("label", ["0.5", "2147483648", "-1e10"])
def test_class_labels_must_be_whole_numbers_of_32_bits(label: str, tmp_path: Path) -> None:
    path = write(tmp_path, f"1 1:1\n# note\n\n2\n{label} 1:1\n".encode())
    assert len(load_libsvm(path)[1]) == 3
    with pytest.raises(LibsvmFormatError, match="is not a class") as caught:
        load_libsvm(path, labels="class")
    assert caught.value.line == 5


def test_qid_tokens_are_ignored_with_a_notice(tmp_path: Path) -> None:
    path = write(tmp_path, b"1 qid:1 1:2\n2 qid:1 1:3\n")
    with pytest.warns(UserWarning, match="2 qid tokens were ignored"):
        X, _ = load_libsvm(path)
    assert X.toarray().tolist() == [[2], [3]]


def test_n_features_sets_the_width_and_the_largest_index(tmp_path: Path) -> None:
    path = write(tmp_path, TEXT)
    assert load_libsvm(path, n_features=9)[0].shape == (2, 9)
    with pytest.raises(LibsvmFormatError, match=r":1: index of \"3:-2\" is beyond 2"):
        load_libsvm(path, n_features=2)


def test_single_precision_rejects_what_it_cannot_hold(tmp_path: Path) -> None:
    X, _ = load_libsvm(write(tmp_path, TEXT), dtype=np.float32)
    assert X.dtype == np.float32
    assert X.data.tolist() == np.array([0.5, -2, 1e-3], np.float32).tolist()
    with pytest.raises(LibsvmFormatError, match=r":4: value 1e\+39 is too large for float32"):
        load_libsvm(write(tmp_path, b"1 1:1\n2\n\n3 1:1e39\n"), dtype=np.float32)


def test_a_precomputed_kernel_keeps_its_serial_numbers_in_column_0(tmp_path: Path) -> None:
    path = write(tmp_path, b"1 0:1 1:4 2:2\n-1 0:2 1:2 2:9\n")
    X, _ = load_libsvm(path, precomputed=True)
    assert X.toarray().tolist() == [[1, 4, 2], [2, 2, 9]]
    assert load_libsvm(path, precomputed=True, n_features=3)[0].shape == (2, 4)
    with pytest.raises(LibsvmFormatError, match="index 0 is below 1"):
        load_libsvm(path)


@pytest.mark.parametrize(
    "options",
    [{"labels": "classes"}, {"dtype": np.int32}, {"n_features": -1}, {"n_features": 2**31}],
)
def test_an_option_out_of_range_is_a_value_error(options: dict, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=next(iter(options))):
        load_libsvm(write(tmp_path, TEXT), **options)


def test_a_missing_file_is_an_os_error_that_names_it(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="nowhere"):
        load_libsvm(tmp_path / "nowhere.gz")


def test_lines_can_be_taken_from_an_open_file_before_the_rest(tmp_path: Path) -> None:
    with open_text(write(tmp_path, gzip.compress(TEXT), "data.gz")) as file:
        assert file.readline() == b"+1 1:0.5 3:-2\n"
        assert file.read() == b"-1 2:1e-3\n"


@needs_data
@pytest.mark.parametrize("name", ["heart_scale", "a1a", "dna.scale", "abalone_scale"])
def test_the_matrix_is_the_one_scikit_learn_reads(name: str, tmp_path: Path) -> None:
    packed = SHARED / "data" / f"{name}.xz"
    X, y = load_libsvm(packed)
    Z, z = load_svmlight_file(str(write(tmp_path, lzma.decompress(packed.read_bytes()))))
    assert_same_matrix(X, Z)
    assert np.array_equal(y, z)


@given(
    st.lists(
        st.tuples(finite, st.dictionaries(st.integers(0, 2**31 - 2), finite, max_size=5)),
        min_size=1,
        max_size=6,
    )
)
def test_any_finite_rows_come_back_to_the_bit(
    tmp_path_factory: pytest.TempPathFactory, rows: list[tuple[float, dict[int, float]]]
) -> None:
    path = tmp_path_factory.mktemp("round") / "data"
    y = np.array([label for label, _ in rows])
    entries = [sorted(row.items()) for _, row in rows]
    columns = np.array([column for row in entries for column, _ in row], dtype=np.int32)
    values = np.array([value for row in entries for _, value in row], dtype=np.float64)
    starts = np.cumsum([0, *map(len, entries)])
    X = csr_matrix((values, columns, starts), shape=(len(rows), 2**31 - 1))
    dump_libsvm(X, y, path)
    Z, z = load_libsvm(path, n_features=2**31 - 1)
    assert_same_matrix(X, Z)
    assert y.tobytes() == z.tobytes()


@pytest.mark.parametrize("suffix", COMPRESS)
def test_a_dumped_matrix_comes_back_whatever_its_container(suffix: str, tmp_path: Path) -> None:
    dense = random_array((40, 9), density=0.4, random_state=1).toarray()
    y = np.arange(40.0)
    rows, columns = np.nonzero(dense)
    shuffled = np.random.default_rng(2).permutation(len(rows))
    unsorted = coo_array((dense[rows, columns][shuffled], (rows[shuffled], columns[shuffled])))
    twice = coo_array(([1.0, 2.0], ([0, 0], [1, 1])), shape=(1, 2))
    for X in (dense, np.asfortranarray(dense), unsorted, csr_matrix(dense)):
        dump_libsvm(X, y, tmp_path / f"data{suffix}")
        Z, z = load_libsvm(tmp_path / f"data{suffix}", n_features=9)
        assert_same_matrix(csr_matrix(dense), Z)
        assert np.array_equal(y, z)
    dump_libsvm(twice, [1], tmp_path / f"data{suffix}")
    assert load_libsvm(tmp_path / f"data{suffix}")[0].toarray().tolist() == [[0, 3]]


def test_a_compressed_dump_is_the_same_bytes_every_time(tmp_path: Path) -> None:
    for name in ("a.gz", "b.gz"):
        dump_libsvm([[1.0]], [1], tmp_path / name)
    assert (tmp_path / "a.gz").read_bytes() == (tmp_path / "b.gz").read_bytes()


def test_the_text_comes_in_blocks_that_join_to_the_whole() -> None:
    X = np.arange(1.0, 500_001.0).reshape(-1, 5)
    blocks = list(format_libsvm(X, np.zeros(len(X)), digits=6))
    assert len(blocks) > 1
    lines = b"".join(blocks).split(b"\n")
    assert len(lines) == len(X) + 1
    assert lines[0] == b"0 1:1 2:2 3:3 4:4 5:5 "


@pytest.mark.parametrize(
    ("X", "y", "reason"),
    [
        ([[np.nan]], [1], "X holds NaN"),
        (csr_matrix([[np.inf]]), [1], "X holds NaN or infinity"),
        ([[1.0]], [np.inf], "y holds NaN or infinity"),
        ([[1.0]], [1, 2], "one row per label"),
        ([1.0], [1], "X must be a matrix"),
        (csr_matrix((1, 2**31)), [1], "columns"),
    ],
)
def test_what_a_file_cannot_hold_is_not_written(
    X: object, y: list[float], reason: str, tmp_path: Path
) -> None:
    path = write(tmp_path, TEXT)
    with pytest.raises(ValueError, match=reason):
        dump_libsvm(X, y, path)
    assert path.read_bytes() == TEXT
    assert list(tmp_path.iterdir()) == [path]
