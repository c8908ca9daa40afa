"""What core_fuzz.py asks of a case: one function for each kind of question.

The answers it compares with are scikit-learn's, LIBSVM's (libsvm-official), clarabel's and the
programs' own, evaluated in extended precision from the numbers of the case.
"""

from __future__ import annotations

import traceback
from collections import Counter
from dataclasses import dataclass, field, replace
from itertools import combinations
from typing import Any

import numpy as np
import scipy.sparse as sp

from bench.fuzz.cases import AMPLE, CLASSIFIERS, Case, cache_of, jobs_of
from bench.fuzz.fits import (
    HAS_LIBSVM,
    fitted_or_error,
    libsvm,
    libsvm_takes,
    ours,
    path_is_libsvms,
    plain_rows,
    theirs,
)
from bench.fuzz.quadratic import (
    DOUBLE,
    Fitted,
    Part,
    double_error,
    fitted,
    kernel_values,
    pair_coefficients,
    parts_of,
)
from dpsvm.svm.selectors import SELECTORS

QP_ROWS = 40
ONCE_ONLY = [name for name, one in SELECTORS.items() if one.once_only]
LIBSVM_EVERY = 4  # cases
UNDERFLOW = 1e-300

# Why dpsvm may refuse what scikit-learn answers.
REASONS = (
    "does not fit single precision",
    "overflow",
    "is as large as it can be",
    "leaves no margin between them",
)


@dataclass
class Verdict:
    """What became of a case."""

    failures: list[tuple[str, str]] = field(default_factory=list)  # check, what was seen
    checks: Counter[str] = field(default_factory=Counter)
    refusal: str | None = None
    notes: Counter[str] = field(default_factory=Counter)

    def check(self, name: str, holds: bool, told: str) -> None:
        self.checks[name] += 1
        if not holds:
            self.failures.append((name, told))


def judge(case: Case) -> Verdict:
    """Fit the case and ask everything that can be asked of it."""
    verdict = Verdict()
    try:
        _ask_all(verdict, case)
    except Exception as error:  # nothing but ValueError, and that in fit only, may come out
        where = traceback.extract_tb(error.__traceback__)[-1]
        told = f"{type(error).__name__}: {error} ({where.name}, line {where.lineno})"
        verdict.check("no other exception", False, told)
    return verdict


def _ask_all(verdict: Verdict, case: Case) -> None:
    model, error = fitted_or_error(ours(case), case.rows(), case)
    gamma = None if model is None else model._gamma
    other, other_error = fitted_or_error(theirs(case, gamma), plain_rows(case), case)
    if error is not None:
        _judge_refusal(verdict, error, other_error)
        return
    verdict.notes["scikit-learn refused"] += other_error is not None
    if case.params.get("gamma") == "scale":
        _judge_gamma(verdict, case, model)
    parts = parts_of(case, model._gamma)
    fit = fitted(model, case)
    reports = _reports(model)
    coefficients = pair_coefficients(fit, len(case.X))
    endless = bool((reports["stop_reason_"] == "time_limit").any())
    if endless and other is not None and other.fit_status_ != 0:
        verdict.notes["slow, as scikit-learn"] += 1
    else:
        verdict.check("ends", not endless, str(reports))
    _judge_reports(verdict, case, parts, coefficients, reports)
    optimal = case.options.get("selector") not in ONCE_ONLY
    if optimal and case.semidefinite:
        _judge_optimum(verdict, case, parts, coefficients, reports)
    if other is not None:
        _judge_other(verdict, case, parts, coefficients, reports, other)
    _judge_decisions(verdict, case, model, fit)
    if endless:  # where the clock stopped it nobody can repeat
        return
    _judge_again(verdict, case, model)
    if case.dtype == "float32" and optimal:
        _judge_single(verdict, case, parts, coefficients, model)


def _reports(model: Any) -> dict[str, np.ndarray]:
    names = ("stop_reason_", "dual_gap_", "objective_", "n_iter_")
    return {name: np.atleast_1d(getattr(model, name)) for name in names}


def _judge_refusal(verdict: Verdict, error: ValueError, other: ValueError | None) -> None:
    text = str(error)
    reason = next((reason for reason in REASONS if reason in text), None)
    if other is not None:
        verdict.refusal = reason or "scikit-learn refuses too"
        verdict.checks["refusal"] += 1
    else:
        verdict.refusal = reason
        verdict.check("refusal", reason is not None, f"only dpsvm refuses: {text}")


def _judge_gamma(verdict: Verdict, case: Case, model: Any) -> None:
    if case.kernel in ("linear", "precomputed"):
        return
    variance = float(np.var(case.X))
    expected = 1 / (case.X.shape[1] * variance) if variance else 1.0
    # Sparse rows give the variance as a difference of two means of squares.
    lost = DOUBLE * 1e3 * (1 + float(np.mean(case.X**2)) / variance) if variance else 0.0
    near = abs(model._gamma - expected) <= lost * expected
    verdict.check("gamma", near, f"{model._gamma} instead of {expected}")


def _judge_reports(
    verdict: Verdict, case: Case, parts: list[Part], coefficients: list[np.ndarray],
    reports: dict[str, np.ndarray],
) -> None:  # fmt: skip
    """Feasible, and what is reported is what the numbers say."""
    once_only, tol = case.options.get("selector") in ONCE_ONLY, case.params["tol"]
    for k, (part, c) in enumerate(zip(parts, coefficients, strict=True)):
        a, r = part.alpha(c)
        iterations, gap = int(reports["n_iter_"][k]), float(reports["dual_gap_"][k])
        reason = str(reports["stop_reason_"][k])
        outside = np.setdiff1d(np.flatnonzero(c), part.rows)
        verdict.check("bounds", not len(outside), f"rows {outside} are not of this problem")
        _judge_feasible(verdict, case, part, a, iterations)
        known = ("stationary", "stalled", "time_limit", *(["exhausted"] if once_only else []))
        honest = reason in known and (reason != "stationary" or gap < tol)
        verdict.check("stop reason", honest, f"{reason}, gap {gap}, tol {tol}")
        verdict.notes[reason] += 1
        if not (hides_some(case, part, a) or _both_ways(case, gap)):
            objective = float(reports["objective_"][k]) * r * r
            _judge_numbers(verdict, part, a, iterations, gap, objective)


def _judge_feasible(
    verdict: Verdict, case: Case, part: Part, a: np.ndarray, iterations: int
) -> None:
    """Within the bounds and of the given sums.

    A step that takes one variable to its bound gives the other the rest of their sum or difference:
    rounding, in units of the larger bound, may leave it beyond its own, in LIBSVM as well.
    """
    program = part.program
    loose = (1e-9 if part.rescaled else 4 * DOUBLE) * program.bound.max()
    inside = (a >= -loose) & (a <= program.bound + loose)
    verdict.check("bounds", bool(inside.all()), f"{a[~inside]}, bounds {program.bound[~inside]}")
    off = program.unbalanced(a)
    room = 1e-10 * (a.sum() + sum(program.totals))
    room += 4 * DOUBLE * iterations * program.bound.max()
    fine = off <= room or hides_some(case, part, a)
    verdict.check("sums", fine, f"off by {off} of {a.sum()}")


def _judge_numbers(
    verdict: Verdict, part: Part, a: np.ndarray, iterations: int, gap: float, objective: float
) -> None:
    """The gap and the objective that are reported, as far as rows of floats can know them."""
    program = part.program
    noise = program.noise(a, iterations)
    narrow, wide = program.gaps(a)
    near = narrow - 2 * noise <= gap <= wide + 2 * noise
    verdict.check("gap", near, f"{gap}, but it is {narrow} .. {wide} +- {2 * noise}")
    value = program.objective(a)
    room = noise * np.abs(a).sum() + 64 * DOUBLE * program.size(a)
    near = abs(value - objective) <= room
    verdict.check("objective", near, f"{objective}, but it is {value} +- {room}")


def hides_some(case: Case, part: Part, a: np.ndarray) -> bool:
    """Whether some of nu-SVR's variables cancel: a and a* of one row, both above zero.

    The coefficients, their differences, then do not tell the variables. The objective they tell.
    """
    program = part.program
    missing = sum(program.totals) - float(a.sum())
    return case.machine == "NuSVR" and missing > 1e-10 * sum(program.totals)


def _both_ways(case: Case, gap: float) -> bool:
    """Whether both variables of a row of SVR may be above zero: v is 2 epsilon apart there."""
    return case.machine == "SVR" and gap >= 2 * case.params["epsilon"]


def _judge_optimum(
    verdict: Verdict, case: Case, parts: list[Part], coefficients: list[np.ndarray],
    reports: dict[str, np.ndarray],
) -> None:  # fmt: skip
    """Against an interior point method, where that is quick."""
    for k, (part, c) in enumerate(zip(parts, coefficients, strict=True)):
        program = part.program
        if len(part.rows) > QP_ROWS:
            continue
        best = program.solve()
        verdict.notes["clarabel gave up"] += best is None
        if best is None:
            continue
        a, _ = part.alpha(c)
        gap = max(case.params["tol"], float(reports["dual_gap_"][k]))
        verdict_of_two(
            verdict, "optimum (clarabel)", case, part, a, best, gap, int(reports["n_iter_"][k])
        )


def verdict_of_two(
    verdict: Verdict, name: str, case: Case, part: Part, a: np.ndarray, z: np.ndarray,
    gap: float, iterations: int,
) -> None:  # fmt: skip
    """Ours may not be above the other's by more than stopping at a gap explains."""
    program = part.program
    mine, other = program.objective(a), program.objective(z)
    room = program.slack(a, z, gap, iterations)
    if hides_some(case, part, a) or hides_some(case, part, z):
        room += (gap + 2 * program.noise(a, iterations)) * 2 * sum(program.totals)
    room += 1e-9 * abs(other)
    verdict.check(name, mine - other <= room, f"{mine} instead of {other}, room {room}")


def _judge_other(
    verdict: Verdict, case: Case, parts: list[Part], coefficients: list[np.ndarray],
    reports: dict[str, np.ndarray], other: Any,
) -> None:  # fmt: skip
    """Against scikit-learn and LIBSVM, which stop at the same tol."""
    n, converged = len(case.X), other.fit_status_ == 0
    verdict.notes["scikit-learn at max_iter"] += not converged
    fit = fitted(other, case)
    if case.weight is not None:  # its support_ counts the rows whose weight is not 0
        fit = replace(fit, support=np.flatnonzero(case.weight > 0)[fit.support])
    candidates = {"scikit-learn": pair_coefficients(fit, n)}
    asked = HAS_LIBSVM and case.number % LIBSVM_EVERY == 0
    if converged and asked and libsvm_takes(case):
        candidates["LIBSVM"] = pair_coefficients(libsvm(case, other._gamma), n)
    optimal = case.options.get("selector") not in ONCE_ONLY
    for name, others in candidates.items():
        if not (optimal and case.semidefinite):
            continue
        for k, (part, c, z) in enumerate(zip(parts, coefficients, others, strict=True)):
            a, b = part.alpha(c)[0], part.alpha(z)[0]
            gap = max(case.params["tol"], float(reports["dual_gap_"][k]))
            iterations = int(reports["n_iter_"][k])
            verdict_of_two(verdict, f"optimum ({name})", case, part, a, b, gap, iterations)
    if converged and path_is_libsvms(case):
        expected = np.atleast_1d(other.n_iter_)
        same = np.array_equal(reports["n_iter_"], expected)
        verdict.check("iterations", same, f"{reports['n_iter_']} instead of {expected}")


def _judge_decisions(verdict: Verdict, case: Case, model: Any, fit: Fitted) -> None:
    """Decision values are sums over support vectors; a row's own does not depend on its company."""
    queries = case.asked()
    decide = model.decision_function if hasattr(model, "decision_function") else model.predict
    values = decide(queries)
    params = case.params | {"gamma": model._gamma}
    K = kernel_values(params, case.queries, case.X)
    lines = np.array(pair_coefficients(fit, len(case.X)))
    public = -1.0 if case.machine in CLASSIFIERS and len(model.classes_) == 2 else 1.0
    expected = public * (K @ lines.T + fit.intercept)
    sizes = np.abs(K) @ np.abs(lines).T
    room = 64 * DOUBLE * (sizes + np.abs(fit.intercept))
    room = room + UNDERFLOW * np.abs(lines).sum(axis=1)  # where exp vanishes
    room = room + double_error(params, case.queries, case.X) @ np.abs(lines).T
    if computed_in_single(case):
        trained = kernel_values(params, case.X, case.X) @ lines.T
        room = room + 1e-4 * np.ptp(trained, axis=0)
    off = np.abs(values.reshape(expected.shape) - expected)
    verdict.check("decisions", bool((off <= room).all()), f"{off.max()}, room {room.max()}")
    _judge_labels(verdict, case, model, queries, values.reshape(expected.shape))
    count = queries.shape[0]
    alone = np.concatenate([decide(queries[k : k + 1]) for k in range(0, count, 3)])
    verdict.check("decisions alone", np.array_equal(alone, values[::3]), "a row alone")
    halves = np.concatenate([decide(queries[:5]), decide(queries[5:])])
    model.set_params(n_jobs=3 if case.n_jobs == 1 else 1)
    again = decide(queries)
    model.set_params(n_jobs=case.n_jobs)
    same = np.array_equal(halves, values) and np.array_equal(again, values)
    verdict.check("decisions alone", same, "other batches or threads")


def _judge_labels(
    verdict: Verdict, case: Case, model: Any, queries: Any, values: np.ndarray
) -> None:
    """Predictions follow from the decision values: votes, of equal ones the first."""
    predicted = model.predict(queries)
    if case.machine in CLASSIFIERS:
        classes = len(model.classes_)
        signed = -values if classes == 2 else values
        votes = np.zeros((len(values), classes))
        for (i, j), column in zip(combinations(range(classes), 2), signed.T, strict=True):
            votes[:, i] += column > 0
            votes[:, j] += ~(column > 0)
        expected = model.classes_[votes.argmax(axis=1)]
    elif case.machine == "OneClassSVM":
        expected = np.where(values[:, 0] > 0, 1, -1)
    else:
        expected = values[:, 0]
    verdict.check("predictions", np.array_equal(predicted, expected), f"{predicted} {expected}")


def _same_bits(a: Any, b: Any) -> str | None:
    """The first fitted attribute that is not the same, None if all are."""
    for name in ("support_", "dual_coef_", "intercept_", "n_iter_"):
        first, second = getattr(a, name), getattr(b, name)
        if sp.issparse(first):
            first, second = first.toarray(), second.toarray()
        if not np.array_equal(first, second):
            return name
    return None


def _judge_again(verdict: Verdict, case: Case, model: Any) -> None:
    """Neither the cache nor the threads change the result."""
    rng = np.random.default_rng([case.seed, case.number, 1])
    other = AMPLE if case.cache_size != AMPLE else cache_of(rng, len(case.X))
    changes = {"cache_size": other, "n_jobs": jobs_of(rng)}
    again, error = fitted_or_error(ours(case, **changes), case.rows(), case)
    what = "refused" if error else _same_bits(model, again)
    verdict.check("cache and threads", what is None, f"{what} with {changes}")


def computed_in_single(case: Case) -> bool:
    """Whether dpsvm may compute kernel values in single precision, by its documents."""
    return case.dtype == "float32" and case.kernel == "rbf" and not case.machine.startswith("Nu")


def _judge_single(
    verdict: Verdict, case: Case, parts: list[Part], coefficients: list[np.ndarray], model: Any
) -> None:
    """Single precision input against the same numbers in double precision.

    Other kernels than rbf, and the nu machines, are computed in double precision either way. Rows
    of floats cost double precision some of its tol, too: its true gap tells how much, where they
    are coarser than tol.
    """
    wide = replace(case, dtype="float64")
    double, error = fitted_or_error(ours(wide, gamma=model._gamma), wide.rows(), wide)
    if error is not None:
        verdict.check("single precision", False, f"refused in double precision: {error}")
        return
    if not computed_in_single(case):
        what = _same_bits(model, double)
        verdict.check("single is double", what is None, f"{what} differs")
        return
    others = pair_coefficients(fitted(double, wide), len(case.X))
    for part, c, d in zip(parts, coefficients, others, strict=True):
        a, z = part.alpha(c)[0], part.alpha(d)[0]
        mine, other = part.program.objective(a), part.program.objective(z)
        apart = float(np.abs(a - z).sum())
        left = max(case.params["tol"], part.program.gaps(z)[0])  # in truth, in double precision
        room = 1e-6 * abs(other) + left / 2 * apart
        near = abs(mine - other) <= room
        verdict.check("single precision", near, f"{mine} instead of {other}, room {room}")
