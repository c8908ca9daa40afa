"""``dpsvm compare``: working-set selectors side by side, wss2 the measure."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dpsvm.cli.files import require_folder, require_matplotlib
from dpsvm.cli.machine_flags import CHOICES, KERNEL_FLAGS, table_flag, take_parameters
from dpsvm.cli.options import Flag, UsageError, help_page, parse, several, whole
from dpsvm.comparison import Comparison, Dataset, Journal, Plan, Run, Setting, grid, results
from dpsvm.comparison.page import page
from dpsvm.data import atomic_write, load_libsvm
from dpsvm.progress import runs_progress
from dpsvm.svm.parameters import TABLE
from dpsvm.svm.selectors import NUMBERS, SELECTORS

_USAGE = "usage: dpsvm compare [flags] [FILE ...]"
_SOME_FAILED = 1
_SHRINKING = {"on": (True,), "off": (False,), "both": (True, False)}


def _listed(name: str) -> Callable[[str], tuple[Any, ...]]:
    setting = TABLE[name]

    def read(text: str) -> tuple[Any, ...]:
        try:
            return tuple(setting.read(part) for part in text.split(","))
        except ValueError as error:  # it names the flag of one value
            raise ValueError(str(error).removeprefix(f"{setting.flag} ")) from None

    return read


def _shrinking(text: str) -> tuple[bool, ...]:
    if text not in _SHRINKING:
        raise ValueError(f"{text!r} is not on, off or both")
    return _SHRINKING[text]


def _number_flag(name: str) -> Flag:
    row = TABLE[name]
    return table_flag(
        name,
        meaning=f"values separated by commas, {row.meaning}",
        takes="x,...",
        read=_listed(name),
        default=(row.default,),
        default_text=f"{row.default:g}",
    )


_RUN_FLAGS = (
    Flag(
        "--selectors",
        "selectors to compare, separated by commas; wss2 is always run",
        "names",
        _listed("selector"),
        tuple(SELECTORS),
        default_text="all",
        choices=CHOICES,
    ),
    *map(_number_flag, NUMBERS),
    Flag("--runs", "runs of each setting that draws random numbers", "n", whole(1), 10),
    Flag("--shrinking", "on, off or both", "which", _shrinking, (True,), default_text="on"),
    Flag("--seed", "seed of the first run", "n", whole(0), 0),
    Flag("--cv", "also score by cross-validation, in svm-train's folds", "k", whole(2)),
    Flag("--test", "also score on a held-out file", "file", str),
    Flag("--jobs", "runs at a time, -1 for one per core", "n", several("runs"), 1),
    Flag(
        "--resume",
        "keep every run in a file as it ends, and do not repeat the runs found there",
        "file",
        str,
    ),
)
_MACHINE_FLAGS = (
    *KERNEL_FLAGS,
    *map(table_flag, ("C", "cache_size", "tol")),
    table_flag("max_iter", default_text="none"),
)
_OUTPUT_FLAGS = (
    Flag("--json", "write everything, every run included, to a JSON file", "file", str),
    Flag("--csv", "write one line per setting to a CSV file", "file", str),
    Flag("--html", "write one page of tables and charts (matplotlib)", "file", str),
    Flag("--plot", "write the charts to a folder as PNG (matplotlib)", "folder", str),
    Flag("-q", "print no tables", default=False, name="quiet"),
)


def help_text() -> str:
    """The help of the command."""
    return help_page(
        _USAGE,
        "Trains each FILE, in LIBSVM's format and class order, plain or compressed, with every "
        "selector, and compares iterations, objectives, gaps and scores with wss2's. Without a "
        "FILE: scikit-learn's breast-cancer data, scaled to [-1, 1].",
        ("What is run", _RUN_FLAGS),
        ("The machine, with LIBSVM's flags", _MACHINE_FLAGS),
        ("What is written", _OUTPUT_FLAGS),
        ending="The exit code is 0, 1 if some of the files could not be compared, 2 for an error "
        "before anything was run, and 130 when interrupted: what was finished is then shown.",
    )


@dataclass(frozen=True, kw_only=True)
class _Request:
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
    request = _read_request(arguments)
    datasets, test, failures = _load(request)
    journal = None if request.resume is None else Journal(request.resume)
    comparisons: list[Comparison] = []
    try:
        for data in datasets:
            _compare(request, data, test, journal, comparisons, failures)
    except KeyboardInterrupt:
        _warn("interrupted: what follows is what was finished" + _how_to_resume(request))
        raise
    finally:
        _write(request, [one for one in comparisons if one.runs], failures)
    if failures and not comparisons:
        raise ValueError(failures[0])
    for failure in failures:
        _say("error", failure)
    if failures:
        raise SystemExit(_SOME_FAILED)


def _read_request(arguments: list[str]) -> _Request:
    values, files = parse(arguments, _RUN_FLAGS + _MACHINE_FLAGS + _OUTPUT_FLAGS)
    if values["test"] is not None and len(files) != 1:
        raise UsageError(f"--test goes with one FILE, got {len(files)}")
    settings = grid(**{name: values.pop(name) for name in ("selectors", "shrinking", *NUMBERS)})
    plan_values = {name: values.pop(name) for name in ("runs", "seed", "cv")}
    plan = Plan(settings=settings, parameters=take_parameters(values), **plan_values)
    request = _Request(plan=plan, files=files, **values)
    for path in (request.json, request.csv, request.html, request.resume):
        require_folder(path)
    if request.plot is not None and Path(request.plot).is_file():
        raise UsageError(f"--plot {request.plot}: a folder is needed, and this is a file")
    for flag, path in (("--plot", request.plot), ("--html", request.html)):
        if path is not None:
            require_matplotlib(flag)
    return request


def _load(request: _Request) -> tuple[list[Dataset], Dataset | None, list[str]]:
    """Read every file before anything is run; data that are not two classes are failures."""
    if not request.files:
        return [Dataset.breast_cancer()], None, []
    read = [(path, *load_libsvm(path, labels="class")) for path in request.files]
    held_out = None if request.test is None else load_libsvm(request.test, labels="class")
    datasets, failures = [], []
    for path, X, y in read:
        try:
            datasets.append(Dataset.of(X, y, _name(path)))
        except ValueError as error:
            failures.append(f"{path}: {error}")
    test = None
    if held_out is not None and request.test is not None and datasets:
        test = datasets[0].coded(*held_out, request.test)
    return datasets, test, failures


def _name(path: str) -> str:
    name = Path(path)
    return name.stem if name.suffix in (".gz", ".bz2", ".xz") else name.name


def _compare(
    request: _Request,
    data: Dataset,
    test: Dataset | None,
    journal: Journal | None,
    comparisons: list[Comparison],
    failures: list[str],
) -> None:
    """Compare one data set; what is finished when it ends early is kept in ``comparisons``."""
    runs: dict[Setting, list[Run]] = {}
    try:
        total = len(request.plan.tasks(data, test))
        with runs_progress(data.name, total, not request.quiet) as tick:
            Comparison.of(
                request.plan, data, test, jobs=request.jobs, journal=journal, tick=tick, into=runs
            )
    except (ValueError, MemoryError) as error:
        failures.append(f"{data.name}: {error or 'out of memory'}")
        return
    finally:
        if runs:
            comparisons.append(Comparison(request.plan, data, runs, test))
            if not request.quiet:
                print(comparisons[-1], end="\n\n", flush=True)


def _write(request: _Request, comparisons: list[Comparison], failures: list[str]) -> None:
    if not comparisons:
        return
    writers: list[tuple[str | None, Callable[[], str]]] = [
        (request.json, lambda: results.json_text(comparisons, failures)),
        (request.csv, lambda: results.csv_text(comparisons)),
        (request.html, lambda: page(comparisons, failures)),
    ]
    for path, text in writers:
        if path is not None:
            with atomic_write(path) as file:
                file.write(text())
    if request.plot is not None:
        from dpsvm.comparison.charts import save

        save(comparisons, request.plot)


def _how_to_resume(request: _Request) -> str:
    if request.resume is None:
        return "; with --resume FILE it could go on from there"
    return f"; the same command goes on from {request.resume}"


def _warn(text: str) -> None:
    _say("warning", text)


def _say(kind: str, text: str) -> None:
    print(f"dpsvm compare: {kind}: {text}", file=sys.stderr)
