"""Fit and predict time and memory beside scikit-learn, LIBSVM, scikit-learn-intelex, liblinear.

    python bench/speed/speed.py ../shared            # a5a, w8a, ijcnn1 and Fashion-MNIST 10k
    python bench/speed/speed.py ../shared --all      # everything, in float64 and in float32

Every fit runs in a fresh process on the same saved arrays, with the same tolerance, cache and
threads; the libraries take turns, round after round, and the median counts: of five rounds with
--all, of three without. After the fit the first 2000 rows are predicted. --all takes two hours
and records after every workload; the first verdict says what is still missing. With --keep FILE
it goes on where it was stopped, and a workload that was finished is not run again.

The dual objective is worked out afresh from each library's support vectors in the first round,
so a fast wrong answer shows; the difference is to LIBSVM's, or to scikit-learn's where LIBSVM is
absent. liblinear regularises its bias, another problem: it stands beside, with an objective of
its own, and is no part of the bars. a9a and w8a with a linear kernel are for the option that
keeps w; they count in no mean, and --all runs them in float64 only.

What other processes took of the cores meanwhile is measured and told: only a quiet machine's
times are worth keeping. Exit code 1 if dpsvm gives no answer, or another optimum than LIBSVM or
scikit-learn.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[2]))

from bench.common import Absent, Table, arguments, note, run, shared_folder, write_results
from bench.speed.adapters import ADAPTERS, Limits
from bench.speed.speed_bars import Verdict, judge, not_measured
from bench.speed.speed_kept import go_on, keep
from bench.speed.speed_tables import Board, fit_table, predict_table, ratio_table
from bench.speed.turns import Plan, Runs, take_turns
from bench.speed.workloads import WORKLOADS, Workload

QUERIES = 2000  # rows to predict; LIBSVM takes 10 s for them with Fashion-MNIST's ten classes


def chosen(options: argparse.Namespace, dtype: str) -> Iterator[Workload]:
    """The workloads to run in this precision."""
    for workload in WORKLOADS:
        if options.workloads is not None:
            wanted = workload.name in options.workloads
        elif options.all:
            wanted = workload.group == "reach" or (workload.group, dtype) == ("linear", "float64")
        else:
            wanted = workload.first
        if wanted:
            yield workload


def measure(
    workload: Workload, shared: Path, dtype: str, options: argparse.Namespace
) -> dict[str, Runs]:
    """The runs of every library that the workload is the business of."""
    problem = workload.problem(shared, dtype)
    libraries = [
        name
        for name in options.libraries
        if name in (workload.libraries or ADAPTERS)
        and ADAPTERS[name].suits(workload.estimator, workload.params)
    ]
    plan = Plan(options.repeats, options.threads, QUERIES, options.lock)
    with tempfile.TemporaryDirectory() as folder:
        saved = Path(folder, "problem.npz")
        problem.save(saved)
        del problem
        return take_turns(f"{workload.name} {dtype}", libraries, saved, plan)


def parse(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = arguments(__doc__)
    names = [workload.name for workload in WORKLOADS]
    parser.add_argument("--all", action="store_true", help="every workload, in both precisions")
    parser.add_argument("--workloads", nargs="+", choices=names, metavar="NAME")
    parser.add_argument("--libraries", nargs="+", choices=ADAPTERS, default=list(ADAPTERS))
    parser.add_argument("--float32", action="store_true", help="rows in single precision")
    parser.add_argument("--repeats", type=int, help="rounds (default: 3; 5 with --all)")
    parser.add_argument("--threads", type=int, default=Limits.threads)
    parser.add_argument("--lock", type=Path, help="a file whose lock every run holds (flock)")
    parser.add_argument("--keep", type=Path, help="a file for all runs, to go on from")
    options = parser.parse_args(argv)
    if options.quick:
        options.repeats, options.workloads = 1, options.workloads or ["heart"]
    options.repeats = options.repeats or (5 if options.all else 3)
    return options


def report(boards: Mapping[str, Board], *, full: bool) -> tuple[list[Table], list[Verdict]]:
    """The tables and bars of what has been measured."""
    tables: list[Table] = []
    verdicts = [not_measured(boards)] if full else []
    for dtype, board in boards.items():
        if board:
            tables += [make(board, dtype) for make in (fit_table, predict_table, ratio_table)]
            verdicts += judge(board, dtype)
    return tables, verdicts


def main(argv: Sequence[str] | None = None) -> int:
    options = parse(argv)
    shared = shared_folder(options.shared)
    full = options.all and options.workloads is None
    single = "float32" if options.float32 else "float64"
    dtypes = ("float32", "float64") if options.all else (single,)
    boards: dict[str, Board] = {dtype: {} for dtype in dtypes}
    config = vars(Limits(threads=options.threads)) | {
        "dtype": " and ".join(boards),
        "repeats": options.repeats,
        "queries": QUERIES,
    }
    if options.keep is not None:
        go_on(options.keep, boards, config)

    def record() -> None:
        tables, verdicts = report(boards, full=full)
        name = "speed-all" if full else "speed-float32" if options.float32 else "speed"
        lines = [verdict.line for verdict in verdicts]
        write_results(options.results, name, tables, config=config, verdicts=lines)

    for dtype, board in boards.items():
        for workload in chosen(options, dtype):
            if workload.name in board:
                continue
            try:
                board[workload.name] = measure(workload, shared, dtype, options)
            except Absent as reason:
                note(f"{workload.name}: skipped, {reason}")
            if options.keep is not None:
                keep(options.keep, boards, config)
            if full:
                record()
    tables, verdicts = report(boards, full=full)
    lines = [verdict.line for verdict in verdicts]
    print(*(table.text() for table in tables), "\n".join(lines), sep="\n\n")
    if not options.quick:
        record()
    return 1 if any(verdict.failed for verdict in verdicts) else 0


if __name__ == "__main__":
    run(main)
