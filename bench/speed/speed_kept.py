"""The runs of ``speed.py --all`` kept in a file, so that what was interrupted goes on.

A workload's runs are taken together or not at all: the libraries took turns on it. The file also
holds what they depend on, and runs of other settings, another machine or other versions are
refused.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from bench.common import machine_facts
from bench.speed.speed_tables import Board
from bench.speed.turns import Runs


def keep(path: Path, boards: Mapping[str, Board], config: Mapping[str, object]) -> None:
    """Write all the runs there are."""
    from dpsvm.data import atomic_write

    runs = {
        dtype: {
            workload: {library: list(known.answers) for library, known in libraries.items()}
            for workload, libraries in board.items()
        }
        for dtype, board in boards.items()
    }
    with atomic_write(path) as stream:
        json.dump({"depends_on": _depends_on(config), "runs": runs}, stream, indent=1)
        stream.write("\n")


def go_on(path: Path, boards: Mapping[str, Board], config: Mapping[str, object]) -> None:
    """Fill in the runs that a file holds, if there is one."""
    if not path.exists():
        return
    document = json.loads(path.read_text())
    wanted: dict[str, Any] = json.loads(json.dumps(_depends_on(config)))
    for name, value in wanted.items():
        if document["depends_on"].get(name) != value:
            raise SystemExit(
                f"{path} holds runs with {name} = {document['depends_on'].get(name)}, and this is "
                f"{value}: take another file"
            )
    for dtype, workloads in document["runs"].items():
        for workload, libraries in workloads.items():
            boards[dtype][workload] = {
                library: Runs(answers) for library, answers in libraries.items()
            }


def _depends_on(config: Mapping[str, object]) -> dict[str, Any]:
    return {"config": dict(config), "machine": machine_facts()}
