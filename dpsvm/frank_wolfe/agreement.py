"""What the parties and the label owner agree on (:mod:`dpsvm.distributed.agreement`)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from dpsvm._arrays import Array
from dpsvm.constraints import check_choice, check_positive
from dpsvm.distributed import agreement as distributed
from dpsvm.frank_wolfe.checks import check_count
from dpsvm.frank_wolfe.coordinator import PROBLEMS, Coordinator
from dpsvm.frank_wolfe.party import Party
from dpsvm.frank_wolfe.privacy import DistributedCalibration, clip_entries, concentrated_budget
from dpsvm.frank_wolfe.sketches import Sketch
from dpsvm.frank_wolfe.steps import check_steps, make_schedule
from dpsvm.frank_wolfe.theory import DistributedSizes
from dpsvm.privacy.noise import Noise
from dpsvm.privacy.release import Price

SENDERS = ("all", "winner")


@dataclass(frozen=True, kw_only=True, eq=False)
class Agreement(distributed.Agreement):
    """The ball, the sketch and the steps of a run, its noise and its price.

    >>> from dpsvm.frank_wolfe import DistributedFrankWolfe, PrivateDistributedFrankWolfe
    >>> solver = DistributedFrankWolfe(radius=1.0, rounds=9)
    >>> Agreement.of(solver, sizes=[3, 4], n_samples=100).sketch.size
    100
    >>> private = PrivateDistributedFrankWolfe(
    ...     radius=1.0, rounds=9, sketch=20, epsilon=9.0, delta=1e-5, entry_bound=1.0,
    ...     label_bound=1.0,
    ... )
    >>> print(Agreement.of(private, sizes=[3, 4], n_samples=100).lead_price.guarantee)
    epsilon = 9, delta = 1e-05 (replace)
    """

    settings: Any
    radii: list[float]
    sizes: tuple[int, ...]
    share: float  # the least that a party looks at of its columns
    rounds: int
    sketch: Sketch
    calibration: DistributedCalibration | None

    @classmethod
    def of(
        cls,
        settings: Any,
        sizes: Sequence[int],
        n_samples: int,
        label_size: float | None = None,
    ) -> Agreement:
        """The agreement of settings, those of a distributed solver.

        label_size : the root mean square of labels that are public, for rounds and sketch that
            theory is to propose
        """
        private = hasattr(settings, "epsilon")
        if private:
            check_labels(settings.public_labels, settings.label_bound)
        radii = check_radii(settings.radius, settings.problem, len(sizes))
        if getattr(settings, "send", "all") == "winner" and settings.problem == "product":
            raise ValueError("send='winner' is for problem 'l1': in 'product' there are K winners")
        share = least_share(settings.tau, sizes)
        rounds, size = settings.rounds, settings.sketch
        if private and (rounds is None or isinstance(size, str)):
            rounds, size = _plan(settings, sizes, n_samples, share, sum(radii), label_size)
        rounds = check_count(rounds, "rounds")
        check_steps(settings.step, rounds, share)
        sketch = Sketch(n_samples, size, settings.sketch_seed)
        calibration = None
        if private:
            calibration = DistributedCalibration.of(
                sketch,
                sizes,
                rounds,
                settings.epsilon,
                settings.delta,
                settings.entry_bound,
                settings.label_bound,
                cache=settings.cache,
            )
        return cls(
            settings=settings,
            radii=radii,
            sizes=tuple(sizes),
            share=share,
            rounds=rounds,
            sketch=sketch,
            calibration=calibration,
        )

    @property
    def lead_price(self) -> Price | None:
        """Of the labels, where they are protected."""
        protected = self.calibration is not None and self.calibration.label_bound is not None
        return self.price if protected else None

    def member(
        self,
        place: int,
        table: Any,
        noise: Noise | None = None,
        rng: np.random.Generator | None = None,
    ) -> Party:
        """A party; which columns it looks at is drawn from the noise if no generator is given."""
        if rng is None and noise is not None:
            rng = generator_of(noise)
        perturbation = None
        if self.calibration is not None:
            perturbation = self.calibration.noise_of(place, _there(noise))
        return Party(
            place,
            table,
            self.sketch,
            tau=self.settings.tau,
            cache=self.settings.cache,
            rng=rng,
            perturbation=perturbation,
        )

    def clipped(self, table: Any) -> Any:
        """A table whose entries are within their public bound, where they have one."""
        return table if self.calibration is None else self.calibration.clipped(table)

    def clipped_labels(self, target: Array) -> Array:
        """Labels within their public bound, where they are protected."""
        bound = None if self.calibration is None else self.calibration.label_bound
        return target if bound is None else clip_entries(target, bound)

    def lead(self, target: Array, noise: Noise | None = None) -> Coordinator:
        """The owner of the labels; of protected ones, a sketch is released here."""
        if self.calibration is None:
            goal = np.asarray(self.sketch.of(target)) / len(target)
        else:
            self.calibration.check_labels(target)
            goal = self.calibration.release_labels(target, _there(noise))
        return Coordinator(
            goal,
            len(target),
            self.sizes,
            self.radii,
            schedule=make_schedule(self.settings.step, self.share),
            problem=self.settings.problem,
            cautious=self.share < 1.0,  # a proposal that points uphill is left aside
        )


def _there(noise: Noise | None) -> Noise:
    if noise is None:
        raise ValueError("a private run needs noise, got None")
    return noise


def generator_of(noise: Noise) -> np.random.Generator:
    """A generator seeded by the noise, for what needs no secrecy of its own."""
    return np.random.default_rng((noise.uniform(4) * 2.0**52).astype(np.int64).tolist())


def least_share(tau: int | None, sizes: Sequence[int]) -> float:
    """The least share of its columns that a party looks at in a round.

    >>> least_share(2, [4, 5]), least_share(None, [4, 5])
    (0.4, 1.0)
    """
    if tau is None:
        return 1.0
    return min(check_count(tau, "tau", most=min(sizes)) / size for size in sizes)


def check_radii(radius: Any, problem: Any, parties: int) -> list[float]:
    """The radius of problem "l1", or those of all the parties in problem "product".

    >>> check_radii(2.0, "l1", 3), check_radii(2.0, "product", 3)
    ([2.0], [2.0, 2.0, 2.0])
    """
    alone = check_choice(problem, "problem", PROBLEMS) == "l1"
    if np.ndim(radius) == 0:
        return [check_positive(radius, "radius")] * (1 if alone else parties)
    radii = [check_positive(one, "radius") for one in radius]
    if alone or len(radii) != parties:
        wanted = "one number" if alone else f"one number or {parties}"
        raise ValueError(f"radius must be {wanted} in problem {problem!r}, got {radius!r}")
    return radii


def check_labels(public: Any, bound: Any) -> None:
    """Refuse an epsilon that does not say what becomes of the labels.

    >>> check_labels(True, 1.0)
    Traceback (most recent call last):
    ...
    ValueError: labels are public or protected, got public_labels=True and label_bound=1.0
    """
    if public is not True and bound is None:
        raise ValueError(
            "an epsilon needs public_labels=True, which says that labels may be known, or a "
            "label_bound, with which they are protected; got neither"
        )
    if public is True and bound is not None:
        raise ValueError(
            f"labels are public or protected, got public_labels=True and label_bound={bound!r}"
        )


def _plan(
    settings: Any,
    sizes: Sequence[int],
    n_samples: int,
    share: float,
    radius: float,
    label_size: float | None,
) -> tuple[int, int | None]:
    """T and m, as they are set or as theory proposes them."""
    bound = settings.label_bound
    if bound is not None:
        label_size = check_positive(bound, "label_bound")
    if label_size is None:
        raise ValueError("rounds and sketch must be given where the labels are not known")
    public = DistributedSizes(
        n_samples=n_samples,
        n_features=sum(sizes),
        parties=len(sizes),
        share=share,
        radius=radius,  # bounds |x|_1
        entry_bound=check_positive(settings.entry_bound, "entry_bound"),
        label_size=label_size,
        rho=concentrated_budget(settings.epsilon, settings.delta),
    )
    return public.plan(settings.delta, settings.rounds, settings.sketch)
