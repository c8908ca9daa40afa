"""csrc/exact_decimal.cpp against Python's own conversions, which are exact too."""

from __future__ import annotations

import ctypes
import math
import os
import shutil
import struct
import subprocess
import sys
from decimal import Decimal
from fractions import Fraction
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

ROOT = Path(__file__).resolve().parent.parent
COMPILER = shutil.which(os.environ.get("CXX", "g++"))
SYMBOLS = {
    "nearest_double": ("_ZN5dpsvm14nearest_doubleEPKcl", ctypes.c_double),
    "write_shortest": ("_ZN5dpsvm14write_shortestEdPc", ctypes.c_void_p),
    "write_rounded": ("_ZN5dpsvm13write_roundedEdiPc", ctypes.c_void_p),
}

pytestmark = [
    pytest.mark.skipif(COMPILER is None, reason="no C++ compiler"),
    pytest.mark.skipif(sys.platform != "linux", reason="the symbols are those of Linux"),
]

doubles = st.floats(allow_nan=False, allow_infinity=False)


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> ctypes.CDLL:
    path = tmp_path_factory.mktemp("library") / "exact_decimal.so"
    source = ROOT / "csrc" / "exact_decimal.cpp"
    words = ["-std=c++17", "-O1", "-shared", "-fPIC", str(source), "-o", str(path)]
    subprocess.run([str(COMPILER), *words], check=True)
    return ctypes.CDLL(str(path))


def function(library: ctypes.CDLL, name: str, *arguments: type) -> ctypes._FuncPointer:
    symbol, result = SYMBOLS[name]
    found = library[symbol]
    found.restype, found.argtypes = result, arguments
    return found


def read(library: ctypes.CDLL, text: str) -> float:
    """The double nearest to digits, a dot perhaps, and e with an exponent perhaps."""
    digits, _, power = text.partition("e")
    exponent = int(power or 0) - len(digits.partition(".")[2])
    nearest = function(library, "nearest_double", ctypes.c_char_p, ctypes.c_long)
    return float(nearest(digits.encode(), exponent))


def write(library: ctypes.CDLL, value: float, digits: int | None = None) -> str:
    buffer = ctypes.create_string_buffer(40)
    if digits is None:
        function(library, "write_shortest", ctypes.c_double, ctypes.c_char_p)(value, buffer)
    else:
        rounded = function(library, "write_rounded", ctypes.c_double, ctypes.c_int, ctypes.c_char_p)
        rounded(value, digits, buffer)
    return buffer.value.decode()


def between(value: float) -> str:
    """The digits of the midpoint of a positive double and the next."""
    middle = Fraction(value) + Fraction(math.ulp(value)) / 2
    places = middle.denominator.bit_length() - 1  # the denominator is a power of two
    return f"{middle.numerator * 5**places}e-{places}"


@given(st.floats(min_value=5e-324, allow_infinity=False))
def test_midpoints_and_their_neighbours_are_rounded_as_python_rounds_them(
    library: ctypes.CDLL, value: float
) -> None:
    digits, _, power = between(value).partition("e")
    longer = int(power) - 40
    for text in (
        f"{digits}e{power}",
        f"{digits}{'0' * 39}1e{longer}",
        f"{int(digits) * 10**40 - 1}e{longer}",
    ):
        assert read(library, text) == float(text)


@given(st.integers(0, 10**30) | st.integers(0, 10**900), st.integers(-1300, 400))
def test_any_decimal_is_read_as_python_reads_it(
    library: ctypes.CDLL, digits: int, power: int
) -> None:
    text = f"{digits}e{power}"
    assert struct.pack("d", read(library, text)) == struct.pack("d", float(text))


@given(doubles)
def test_the_fewest_digits_are_those_of_repr(library: ctypes.CDLL, value: float) -> None:
    text = write(library, value)
    assert struct.pack("d", float(text)) == struct.pack("d", value)
    if abs(value) < 1e16 or "e" in text:
        assert Decimal(text) == Decimal(repr(value))


@given(doubles, st.integers(1, 17))
def test_rounded_digits_are_those_of_printf(
    library: ctypes.CDLL, value: float, digits: int
) -> None:
    assert write(library, value, digits) == f"{value:.{digits}g}"
