"""Attack every bound the private machines rest on, by random search and gradient ascent.

    python bench/privacy/sensitivity_attack.py

Neighbouring data sets, the place where their densities are compared, and rows are searched for the
largest value of what a proof says is bounded: many random starts, the best of them improved by
quasi-Newton ascent with numerical gradients. The ratio of the largest value found to its bound must
not exceed 1; how near it comes says how much a bound gives away. A record is its label times its
row, since nothing else of it is used.

Writes results/sensitivity_attack.json and .md. Exit code 1 if a bound is exceeded.
"""

from __future__ import annotations

import contextlib
import itertools
import math
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[2]))

import numpy as np
from scipy import stats
from scipy.integrate import trapezoid
from scipy.optimize import minimize

from bench.common import Table, arguments, note, run, write_results
from dpsvm.losses import Hinge, HuberHinge, Logistic, Loss, SmoothHinge
from dpsvm.privacy.dual import solve_hinge
from dpsvm.privacy.methods import (
    ObjectiveGaussian,
    ObjectivePure,
    Setup,
    calibrate,
    objective_gaussian_event,
    output_sensitivity,
)
from dpsvm.privacy.minimiser import CertificateError, Objective, minimise
from dpsvm.privacy.preparation import Preparation

SEED = 0
ROUNDING = 1e-7  # of the attack's own arithmetic: numerical integrals and differences of logarithms
RELATIONS = ("add-remove", "replace")
SMOOTH: tuple[Loss, ...] = (HuberHinge(0.5), SmoothHinge(0.5), Logistic())


@dataclass(frozen=True)
class Effort:
    """How hard to look."""

    starts: int  # random starts
    climbs: int  # of which so many are improved
    steps: int  # of ascent
    pairs: int  # at most, about, of one ascent


@dataclass(frozen=True)
class Found:
    """The best of an attack."""

    ratio: float
    pairs: int  # neighbouring pairs tried
    where: str


@dataclass(frozen=True)
class Attack:
    """A bound, and a function of free numbers whose value it bounds by 1."""

    claim: str
    case: str
    size: int  # free numbers
    ratio: Callable[[np.ndarray], float]
    tell: Callable[[np.ndarray], str]  # the neighbours that free numbers stand for
    own: int  # the first so many numbers are those of the records that differ and of the place
    patience: float = 1.0  # share of the effort this one gets, as its ratio is slow
    step: float = 1e-6  # of numerical gradients

    def run(self, effort: Effort, random: np.random.Generator) -> Found:
        """The largest ratio found: half of the starts have next to no other records."""
        pairs = 0

        def loss(point: np.ndarray) -> float:
            nonlocal pairs
            pairs += 1
            return -self.ratio(point)

        starts = max(2, int(effort.starts * self.patience))
        spread = np.exp(random.uniform(math.log(0.3), math.log(6.0), starts))
        points = random.normal(size=(starts, self.size)) * spread[:, None]
        points[::2, self.own :] *= 1e-3
        values = np.array([loss(point) for point in points])
        best, least = points[int(values.argmin())], float(values.min())
        for start in np.argsort(values)[: max(1, int(effort.climbs * self.patience))]:
            options = {"maxiter": effort.steps, "maxfun": effort.pairs, "eps": self.step}
            found = minimize(loss, points[start], method="L-BFGS-B", options=options)
            if found.fun < least:
                best, least = found.x, float(found.fun)
        return Found(-least, pairs, self.tell(best))


def ball(numbers: np.ndarray, d: int) -> np.ndarray:
    """Free numbers as records of norm at most 1."""
    rows = numbers.reshape(-1, d)
    return rows / np.maximum(1.0, np.linalg.norm(rows, axis=1))[:, None]


def neighbours(records: np.ndarray, relation: str) -> tuple[np.ndarray, np.ndarray]:
    """Two data sets from records of which the first two are the ones that differ."""
    if relation == "add-remove":
        return records[1:], records[2:]
    return np.delete(records, 1, axis=0), records[1:]


def vector(numbers: np.ndarray) -> str:
    """Rounded, for a table."""
    return "(" + ", ".join(f"{number + 0.0:.3g}" for number in np.round(numbers, 3)) + ")"


def teller(d: int, relation: str, place: float = 0.0) -> Callable[[np.ndarray], str]:
    """What free numbers stand for: a place w if its scale is not 0, then the records."""

    def tell(point: np.ndarray) -> str:
        records = ball(point[d if place else 0 :], d)
        parts = [f"w = {vector(place * point[:d])}"] if place else []
        own = [vector(records[1])]
        if relation == "replace":
            own.insert(0, vector(records[0]))
        others = [vector(record) for record in records[2:] if np.linalg.norm(record) > 0.01]
        parts.append(f"record {' for '.join(own)}")
        parts.append(f"beside {' '.join(others) or 'none'}")
        return ", ".join(parts)

    return tell


def hinge_minimiser(records: np.ndarray, C: float) -> tuple[np.ndarray, float]:
    """As near as can be certified, and how near."""
    ones = np.ones(len(records))
    for share in (1e-5, 1e-4, 1e-3):
        with contextlib.suppress(CertificateError):
            return solve_hinge(records, ones, ones, C, (share * C) ** 2 / 2), share * C
    raise CertificateError(f"no minimiser of the hinge at C = {C:g}")


def minimiser(records: np.ndarray, loss: Loss, C: float) -> tuple[np.ndarray, float]:
    """As near as can be certified, and how near."""
    if isinstance(loss, Hinge):
        return hinge_minimiser(records, C)
    ones, linear = np.ones(len(records)), np.zeros(records.shape[1])
    return minimise(Objective(records, ones, ones, loss, 1 / C, linear), 1e-9), 1e-9 * C


def output_attacks() -> Iterator[Attack]:
    """The distance of minimisers, against C L or 2 C L and what their own certificates leave."""
    d, n = 2, 4
    for loss in (Hinge(), *SMOOTH):
        for relation, C in itertools.product(RELATIONS, (0.1, 0.7, 5.0)):
            bound = C * Setup(loss=loss, C=C, dimension=d, neighbouring=relation).difference

            def ratio(
                point: np.ndarray,
                loss: Loss = loss,
                relation: str = relation,
                C: float = C,
                bound: float = bound,
            ) -> float:
                pair = neighbours(ball(point, d), relation)
                (one, near), (other, nearby) = (minimiser(part, loss, C) for part in pair)
                return float(np.linalg.norm(one - other)) / (bound + near + nearby)

            case = f"{loss.name}, {relation}, C = {C:g}"
            step = 1e-4 if isinstance(loss, Hinge) else 1e-6
            tell, size = teller(d, relation), (n + 2) * d
            yield Attack("output: norm of w - w'", case, size, ratio, tell, 2 * d, 0.2, step)


def tolerance_attacks() -> Iterator[Attack]:
    """The distance of the point an output release takes from the minimiser, against sqrt(2 gap)."""
    d, n = 3, 12
    for C in (0.1, 5.0):
        _, gap = output_sensitivity(Setup(loss=Hinge(), C=C, dimension=d))

        def ratio(point: np.ndarray, C: float = C, gap: float = gap) -> float:
            records, ones = ball(point, d), np.ones(n)
            exact, near = hinge_minimiser(records, C)
            distance = float(np.linalg.norm(solve_hinge(records, ones, ones, C, gap) - exact))
            return distance / (math.sqrt(2 * gap) + near)

        def tell(point: np.ndarray) -> str:
            return f"{n} records, the first {vector(ball(point, d)[0])}"

        case = f"hinge, C = {C:g}"
        yield Attack("output: certified gap", case, n * d, ratio, tell, n * d, 0.1, 1e-4)


def gradient_attacks() -> Iterator[Attack]:
    """The sum of gradients at one point.

    It is also the difference b - b' of the linear terms that make that point the minimiser, the
    regularisation being the same: what the objective methods rest on.
    """
    d = 3
    for loss in (Hinge(), *SMOOTH):
        for relation in RELATIONS:
            bound = Setup(loss=loss, C=1.0, dimension=d, neighbouring=relation).difference

            def ratio(
                point: np.ndarray, loss: Loss = loss, relation: str = relation, bound: float = bound
            ) -> float:
                w, records = 10 * point[:d], ball(point[d:], d)
                sums = [r.T @ loss.slope(r @ w) for r in neighbours(records, relation)]
                return float(np.linalg.norm(sums[0] - sums[1])) / bound

            case, tell = f"{loss.name}, {relation}", teller(d, relation, 10.0)
            claim = "gradient, objective: norm of b - b'"
            yield Attack(claim, case, 5 * d, ratio, tell, 3 * d)


def log_density(
    loss: Loss, lam: float, records: np.ndarray, w: np.ndarray, log_noise: Callable[..., float]
) -> float:
    """Of the minimiser of a randomly tilted objective, at w."""
    margins = records @ w
    tilt = -(records.T @ loss.slope(margins) + lam * w)
    hessian = (records.T * loss.curvature(margins)) @ records + lam * np.eye(len(w))
    return log_noise(tilt) + float(np.linalg.slogdet(hessian)[1])


def objective_attacks() -> Iterator[Attack]:
    """The density of the pure objective method, on both branches of its calibration."""
    d, n = 2, 2
    for loss in SMOOTH:
        for epsilon, C in ((0.2, 5.0), (1.0, 0.1), (1.0, 2.0), (6.0, 2.0)):
            setup = Setup(loss=loss, C=C, dimension=d, neighbouring="replace")
            found = calibrate("objective", setup, epsilon, None)
            assert isinstance(found, ObjectivePure)

            def ratio(
                point: np.ndarray,
                loss: Loss = loss,
                lam: float = setup.lam + found.extra,
                scale: float = found.noise_scale,
                epsilon: float = epsilon,
            ) -> float:
                w, records = 3 * point[:d], ball(point[d:], d)
                one, other = (
                    log_density(loss, lam, r, w, lambda b: -float(np.linalg.norm(b)) / scale)
                    for r in neighbours(records, "replace")
                )
                return abs(one - other) / epsilon

            branch = "extra regularisation" if found.extra else "as it is"
            case = f"{loss.name}, epsilon = {epsilon:g}, C = {C:g} ({branch})"
            tell = teller(d, "replace", 3.0)
            yield Attack("objective: log density", case, (n + 3) * d, ratio, tell, 3 * d)


def determinant_attacks() -> Iterator[Attack]:
    """The determinants of both objective methods."""
    d, n = 3, 3
    for loss, relation in itertools.product(SMOOTH, RELATIONS):
        C = 0.5 / loss.smoothness
        methods = {"objective-gaussian": math.log1p(loss.smoothness * C)}
        if relation == "replace":
            methods["objective"] = 2 * math.log1p(loss.smoothness * C)
        for method, bound in methods.items():

            def ratio(
                point: np.ndarray,
                loss: Loss = loss,
                relation: str = relation,
                lam: float = 1 / C,
                bound: float = bound,
            ) -> float:
                w, records = 3 * point[:d], ball(point[d:], d)
                one, other = (
                    log_density(loss, lam, r, w, lambda b: 0.0)
                    for r in neighbours(records, relation)
                )
                return abs(one - other) / bound

            case = f"{loss.name}, {relation}, C = 0.5 / smoothness"
            tell, size = teller(d, relation, 3.0), (n + 3) * d
            yield Attack(f"{method}: determinants", case, size, ratio, tell, 3 * d)


def line_densities(
    loss: Loss, lam: float, s: float, point: np.ndarray, relation: str
) -> tuple[np.ndarray, list[np.ndarray]]:
    """Where w may lie on a line, and the log densities there for neighbouring records."""
    w = np.linspace(-1.0, 1.0, 8001) * (12 * s + len(point)) / lam
    logs = []
    for records in neighbours(ball(point, 1), relation):
        margins = records * w
        tilt = -(records * loss.slope(margins)).sum(axis=0) - lam * w
        slope = (records**2 * loss.curvature(margins)).sum(axis=0) + lam
        logs.append(stats.norm.logpdf(tilt / s) - math.log(s) + np.log(slope))
    return w, logs


def line_attacks() -> Iterator[Attack]:
    """Delta and Renyi divergences of the Gaussian objective method, integrated on a line."""
    n = 3
    for loss in SMOOTH:
        for relation in RELATIONS:
            C = 0.02 / loss.smoothness  # w stays where slopes are near their largest
            setup = Setup(loss=loss, C=C, dimension=1, neighbouring=relation)
            for delta in (1e-5, 1e-2):
                found = calibrate("objective-gaussian", setup, 1.0, delta)
                assert isinstance(found, ObjectiveGaussian)

                def exceeded(
                    point: np.ndarray,
                    loss: Loss = loss,
                    relation: str = relation,
                    lam: float = setup.lam,
                    s: float = found.noise_scale,
                    delta: float = delta,
                ) -> float:
                    w, (one, other) = line_densities(loss, lam, s, point, relation)
                    both = (one, other), (other, one)
                    excess = (np.maximum(np.exp(a) - math.e * np.exp(b), 0) for a, b in both)
                    return max(float(trapezoid(part, w)) for part in excess) / delta

                case = f"{loss.name}, {relation}, epsilon = 1, delta = {delta:g}"
                tell = teller(1, relation)
                yield Attack("objective-gaussian: delta", case, n + 2, exceeded, tell, 2, 0.2)
            for order in (2.0, 20.0):
                [bound] = objective_gaussian_event(setup, 5.0, 1e9).rdp([order])

                def renyi(
                    point: np.ndarray,
                    loss: Loss = loss,
                    relation: str = relation,
                    lam: float = setup.lam,
                    order: float = order,
                    bound: float = bound,
                ) -> float:
                    w, (one, other) = line_densities(loss, lam, 5.0, point, relation)
                    both = (one, other), (other, one)
                    sums = (trapezoid(np.exp(order * a + (1 - order) * b), w) for a, b in both)
                    return max(math.log(float(total)) for total in sums) / (order - 1) / bound

                case = f"{loss.name}, {relation}, order {order:g}, s = 5"
                tell = teller(1, relation)
                yield Attack("objective-gaussian: divergence", case, n + 2, renyi, tell, 2, 0.2)


def norm_attacks() -> Iterator[Attack]:
    """The norm of a prepared row, in higher precision."""
    for data_norm, constant in ((1.0, 1.0), (3.7, 0.1), (1e-3, 30.0)):
        prepare = Preparation(data_norm, constant)

        def ratio(point: np.ndarray, prepare: Preparation = prepare) -> float:
            with np.errstate(over="ignore"):
                row = np.nan_to_num(np.sinh(5 * point))[None]
            return float(np.sqrt(np.sum(prepare(row).astype(np.longdouble) ** 2)))

        def tell(point: np.ndarray) -> str:
            return f"a row of 40 features, the largest {np.sinh(5 * np.abs(point).max()):.3g}"

        case = f"data_norm = {data_norm:g}, constant = {constant:g}"
        yield Attack("preparation: norm of a row", case, 40, ratio, tell, 40)


def choice_attacks() -> Iterator[Attack]:
    """The probability of each winner of three, by its closed form."""

    def winners(counts: np.ndarray, scale: float) -> np.ndarray:
        keep = np.exp((counts.min() - counts) / scale)
        chances = np.zeros(3)
        for order in ((0, 1, 2), (0, 2, 1), (1, 0, 2), (1, 2, 0), (2, 0, 1), (2, 1, 0)):
            left = 1.0
            for i in order:
                chances[i] += left * keep[i] / 6
                left *= 1 - keep[i]
        return chances

    for relation, moves, scale in (("add-remove", (0, 1), 1.0), ("replace", (-1, 0, 1), 2.0)):

        def counts(point: np.ndarray, moves: tuple[int, ...] = moves) -> list[np.ndarray]:
            errors = np.round(np.abs(3 * point[:3]))
            change = np.array([moves[int(abs(10 * x)) % len(moves)] for x in point[3:]])
            return [errors, errors + change]

        def ratio(
            point: np.ndarray,
            counts: Callable[[np.ndarray], list[np.ndarray]] = counts,
            scale: float = scale,
        ) -> float:
            one, other = (winners(errors, scale) for errors in counts(point))
            return float(np.abs(np.log(one) - np.log(other)).max())

        def tell(
            point: np.ndarray, counts: Callable[[np.ndarray], list[np.ndarray]] = counts
        ) -> str:
            return "errors " + " and ".join(map(vector, counts(point)))

        yield Attack("choice: log probability", f"{relation}, epsilon = 1", 6, ratio, tell, 6)


GROUPS = (
    norm_attacks,
    gradient_attacks,
    output_attacks,
    tolerance_attacks,
    objective_attacks,
    determinant_attacks,
    line_attacks,
    choice_attacks,
)


def main() -> int:
    parser = arguments(__doc__)
    options = parser.parse_args()
    effort = Effort(8, 1, 1, 30) if options.quick else Effort(400, 12, 60, 15_000)
    random = np.random.default_rng(SEED)
    columns = ("bound", "case", "pairs tried", "largest ratio", "holds", "attained at")
    table = Table("largest ratio found to its bound", columns)
    worst: dict[str, tuple[float, str]] = {}
    for attack in itertools.chain.from_iterable(group() for group in GROUPS):
        found = attack.run(effort, random)
        worst[attack.claim] = max(worst.get(attack.claim, (0.0, "")), (found.ratio, attack.case))
        told = (attack.claim, attack.case, found.pairs, round(found.ratio, 9))
        table.rows.append((*told, found.ratio <= 1 + ROUNDING, found.where))
        note(f"{attack.claim:36} {attack.case:52} {found.ratio:.6f} of {found.pairs}")
    exceeded = [row for row in table.rows if not row[4]]
    verdicts = [f"bounds exceeded: {len(exceeded)} of {len(table.rows)}"]
    for claim, (value, case) in worst.items():
        verdicts.append(f"{claim}: the tightest ratio found is {value:.6f} ({case})")
    print(table.text())
    print("\n".join(verdicts))
    if not options.quick:
        config = {"seed": SEED, "starts": effort.starts, "climbs": effort.climbs}
        config |= {"steps": effort.steps, "rounding": ROUNDING}
        write_results(
            options.results, "sensitivity_attack", [table], config=config, verdicts=verdicts
        )
    return int(bool(exceeded))


if __name__ == "__main__":
    run(main)
