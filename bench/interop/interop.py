"""Do dpsvm and LIBSVM read each other's models?

    python bench/interop/interop.py ../shared

Each case is trained by ``dpsvm train`` and by ``svm-train``; each of the two models is then read
by ``dpsvm predict`` and by ``svm-predict``. The four outputs must hold the same labels, and
printed numbers must agree to 1e-6 relative (LIBSVM writes support vectors with eight digits).
svm-predict prints probabilities with six digits only, so both models are also read by LIBSVM's
shared library and by dpsvm, and compared in double: probabilities and regression values to 1e-6
of themselves, a classifier's decision values to 1e-6 of the largest.
Then every estimator is saved and loaded by dpsvm, and must decide to 1e-12.
Exit code 1 if anything disagrees, 2 if LIBSVM's programs are absent.
"""

from __future__ import annotations

import lzma
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[2]))

import numpy as np

from bench.common import (
    Table,
    arguments,
    child_environment,
    data_file,
    load,
    note,
    require_program,
    run,
    shared_folder,
    write_results,
)
from bench.interop.libsvm_library import evaluate
from bench.settings import Setting

OUTPUTS = 1e-6  # relative
RELOADED = 1e-12  # relative to the largest decision value


@dataclass(frozen=True)
class Case:
    """Train on the first rows of a set, predict all of it."""

    dataset: str
    setting: Setting
    rows: int | None = None
    probability: bool = False


CASES = (
    Case("heart_scale", Setting()),
    Case("heart_scale", Setting("nu-svc", "linear", nu=0.4)),
    Case("heart_scale", Setting("one-class", nu=0.3)),
    Case("heart_scale", Setting(kernel="poly", coef0=1)),
    Case("heart_scale", Setting(kernel="sigmoid", gamma=0.01)),
    Case("heart_scale", Setting(kernel="linear"), probability=True),
    Case("housing_scale", Setting("epsilon-svr")),
    Case("housing_scale", Setting("nu-svr")),
    Case("housing_scale", Setting("epsilon-svr", "linear"), probability=True),
    Case("dna.scale", Setting(), rows=600),
    Case("dna.scale", Setting("nu-svc", nu=0.3), rows=600),
    Case("dna.scale", Setting(), rows=600, probability=True),
    Case("dna.scale", Setting("nu-svc", "linear", nu=0.3), rows=600, probability=True),
    Case("pendigits", Setting(gamma=1e-4), rows=1500),
    Case("mushrooms", Setting(), rows=1000, probability=True),
    Case("abalone_scale", Setting("epsilon-svr"), rows=1000),
    Case("abalone_scale", Setting("nu-svr", nu=0.3), rows=1000, probability=True),
    Case("svmguide1", Setting("one-class", nu=0.1), rows=1000),
    Case("german.numer_scale", Setting(class_weight=((1, 3),))),
)
QUICK = (
    Case("heart_scale", Setting(kernel="linear"), rows=200, probability=True),
    Case("heart_scale", Setting("one-class", nu=0.3), rows=200),
    Case("housing_scale", Setting("epsilon-svr"), rows=200),
)

DPSVM, LIBSVM = "dpsvm", "LIBSVM"
TRAIN = {DPSVM: [sys.executable, "-P", "-m", "dpsvm", "train"], LIBSVM: ["svm-train"]}
PREDICT = {DPSVM: [sys.executable, "-P", "-m", "dpsvm", "predict"], LIBSVM: ["svm-predict"]}


def command(words: Sequence[str]) -> None:
    """Run a program; its failure is an error with what it said."""
    done = subprocess.run(
        words, capture_output=True, text=True, check=False, env=child_environment()
    )
    if done.returncode != 0:
        raise RuntimeError(f"{' '.join(words)}: {done.stderr.strip() or done.stdout.strip()}")


def predictions(path: Path) -> tuple[str, np.ndarray]:
    """The header of an output file ('labels 1 -1', or none) and its numbers."""
    lines = path.read_text().splitlines()
    header = lines.pop(0) if lines[0].startswith("labels") else ""
    return header, np.array([line.split() for line in lines], dtype=np.float64)


def outputs(case: Case, shared: Path, folder: Path) -> dict[str, tuple[str, np.ndarray]]:
    """What each predictor says of each trainer's model."""
    text = lzma.decompress(data_file(shared, case.dataset).read_bytes())
    everything, training = folder / "all", folder / "training"
    everything.write_bytes(text)
    training.write_bytes(b"".join(text.splitlines(keepends=True)[: case.rows]))
    flags = [*case.setting.flags(), "-b", str(int(case.probability))]
    answers = {}
    for trainer, train in TRAIN.items():
        model = folder / f"model-{trainer}"
        command([*train, "-q", *flags, str(training), str(model)])
        for predictor, predict in PREDICT.items():
            output = folder / "output"
            # A regression's -b 1 adds a noise model to the file and a notice to the screen.
            b = str(int(case.probability and case.setting.classifier))
            command([*predict, "-b", b, str(everything), str(model), str(output)])
            answers[f"{trainer} -> {predictor}"] = predictions(output)
    return answers


def in_double(case: Case, shared: Path, folder: Path) -> tuple[float, float | None]:
    """The worst relative difference of decision values and of probabilities, in double.

    Over both models and both readers; None where there are no probabilities.
    """
    from dpsvm.svm.model import Model

    X, _ = load(shared, case.dataset)
    paths = [folder / f"model-{trainer}" for trainer in TRAIN]
    models = [Model.load(path) for path in paths]
    values = [model.decision_values(X) for model in models]
    values += [evaluate(path, X, probability=False) for path in paths]
    scale = np.abs(values[0]) if case.setting.regressor else np.abs(values[0]).max(axis=0)
    decided = max(float(np.max(np.abs(other - values[0]) / scale)) for other in values[1:])
    if not (case.probability and case.setting.classifier):
        return decided, None
    likely = [model.predict_proba(X) for model in models]
    likely += [evaluate(path, X, probability=True) for path in paths]
    return decided, max(float(np.max(np.abs(p - likely[0]) / likely[0])) for p in likely[1:])


def judge(
    case: Case,
    answers: dict[str, tuple[str, np.ndarray]],
    decided: float,
    likely: float | None,
) -> list[object]:
    """A table row: labels that differ and the worst relative differences, over the four."""
    (header, first), *others = answers.values()
    labels, worst, headers = 0, 0.0, True
    for other_header, other in others:
        headers &= other_header == header
        numbers, base = other, first
        if not case.setting.regressor:
            labels += int(np.count_nonzero(other[:, 0] != first[:, 0]))
            numbers, base = other[:, 1:], first[:, 1:]
        if numbers.size:
            worst = max(worst, float(np.max(np.abs(numbers - base) / np.abs(base))))
    agrees = headers and labels == 0 and max(worst, decided, likely or 0.0) <= OUTPUTS
    return [
        case.dataset,
        case.setting.machine,
        case.setting.describe() + (" -b 1" if case.probability else ""),
        len(first),
        labels,
        f"{worst:.1e}",
        f"{decided:.1e}",
        None if likely is None else f"{likely:.1e}",
        "yes" if agrees else "NO",
    ]


def exchange(shared: Path, cases: Sequence[Case]) -> tuple[Table, int]:
    """Models across programs; the table and how many cases agree."""
    for program in ("svm-train", "svm-predict"):
        require_program(program)
    columns = (
        "set",
        "machine",
        "setting",
        "rows",
        "labels that differ",
        "printed",
        "decision",
        "probability",
        "agrees",
    )
    table = Table("Models exchanged with LIBSVM's programs", columns)
    for case in cases:
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            answers = outputs(case, shared, folder)
            table.rows.append(judge(case, answers, *in_double(case, shared, folder)))
        note(" ".join(map(str, table.rows[-1])))
    return table, sum(row[-1] == "yes" for row in table.rows)


def reload(shared: Path, quick: bool) -> tuple[Table, int]:
    """Every estimator saved and loaded; the table and how many decide alike."""
    import dpsvm
    from dpsvm.svm.model import Model, from_estimator

    table = Table("Saved and loaded by dpsvm", ("set", "estimator", "kernel", "relative", "agrees"))
    names = {"heart_scale": ("SVC", "NuSVC", "OneClassSVM"), "housing_scale": ("SVR", "NuSVR")}
    if not quick:
        names |= {"dna.scale": ("SVC", "NuSVC")}
    for dataset, estimators in names.items():
        X, y = load(shared, dataset, rows=1000)
        for name in estimators:
            for kernel in ("linear", "rbf", "poly", "sigmoid"):
                options = {"nu": 0.3} if name == "NuSVC" else {}
                model = from_estimator(getattr(dpsvm, name)(kernel=kernel, **options).fit(X, y))
                with tempfile.TemporaryDirectory() as folder:
                    path = Path(folder, "model")
                    model.save(path)
                    loaded = Model.load(path)
                decided = model.decision_values(X)
                apart = np.abs(loaded.decision_values(X) - decided).max() / np.abs(decided).max()
                agrees = "yes" if apart <= RELOADED else "NO"
                table.rows.append([dataset, name, kernel, f"{apart:.1e}", agrees])
    return table, sum(row[-1] == "yes" for row in table.rows)


def main(argv: Sequence[str] | None = None) -> int:
    options = arguments(__doc__).parse_args(argv)
    shared = shared_folder(options.shared)
    cases = QUICK if options.quick else CASES
    exchanged, alike = exchange(shared, cases)
    print(exchanged.text(), end="\n\n", flush=True)
    reloaded, kept = reload(shared, options.quick)
    print(reloaded.text(), end="\n\n")
    tables = [exchanged, reloaded]
    verdicts = [
        f"{table.title}: {count} of {len(table.rows)}"
        for table, count in zip(tables, (alike, kept), strict=True)
    ]
    print("\n".join(verdicts))
    if not options.quick:
        config = {"outputs": OUTPUTS, "reloaded": RELOADED}
        write_results(options.results, "interop", tables, config=config, verdicts=verdicts)
    return 0 if alike == len(exchanged.rows) and kept == len(reloaded.rows) else 1


if __name__ == "__main__":
    run(main)
