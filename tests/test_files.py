"""The binding of the C++ reader and writer."""

from __future__ import annotations

import struct
import threading
from collections.abc import Iterator

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dpsvm._errors import LibsvmFormatError
from dpsvm._files import RowReader, format_rows, parse_rows

TEXT = b"+1 1:0.5 3:-2e1 # note\r\n\n-1 qid:4 2:1\n7\n0.25 1:1e-300 2147483647:.5"

# Mostly tokens of the format, so that both rows and errors come up.
texts = st.lists(
    st.sampled_from(
        [b"1", b"-2.5e3", b" ", b"\t", b"\n", b"\r\n", b"\r", b"#", b"qid:1", b":", b"1:1"]
    )
    | st.integers(0, 2**32).map(lambda index: b" %d:1" % index)
    | st.floats().map(lambda value: b" 1:%r" % value)
    | st.binary(max_size=3),
    max_size=30,
).map(b"".join)


def outcome(chunks: Iterator[bytes] | list[bytes]) -> tuple[object, ...]:
    try:
        return tuple(array.tobytes() for array in parse_rows(chunks, path="data"))
    except LibsvmFormatError as error:
        return error.line, error.reason


def cut(text: bytes, places: list[int]) -> list[bytes]:
    ends = sorted({min(place, len(text)) for place in places} | {len(text)})
    return [text[start:end] for start, end in zip([0, *ends], ends, strict=False)]


@given(st.just(TEXT) | texts, st.lists(st.integers(0, 200), max_size=8))
def test_chunk_boundaries_never_change_the_result(text: bytes, places: list[int]) -> None:
    whole = outcome([text])
    assert outcome(cut(text, places)) == whole
    assert outcome(text[k : k + 1] for k in range(len(text))) == whole


def test_rows_come_as_arrays_of_the_stated_types() -> None:
    leading, data, indices, indptr = parse_rows([TEXT], path="data")
    assert leading.tolist() == [[1], [-1], [7], [0.25]]
    assert data.tolist() == [0.5, -20, 1, 1e-300, 0.5]
    assert indices.tolist() == [0, 2, 1, 0, 2**31 - 2]
    assert indptr.tolist() == [0, 2, 3, 3, 5]
    assert [array.dtype for array in (leading, data, indices, indptr)] == [
        np.float64,
        np.float64,
        np.int32,
        np.int64,
    ]


def test_arrays_outlive_the_reader_and_can_be_written_to() -> None:
    reader = RowReader("data")
    arrays = reader.read([TEXT])
    del reader
    arrays[1][0] = 9.0
    assert arrays[1].tolist() == [9, -20, 1, 1e-300, 0.5]


def test_no_rows_are_empty_arrays() -> None:
    leading, data, indices, indptr = parse_rows([b"# nothing\n"], path="data", leading=3)
    assert leading.shape == (0, 3)
    assert (data.size, indices.size, indptr.tolist()) == (0, 0, [0])


def test_the_reader_tells_where_rows_stood() -> None:
    reader = RowReader("data", first_line=11)
    reader.read([TEXT])
    assert [reader.line_of(row) for row in range(4)] == [11, 13, 14, 15]
    assert reader.n_columns == 2**31 - 1
    assert reader.qid_tokens == 1
    with pytest.raises(IndexError):
        reader.line_of(4)


def test_support_vectors_of_a_model_start_with_several_coefficients() -> None:
    options = {"path": "m", "leading": 2, "leading_name": "coefficient", "first_line": 8}
    assert parse_rows([b"0.5 -1 1:2\n"], **options)[0].tolist() == [[0.5, -1]]
    with pytest.raises(LibsvmFormatError, match=r'^m:8: coefficient "1:2" is not a finite number$'):
        parse_rows([b"0.5 1:2\n"], **options)
    with pytest.raises(LibsvmFormatError, match=r"^m:9: more rows than the 1 expected$"):
        parse_rows([b"1 2\n1 2\n"], max_rows=1, **options)


def test_an_error_of_the_source_passes_through_unchanged() -> None:
    def source() -> Iterator[bytes]:
        yield b"1 1:1\n"
        raise ValueError("the source broke")

    with pytest.raises(ValueError, match=r"^the source broke$") as caught:
        parse_rows(source(), path="data")
    assert not isinstance(caught.value, LibsvmFormatError)


@pytest.mark.parametrize("bad", ["text", 3, np.zeros(3), None])
def test_a_source_that_is_not_bytes_is_refused(bad: object) -> None:
    with pytest.raises((TypeError, ValueError)):
        parse_rows([bad], path="data")


def test_threads_read_at_once_without_disturbing_each_other() -> None:
    wanted = [b"".join(b"%d 1:%d 5:%d\n" % (t, k, t * k) for k in range(3000)) for t in range(8)]
    found: dict[int, tuple[object, ...]] = {}

    def work(number: int) -> None:
        found[number] = outcome([wanted[number]])

    threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == {number: outcome([text]) for number, text in enumerate(wanted)}


@given(st.floats(allow_nan=False, allow_infinity=False), st.integers(1, 17))
def test_digits_are_those_of_printf(value: float, digits: int) -> None:
    text = format_rows([[value]], [value], [0], [0, 1], digits=digits, leading_digits=17)
    assert text.decode() == f"{value:.17g} 1:{value:.{digits}g} \n"


@pytest.mark.parametrize(
    "number",
    [
        *("1e23", "8.5e-23", "9007199254740993", "9007199254740992.9999999999999999999"),
        *("2.2250738585072011e-308", "2.2250738585072012e-308", "5e-324"),
        *("2.4703282292062328e-324", "2.4703282292062327e-324", "1e-400", "-1e-400"),
        *("1.7976931348623158e308", "-0"),
        "0.1000000000000000055511151231257827021181583404541015625",
        "123456789012345678901234567890",
        "0." + "0" * 400 + "1" * 800 + "e380",
        "9" * 800 + "e-790",
        f"{2**54 + 3}" + "." + "0" * 800 + "1",
    ],
)
def test_numbers_are_read_as_python_reads_them(number: str) -> None:
    [[read]] = parse_rows([f"{number}\n".encode()], path="data")[0]
    assert struct.pack("d", read) == struct.pack("d", float(number))


@pytest.mark.parametrize(
    ("number", "reason"),
    [
        *((text, "is not a finite number") for text in ("inf", "nan", "0x10", "1_0", "1,5")),
        *((text, "is too large for a double") for text in ("1.7976931348623159e308", "9" * 310)),
    ],
)
def test_what_is_no_double_is_refused(number: str, reason: str) -> None:
    with pytest.raises(LibsvmFormatError, match=reason):
        parse_rows([f"{number}\n".encode()], path="data")


def test_rows_may_be_a_part_of_larger_arrays() -> None:
    assert format_rows([[5.0]], [1.0, 2.0, 3.0], [0, 1, 2], [1, 3]) == b"5 2:2 3:3 \n"
    assert format_rows([[5.0]], [7.0], [0], [0, 1], first_index=0) == b"5 0:7 \n"
    assert format_rows(np.empty((0, 2)), [], [], [0]) == b""


@pytest.mark.parametrize(
    ("indices", "indptr", "digits"),
    [
        ([0], [0, 2], None),
        ([0], [-1, 1], None),
        ([0], [1, 0], None),
        ([0], [0], None),
        ([0, 1], [0, 1], None),
        ([0], [0, 1], 0),
        ([0], [0, 1], 18),
    ],
)
def test_arrays_that_do_not_fit_together_are_refused(
    indices: list[int], indptr: list[int], digits: int | None
) -> None:
    with pytest.raises(ValueError, match=r"indptr|rows|digits"):
        format_rows([[1.0]], [1.0], indices, indptr, digits=digits)
