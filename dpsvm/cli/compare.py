"""``dpsvm compare``: working-set selectors side by side, wss2 the measure."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass, fields
from pathlib import Path

from dpsvm.cli.compare_flags import KERNEL_FLAGS, OUTPUT_FLAGS, RUN_FLAGS
from dpsvm.cli.files import require_folder
from dpsvm.cli.options import UsageError, help_page, parse
from dpsvm.cli.outputs import require_matplotlib
from dpsvm.comparison import Comparison, Dataset, Journal, Plan, Run, Setting, grid
from dpsvm.data import atomic_write, load_libsvm
from dpsvm.report import records
from dpsvm.report.page import page
from dpsvm.report.progress import runs_progress
from dpsvm.svm.parameters import Parameters

_USAGE = "usage: dpsvm compare [flags] [FILE ...]"
_SOME_FAILED = 1
_GRID = ("selectors", "selection_epsilon", "sigma", "shrinking")


def help_text() -> str:
    """The help of the command."""
    return help_page(
        _USAGE,
        "Trains each FILE, in LIBSVM's format and class order, plain or compressed, with every "
        "selector, and compares iterations, objectives, gaps and scores with wss2's. Without a "
        "FILE: scikit-learn's breast-cancer data, scaled to [-1, 1].",
        ("What is run", RUN_FLAGS),
        ("The machine, with LIBSVM's flags", KERNEL_FLAGS),
        ("What is written", OUTPUT_FLAGS),
        ending="The exit code is 0, 1 if some of the files could not be compared, 2 for an error "
        "before anything was run, and 130 when interrupted: what was finished is then shown.",
    )


@dataclass(frozen=True, kw_only=True)
class _Job:
    """What the command line asks for."""

    plan: Plan
    files: list[str]
    jobs: int
    test: str | None
    resume: str | None
    json: str | None
    csv: str | None
    html: str | None
    plot: str | None
    quiet: bool


def run(arguments: list[str]) -> None:
    """Carry out the command."""
    job = _read_job(arguments)
    datasets, test, failures = _load(job)
    journal = None if job.resume is None else Journal(job.resume)
    comparisons: list[Comparison] = []
    try:
        for data in datasets:
            _compare(job, data, test, journal, comparisons, failures)
    except KeyboardInterrupt:
        _warn("interrupted: what follows is what was finished" + _how_to_resume(job))
        raise
    finally:
        _write(job, [one for one in comparisons if one.runs], failures)
    if failures and not comparisons:
        raise ValueError(failures[0])
    for failure in failures:
        _say("error", failure)
    if failures:
        raise SystemExit(_SOME_FAILED)


def _read_job(arguments: list[str]) -> _Job:
    values, files = parse(arguments, RUN_FLAGS + KERNEL_FLAGS + OUTPUT_FLAGS)
    if values["test"] is not None and len(files) != 1:
        raise UsageError(f"--test goes with one FILE, got {len(files)}")
    settings = grid(*(values.pop(name) for name in _GRID))
    names = {field.name for field in fields(Parameters)}
    parameters = Parameters(**{name: values.pop(name) for name in names & values.keys()})
    plan_values = {name: values.pop(name) for name in ("runs", "seed", "cv")}
    plan = Plan(settings=settings, parameters=parameters, **plan_values)
    job = _Job(plan=plan, files=files, **values)
    for path in (job.json, job.csv, job.html, job.resume):
        if path is not None:
            require_folder(path)
    if job.plot is not None and Path(job.plot).is_file():
        raise UsageError(f"--plot {job.plot}: a folder is needed, and this is a file")
    if job.plot is not None:
        require_matplotlib()
    return job


def _load(job: _Job) -> tuple[list[Dataset], Dataset | None, list[str]]:
    """Read every file before anything is run; data that are not two classes are failures."""
    if not job.files:
        return [Dataset.breast_cancer()], None, []
    read = [(path, *load_libsvm(path, labels="class")) for path in job.files]
    held_out = None if job.test is None else load_libsvm(job.test, labels="class")
    datasets, failures = [], []
    for path, X, y in read:
        try:
            datasets.append(Dataset.of(X, y, _name(path)))
        except ValueError as error:
            failures.append(f"{path}: {error}")
    test = None
    if held_out is not None and job.test is not None and datasets:
        test = datasets[0].coded(*held_out, job.test)
    return datasets, test, failures


def _name(path: str) -> str:
    name = Path(path)
    return name.stem if name.suffix in (".gz", ".bz2", ".xz") else name.name


def _compare(
    job: _Job,
    data: Dataset,
    test: Dataset | None,
    journal: Journal | None,
    comparisons: list[Comparison],
    failures: list[str],
) -> None:
    """Compare one data set; what is finished when it ends early is kept in ``comparisons``."""
    runs: dict[Setting, list[Run]] = {}
    try:
        total = len(job.plan.tasks(data, test))
        with runs_progress(data.name, total, not job.quiet) as tick:
            Comparison.of(
                job.plan, data, test, jobs=job.jobs, journal=journal, tick=tick, into=runs
            )
    except (ValueError, MemoryError) as error:
        failures.append(f"{data.name}: {error or 'out of memory'}")
        return
    finally:
        if runs:
            comparisons.append(Comparison(job.plan, data, runs, test))
            if not job.quiet:
                print(comparisons[-1], end="\n\n", flush=True)


def _write(job: _Job, comparisons: list[Comparison], failures: list[str]) -> None:
    if not comparisons:
        return
    writers: list[tuple[str | None, Callable[[], str]]] = [
        (job.json, lambda: records.json_text(comparisons, failures)),
        (job.csv, lambda: records.csv_text(comparisons)),
        (job.html, lambda: page(comparisons, failures)),
    ]
    for path, text in writers:
        if path is not None:
            with atomic_write(path) as file:
                file.write(text())
    if job.plot is not None:
        from dpsvm.report.figures import save

        save(comparisons, job.plot)


def _how_to_resume(job: _Job) -> str:
    if job.resume is None:
        return "; with --resume FILE it could go on from there"
    return f"; the same command goes on from {job.resume}"


def _warn(text: str) -> None:
    _say("warning", text)


def _say(kind: str, text: str) -> None:
    print(f"dpsvm compare: {kind}: {text}", file=sys.stderr)
