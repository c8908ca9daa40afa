"""The audit itself: two worlds, a pilot, a rule, the test runs, a bound."""

from __future__ import annotations

import math
import os
import re
import secrets
import time
from inspect import signature
from numbers import Integral, Real
from typing import Any

from numpy.typing import ArrayLike

from dpsvm._version import __version__
from dpsvm.privacy.audit.choice import Aim, Rule
from dpsvm.privacy.audit.journal import Journal, stored_random_state
from dpsvm.privacy.audit.result import AuditResult
from dpsvm.privacy.audit.runs import Factory, Trainer
from dpsvm.privacy.audit.session import Session, first_look
from dpsvm.privacy.audit.statistics import Meter, Statistic, nonzeros_of
from dpsvm.privacy.audit.worlds import WITH, Worlds, make_worlds, most_influential
from dpsvm.progress import runs_progress
from dpsvm.threads import thread_count

FEWEST_RUNS = 20
"""Fewer runs than this, of the pilot or of the test, are refused."""

_CANDIDATES = 10  # natural records of which the best is audited


def audit(
    make_estimator: Factory,
    X: Any,
    y: ArrayLike,
    *,
    canary: str | tuple[ArrayLike, Any] = "mislabelled",
    neighbouring: str = "add-remove",
    claimed_epsilon: float | None = None,
    delta: float = 0.0,
    runs: int = 1000,
    pilot_runs: int | None = None,
    confidence: float = 0.95,
    statistic: Statistic | None = None,
    feature_range: tuple[ArrayLike, ArrayLike] | None = None,
    record: int | None = None,
    n_jobs: int | None = None,
    random_state: int | None = None,
    resume_path: str | os.PathLike[str] | None = None,
    progress: bool = True,
    name: str | None = None,
) -> AuditResult:
    """Bound the epsilon of an estimator from below by training with and without one record.

    The estimator is fitted many times in each of two worlds that differ in one record. Pilot runs
    choose an event on the released model (a statistic, a threshold, a side), and how often it
    happens in the test runs of each world bounds epsilon from below (Clopper and Pearson's
    intervals, the two together at the confidence stated). The bound can refute a claim. A bound
    below the claim says that this record and this statistic did not refute it, and no more.

    Parameters
    ----------
    make_estimator : takes a seed from 0 to 2^32 - 1 and returns an estimator with ``fit(X, y)``.
        What is audited is the fitted estimator's ``coef_``, ``intercept_``, ``decision_function``,
        ``predict_proba`` or ``predict``, as far as it has them. Everything random must follow from
        the seed.
    X, y : the data; dense or sparse rows, and labels.
    canary : "mislabelled", a record within the range of the features with the wrong label;
        "natural", a record of the data; "unique-feature", a mislabelled record with a feature that
        no one else has; or a pair (x, label).
    neighbouring : "add-remove" or "replace", the relation under which the claim was made.
    claimed_epsilon, delta : the claim; None if there is none.
    runs : test runs of each world. The most that n runs can show is about log(n / 4).
    pilot_runs : pilot runs of each world; None for a quarter of ``runs``, and at least 100.
    confidence : of the bound.
    statistic : a function of the fitted estimator and the record that gives one number or several,
        instead of those that the estimator offers.
    feature_range : the public range (low, high) of the features, as numbers or per feature; None
        stays within what the data show.
    record : for "natural" the record to audit, counted from 0; None takes, of the ten that move a
        least-squares fit most, the one that a few runs tell apart best. Under "replace" otherwise
        the record that gives way.
    n_jobs : processes; -1 for one per core. The result does not depend on it.
    random_state : seed of the whole audit; None for a fresh one, or that of ``resume_path``.
    resume_path : a file that keeps the runs as they end; the same call goes on from it.
    progress : show a bar on standard error if that is a terminal.
    name : what to call the estimator in the report.

    Returns
    -------
    AuditResult
        With ``epsilon``, ``refuted``, ``report()`` and ``plot()``.

    >>> import numpy as np
    >>> class NoisySum:
    ...     def __init__(self, noise, seed):
    ...         self.noise, self.random = noise, np.random.default_rng(seed)
    ...     def fit(self, X, y):
    ...         self.coef_ = X.sum(axis=0) + self.random.normal(scale=self.noise, size=X.shape[1])
    ...         return self
    >>> X, y = np.zeros((4, 1)), [0, 0, 1, 1]
    >>> noise = 3.73  # (1, 1e-5)-private for records between 0 and 1
    >>> settings = {"canary": ([1.0], 0), "claimed_epsilon": 1.0, "delta": 1e-5, "random_state": 0}
    >>> audit(lambda seed: NoisySum(noise, seed), X, y, **settings).refuted
    False
    >>> audit(lambda seed: NoisySum(noise / 4, seed), X, y, **settings).refuted
    True
    """
    started = time.monotonic()
    _check(claimed_epsilon, delta, runs, pilot_runs, confidence, random_state)
    pilot_runs = max(100, runs // 4) if pilot_runs is None else int(pilot_runs)
    jobs = thread_count(1 if n_jobs is None else n_jobs)
    if random_state is None and resume_path is not None:
        random_state = stored_random_state(resume_path)
    seed = secrets.randbits(63) if random_state is None else int(random_state)
    places: list[int | None] = [record]
    if canary == "natural" and record is None:
        places = [*most_influential(X, y, _CANDIDATES)]
    trainers = []
    for place in places:
        worlds = make_worlds(
            X, y, canary, neighbouring=neighbouring, feature_range=feature_range, record=place
        )
        meter = Meter(worlds.row, worlds.record, worlds.column, statistic)
        trainers.append(Trainer(make_estimator, worlds, meter, seed))
    first = first_look(trainers[0])
    sample = make_estimator(0)
    if resume_path is not None and name is None and not hasattr(sample, "get_params"):
        raise ValueError(
            f"{type(sample).__name__} has no get_params to tell its settings by: give name= with "
            "resume_path, so that the runs of another estimator are not taken for its own"
        )
    key: dict[str, Any] = {
        "estimator": describe(sample) if name is None else name,
        "statistic": None if statistic is None else getattr(statistic, "__qualname__", "own"),
        "canary": canary if isinstance(canary, str) else "own",
        "neighbouring": neighbouring,
        "data": [trainer.worlds.fingerprint for trainer in trainers],
        "delta": float(delta),
        "runs": int(runs),
        "pilot_runs": pilot_runs,
        "confidence": float(confidence),
        "random_state": seed,
        "dpsvm": __version__,
    }
    journal = Journal(resume_path, key)
    screening_runs = max(FEWEST_RUNS, pilot_runs // 4) if len(trainers) > 1 else 0
    total = 2 * (len(trainers) * screening_runs + pilot_runs + runs)
    with runs_progress(f"audit, {total} fits", total, progress) as tick:
        aim = Aim(int(runs), float(delta), float(confidence))
        session = Session(journal, first, aim, jobs, tick)
        trainer = session.screen(trainers, screening_runs)
        rule = session.settle(trainer, pilot_runs)
        values = session.test(trainer, rule, pilot_runs)
    settled = ("estimator", "neighbouring", "delta", "pilot_runs", "confidence", "random_state")
    return AuditResult(
        **{name: key[name] for name in settled},
        record=trainer.worlds.description,
        rule=rule,
        values=values,
        claimed_epsilon=None if claimed_epsilon is None else float(claimed_epsilon),
        impossible=_impossible(trainer.worlds, rule) if first.zero_without else None,
        warnings=dict(journal.warnings),
        seconds=time.monotonic() - started,
    )


def describe(estimator: Any) -> str:
    """An estimator's class and the parameters that are not at their defaults, but for the seed.

    >>> from sklearn.svm import SVC
    >>> describe(SVC(C=2.0, kernel="linear", random_state=3))
    "SVC(C=2.0, kernel='linear')"
    """
    kind = type(estimator)
    if not hasattr(estimator, "get_params"):
        return kind.__name__
    defaults = {one.name: repr(one.default) for one in signature(kind).parameters.values()}
    shown = [
        f"{name}={value!r}"
        for name, value in sorted(estimator.get_params(deep=False).items())
        if name != "random_state" and repr(value) != defaults.get(name)
    ]
    # The address of an object is not the same in the next process.
    text = re.sub(r" at 0x[0-9a-f]+", "", f"{kind.__name__}({', '.join(shown)})")
    return " ".join(text.split())


def _impossible(worlds: Worlds, rule: Rule) -> str | None:
    """Why the event of a rule cannot happen without the record of a unique feature."""
    if worlds.column is None or rule.statistic != nonzeros_of(worlds.column):
        return None
    if rule.likely != WITH or not rule.at_least or not rule.threshold > 0.0:
        return None
    return (
        f"the released weights are sums of training rows times coefficients (as one run without "
        f"the record shows), and there every row is 0 in feature {worlds.column + 1}, so that its "
        "weight is exactly 0"
    )


def _check(
    claimed_epsilon: float | None,
    delta: float,
    runs: int,
    pilot_runs: int | None,
    confidence: float,
    random_state: int | None,
) -> None:
    def is_number(value: Any) -> bool:
        return isinstance(value, Real) and not isinstance(value, bool) and math.isfinite(value)

    if claimed_epsilon is not None and not (is_number(claimed_epsilon) and claimed_epsilon > 0.0):
        raise ValueError(f"claimed_epsilon must be a positive number, got {claimed_epsilon!r}")
    if not (is_number(delta) and 0.0 <= delta < 1.0):
        raise ValueError(f"delta must be at least 0 and below 1, got {delta!r}")
    if not (is_number(confidence) and 0.0 < confidence < 1.0):
        raise ValueError(f"confidence must be between 0 and 1, got {confidence!r}")
    for name, value in (("runs", runs), ("pilot_runs", pilot_runs)):
        if value is not None and not (isinstance(value, Integral) and value >= FEWEST_RUNS):
            raise ValueError(f"{name} must be a whole number from {FEWEST_RUNS} on, got {value!r}")
    if random_state is not None and not (isinstance(random_state, Integral) and random_state >= 0):
        raise ValueError(f"random_state must be a whole number from 0 on, got {random_state!r}")
