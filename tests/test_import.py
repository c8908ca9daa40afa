"""A source folder without the compiled core says what to do; a broken core speaks for itself."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import dpsvm
from dpsvm import _core


@pytest.fixture
def source(tmp_path: Path) -> Path:
    """A folder with the package's Python files alone."""
    package = Path(dpsvm.__file__).parent
    shutil.copytree(package, tmp_path / "dpsvm", ignore=shutil.ignore_patterns("*.so", "*.pyd"))
    return tmp_path


def python(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    environment = os.environ | {"PYTHONPATH": str(folder)}
    return subprocess.run(
        [sys.executable, *words],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.parametrize("words", ["import dpsvm", "from dpsvm.svm import SVC"])
def test_a_source_folder_that_is_not_built_says_what_to_do(words: str, source: Path) -> None:
    done = python(source, "-c", words)
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1] == (
        f"ImportError: dpsvm's compiled core is not built in {source}: run "
        "'pip install -e .' there, or leave the source folder to use an installed dpsvm"
    )


def test_the_command_says_it_in_one_line(source: Path) -> None:
    done = python(source, "-m", "dpsvm", "--version")
    assert done.returncode != 0
    assert done.stdout == ""
    assert done.stderr.count("\n") == 1
    assert f"dpsvm's compiled core is not built in {source}: run" in done.stderr


def test_a_core_that_does_not_load_raises_its_own_error(source: Path) -> None:
    suffix = Path(_core.__file__).name.partition(".")[2]
    for name in ("_core", "_files"):
        (source / "dpsvm" / f"{name}.{suffix}").write_bytes(b"not a library")
    done = python(source, "-c", "from dpsvm import SVC")
    assert done.returncode == 1
    assert "is not built" not in done.stderr
    assert f".{suffix}" in done.stderr.splitlines()[-1]
