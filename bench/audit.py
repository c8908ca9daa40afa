"""What the audit finds on heart_scale, and what it must not find.

    python bench/audit.py ../shared --jobs 2

dpwss (linear, C = 1) claimed at epsilon 0.1 with sigma .7 must be refuted with a bound above 5 (a
mislabelled record, 8000 test runs of each world), and a record with a feature of its own must show
that no epsilon holds. Every method of PrivateSVC at epsilon 1 must stay below 1 under both
neighbouring relations, a Gaussian mechanism with the right noise must stay below its epsilon, and a
quarter of the noise must be caught. All bounds at 95% confidence, seed 0, decided beforehand.

Exit code 1 if one of these is missed.
"""

from __future__ import annotations

import math
import os
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

import numpy as np
from common import Table, arguments, load, note, run, shared_folder, write_results

if TYPE_CHECKING:
    from dpsvm.privacy.audit import AuditResult

RUNS = 8000
PRIVATE_RUNS = 4000
ABOVE = 5.0
DPWSS = ((0.1, 0.7), (0.1, 0.1), (1.0, 0.7), (1.0, 0.1))
DELTA = 1e-5
NOISE = 3.7307  # of a Gaussian, for a sensitivity of 1, epsilon 1 and DELTA
PRIVATE = (  # method, delta, neighbouring
    ("output", 0.0, "add-remove"),
    ("output", 0.0, "replace"),
    ("output", DELTA, "add-remove"),
    ("output", DELTA, "replace"),
    ("objective", 0.0, "replace"),
    ("objective-gaussian", DELTA, "add-remove"),
    ("objective-gaussian", DELTA, "replace"),
    ("gradient", DELTA, "add-remove"),
    ("gradient", DELTA, "replace"),
)
DATA_NORM = math.sqrt(13.0)  # 13 features in [-1, 1]


class NoisySum:
    """The sum of rows clipped to [-1, 1], with Gaussian noise."""

    def __init__(self, scale: float, seed: int) -> None:
        self.scale, self.random = scale, np.random.default_rng(seed)

    def fit(self, X: Any, y: Any) -> NoisySum:
        self.coef_ = np.clip(X, -1, 1).sum(axis=0) + self.random.normal(0.0, self.scale, X.shape[1])
        return self


def dpwss(selection_epsilon: float, sigma: float, seed: int) -> Any:
    from dpsvm import SVC

    settings = {"selection_epsilon": selection_epsilon, "sigma": sigma}
    return SVC(kernel="linear", selector="dpwss", random_state=seed, n_jobs=1, **settings)


def private(method: str, delta: float, neighbouring: str, epsilon: float, C: Any, seed: int) -> Any:
    from dpsvm.privacy.estimators import PrivateSVC

    given = {"delta": delta} if delta else {}
    return PrivateSVC(
        epsilon=epsilon,
        method=method,
        C=C,
        neighbouring=neighbouring,
        data_norm=DATA_NORM,
        classes=[-1, 1],
        random_state=seed,
        **given,
    )


@dataclass(frozen=True)
class Case:
    """One audit, and what is asked of it."""

    name: str
    group: str  # dpwss, unique, right or quarter
    make: Callable[[int], Any]
    settings: dict[str, Any]
    toy: bool = False  # one record against empty data, not heart_scale

    def judge(self, found: AuditResult) -> bool | None:
        """Whether what is asked is met; None where nothing is."""
        asked: dict[str, bool | None] = {
            "dpwss": bool(found.refuted) if self.settings["canary"] == "mislabelled" else None,
            "bar": bool(found.refuted) and found.epsilon > ABOVE,
            "unique": found.unbounded,
            "right": not found.refuted,
            "quarter": bool(found.refuted),
        }
        return asked[self.group]


def cases(quick: bool) -> Iterator[Case]:
    runs, private_runs = (800, 200) if quick else (RUNS, PRIVATE_RUNS)
    for selection_epsilon, sigma in DPWSS[:1] if quick else DPWSS:
        make = partial(dpwss, selection_epsilon, sigma)
        for canary in ("mislabelled", "natural"):
            bar = canary == "mislabelled" and (selection_epsilon, sigma) == DPWSS[0]
            settings = {"canary": canary, "claimed_epsilon": selection_epsilon, "runs": runs}
            name = f"dpwss eps={selection_epsilon:g} sigma={sigma:g}"
            yield Case(name, "bar" if bar else "dpwss", make, settings)
    settings = {"canary": "unique-feature", "claimed_epsilon": 0.1, "runs": runs // 4}
    yield Case("dpwss eps=0.1 sigma=0.7", "unique", partial(dpwss, *DPWSS[0]), settings)
    # A sum of records: the smallest mechanism whose epsilon is known exactly.
    toy = {"canary": ([1.0], 0), "claimed_epsilon": 1.0, "delta": DELTA, "runs": RUNS}
    yield Case("Gaussian sum", "right", partial(NoisySum, NOISE), toy, toy=True)
    quarter = partial(NoisySum, NOISE / 4)
    yield Case("Gaussian sum, a quarter of the noise", "quarter", quarter, toy, toy=True)
    if find_spec("dpsvm.privacy.estimators") is None:
        return
    for method, delta, relation in PRIVATE:
        settings = {"canary": "mislabelled", "claimed_epsilon": 1.0, "runs": private_runs}
        settings |= {"delta": delta, "neighbouring": relation}
        make = partial(private, method, delta, relation, 1.0, "auto")
        yield Case(f"PrivateSVC {method}", "right", make, settings)
    # Pure output perturbation draws a norm of scale C / epsilon: 4 gives a quarter of the noise of 1.
    settings = {"canary": "mislabelled", "claimed_epsilon": 1.0, "runs": private_runs}
    make = partial(private, "output", 0.0, "add-remove", 4.0, 1.0)
    yield Case("PrivateSVC output, a quarter of the noise", "quarter", make, settings)


def audited(case: Case, heart: tuple[Any, Any], jobs: int) -> AuditResult:
    from dpsvm.privacy.audit import audit

    data = (np.zeros((6, 1)), np.array([0, 1] * 3)) if case.toy else heart
    return audit(case.make, *data, n_jobs=jobs, random_state=0, **case.settings)


def verdicts(met: dict[str, list[bool]], private_seen: bool, first: AuditResult) -> list[str]:
    def said(group: str) -> str:
        return "yes" if met.get(group) and all(met[group]) else "NO"

    bound = math.floor(first.epsilon * 100) / 100
    lines = [
        f"dpwss claimed 0.1, sigma .7, refuted above {ABOVE:g} at 95%: {said('bar')}, at least "
        f"{bound:.2f} in {first.seconds:.0f} s",
        f"unique feature: not private for any epsilon: {said('unique')}",
        f"what has the right noise is not refuted: {said('right')}",
        f"a quarter of the noise is caught: {said('quarter')}",
    ]
    if not private_seen:
        lines.append("PrivateSVC audited: NO, dpsvm.privacy.estimators is not there")
    return lines


def main(argv: Sequence[str] | None = None) -> int:
    parser = arguments(__doc__)
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="processes")
    options = parser.parse_args(argv)
    shared = shared_folder(options.shared)
    X, y = load(shared, "heart_scale")
    heart = X.toarray(), y.astype(np.int64)
    columns = ("what", "record", "relation", "claimed", "delta", "runs", "with", "without")
    columns += ("epsilon at least", "at delta 0", "any epsilon", "said", "met", "seconds")
    table = Table("Audits (heart_scale; 95% confidence)", columns)
    met: dict[str, list[bool]] = {}
    first: AuditResult | None = None
    started = time.monotonic()
    for case in cases(options.quick):
        found = audited(case, heart, options.jobs)
        first = found if case.group == "bar" else first
        good = case.judge(found)
        if good is not None:
            met.setdefault(case.group, []).append(good)
        canary = case.settings["canary"]
        table.rows.append(
            [
                case.name,
                canary if isinstance(canary, str) else "one",
                found.neighbouring,
                found.claimed_epsilon,
                found.delta,
                found.runs,
                *found.hits.values(),
                math.floor(found.epsilon * 1000) / 1000,
                math.floor(found.at_delta(0.0).epsilon * 1000) / 1000,
                "refuted" if found.unbounded else "-",
                "refuted" if found.refuted else "not refuted",
                "-" if good is None else "yes" if good else "NO",
                round(found.seconds, 1),
            ]
        )
        note(" ".join(map(str, table.rows[-1])))
    print(table.text(), end="\n\n")
    assert first is not None
    private_seen = find_spec("dpsvm.privacy.estimators") is not None
    said = verdicts(met, private_seen, first)
    print("\n".join(said))
    if not options.quick:
        config = {"runs": RUNS, "private_runs": PRIVATE_RUNS, "jobs": options.jobs, "seed": 0}
        config["seconds"] = round(time.monotonic() - started)
        write_results(options.results, "audit", [table], config=config, verdicts=said)
    return 0 if private_seen and all(map(all, met.values())) else 1


if __name__ == "__main__":
    run(main)
