"""The releases that are supported: what is declared, and the bench that tests each set."""

from __future__ import annotations

import doctest
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
import sklearn

from bench.platforms import versions
from dpsvm import SVC
from dpsvm._sklearn import RELEASE
from dpsvm.admm import NetworkADMM
from dpsvm.frank_wolfe import FrankWolfeLasso

ROOT = Path(__file__).resolve().parent.parent


def test_the_oldest_set_is_what_pyproject_allows() -> None:
    declared = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["dependencies"]
    lines = (ROOT / ".ci" / "oldest.txt").read_text().splitlines()
    assert [line.replace("==", ">=") for line in lines if not line.startswith("#")] == declared


def test_a_release_is_known_by_its_first_two_numbers() -> None:
    assert sklearn.__version__.startswith("{}.{}".format(*RELEASE))


@pytest.mark.parametrize("estimator", [SVC, FrankWolfeLasso, NetworkADMM])
def test_estimators_take_callbacks_where_scikit_learn_has_them(estimator: type) -> None:
    assert hasattr(estimator, "set_callbacks") == (RELEASE >= (1, 9))


def test_what_versions_reads_and_runs() -> None:
    assert doctest.testmod(versions).failed == 0
    assert versions.counts("12 passed\nTerminated") is None
    readme = (ROOT / "README.md").read_text()
    command = versions.readme_command(readme, "python3.12", "test", ["-n", "2"])
    assert re.fullmatch(r"python3\.12 -m venv .* -m pytest -n 2", command)


def test_an_interpreter_is_believed_for_what_it_says_of_itself(tmp_path: Path) -> None:
    told = subprocess.run([sys.executable, "-c", versions.NAME], capture_output=True, text=True)
    name = told.stdout.strip()
    for each in (name, "2.9"):
        (tmp_path / f"python{each}").symlink_to(sys.executable)
    assert versions.interpreter(name, [tmp_path]) == str(tmp_path / f"python{name}")
    assert versions.interpreter("2.9", [tmp_path]) is None
    assert versions.interpreter("2.8", [tmp_path]) is None


def test_a_missing_interpreter_is_told_of_and_is_no_failure(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(versions.SETS, "ancient", versions.Releases("2.8"))
    assert versions.main(["--quick", "--sets", "ancient"]) == 0
    assert "sets whose interpreter is not here: ancient\n" in capsys.readouterr().out


def test_a_gil_that_comes_back_is_a_failure() -> None:
    free = versions.Releases("3.14t")
    assert list(versions.troubles(free, {"gil": False}, 0)) == []
    assert "the GIL is back" in "".join(versions.troubles(free, {"gil": True}, 0))
    assert list(versions.troubles(versions.Releases("3.14"), {"gil": True}, 0)) == []
    assert "pytest ended with 1" in "".join(versions.troubles(free, {"gil": False}, 1))
