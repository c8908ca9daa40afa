"""What is imported, and when; a source folder that is not built says what to do."""

from __future__ import annotations

import os
import pickle
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import dpsvm
import dpsvm._lazy
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


def loaded_by(code: str) -> set[str]:
    """The packages of others that some code loads."""
    home = Path(dpsvm.__file__).parents[1]
    done = python(home, "-c", f"{code}\nimport sys; print(*sys.modules, file=sys.stderr)")
    assert done.returncode == 0, done.stderr
    return {"numpy", "scipy", "sklearn", "typing", "dataclasses"} & set(done.stderr.split())


def test_nothing_is_loaded_before_it_is_asked_for() -> None:
    # An editable install loads typing before anybody asks.
    before = loaded_by("pass")
    assert loaded_by("import dpsvm, dpsvm.svm") == before
    assert loaded_by("from dpsvm.cli import main; main(['--version'])") == before
    assert "sklearn" in loaded_by("from dpsvm import SVC")


@pytest.mark.parametrize("words", ["train -q {0} {0}.model", "train -q -v 2 {0}", "scale {0}"])
def test_the_programs_of_libsvm_load_neither_scipy_nor_sklearn(words: str, tmp_path: Path) -> None:
    data = tmp_path / "data"
    data.write_text("1 1:1 2:0.5\n-1 1:0.25\n1 2:3\n-1 1:-1 2:-1\n")
    commands = [words.format(data).split()]
    if words.startswith("train -q {0} {0}"):
        commands.append(f"predict {data} {data}.model {data}.out".split())
    for command in commands:
        code = f"from dpsvm.cli import main; assert main({command!r}) == 0"
        assert loaded_by(code) == {"numpy", "typing", "dataclasses"}


@pytest.mark.parametrize("program", ["train", "predict", "scale"])
@pytest.mark.parametrize("flags", ["--help", "-h", "--nonsense data", "-q data --epsilon 1", ""])
def test_help_and_refusals_load_neither_scipy_nor_sklearn(program: str, flags: str) -> None:
    words = [program, *flags.split()]
    code = f"from dpsvm.cli import main; assert main({words!r}) == {0 if flags == '--help' else 2}"
    assert loaded_by(code) == {"numpy", "typing", "dataclasses"}


@pytest.mark.parametrize("words", [["--help"], ["run", "--help"], ["trian"]])
def test_what_needs_no_arrays_does_not_load_numpy(words: list[str]) -> None:
    code = f"from dpsvm.cli import main; assert main({words!r}) == {2 * (words == ['trian'])}"
    assert "numpy" not in loaded_by(code)


def test_every_name_is_found_and_others_are_not() -> None:
    for package in (dpsvm, dpsvm.svm):
        assert set(package.__all__) <= set(dir(package))
        assert all(hasattr(package, name) for name in package.__all__)
        with pytest.raises(AttributeError, match="has no attribute 'SVD'"):
            _ = package.SVD
    with pytest.raises(ImportError, match="cannot import name 'SVD'"):
        exec("from dpsvm import SVD")


def test_classes_are_pickled_under_the_module_that_defines_them() -> None:
    assert pickle.loads(pickle.dumps(dpsvm.SVC)) is dpsvm.svm.SVC
    assert b"dpsvm.svm.classification" in pickle.dumps(dpsvm.SVC)
