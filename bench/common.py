"""What the benchmarks share: the data folder, the machine's facts, tables and result files."""

from __future__ import annotations

import argparse
import contextlib
import importlib.metadata
import json
import math
import os
import platform
import resource
import shutil
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

ROOT = Path(__file__).resolve().parent.parent
RESULTS = ROOT / "bench" / "results"
MEGABYTE = 2**20


class Absent(Exception):
    """Something a benchmark can do without (a data set, a program, a library) is not here."""


def run(main: Callable[[], int]) -> None:
    """Exit with main's code, or with 2 and one line when something it needs is absent."""
    try:
        sys.exit(main())
    except Absent as reason:
        print(f"{Path(sys.argv[0]).name}: {reason}", file=sys.stderr)
        sys.exit(2)


def arguments(description: str | None) -> argparse.ArgumentParser:
    """The options every benchmark takes."""
    parser = argparse.ArgumentParser(
        description=description, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "shared",
        nargs="?",
        help="folder that holds data/ and truth/ (default: $DPSVM_DATA, then ../shared)",
    )
    parser.add_argument(
        "--quick", action="store_true", help="a subset of seconds; writes no result files"
    )
    parser.add_argument("--results", type=Path, default=RESULTS, help="where result files go")
    return parser


def shared_folder(given: str | None = None) -> Path:
    """The folder that holds data/ and truth/, or Absent saying where it was looked for."""
    named = given or os.environ.get("DPSVM_DATA")
    folder = Path(named) if named else ROOT.parent / "shared"
    if not (folder / "data").is_dir():
        raise Absent(f"no data/ in {folder}: give the folder or set DPSVM_DATA")
    return folder


def data_file(shared: Path, name: str) -> Path:
    """The compressed LIBSVM file of a data set."""
    path = shared / "data" / f"{name}.xz"
    if not path.is_file():
        raise Absent(f"no data set {name} in {shared / 'data'}")
    return path


def load(
    shared: Path, name: str, *, rows: int | None = None, dtype: type = np.float64
) -> tuple[sp.csr_matrix, np.ndarray]:
    """The (first) rows of a data set, read by dpsvm's own reader."""
    from dpsvm.data import load_libsvm

    X, y = load_libsvm(data_file(shared, name), dtype=dtype)
    return sp.csr_matrix(X)[:rows], y[:rows]


def require_program(name: str) -> str:
    """The path of a program, or Absent."""
    path = shutil.which(name)
    if path is None:
        raise Absent(f"{name} is not on PATH")
    return path


def child_environment(**variables: str) -> dict[str, str]:
    """The environment in which a child Python imports the same dpsvm as this process."""
    import dpsvm

    home = str(Path(next(iter(dpsvm.__path__))).parent)
    paths = [home, *filter(None, [os.environ.get("PYTHONPATH")])]
    return os.environ | {"PYTHONPATH": os.pathsep.join(paths)} | variables


def version_of(distribution: str) -> str | None:
    """The installed version of a Python distribution, None if it is not installed."""
    try:
        return importlib.metadata.version(distribution)
    except importlib.metadata.PackageNotFoundError:
        return None


def machine_facts() -> dict[str, Any]:
    """What a reader needs to judge a time: processor, memory, versions."""
    from dpsvm._core import cpu_level

    libraries = ("dpsvm", "numpy", "scipy", "scikit-learn", "scikit-learn-intelex")
    return {
        "processor": _processor(),
        "cores": os.cpu_count(),
        "memory_gb": round(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30, 1),
        "system": f"{platform.system()} {platform.machine()}",
        "python": platform.python_version(),
        "dpsvm_code_path": cpu_level(),
        "versions": {name: version_of(name) for name in (*libraries, "libsvm-official")},
    }


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor() or "unknown"
    names = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(names, "unknown")


def memory() -> tuple[int, int]:
    """This process's resident bytes, now and at their peak.

    The peak is VmHWM where the kernel gives it: ru_maxrss outlives exec, so a child started by
    a big parent begins with the parent's peak.
    """
    try:
        status = Path("/proc/self/status").read_text()
    except OSError:
        unit = 1 if sys.platform == "darwin" else 1024
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit
        return peak, peak
    sizes = dict(line.split(":", 1) for line in status.splitlines())
    return int(sizes["VmRSS"].split()[0]) * 1024, int(sizes["VmHWM"].split()[0]) * 1024


def busy_seconds() -> tuple[float, float]:
    """Processor seconds spent so far, over all cores: by everyone, and by this process's family.

    Children count once they have ended. Without /proc the first is nan.
    """
    own = resource.getrusage(resource.RUSAGE_SELF), resource.getrusage(resource.RUSAGE_CHILDREN)
    family = sum(usage.ru_utime + usage.ru_stime for usage in own)
    try:
        fields = Path("/proc/stat").read_text().splitlines()[0].split()[1:]
    except OSError:
        return math.nan, family
    user, nice, system, _idle, _waiting, *interrupts = map(int, fields[:8])
    return (user + nice + system + sum(interrupts)) / os.sysconf("SC_CLK_TCK"), family


def forget_peak() -> None:
    """Start the peak of ``memory`` again from now, where the kernel can."""
    with contextlib.suppress(OSError):
        Path("/proc/self/clear_refs").write_text("5")


@dataclass
class Table:
    """A titled table that prints as aligned text or as markdown."""

    title: str
    columns: Sequence[str]
    rows: list[Sequence[object]] = field(default_factory=list)

    def text(self) -> str:
        cells = [list(map(str, self.columns)), *(list(map(_cell, row)) for row in self.rows)]
        widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
        lines = ["  ".join(map(str.ljust, row, widths)).rstrip() for row in cells]
        return "\n".join([self.title, *(f"  {line}" for line in lines)])

    def markdown(self) -> str:
        lines = [_markdown_row(self.columns), _markdown_row(["---"] * len(self.columns))]
        lines += [_markdown_row(map(_cell, row)) for row in self.rows]
        return "\n".join([f"## {self.title}", "", *lines])

    def records(self) -> list[dict[str, object]]:
        return [dict(zip(self.columns, map(_plain, row), strict=True)) for row in self.rows]


def _cell(value: object) -> str:
    if value is None:
        return "-"
    if isinstance(value, float):
        return f"{value:.10g}" if abs(value) >= 1 else f"{value:.4g}"
    return str(value)


def _plain(value: object) -> object:
    return value.item() if isinstance(value, np.generic) else value


def _markdown_row(cells: Iterable[str]) -> str:
    return "| " + " | ".join(cells) + " |"


def write_results(
    folder: Path,
    name: str,
    tables: Sequence[Table],
    *,
    config: Mapping[str, object],
    verdicts: Sequence[str],
    pictures: Mapping[str, object] | None = None,
) -> None:
    """Write NAME.json and NAME.md: what ran, on what machine, and every row.

    pictures : what they are drawn from, so that they can be drawn anew; in the JSON alone
    """
    from dpsvm.data import atomic_write

    folder.mkdir(parents=True, exist_ok=True)
    facts = machine_facts()
    document = {
        "bench": name,
        "config": config,
        "machine": facts,
        "verdicts": verdicts,
        "tables": {table.title: table.records() for table in tables},
    } | ({} if pictures is None else {"pictures": pictures})
    with atomic_write(folder / f"{name}.json") as stream:
        json.dump(document, stream, indent=1)
        stream.write("\n")
    versions = ", ".join(f"{key} {value or 'absent'}" for key, value in facts["versions"].items())
    machine = f"{facts['processor']}, {facts['cores']} cores, {facts['memory_gb']} GB"
    head = [
        f"# {name}",
        "",
        *(f"- {verdict}" for verdict in verdicts),
        f"- config: {', '.join(f'{key}={value}' for key, value in config.items())}",
        f"- machine: {machine}, {facts['system']}",
        f"- dpsvm code path: {facts['dpsvm_code_path']}",
        f"- versions: Python {facts['python']}, {versions}",
    ]
    with atomic_write(folder / f"{name}.md") as stream:
        stream.write("\n".join([*head, *(f"\n{table.markdown()}" for table in tables), ""]))


def add_table(folder: Path, name: str, table: Table) -> None:
    """Put one more table into written results, or in the place of that of its title."""
    from dpsvm.data import atomic_write

    document = read_results(folder, name)
    document["tables"][table.title] = table.records()
    head, *parts = (folder / f"{name}.md").read_text().rstrip("\n").split("\n\n## ")
    others = [f"## {part}" for part in parts if part.partition("\n")[0] != table.title]
    with atomic_write(folder / f"{name}.json") as stream:
        json.dump(document, stream, indent=1)
        stream.write("\n")
    with atomic_write(folder / f"{name}.md") as stream:
        stream.write("\n\n".join([head, *others, f"{table.markdown()}\n"]))


def read_results(folder: Path, name: str) -> dict[str, Any]:
    """What ``write_results`` wrote."""
    document: dict[str, Any] = json.loads((folder / f"{name}.json").read_text())
    return document


def note(line: str) -> None:
    """Progress, for whoever watches: to stderr, so stdout holds only tables and verdicts."""
    print(line, file=sys.stderr, flush=True)
