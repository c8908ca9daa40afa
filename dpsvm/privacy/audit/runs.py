"""Many fits in each world: seeded, in parallel, and the same to the bit however they are shared."""

from __future__ import annotations

import signal
import threading
import warnings
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from multiprocessing import resource_tracker
from typing import Any

import numpy as np
from joblib.externals.loky.backend import resource_tracker as loky_resource_tracker
from sklearn.utils.parallel import Parallel, delayed
from threadpoolctl import threadpool_limits

from dpsvm.privacy.audit.choice import Rule
from dpsvm.privacy.audit.statistics import Meter
from dpsvm.privacy.audit.worlds import WITHOUT, Worlds

Factory = Callable[[int], Any]

_SEEDS = 2**32  # what numpy's RandomState takes
_STRIDE = 2654435761  # odd, so that no two runs share a seed


@dataclass(frozen=True, eq=False)
class Trainer:
    """Fits an estimator in one of two worlds and measures what it releases."""

    make_estimator: Factory
    worlds: Worlds
    meter: Meter
    random_state: int

    @cached_property
    def _base(self) -> int:
        [base] = np.random.SeedSequence(self.random_state).generate_state(1)
        return int(base)

    def seed(self, world: str, number: int) -> int:
        """The seed of a run; all runs of an audit have different ones."""
        return (self._base + _STRIDE * (2 * number + (world == WITHOUT))) % _SEEDS

    def fit(self, world: str, number: int) -> Any:
        """The model that one run releases; ValueError, naming the run, if the fit fails."""
        seed = self.seed(world, number)
        try:
            estimator = self.make_estimator(seed)
            fitted = estimator.fit(self.worlds.X[world], self.worlds.y[world])
        except MemoryError:
            raise
        except Exception as error:
            reason = f"{type(error).__name__}: {error}"
            message = f"the fit {world} the record failed at seed {seed}: {reason}"
            raise ValueError(message) from error
        return estimator if fitted is None else fitted


@dataclass(frozen=True)
class Everything:
    """What is measured on a pilot run: every statistic, then the parameters."""

    names: tuple[str, ...]

    def __call__(self, meter: Meter, model: Any) -> list[float]:
        return meter.measure(model, self.names) + meter.parameters(model)


@dataclass(frozen=True)
class Chosen:
    """What is measured on a test run: the statistic of the rule."""

    rule: Rule

    def __call__(self, meter: Meter, model: Any) -> list[float]:
        if self.rule.direction is None:
            return meter.measure(model, [self.rule.statistic])
        return [float(np.dot(self.rule.direction, meter.parameters(model)))]


@dataclass(frozen=True)
class Batch:
    """Runs of one world that follow each other, and what was measured on them once made."""

    world: str
    first: int
    count: int
    values: list[list[float]] = field(default_factory=list)
    warnings: dict[str, str] = field(default_factory=dict)
    """The first message of each category of warning."""

    @property
    def numbers(self) -> range:
        """The runs."""
        return range(self.first, self.first + self.count)


def batches(world: str, numbers: Iterable[int], size: int) -> Iterator[Batch]:
    """Runs put together, at most ``size`` at a time, where they follow each other.

    >>> [(one.first, one.count) for one in batches("with", [0, 1, 2, 5, 6], 2)]
    [(0, 2), (2, 1), (5, 2)]
    """
    taken: list[int] = []
    for number in numbers:
        if taken and (number != taken[-1] + 1 or len(taken) == size):
            yield Batch(world, taken[0], len(taken))
            taken = []
        taken.append(number)
    if taken:
        yield Batch(world, taken[0], len(taken))


def make(
    trainer: Trainer, measured: Everything | Chosen, todo: Sequence[Batch], jobs: int
) -> Generator[Batch, None, None]:
    """The batches as they end, in any order; leaving early stops those under way."""
    if jobs == 1 or len(todo) < 2:
        for batch in todo:
            yield _made(trainer, measured, batch)
        return
    pool = Parallel(n_jobs=min(jobs, len(todo)), return_as="generator_unordered")
    with ExitStack() as leaving:
        leaving.enter_context(_no_word_of_killed_pools())
        with _ctrl_c_waits():
            made = pool(delayed(_made)(trainer, measured, one) for one in todo)
            leaving.callback(_stop, made)
        for batch in made:  # not yield from, which would close it before _stop does
            yield batch


def _stop(made: Any) -> None:
    """End the workers of a pool, without joblib's advice on tasks left undone."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        made.close()


@contextmanager
def _no_word_of_killed_pools() -> Iterator[None]:
    """The thread of a pool that kills its workers may look for a task just dropped, and fail."""
    tell = threading.excepthook

    def hook(failure: threading.ExceptHookArgs) -> None:
        flags = getattr(failure.thread, "executor_flags", None)
        if not getattr(flags, "kill_workers", False):
            tell(failure)

    threading.excepthook = hook
    try:
        yield
    finally:
        threading.excepthook = tell


@contextmanager
def _ctrl_c_waits() -> Iterator[None]:
    """Ctrl-C is answered at the end of the block, and never by processes started in it.

    A terminal sends it to every process, but only the parent is to answer: it stops its workers.
    They inherit the mask of the thread that starts them, and begin with Ctrl-C blocked; the
    trackers of multiprocessing and of joblib are started before, since that unblocks it. Windows
    has no such mask, and there the workers answer too.
    """
    in_main = threading.current_thread() is threading.main_thread()  # which alone hears it
    if not in_main or not hasattr(signal, "pthread_sigmask"):
        yield
        return
    heard: list[int] = []
    handler = signal.signal(signal.SIGINT, lambda number, _: heard.append(number))
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, [])
    try:
        resource_tracker.ensure_running()
        loky_resource_tracker.ensure_running()
        signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)
        signal.signal(signal.SIGINT, handler)
        if heard:
            signal.raise_signal(signal.SIGINT)


def _made(trainer: Trainer, measured: Everything | Chosen, batch: Batch) -> Batch:
    values = []
    # One thread: sums in another order would change the last bits.
    with warnings.catch_warnings(record=True) as caught, threadpool_limits(1):
        warnings.simplefilter("always")
        for number in batch.numbers:
            values.append(measured(trainer.meter, trainer.fit(batch.world, number)))
    said: dict[str, str] = {}
    for one in caught:
        said.setdefault(one.category.__name__, str(one.message))
    return Batch(batch.world, batch.first, batch.count, values, said)
