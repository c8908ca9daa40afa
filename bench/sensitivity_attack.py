"""Attack every bound the private machines rest on, by random search and gradient ascent.

    python bench/sensitivity_attack.py

Neighbouring data sets, the place where their densities are compared, and rows are searched for the
largest value of what a proof says is bounded: many random starts, the best of them improved by
quasi-Newton ascent with numerical gradients. The ratio of the largest value found to its bound must
not exceed 1; how near it comes says how much a bound gives away. A record is its label times its
row, since nothing else of it is used.

Writes results/sensitivity_attack.json and .md. Exit code 1 if a bound is exceeded.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
from common import Table, arguments, note, run, write_results
from scipy import stats
from scipy.optimize import minimize

from dpsvm.losses import Hinge, HuberHinge, Logistic, Loss, SmoothHinge
from dpsvm.privacy.dual import solve_hinge
from dpsvm.privacy.methods import (
    ObjectiveGaussian,
    ObjectivePure,
    Setup,
    calibrate,
    objective_gaussian_rdp,
    output_sensitivity,
)
from dpsvm.privacy.minimiser import Objective, minimise
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


@dataclass(frozen=True)
class Attack:
    """A bound, and a function of free numbers whose value it bounds by 1."""

    claim: str
    case: str
    size: int  # free numbers
    ratio: Callable[[np.ndarray], float]
    patience: float = 1.0  # share of the effort this one gets, as its ratio is slow

    def run(self, effort: Effort, random: np.random.Generator) -> float:
        """The largest ratio found."""
        starts = max(4, int(effort.starts * self.patience))
        spread = np.exp(random.uniform(math.log(0.3), math.log(6.0), starts))
        points = random.normal(size=(starts, self.size)) * spread[:, None]
        values = np.array([self.ratio(point) for point in points])
        best = float(values.max())
        for start in np.argsort(-values)[: max(1, int(effort.climbs * self.patience))]:
            found = minimize(
                lambda point: -self.ratio(point),
                points[start],
                method="L-BFGS-B",
                options={"maxiter": effort.steps, "eps": 1e-6},
            )
            best = max(best, -float(found.fun))
        return best


def ball(numbers: np.ndarray, d: int) -> np.ndarray:
    """Free numbers as records of norm at most 1."""
    rows = numbers.reshape(-1, d)
    return rows / np.maximum(1.0, np.linalg.norm(rows, axis=1))[:, None]


def neighbours(records: np.ndarray, relation: str) -> tuple[np.ndarray, np.ndarray]:
    """Two data sets from records of which the first two are the ones that differ."""
    if relation == "add-remove":
        return records[1:], records[2:]
    return np.delete(records, 1, axis=0), records[1:]


def output_attacks() -> Iterator[Attack]:
    """The distance of minimisers, certified solvers included."""
    d, n, C = 2, 4, 0.7
    for loss in (Hinge(), *SMOOTH):
        for relation in RELATIONS:
            setup = Setup(loss=loss, C=C, dimension=d, neighbouring=relation)
            bound, gap = output_sensitivity(setup)

            def fit(records: np.ndarray, loss: Loss = loss, gap: float = gap) -> np.ndarray:
                ones = np.ones(len(records))
                if isinstance(loss, Hinge):
                    return solve_hinge(records, ones, ones, C, gap)
                return minimise(Objective(records, ones, ones, loss, 1 / C, np.zeros(d)), 1e-9)

            def ratio(
                point: np.ndarray,
                relation: str = relation,
                bound: float = bound,
                fit: Callable[[np.ndarray], np.ndarray] = fit,
            ) -> float:
                one, other = neighbours(ball(point, d), relation)
                return float(np.linalg.norm(fit(one) - fit(other))) / bound

            case = f"{loss.name}, {relation}, C = {C}"
            slow = 0.1 if isinstance(loss, Hinge) else 0.3
            yield Attack("output: |w - w'|", case, (n + 2) * d, ratio, slow)


def tolerance_attacks() -> Iterator[Attack]:
    """The distance of a certified point from the minimiser, against sqrt(2 gap)."""
    d, n = 3, 12
    for C in (0.1, 5.0):
        gap = (0.01 * C) ** 2 / 2

        def ratio(point: np.ndarray, C: float = C, gap: float = gap) -> float:
            records, ones = ball(point, d), np.ones(n)
            near = solve_hinge(records, ones, ones, C, gap)
            exact = solve_hinge(records, ones, ones, C, gap * 1e-3)
            reach = math.sqrt(2 * gap) * (1 + math.sqrt(1e-3))
            return float(np.linalg.norm(near - exact)) / reach

        yield Attack("output: certified gap", f"hinge, C = {C:g}", n * d, ratio, 0.05)


def gradient_attacks() -> Iterator[Attack]:
    """The sum of gradients at one point."""
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

            yield Attack("gradient: |sum - sum'|", f"{loss.name}, {relation}", 5 * d, ratio)


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
            yield Attack("objective: log density", case, (n + 3) * d, ratio)


def determinant_attacks() -> Iterator[Attack]:
    """The determinants of the Gaussian objective method."""
    d, n = 3, 3
    for loss in SMOOTH:
        for relation in RELATIONS:
            C = 0.5 / loss.smoothness
            bound = -math.log1p(-loss.smoothness * C)

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
            yield Attack("objective-gaussian: determinants", case, (n + 3) * d, ratio)


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
            C = 0.2 / loss.smoothness
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
                    return max(float(np.trapezoid(part, w)) for part in excess) / delta

                case = f"{loss.name}, {relation}, epsilon = 1, delta = {delta:g}"
                yield Attack("objective-gaussian: delta", case, n + 2, exceeded, 0.3)
            for order in (2.0, 20.0):
                [bound] = objective_gaussian_rdp(setup, 5.0, 1e9, [order])

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
                    sums = (np.trapezoid(np.exp(order * a + (1 - order) * b), w) for a, b in both)
                    return max(math.log(float(total)) for total in sums) / (order - 1) / bound

                case = f"{loss.name}, {relation}, order {order:g}, s = 5"
                yield Attack("objective-gaussian: divergence", case, n + 2, renyi, 0.3)


def norm_attacks() -> Iterator[Attack]:
    """The norm of a prepared row, in higher precision."""
    for data_norm, constant in ((1.0, 1.0), (3.7, 0.1), (1e-3, 30.0)):
        prepare = Preparation(data_norm, constant)

        def ratio(point: np.ndarray, prepare: Preparation = prepare) -> float:
            with np.errstate(over="ignore"):
                row = np.nan_to_num(np.sinh(5 * point))[None]
            return float(np.sqrt(np.sum(prepare(row).astype(np.longdouble) ** 2)))

        case = f"data_norm = {data_norm:g}, constant = {constant:g}"
        yield Attack("preparation: norm of a row", case, 40, ratio)


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

        def ratio(point: np.ndarray, moves: tuple[int, ...] = moves, scale: float = scale) -> float:
            counts = np.round(np.abs(3 * point[:3]))
            change = np.array([moves[int(abs(10 * x)) % len(moves)] for x in point[3:]])
            one, other = winners(counts, scale), winners(counts + change, scale)
            return float(np.abs(np.log(one) - np.log(other)).max())

        yield Attack("choice: log probability", f"{relation}, epsilon = 1", 6, ratio)


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
    effort = Effort(20, 1, 10) if options.quick else Effort(400, 12, 60)
    random = np.random.default_rng(SEED)
    table = Table("largest ratio found to its bound", ("bound", "case", "ratio", "holds"))
    worst: dict[str, float] = {}
    for group in GROUPS:
        for attack in group():
            found = attack.run(effort, random)
            worst[attack.claim] = max(worst.get(attack.claim, 0.0), found)
            table.rows.append((attack.claim, attack.case, round(found, 9), found <= 1 + ROUNDING))
            note(f"{attack.claim:34} {attack.case:52} {found:.6f}")
    exceeded = [row for row in table.rows if not row[-1]]
    verdicts = [f"bounds exceeded: {len(exceeded)} of {len(table.rows)}"]
    for claim, value in worst.items():
        verdicts.append(f"{claim}: the tightest ratio found is {value:.6f}")
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
