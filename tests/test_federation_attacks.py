"""Breaks that an attacker has found, each as it was done."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from federation_problems import NAMES, ROWS, World, opening
from numpy.typing import NDArray

from dpsvm.federation import Message, Party

BEYOND = {"sharing": "is not finite or above sum_range", "network": "beyond the sum_range"}
"""What an algorithm says of an answer that is out of its range."""


def begun(world: World, name: str) -> Party:
    party = Party(world.job, world.site(name), world.store(name))
    if party.held < 0:
        sizes = (10, 10, 10) if world.job.algorithm == "network" else (3, 2, 2)
        rows = 0 if world.job.algorithm == "network" else ROWS
        assert party.handle(opening(party, sizes=sizes, rows=rows)).kind == "ready"
    return party


def question(world: World, seed: int) -> Message:
    random = np.random.default_rng(seed)
    if world.job.algorithm == "network":
        weights: NDArray[Any] = np.zeros((2, 7))
        weights[:, 0] = 1e-12 * seed
        return Message("run-1", 1, "neighbours", {"weights": weights})
    scalars = {"rho": world.job.settings["rho"], "keep": False}
    return Message("run-1", 1, "price", {"price": random.standard_normal(ROWS)}, scalars)


@pytest.mark.parametrize("sums", ["masked", "open"])
@pytest.mark.parametrize("name", ["sharing, private", "network, private"])
def test_an_answer_out_of_range_is_refused_once_whatever_is_asked_then(
    name: str, sums: str, tmp_path: Path
) -> None:
    """Each refusal compares fresh noise and data with the range, and the charge pays for one."""
    world = World.of(tmp_path, name, sums=sums, sum_range=1e-9)
    lab, algorithm = NAMES[1], world.job.algorithm
    party = begun(world, lab)
    first = party.handle(question(world, 0))
    assert BEYOND[algorithm] in first.text("reason")
    for _ in range(2):
        for seed in range(1, 4):
            assert party.handle(question(world, seed)).encode() == first.encode()
        assert party.handle(question(world, 0)).encode() == first.encode()
        party.store.close()
        party = begun(world, lab)  # another process of the site
    assert world.charges()[lab] == 1
    party.store.close()


def test_a_question_that_was_refused_for_itself_leaves_the_round_open(tmp_path: Path) -> None:
    world = World.of(tmp_path, "sharing, private")
    party = begun(world, NAMES[1])
    scalars = {"rho": world.job.settings["rho"], "keep": False}
    for price in (np.full(ROWS, np.inf), np.ones(ROWS + 1)):
        wrong = Message("run-1", 1, "price", {"price": price}, scalars)
        assert party.handle(wrong).kind == "refusal"
    assert party.handle(question(world, 0)).kind == "masked"
    party.store.close()
