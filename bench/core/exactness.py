"""Does dpsvm take LIBSVM's own path? Its numbers beside three sources of truth:

1. truth/libsvm.csv, what svm-train 3.24 printed on ten sets;
2. the WSS2 rows of truth/dpwss_table3.csv, the published table of the DPWSS paper;
3. the svm-train on PATH, run beside on other machines, kernels, weights and tolerances.

    python bench/core/exactness.py ../shared

Iterations, nSV and nBSV must be equal, the objective to 1e-6 relative, rho and the extra line
(nu, C or epsilon) to 1e-4. Exit code 1 if anything disagrees.
"""

from __future__ import annotations

import csv
import lzma
import math
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[2]))

from bench.common import (
    Absent,
    Table,
    arguments,
    data_file,
    load,
    note,
    require_program,
    run,
    shared_folder,
    write_results,
)
from bench.settings import Outcome, Printed, Setting, run_dpsvm, run_libsvm

OBJECTIVE = 1e-6  # relative
RHO = 1e-4  # of max(1, |rho|); the same for nu, C and epsilon
PRINTED = 0.51e-6  # svm-train prints six decimals
PUBLISHED = 0.51e-2  # the paper prints two

COLUMNS = (
    "set",
    "machine",
    "setting",
    "problems",
    "iterations",
    "found",
    "objective",
    "relative difference",
    "rho difference",
    "nSV",
    "nBSV",
    "agrees",
)

QUICK_SETS = {"heart_scale", "breast-cancer_scale", "housing_scale"}

PAPER_SETS = {
    "a1a": "a1a",
    "a5a": "a5a",
    "australian": "australian_scale",
    "breast": "breast-cancer_scale",
    "diabetes": "diabetes_scale",
    "fourclass": "fourclass_scale",
    "german": "german.numer_scale",
    "heart": "heart_scale",
    "ijcnn1": "ijcnn1",
    "ionosphere": "ionosphere_scale",
    "sonar": "sonar_scale",
    "splice": "splice_scale",
    "w1a": "w1a",
    "w5a": "w5a",
}

BESIDE: tuple[tuple[str, Setting], ...] = (
    ("heart_scale", Setting("nu-svc", nu=0.3)),
    ("heart_scale", Setting("nu-svc", "linear", nu=0.5, shrinking=False)),
    ("ionosphere_scale", Setting("nu-svc", nu=0.2, tol=1e-5)),
    ("a1a", Setting("nu-svc", nu=0.2)),
    ("dna.scale", Setting("nu-svc", "linear", nu=0.3)),
    ("dna.scale", Setting("nu-svc", nu=0.4, shrinking=False)),
    ("heart_scale", Setting("one-class")),
    ("diabetes_scale", Setting("one-class", "linear", nu=0.1)),
    ("a1a", Setting("one-class", nu=0.3, shrinking=False)),
    ("svmguide1", Setting("one-class", nu=0.1)),
    ("housing_scale", Setting("epsilon-svr")),
    ("housing_scale", Setting("epsilon-svr", "linear", C=10, epsilon=0.5)),
    ("housing_scale", Setting("epsilon-svr", "poly", coef0=1, shrinking=False)),
    ("abalone_scale", Setting("epsilon-svr")),
    ("abalone_scale", Setting("epsilon-svr", "linear", tol=1e-5)),
    ("housing_scale", Setting("nu-svr")),
    ("housing_scale", Setting("nu-svr", "linear", C=10, nu=0.3)),
    ("housing_scale", Setting("nu-svr", tol=1e-5, shrinking=False)),
    ("abalone_scale", Setting("nu-svr", nu=0.2)),
    ("heart_scale", Setting(kernel="poly", coef0=1)),
    ("german.numer_scale", Setting(kernel="poly", gamma=0.1, degree=2)),
    ("splice_scale", Setting(kernel="poly", degree=2, coef0=1, C=10)),
    ("dna.scale", Setting(kernel="poly")),
    ("pendigits", Setting(kernel="poly", coef0=1)),
    ("heart_scale", Setting(kernel="sigmoid", gamma=0.01)),
    ("diabetes_scale", Setting(kernel="sigmoid", gamma=0.05, coef0=-1)),
    ("a1a", Setting(kernel="sigmoid", gamma=0.01, C=10, shrinking=False)),
    ("german.numer_scale", Setting(kernel="linear", class_weight=((1, 3), (-1, 0.5)))),
    ("w1a", Setting(class_weight=((1, 10),))),
    ("dna.scale", Setting(class_weight=((2, 4), (3, 0.25)))),
    ("dna.scale", Setting(kernel="linear")),
    ("dna.scale", Setting(C=10, shrinking=False)),
    ("pendigits", Setting()),
    ("pendigits", Setting(gamma=1e-4, C=10)),
    ("letter.scale", Setting(C=16, gamma=2)),
    ("heart_scale", Setting(kernel="linear", tol=1e-5)),
    ("australian_scale", Setting(tol=1e-5)),
    ("ionosphere_scale", Setting(kernel="linear", tol=1e-5)),
    ("sonar_scale", Setting(C=100, tol=1e-5)),
    ("a1a", Setting(tol=1e-5)),
    ("a5a", Setting()),
    ("w5a", Setting()),
    ("mushrooms", Setting()),
    ("mushrooms", Setting(kernel="linear", shrinking=False)),
    ("reuters", Setting(kernel="linear")),
    ("svmguide1", Setting(kernel="linear")),
)


@dataclass(frozen=True)
class Check:
    """One training run: what was expected of it and what dpsvm answered."""

    dataset: str
    setting: Setting
    expected: Outcome
    found: Outcome
    rounding: float = PRINTED

    def disagreements(self) -> list[str]:
        """In words; empty when everything agrees."""
        count = len(self.expected.problems)
        if count != len(self.found.problems):
            return [f"{len(self.found.problems)} problems instead of {count}"]
        pairs = zip(self.expected.problems, self.found.problems, strict=True)
        words = [
            f"problem {k + 1}: {word}" if count > 1 else word
            for k, (expected, found) in enumerate(pairs)
            for word in differences(expected, found, self.rounding)
        ]
        if self.expected.total_sv not in (0, self.found.total_sv):
            words.append(f"total nSV {self.found.total_sv} for {self.expected.total_sv}")
        return words

    def row(self) -> list[object]:
        """A line of the table: sums over the one-vs-one problems, worst differences."""
        expected, found = self.expected.problems, self.found.problems
        pairs = list(zip(expected, found, strict=False))
        words = self.disagreements()
        return [
            self.dataset,
            self.setting.machine,
            self.setting.describe(),
            len(expected),
            sum(p.iterations for p in expected),
            sum(p.iterations for p in found),
            round(sum(p.objective for p in found), 6),
            f"{max(relative(e.objective, f.objective) for e, f in pairs):.1e}",
            None
            if math.isnan(expected[0].rho)
            else f"{max(abs(f.rho - e.rho) for e, f in pairs):.1e}",
            sum(p.n_sv for p in found),
            sum(p.n_bsv for p in found),
            "; ".join(words[:3]) if words else "yes",
        ]


def relative(expected: float, found: float) -> float:
    """The relative difference, beyond what rounding to six decimals explains."""
    return max(0.0, abs(found - expected) - PRINTED) / max(abs(expected), PRINTED)


def differences(expected: Printed, found: Printed, rounding: float) -> Iterator[str]:
    """How one problem's numbers differ; a count of -1 or a nan expects nothing."""
    for name in ("iterations", "n_sv", "n_bsv"):
        wanted, got = getattr(expected, name), getattr(found, name)
        if wanted not in (-1, got):
            yield f"{name} {got} for {wanted}"
    allowed = {
        "objective": rounding + OBJECTIVE * abs(expected.objective),
        "rho": RHO * max(1.0, abs(expected.rho)),
        "extra": RHO * max(1.0, abs(expected.extra)),
    }
    for name, tolerance in allowed.items():
        wanted, got = getattr(expected, name), getattr(found, name)
        if not math.isnan(wanted) and not abs(got - wanted) <= tolerance:
            yield f"{name} {got:.9g} for {wanted:.9g}"


def printed(shared: Path) -> Iterator[tuple[str, Setting, Outcome]]:
    """Every row of truth/libsvm.csv: the set, what was trained on it, and what was printed."""
    with (shared / "truth" / "libsvm.csv").open(newline="") as stream:
        for row in csv.DictReader(stream):
            setting = Setting(
                kernel=row["kernel"], C=float(row["C"]), shrinking=row["shrinking"] == "1"
            )
            expected = Printed(
                iterations=int(row["iter"]),
                objective=float(row["obj"]),
                rho=float(row["rho"]),
                n_sv=int(row["nSV"]),
                n_bsv=int(row["nBSV"]),
            )
            yield row["dataset"], setting, Outcome((expected,), expected.n_sv)


def against_printed(shared: Path, quick: bool) -> Iterator[Check]:
    """Every row of truth/libsvm.csv, trained again."""
    for dataset, setting, expected in printed(shared):
        if not quick or dataset in QUICK_SETS:
            found = run_dpsvm(setting, *load(shared, dataset))
            yield Check(dataset, setting, expected, found)


def against_published(shared: Path, quick: bool) -> Iterator[Check]:
    """The WSS2 rows of the paper's table for the sets held here (linear, C = 1)."""
    with (shared / "truth" / "dpwss_table3.csv").open(newline="") as stream:
        for row in csv.DictReader(stream):
            dataset = PAPER_SETS.get(row["dataset"])
            if row["config"] != "wss2" or dataset is None:
                continue
            if quick and dataset not in QUICK_SETS:
                continue
            setting = Setting(kernel="linear", shrinking=row["shrinking"] == "1")
            expected = Printed(int(row["iteration"]), float(row["obj"]), math.nan, -1, -1)
            found = run_dpsvm(setting, *load(shared, dataset))
            yield Check(dataset, setting, Outcome((expected,), 0), found, PUBLISHED)


def against_svm_train(shared: Path, quick: bool) -> Iterator[Check]:
    """BESIDE, against the program itself."""
    require_program("svm-train")
    with tempfile.TemporaryDirectory() as folder:
        plain, model = Path(folder, "data"), Path(folder, "model")
        for dataset, setting in BESIDE:
            if quick and dataset not in QUICK_SETS:
                continue
            plain.write_bytes(lzma.decompress(data_file(shared, dataset).read_bytes()))
            expected = run_libsvm(setting, plain, model)
            yield Check(dataset, setting, expected, run_dpsvm(setting, *load(shared, dataset)))


def gather(title: str, checks: Iterator[Check]) -> tuple[Table, str, bool]:
    """Run the checks, telling of each; the table, its verdict and whether all agree."""
    table, agreed = Table(title, COLUMNS), 0
    started = time.perf_counter()
    for check in checks:
        words = check.disagreements()
        agreed += not words
        table.rows.append(check.row())
        elapsed = time.perf_counter() - started
        state = "; ".join(words) or "agrees"
        note(f"{elapsed:7.1f} s  {check.dataset} {check.setting.describe()}: {state}")
    total = len(table.rows)
    return table, f"{title}: {agreed} of {total}", 0 < agreed == total


def main(argv: Sequence[str] | None = None) -> int:
    options = arguments(__doc__).parse_args(argv)
    shared = shared_folder(options.shared)
    parts = {
        "LIBSVM 3.24 as printed (truth/libsvm.csv)": against_printed,
        "WSS2 as published (truth/dpwss_table3.csv)": against_published,
        "svm-train run beside": against_svm_train,
    }
    tables: list[Table] = []
    verdicts: list[str] = []
    all_agree = True
    for title, part in parts.items():
        try:
            table, verdict, agree = gather(title, part(shared, options.quick))
        except Absent as reason:
            verdicts.append(f"{title}: skipped, {reason}")
            continue
        print(table.text(), end="\n\n", flush=True)
        tables.append(table)
        verdicts.append(verdict)
        all_agree &= agree
    print("\n".join(verdicts))
    if not options.quick:
        config = {"objective": OBJECTIVE, "rho": RHO}
        write_results(options.results, "exactness", tables, config=config, verdicts=verdicts)
    return 0 if all_agree else 1


if __name__ == "__main__":
    run(main)
