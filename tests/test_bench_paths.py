"""The folders of bench: whatever is named there exists, and every script finds what it imports."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from benches import BENCH, ROOT

FOLDERS = (".ci", ".github", "bench", "csrc", "dpsvm", "tests")
SUFFIXES = ("", ".cff", ".cpp", ".hpp", ".md", ".py", ".pyi", ".pyx", ".toml", ".yaml", ".yml")
NAMED = re.compile(r"(?<![\w./-])(?:\.\./)*(bench(?:/\w[\w.-]*)+)")
ON_PATH = "sys.path.append(str(Path(__file__).resolve().parents[2]))"


def texts() -> Iterator[Path]:
    """What people write here, not what programs make of it."""
    inside = (path for folder in FOLDERS for path in sorted((ROOT / folder).rglob("*")))
    for path in (*sorted(ROOT.iterdir()), *inside):
        if path.suffix in SUFFIXES and path.is_file():
            yield path


def named(text: str) -> list[str]:
    """The paths below bench that a text names, also those of its links from other folders."""
    return [path.rstrip(".") for path in NAMED.findall(text)]


def scripts() -> list[Path]:
    """What is run by its path and takes something from bench or dpsvm."""
    return [
        path
        for path in sorted(BENCH.rglob("*.py"))
        if re.search(r"^if __name__ ==", path.read_text(), re.M) and imports(path)
    ]


def imports(path: Path) -> list[int]:
    """The lines, outside of functions, where something of bench or dpsvm is imported."""
    found = []
    for node in ast.parse(path.read_text()).body:
        if isinstance(node, ast.Import):
            names = [one.name for one in node.names]
        else:
            names = [node.module or ""] if isinstance(node, ast.ImportFrom) else []
        found += [node.lineno for name in names if name.split(".")[0] in ("bench", "dpsvm")]
    return found


def test_every_path_that_is_named_exists() -> None:
    stale = {
        f"{text.relative_to(ROOT)}: {path}"
        for text in texts()
        for path in named(text.read_text(encoding="utf-8", errors="replace"))
        if not (ROOT / path).exists()
    }
    assert not stale


def test_paths_are_seen_wherever_they_stand() -> None:
    text = "`python bench/core/threads.py DATA`, (../bench/results/fuzz.md), bench/common.py. Etc"
    assert named(text) == ["bench/core/threads.py", "bench/results/fuzz.md", "bench/common.py"]
    assert named("workbench/f.py x/bench/f.py bench/") == []


@pytest.mark.parametrize("script", scripts(), ids=lambda path: str(path.relative_to(BENCH)))
def test_a_script_runs_from_any_folder(script: Path) -> None:
    lines = script.read_text().splitlines()
    assert ON_PATH in lines
    assert lines.index(ON_PATH) + 1 < min(imports(script))
