"""A selector is one C++ file: one that the library has never heard of, loaded beside its core."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
COMPILER = shutil.which(os.environ.get("CXX", "g++"))
FLAGS = ["-std=c++17", "-O1", "-Wno-psabi", "-shared", "-fPIC", f"-I{ROOT / 'csrc'}"]
DATA = (
    "import numpy as np; rng = np.random.default_rng(0)\n"
    "X = rng.normal(size=(60, 3)); y = (X[:, 0] + rng.normal(size=60) > 0).astype(float)\n"
)

pytestmark = pytest.mark.skipif(
    not sys.platform.startswith("linux") or COMPILER is None,
    reason="a library takes the core's symbols as it is loaded on Linux alone, with a compiler",
)


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The one file, compiled by itself; in a build of the core it would lie in csrc."""
    target = tmp_path_factory.mktemp("selector") / "wss_near.so"
    source = ROOT / "tests" / "selector" / "wss_near.cpp"
    command = [str(COMPILER), *FLAGS, str(source), "-o", str(target)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return target


def run(library: Path, code: str) -> subprocess.CompletedProcess[str]:
    """Run Python with the selector among those of the core."""
    load = (
        "import ctypes, os, sys\n"
        "sys.setdlopenflags(os.RTLD_NOW | os.RTLD_GLOBAL)\n"
        "import dpsvm._core\n"
        f"ctypes.CDLL({str(library)!r})\n"
    )
    words = [sys.executable, "-c", load + code]
    return subprocess.run(words, capture_output=True, text=True, check=False, cwd=library.parent)


def printed(library: Path, code: str) -> str:
    done = run(library, code)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_it_is_listed_by_its_name_last_for_its_year(library: Path) -> None:
    found = json.loads(
        printed(
            library,
            "import json; from dpsvm.svm.selectors import NUMBERS, SELECTORS\n"
            "label = SELECTORS['wss-near'].label\n"
            "print(json.dumps([[*SELECTORS], label, NUMBERS['reach'].default]))",
        )
    )
    names, label, reach = found
    assert names[0] == "wss2"
    assert names[-1] == "wss-near"
    assert (label, reach) == ("first good enough", 0.9)


def test_the_core_trains_with_it_and_its_number_counts(library: Path) -> None:
    low, high, reference = json.loads(
        printed(
            library,
            f"{DATA}import json\n"
            "def fit(**options):\n"
            "    [report] = dpsvm._core.train(\n"
            "        X, y, machine='c-svc', kernel='linear', tol=1e-6, **options).reports\n"
            "    return [report.stop_reason, report.iterations, report.objective]\n"
            "settings = [dict(selector='wss-near', reach=reach) for reach in (0.1, 0.99)] + [{}]\n"
            "print(json.dumps([fit(**one) for one in settings]))",
        )
    )
    assert low[0] == high[0] == "stationary"
    assert low[1] != high[1]
    assert low[2] == pytest.approx(reference[2], rel=1e-6)
    assert high[2] == pytest.approx(reference[2], rel=1e-6)


def test_the_commands_have_its_flag_and_say_what_it_does(library: Path) -> None:
    for command in ("train", "compare", "audit"):
        text = printed(library, f"from dpsvm.cli import main; main([{command!r}, '--help'])")
        assert "  --reach x" in text
        assert "for wss-near: share of the largest" in text.replace("\n" + 26 * " ", " ")
        assert "wss-near" in text
        assert "first good enough" in text


def test_what_its_number_may_not_be_is_refused(library: Path) -> None:
    done = run(
        library, "from dpsvm.cli import main; sys.exit(main(['train', '--reach', '1', 'no-file']))"
    )
    assert done.returncode == 2
    assert "--reach 1: must be a float in the range (0.0, 1.0), got 1.0" in done.stderr


def test_an_estimator_takes_it_and_its_number(library: Path) -> None:
    text = printed(
        library,
        f"{DATA}from sklearn.base import clone; from dpsvm import SVC\n"
        "machine = clone(SVC(kernel='linear', selector='wss-near')).set_params(reach=0.5)\n"
        "print(machine, machine.fit(X, y).stop_reason_)\n"
        "for refused in (dict(reach=1.0), dict(solver='decomposition')):\n"
        "    try: clone(machine).set_params(**refused).fit(X, y)\n"
        "    except ValueError as error: print(error)\n",
    )
    fitted, of_range, of_solver = text.splitlines()
    assert fitted == "SVC(kernel='linear', reach=0.5, selector='wss-near') stationary"
    assert "'reach' parameter of SVC must be a float in the range (0.0, 1.0)" in of_range
    assert of_solver == "solver='decomposition' needs selector='wss2', got 'wss-near'"


def test_a_comparison_reports_it_by_its_label(library: Path) -> None:
    text = printed(
        library,
        "from dpsvm.cli import main\n"
        "main(['compare', '--selectors', 'wss-near', '--reach', '0.5,0.9',\n"
        "      '--json', 'found.json', '--html', 'found.html'])",
    )
    assert "wss-near r=0.5" in text
    [one] = json.loads((library.parent / "found.json").read_text())["comparisons"]
    assert [line["reach"] for line in one["settings"]] == [None, 0.5, 0.9]
    assert one["configuration"]["selectors"]["wss-near"] == "first good enough"
    page = (library.parent / "found.html").read_text()
    assert "wss-near r=0.9" in page
    assert "wss-near: first good enough" in page
