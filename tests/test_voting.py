"""One-against-one voting, against plain loops over the pairs."""

from __future__ import annotations

from itertools import combinations
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from dpsvm.svm.voting import one_vs_rest, pair_count, pair_dual_coef, winners


@st.composite
def decisions(draw):
    n_classes = draw(st.integers(2, 6))
    # Few distinct values, so that ties and exact zeros are common.
    values = st.sampled_from([-2.0, -1.0, 0.0, 1.0, 2.0])
    shape = (draw(st.integers(1, 5)), pair_count(n_classes))
    return draw(arrays(np.float64, shape, elements=values)), n_classes


@given(decisions())
def test_winners_are_the_first_classes_with_the_most_votes(case: Any) -> None:
    values, n_classes = case
    for row, winner in zip(values, winners(values, n_classes), strict=True):
        votes = [0] * n_classes
        for decision, (i, j) in zip(row, combinations(range(n_classes), 2), strict=True):
            votes[i if decision > 0 else j] += 1
        assert winner == votes.index(max(votes))


@given(decisions())
def test_one_vs_rest_is_votes_and_squeezed_sums(case: Any) -> None:
    values, n_classes = case
    for row, scores in zip(values, one_vs_rest(values, n_classes), strict=True):
        votes, sums = np.zeros(n_classes), np.zeros(n_classes)
        for decision, (i, j) in zip(row, combinations(range(n_classes), 2), strict=True):
            votes[i if decision >= 0 else j] += 1
            sums[i] += decision
            sums[j] -= decision
        np.testing.assert_allclose(scores, votes + sums / (3 * (np.abs(sums) + 1)), atol=1e-12)
        assert np.all(np.abs(scores - votes) < 1 / 3)


@pytest.mark.parametrize("n_classes", [2, 3, 5])
def test_pair_dual_coef_places_every_coefficient_once(n_classes: int) -> None:
    n_support = np.arange(1, n_classes + 1, dtype=np.int32)
    owner = np.repeat(np.arange(n_classes), n_support)
    dual_coef = 1.0 + np.arange((n_classes - 1) * owner.size).reshape(n_classes - 1, -1)
    table = pair_dual_coef(dual_coef, n_support)
    assert sorted(table[table != 0]) == sorted(dual_coef.ravel())
    for row, pair in zip(table, combinations(range(n_classes), 2), strict=True):
        assert set(owner[row != 0]) == set(pair)
