"""Numbers that are only ever added up, as whole numbers of which no sum of all parties runs over.

A sum of floating-point numbers depends on their order and shows their last digits; a sum of whole
numbers modulo a power of two does neither, and a uniform mask hides a summand perfectly. The last
digit follows from the largest size that the terms allow, and is the same at all parties.
"""

from __future__ import annotations

import math
from fractions import Fraction
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from dpsvm.federation.messages import Array
from dpsvm.federation.site import Refusal

Words = NDArray[np.uint64]

_BITS = 62  # of the sum of all parties' numbers, which leaves one for the sign and one to spare
_WIDE_BITS = 126  # of the sum of squares
_WORD = 1 << 64
_LARGEST_REAL = Fraction(1e300)  # so that a sum of them is a finite one


class Sum(NamedTuple):
    """What a party adds to a sum of all parties, or the sum."""

    values: Array  # each at most as large as the terms allow
    squares: float | None = None  # of the length of a change of the values, if that is summed too

    def fits(self, largest: float) -> bool:
        """Whether all its numbers are finite and in their range.

        >>> Sum(np.array([1.0, -2.0])).fits(2.0), Sum(np.array([np.nan])).fits(2.0)
        (True, False)
        """
        values = self.values
        if not max(values.max(initial=0.0), -values.min(initial=0.0)) <= largest:
            return False
        return self.squares is None or 0.0 <= self.squares <= _largest_square(largest, len(values))


class FixedPoint:
    """Numbers in words of 64 bits, to be added modulo 2^64, of so many parties.

    A word of zero stands behind the numbers: where masks do not cancel the sum of these is, but for
    one time in 2^64, not zero. A sum of squares is one number of 128 bits in two words.

    largest : size of a number, at most. A unit is the smallest power of two with which the numbers
        of all parties add up to less than 2^62 units

    >>> fixed = FixedPoint(parties=2, largest=1.0)
    >>> words = [fixed.encode(Sum(np.array([x]))) for x in (0.25, -0.75)]
    >>> fixed.decode(fixed.added(*words, wide=False), wide=False).values
    array([-0.5])
    """

    def __init__(self, parties: int, largest: float) -> None:
        self.parties, self.largest = parties, largest
        self.power = _power(parties * Fraction(largest), _BITS)

    @property
    def unit(self) -> float:
        """Of the last digit of a number."""
        return math.ldexp(1.0, -self.power)

    @staticmethod
    def length(count: int, *, wide: bool) -> int:
        """How many words so many numbers take; wide : with a sum of squares."""
        return count + (3 if wide else 1)

    def encode(self, part: Sum) -> Words:
        """The words of numbers that fit."""
        count, wide = len(part.values), part.squares is not None
        words = np.zeros(self.length(count, wide=wide), dtype=np.uint64)
        units = np.ldexp(part.values, self.power)
        np.rint(units, out=units)
        words[:count] = units.astype(np.int64).view(np.uint64)
        if part.squares is not None:
            power = self._square_power(count)
            whole = round(Fraction(part.squares) * Fraction(2) ** power)
            words[-2:] = whole % _WORD, whole // _WORD
        return words

    @staticmethod
    def added(words: Words, more: Words, *, wide: bool) -> Words:
        """Words and others, modulo 2^64 and 2^128; the first ones are changed."""
        words += more
        if wide:
            words[-1:] += words[-2:-1] < more[-2:-1]  # the carry
        return words

    @staticmethod
    def subtracted(words: Words, less: Words, *, wide: bool) -> Words:
        """Words without others; the first ones are changed."""
        if wide:
            words[-1:] -= words[-2:-1] < less[-2:-1]  # the borrow
        words -= less
        return words

    def decode(self, words: Words, *, wide: bool) -> Sum:
        """The numbers of the sum of all parties' words; a Refusal if they can be none."""
        count = len(words) - self.length(0, wide=wide)
        units = words[:count].view(np.int64)
        most = self._most(self.largest, self.power)
        if words[count] or max(units.max(initial=0), -int(units.min(initial=0))) > most:
            raise Refusal(_NO_SUM)
        values = np.ldexp(units.astype(np.float64), -self.power)
        if not wide:
            return Sum(values)
        whole, power = int(words[-2]) + _WORD * int(words[-1]), self._square_power(count)
        if whole > self._most(_largest_square(self.largest, count), power):
            raise Refusal(_NO_SUM)
        return Sum(values, float(whole / Fraction(2) ** power))

    def _most(self, largest: float | Fraction, power: int) -> int:
        """Units of a sum, at most: each party rounds once."""
        return math.floor(self.parties * Fraction(largest) * Fraction(2) ** power) + self.parties

    def _square_power(self, count: int) -> int:
        return _power(self.parties * _largest_square(self.largest, count), _WIDE_BITS)


_NO_SUM = (
    "the parties' masked numbers do not add up to a sum within its range: they were asked "
    "different things, or one of them sent something else. Who is not known"
)


def _largest_square(largest: float, count: int) -> Fraction:
    """Of the length of a change of so many numbers: twice what it can be, roundings included."""
    return min(8 * max(count, 1) * Fraction(largest) ** 2, _LARGEST_REAL)


@lru_cache(maxsize=64)
def _power(total: Fraction, bits: int) -> int:
    """The largest power with total 2^power < 2^bits."""
    power = bits - (total.numerator.bit_length() - total.denominator.bit_length()) + 1
    while total * Fraction(2) ** power >= 2**bits:
        power -= 1
    return power
