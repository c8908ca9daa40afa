"""The draws of private mechanisms have the distributions their proofs assume."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats
from statistical import DRAWS, LEVEL

from dpsvm.privacy.noise import Noise
from dpsvm.privacy.rounding import to_grid

SOURCES = {"seeded": 11, "system": None}
DIMENSION = 5


class Fixed:
    """A source that repeats one word."""

    def __init__(self, word: int) -> None:
        self.word = word.to_bytes(8, "little")

    def bytes(self, count: int) -> bytes:
        return self.word * (count // 8)


@pytest.fixture(params=SOURCES)
def noise(request: pytest.FixtureRequest) -> Noise:
    return Noise(SOURCES[request.param])


def assert_distributed(draws: np.ndarray, distribution: stats.rv_continuous) -> None:
    assert stats.kstest(draws, distribution.cdf).pvalue > LEVEL


def test_uniform_draws_are_uniform(noise: Noise) -> None:
    assert_distributed(noise.uniform(DRAWS), stats.uniform())


def test_gaussian_draws_are_normal(noise: Noise) -> None:
    assert_distributed(noise.gaussian(3.0, DRAWS), stats.norm(scale=3.0))


def test_laplace_draws_are_laplace(noise: Noise) -> None:
    assert_distributed(noise.laplace(0.5, DRAWS), stats.laplace(scale=0.5))


def test_exponential_draws_are_exponential(noise: Noise) -> None:
    assert_distributed(noise.exponential(2.0, DRAWS), stats.expon(scale=2.0))


def test_spherical_draws_have_gamma_norms_and_uniform_directions(noise: Noise) -> None:
    draws = np.array([noise.spherical(DIMENSION, 0.25) for _ in range(DRAWS)])
    norms = np.linalg.norm(draws, axis=1)
    assert_distributed(norms, stats.gamma(DIMENSION, scale=0.25))
    cosines = draws @ np.full(DIMENSION, DIMENSION**-0.5) / norms
    assert_distributed((1 + cosines) / 2, stats.beta((DIMENSION - 1) / 2, (DIMENSION - 1) / 2))
    assert stats.spearmanr(norms, cosines).pvalue > LEVEL


def test_every_low_bit_of_a_uniform_draw_is_used() -> None:
    last_bits = np.floor(Noise(3).uniform(DRAWS) * 2.0**52).astype(np.int64) % 16
    assert stats.chisquare(np.bincount(last_bits, minlength=16)).pvalue > LEVEL


@pytest.mark.parametrize("word", [0, 2**63 - 1, 2**63, 2**64 - 1])
def test_the_most_extreme_bytes_give_finite_draws(word: int) -> None:
    noise = Noise(Fixed(word))
    assert np.all((noise.uniform(3) > 0) & (noise.uniform(3) < 1))
    for draws in (noise.gaussian(1.0, 3), noise.laplace(1.0, 3), noise.exponential(1.0, 3)):
        assert np.all(np.isfinite(draws))


def test_a_gaussian_reaches_nine_standard_deviations_on_either_side() -> None:
    assert Noise(Fixed(0)).gaussian(1.0)[0] == pytest.approx(9.16, abs=0.01)
    assert Noise(Fixed(2**63)).gaussian(1.0)[0] == pytest.approx(-9.16, abs=0.01)


def test_a_seed_repeats_the_draws_to_the_bit() -> None:
    for seed in (5, np.random.default_rng(5), np.random.RandomState(5)):
        noise = Noise(seed)
        assert noise.seeded
        assert noise.gaussian(1.0, 4).tolist() != noise.gaussian(1.0, 4).tolist()
    assert Noise(5).spherical(3, 1.0).tolist() == Noise(5).spherical(3, 1.0).tolist()
    assert not Noise().seeded


def test_a_shape_is_filled_in_order() -> None:
    assert Noise(2).laplace(1.0, (2, 3)).ravel().tolist() == Noise(2).laplace(1.0, 6).tolist()


@pytest.mark.parametrize("scale", [-1.0, float("nan"), float("inf")])
def test_a_scale_that_is_none_is_refused(scale: float) -> None:
    for draw in (Noise(0).gaussian, Noise(0).laplace, Noise(0).exponential):
        with pytest.raises(ValueError, match="scale must be a finite number"):
            draw(scale, 2)


def test_a_source_that_is_none_is_refused() -> None:
    with pytest.raises(ValueError, match=r"random_state must be .* got 'dice'"):
        Noise("dice")


def test_rounding_lands_on_multiples_of_the_grid() -> None:
    rounded = to_grid(Noise(1).gaussian(10.0, 1000), 2.0**-10)
    assert np.all(rounded * 2**10 == np.round(rounded * 2**10))
