"""Frank-Wolfe: theory, speed, uplink and what privacy costs.

    python bench/frank_wolfe/frank_wolfe.py [SHARED] [--parts theory speed] [--lock FILE]

theory   Theorem 1's bound against five samplings, older steps, importance  theory.py
speed    kept Gram columns, copt, scikit-learn's Lasso, sparse text         speed.py
uplink   counts, accuracy against numbers sent, sketch errors               uplink.py
private  F/F0 by epsilon and n, central beside distributed                  private.py

Exit code 1 if a bar is missed. Result files are written when all parts are run.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[2]))

from bench.common import arguments, run, shared_folder, version_of, write_results
from bench.frank_wolfe import pictures
from bench.frank_wolfe.parts import Part
from bench.frank_wolfe.private import FEW, SEEDS, utility
from bench.frank_wolfe.speed import REPEATS, STEPS, speed
from bench.frank_wolfe.theory import RUNS, theory
from bench.frank_wolfe.uplink import DELTA, PARTIES, uplink
from bench.lock import holding

Drawn = Path | None  # a folder for pictures


def _theory(_shared: Path, quick: bool, lock: Path | None, drawn: Drawn) -> Part:
    with holding(lock):
        found = theory(quick)
    if drawn is not None:
        pictures.convergence(drawn / "frank_wolfe_convergence.png", found.curves, RUNS)
    return found


def _speed(shared: Path, quick: bool, lock: Path | None, _drawn: Drawn) -> Part:
    return speed(shared, quick, lock)


def _uplink(shared: Path, quick: bool, lock: Path | None, drawn: Drawn) -> Part:
    found = uplink(shared, quick, lock)
    if drawn is not None:
        path = drawn / "frank_wolfe_uplink.png"
        pictures.uplink(path, f"reuters, {PARTIES} parties, not private", found.curves)
    return found


def _private(_shared: Path, quick: bool, lock: Path | None, drawn: Drawn) -> Part:
    found = utility(quick, lock)
    if drawn is not None:
        pictures.utility(drawn / "frank_wolfe_utility.png", found)
    return found


PARTS: dict[str, Callable[[Path, bool, Path | None, Drawn], Part]] = {
    "theory": _theory,
    "speed": _speed,
    "uplink": _uplink,
    "private": _private,
}


def parse(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = arguments(__doc__)
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=list(PARTS))
    parser.add_argument("--lock", type=Path, help="a file whose lock every batch holds (flock)")
    return parser.parse_args(argv)


def main(argv: Sequence[str] | None = None) -> int:
    options = parse(argv)
    shared, quick = shared_folder(options.shared), options.quick
    if not quick:
        options.results.mkdir(parents=True, exist_ok=True)
    found = []
    for name in options.parts:
        part = PARTS[name](shared, quick, options.lock, None if quick else options.results)
        print(*(table.text() for table in part.tables), *part.lines, sep="\n", flush=True)
        found.append(part)
    if quick:  # small problems say nothing of the bars
        return 0
    if options.parts == list(PARTS):
        config = {"parties": PARTIES, "delta": DELTA, "runs": RUNS, "repeats": REPEATS}
        config |= {"steps": STEPS, "seeds": SEEDS, "seeds of other private methods": FEW}
        config |= {"copt": version_of("copt")}
        tables = [table for part in found for table in part.tables]
        lines = [line for part in found for line in part.lines]
        write_results(options.results, "frank_wolfe", tables, config=config, verdicts=lines)
    return 0 if all(holds for part in found for _, holds in part.bars) else 1


if __name__ == "__main__":
    run(main)
