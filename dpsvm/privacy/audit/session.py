"""The runs of one audit in their order: screening, pilot, test."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass

import numpy as np

from dpsvm._arrays import Array
from dpsvm.privacy.audit.choice import Aim, Pilot, Rule, choose
from dpsvm.privacy.audit.journal import Journal
from dpsvm.privacy.audit.runs import Batch, Chosen, Everything, Trainer, batches, make
from dpsvm.privacy.audit.statistics import weights_are_sums_of_rows
from dpsvm.privacy.audit.worlds import WITH, WITHOUT

_BATCH_SECONDS = 0.5  # what an interruption loses at most, for each process
_LARGEST_BATCH = 250


@dataclass(frozen=True)
class FirstLook:
    """What one fit in each world tells before the runs start."""

    names: tuple[str, ...]
    """The statistics that the models offer."""
    zero_without: bool
    """Whether the unique feature cannot have a weight without the record."""
    batch_size: int


def first_look(trainer: Trainer) -> FirstLook:
    """Fit both worlds once; ValueError if they cannot be measured alike."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the runs will give them again, and they are kept there
        models, seconds = {}, 0.0
        for world in (WITH, WITHOUT):
            started = time.perf_counter()
            models[world] = trainer.fit(world, 0)
            seconds = time.perf_counter() - started  # of the second: the first one warms up
        names, other = (trainer.meter.names(models[world]) for world in (WITH, WITHOUT))
        counts = {len(trainer.meter.parameters(model)) for model in models.values()}
    if names != other or len(counts) > 1:
        raise ValueError(
            "the models of the two worlds differ in shape: there is nothing to compare"
        )
    column = trainer.worlds.column
    zero = column is not None and weights_are_sums_of_rows(models[WITHOUT], column)
    size = int(_BATCH_SECONDS / max(seconds, 1e-6))
    return FirstLook(tuple(names), zero, min(max(size, 1), _LARGEST_BATCH))


@dataclass(frozen=True, eq=False)
class Session:
    """Makes the runs that the journal does not have; those of the pilot choose the event."""

    journal: Journal
    first: FirstLook
    aim: Aim
    jobs: int
    tick: Callable[[], None]

    def screen(self, trainers: Sequence[Trainer], runs: int) -> Trainer:
        """The record, of several, that some runs of each promise to tell apart best."""
        if len(trainers) == 1:
            return trainers[0]
        promises = [
            self._chosen(trainer, f"screening {place}", runs).promise
            for place, trainer in enumerate(trainers)
        ]
        return trainers[int(np.argmax(promises))]

    def settle(self, trainer: Trainer, pilot_runs: int) -> Rule:
        """The rule from the pilot runs, written down before any test run is made."""
        rule = self._chosen(trainer, "pilot", pilot_runs)
        if self.journal.rule is None:
            self.journal.settle(rule)
        return self.journal.rule or rule

    def test(self, trainer: Trainer, rule: Rule, pilot_runs: int) -> dict[str, Array]:
        """The statistic of the rule, by world, in runs that were not seen before."""
        numbers = range(pilot_runs, pilot_runs + self.aim.runs)
        found = self._collect(trainer, "test", Chosen(rule), numbers)
        return {world: values[:, 0] for world, values in found.items()}

    def _chosen(self, trainer: Trainer, phase: str, runs: int) -> Rule:
        names = self.first.names
        found = self._collect(trainer, phase, Everything(names), range(runs))
        inside, outside = (
            Pilot(found[world][:, : len(names)], found[world][:, len(names) :])
            for world in (WITH, WITHOUT)
        )
        return choose(names, inside, outside, self.aim)

    def _collect(
        self, trainer: Trainer, phase: str, measured: Everything | Chosen, numbers: range
    ) -> dict[str, Array]:
        """What was measured in every run of a phase, [runs, measured], by world."""
        todo: list[Batch] = []
        for world in (WITH, WITHOUT):
            known = self.journal.values(phase, world)
            missing = [number for number in numbers if number not in known]
            todo += batches(world, missing, self.first.batch_size)
            self._ticks(len(numbers) - len(missing))
        with closing(make(trainer, measured, todo, self.jobs)) as made:
            for batch in made:
                self.journal.add(phase, batch)
                self._ticks(batch.count)
        found = {}
        for world in (WITH, WITHOUT):
            known = self.journal.values(phase, world)
            found[world] = np.array([known[number] for number in numbers], dtype=np.float64)
        return found

    def _ticks(self, count: int) -> None:
        for _ in range(count):
            self.tick()
