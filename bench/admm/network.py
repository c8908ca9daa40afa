"""ADMM over a network: the figures of the paper on recycled ADMM, and what an update costs.

    python bench/admm/network.py [SHARED] [--figures 1 5] [--lock FILE]

Adult dealt to nodes (network_runs.py says how), C 1750, lam 0.22, rho 0.5, gamma 0.5 unless a
figure changes it, means and ranges over 10 runs:

1  convergence on random graphs of 5 and 20 nodes, and (b) with the paper's penalties, read as
   rho_i (1 + k g_i) at update k = 0, 1, ..: rho = 1, 1.03, 1.02, 0.8, 1.01 and g = 0.01, 0.005,
   0.003, 0.015, 0.01; symmetric, and by node as the paper has them
2  test error against lam     3  gamma     4  growth of the penalties
5  four algorithms whose messages cost the same epsilon, on a complete graph

Then the time of an update beside one fit by scikit-learn, and memory at 100 nodes and 1M rows.
Exit code 1 if a bar is missed. Nothing was chosen by the test rows. The growth of Figure 5 is the
presets' own, 1.02 an update; the order of the four by loss depends on it, so the other growths of
Figure 4 stand beside it.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[2]))

from bench.admm import network_pictures as pictures
from bench.admm.network_cost import median_times, peak_memory
from bench.admm.network_figures import EPSILON, FIGURES, GROWTH, Figure, Scale, gap_bars, order_bars
from bench.admm.network_runs import COST, GAMMA, LAM, RHO, TRAINING, Fits, split
from bench.common import Table, arguments, note, run, shared_folder, write_results
from bench.lock import holding

GAPS = {5: 2e-4, 20: 1.5e-3}
SLOWEST = 2.0
QUICK_ROWS = 1200
QUICK = Scale(runs=2, rounds=5, private_rounds=4, values=2)
LARGE = (1_000_000, 100, 300)  # rows, nodes, features


def figures(fits: Fits, numbers: Sequence[int], scale: Scale, folder: Path | None) -> list[Figure]:
    """The figures asked for, drawn if there is a folder for them."""
    found = []
    for number in numbers:
        one = FIGURES[number](fits, scale)
        if number == 1 and folder is not None:
            gap_bars(one, fits, scale, GAPS)
        if number == 5:
            order_bars(one, fits, scale)
        if folder is not None:
            pictures.floor(one)
            pictures.draw(folder / f"network_figure{number}.png", number, one, scale.runs)
        _tell(one)
        found.append(one)
    return found


def cost(fits: Fits, sizes: tuple[int, int, int], rounds: int, repeats: int) -> Figure:
    """The time of an update, and peak memory."""
    found = Figure()
    table = Table(
        "Milliseconds of an update of node 0 (gradient certified to 1e-9), and of one scikit-learn "
        "fit (newton-cholesky, its own tolerance) of the same rows, in turns; medians",
        ("nodes", "rows of a node", "update", "scikit-learn", "times as long"),
    )
    for nodes in (5, 20):
        rows = split(fits.shared, 0, fits.training)
        note(f"time of an update, {nodes} nodes")
        with holding(fits.lock):
            pairs = [median_times(rows, nodes, rounds) for _ in range(repeats)]
        own, other = (sorted(values)[len(values) // 2] for values in zip(*pairs, strict=True))
        factor = own / other
        size = len(rows.y) // nodes
        shown = [f"{1000 * own:.1f}", f"{1000 * other:.1f}", f"{factor:.2f}"]
        table.rows.append([nodes, size, *shown])
        line = f"{nodes} nodes: an update takes {factor:.2f} times one scikit-learn fit of its rows"
        found.verdicts.append((f"{line}, at most {SLOWEST:g}", factor <= SLOWEST))
    found.tables.append(table)
    _memory(found, fits, sizes)
    return found


def _memory(found: Figure, fits: Fits, sizes: tuple[int, int, int]) -> None:
    note("memory")
    with holding(fits.lock):
        used = peak_memory(*sizes)
    rows, nodes, features = sizes
    table = Table(
        f"Resident MB of a fit of {rows} made sparse rows of {features} features at {nodes} nodes, "
        "above what was resident before the data were made; 3 rounds, no history",
        ("data", "N d^2 doubles", "resident before the fit", "peak of the fit", "seconds"),
    )
    names = ("data_mb", "grams_mb", "with_data_mb", "peak_mb", "seconds")
    table.rows.append([f"{used[name]:.1f}" for name in names])
    limit = used["data_mb"] + used["grams_mb"]
    line = f"{nodes} nodes, {rows} rows: {used['peak_mb']:.0f} MB at the peak, at most the data "
    line += f"and N d^2 doubles, {limit:.0f} MB"
    found.tables.append(table)
    found.verdicts.append((line, used["peak_mb"] <= limit))


def _tell(found: Figure) -> None:
    print(*(table.text() for table in found.tables), *_verdicts(found), sep="\n", flush=True)


def _verdicts(found: Figure) -> list[str]:
    return [f"{line}: {'yes' if holds else 'NO'}" for line, holds in found.verdicts]


def parse(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = arguments(__doc__)
    parser.add_argument("--figures", nargs="+", type=int, choices=FIGURES, default=list(FIGURES))
    parser.add_argument("--lock", type=Path, help="a file whose lock every batch holds (flock)")
    return parser.parse_args(argv)


def main(argv: Sequence[str] | None = None) -> int:
    options = parse(argv)
    quick, whole = options.quick, options.figures == list(FIGURES)
    fits = Fits(shared_folder(options.shared), QUICK_ROWS if quick else TRAINING, options.lock)
    scale = QUICK if quick else Scale()
    if not quick:
        options.results.mkdir(parents=True, exist_ok=True)
    found = figures(fits, options.figures, scale, None if quick else options.results)
    if whole:
        sizes, rounds, repeats = (2000, 10, 30), 5, 1
        if not quick:
            sizes, rounds, repeats = LARGE, 49, 3
        found.append(cost(fits, sizes, rounds, repeats))
        _tell(found[-1])
    if quick:  # small problems say nothing of the bars
        return 0
    if whole:
        config = {"C": COST, "lam": LAM, "rho": RHO, "gamma": GAMMA, "runs": scale.runs}
        config |= {"epsilon": EPSILON, "growth": GROWTH, "training rows": TRAINING}
        tables = [table for one in found for table in one.tables]
        verdicts = [line for one in found for line in _verdicts(one)]
        write_results(options.results, "network", tables, config=config, verdicts=verdicts)
    return 0 if all(holds for one in found for _, holds in one.verdicts) else 1


if __name__ == "__main__":
    run(main)
