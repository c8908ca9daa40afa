"""Random draws for private mechanisms.

Every draw goes one way: random bytes, from the operating system or from a seed, become a uniform
number, and the inverse of a distribution function makes a draw of it. No state that outlives the
call, and the same code whichever source the bytes have, so that a test of the seeded draws tests
the others.

The draws are floating-point numbers. The guarantees of the mechanisms that use them are proved for
real numbers: what the finite set of floats that noise can reach may give away (Mironov 2012) is
answered by rounding what is released to a public grid (:mod:`dpsvm.privacy.rounding`), and is not
answered for noise inside a solver. Symmetric draws resolve their tails to 2**-64, so a Gaussian is
cut off beyond 9.1 standard deviations: that adds less than 1e-18 for each draw to delta.
"""

from __future__ import annotations

import math
import os
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammainccinv, ndtri

from dpsvm._arrays import Array
from dpsvm.privacy.stream import SecretStream

Size = int | tuple[int, ...]


class Noise:
    """Draws from the operating system's entropy, or, for experiments, from a seed.

    random_state : None, int, numpy Generator or RandomState
        None takes every byte from the operating system. Anything else can be repeated by whoever
        knows it, and protects nobody: ``seeded`` says so. The one exception is a stream of bytes
        from a secret key (:class:`~dpsvm.privacy.stream.SecretStream`).
    held : bool
        Whether nothing may be drawn until :meth:`let_go`.

    >>> Noise(7).gaussian(1.0, 2) == Noise(7).gaussian(1.0, 2)
    array([ True,  True])
    >>> Noise().seeded
    False
    """

    def __init__(self, random_state: Any = None, *, held: bool = False) -> None:
        self._held = held
        self.seeded = random_state is not None and not isinstance(random_state, SecretStream)
        if random_state is None:
            self._bytes = os.urandom
        elif hasattr(random_state, "bytes"):
            self._bytes = random_state.bytes
        else:
            try:
                self._bytes = np.random.default_rng(random_state).bytes
            except (TypeError, ValueError) as error:
                raise ValueError(
                    f"random_state must be None, an integer, a Generator or a RandomState, "
                    f"got {random_state!r}"
                ) from error

    def let_go(self) -> None:
        """From now on numbers may be drawn."""
        self._held = False

    def bytes(self, count: int) -> bytes:
        """Bytes as they come, for a key.

        >>> len(Noise().bytes(32))
        32
        """
        if self._held:
            raise RuntimeError("noise is drawn once it is paid for, and not before")
        return bytes(self._bytes(count))

    def uniform(self, size: Size = 1) -> Array:
        """Numbers in the open interval (0, 1), 2**52 of them equally likely and evenly spaced.

        >>> bool(np.all((0 < Noise(0).uniform(5)) & (Noise(0).uniform(5) < 1)))
        True
        """
        return ((self._words(size) >> np.uint64(12)).astype(np.float64) + 0.5) * 2.0**-52

    def gaussian(self, scale: float, size: Size = 1) -> Array:
        """Normal numbers of mean 0 and standard deviation ``scale``.

        >>> Noise(0).gaussian(1.0, (2, 3)).shape
        (2, 3)
        """
        sign, tail = self._signed_tails(size)
        return np.asarray(_scale(scale) * sign * -ndtri(tail))

    def laplace(self, scale: float, size: Size = 1) -> Array:
        """Numbers of density proportional to exp(-abs(x) / scale).

        >>> Noise(0).laplace(1.0, 3).shape
        (3,)
        """
        sign, tail = self._signed_tails(size)
        return _scale(scale) * sign * -np.log(2 * tail)

    def exponential(self, scale: float, size: Size = 1) -> Array:
        """Numbers from 0 on of density proportional to exp(-x / scale).

        >>> bool(np.all(Noise(0).exponential(2.0, 5) >= 0))
        True
        """
        return _scale(scale) * -np.log(self._tails(size))

    def gumbel(self, scale: float, size: Size = 1) -> Array:
        """Numbers of distribution function exp(-exp(-x / scale)).

        Added to scores, the largest sum is at i with probability proportional to
        exp(score_i / scale): the exponential mechanism.

        >>> Noise(0).gumbel(1.0, 3).shape
        (3,)
        """
        tail = np.minimum(self._tails(size), 1.0 - 2.0**-53)  # fine near 0: where sums are large
        return np.asarray(_scale(scale) * -np.log(-np.log1p(-tail)))

    def spherical(self, dimension: int, scale: float) -> Array:
        """A vector of density proportional to exp(-norm / scale).

        Its direction is uniform and its norm a Gamma(dimension, scale) number. Added to a vector
        that changes by at most D in norm between neighbouring data, it makes the sum
        (D / scale)-differentially private: the density of any outcome changes by a factor of at
        most exp(D / scale).

        >>> Noise(0).spherical(3, 1.0).shape
        (3,)
        """
        if dimension < 1:
            raise ValueError(f"dimension must be at least 1, got {dimension!r}")
        norm = _scale(scale) * float(gammainccinv(dimension, self._tails(1)[0]))
        direction = self.gaussian(1.0, dimension)
        while not np.any(direction):  # once in 2**53 draws of one dimension
            direction = self.gaussian(1.0, dimension)
        return norm * (direction / np.linalg.norm(direction))

    def _words(self, size: Size) -> NDArray[np.uint64]:
        if self._held:
            raise RuntimeError("noise is drawn once it is paid for, and not before")
        shape = (size,) if isinstance(size, int) else size
        count = math.prod(shape)
        return np.frombuffer(self._bytes(8 * count), "<u8").astype(np.uint64).reshape(shape)

    def _tails(self, size: Size) -> Array:
        """Probabilities in (0, 1], fine near 0, where the tail of a distribution is."""
        return (self._words(size).astype(np.float64) + 0.5) * 2.0**-64

    def _signed_tails(self, size: Size) -> tuple[Array, Array]:
        """Signs, and probabilities in (0, 1/2], fine near 0."""
        words = self._words(size)
        sign = 1.0 - 2.0 * (words >> np.uint64(63)).astype(np.float64)
        below = (words & np.uint64(2**63 - 1)).astype(np.float64)
        return sign, (below + 0.5) * 2.0**-64


def _scale(scale: float) -> float:
    if not 0 <= scale < math.inf:
        raise ValueError(f"scale must be a finite number from 0 on, got {scale!r}")
    return float(scale)
