"""``dpsvm compare``: its tables, its files, and what it does with bad ones."""

from __future__ import annotations

import csv
import json
import re
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest
from commands import refusal
from sklearn.datasets import make_classification

from dpsvm.cli import main
from dpsvm.comparison import Task
from dpsvm.data import dump_libsvm

QUICK = ["--runs", "2"]


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    """A current folder with two files of two classes and one of three."""
    monkeypatch.chdir(tmp_path)
    for name, seed in (("one", 0), ("two", 1)):
        X, y = make_classification(60, 5, flip_y=0.2, random_state=seed)
        dump_libsvm(X, 2 * y - 1, name)
    dump_libsvm(np.eye(6), [1, 2, 3, 1, 2, 3], "three")
    return tmp_path


def test_no_file_compares_the_six_selectors_on_breast_cancer_data(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["compare", *QUICK]) == 0
    out = capsys.readouterr().out
    assert "breast-cancer (scikit-learn)   569        30  [-1, 1]" in out
    for selector in ("wss2", "wss1", "wss3", "wss4", "wss-wr", "dpwss"):
        assert re.search(rf"^{selector} .*\d", out, re.MULTILINE)
    assert "2 of 2 dpwss runs ended exhausted" in out
    assert "No privacy guarantee" in out
    assert max(map(len, out.splitlines())) <= 80


def test_every_output_is_written_and_quiet_prints_nothing(
    capsys: pytest.CaptureFixture[str], folder: Path
) -> None:
    outputs = ["--json", "r.json", "--csv", "r.csv", "--html", "r.html"]
    assert main(["compare", "-q", *QUICK, "--shrinking", "both", *outputs, "one", "two"]) == 0
    assert capsys.readouterr().out == ""
    document = json.loads((folder / "r.json").read_text())
    assert [one["data"]["name"] for one in document["comparisons"]] == ["one", "two"]
    assert "no" in json.dumps(document["comparisons"][0]["notes"]).lower()
    with open("r.csv", newline="") as file:
        lines = list(csv.DictReader(file))
    assert len(lines) == 2 * 2 * 6
    assert {line["shrinking"] for line in lines} == {"True", "False"}


def test_the_charts_are_written_to_a_folder(folder: Path) -> None:
    pytest.importorskip("matplotlib")
    words = ["compare", "-q", *QUICK, "--selectors", "dpwss", "--plot", "plots", "one"]
    assert main(words) == 0
    names = sorted(path.name for path in (folder / "plots").iterdir())
    assert names == ["one_boundaries.png", "one_shrinking_on.png"]


def test_the_page_stands_alone_and_every_chart_has_marks(folder: Path) -> None:
    assert main(["compare", "-q", *QUICK, "--html", "r.html", "one"]) == 0
    text = (folder / "r.html").read_text()
    assert not re.search(r"<script|https?://|url\((?!#)|@import", text)
    charts = re.findall(r'<svg class="chart".*?</svg>', text, re.DOTALL)
    kinds = [re.search(r'data-kind="(\w+)"', chart)[1] for chart in charts]
    assert kinds == ["iterationRatio", "objError", "gap", "objective", "boundary"]
    for chart in charts:
        root = ElementTree.fromstring(chart)
        assert any("mark" in element.get("class", "") for element in root.iter())
        assert "nan" not in chart
        assert "inf" not in chart
    assert "No privacy guarantee" in text


def test_a_held_out_file_and_cross_validation_are_shown(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["compare", *QUICK, "--cv", "3", "--test", "two", "one"]) == 0
    out = capsys.readouterr().out
    assert "Scores by cross-validation" in out
    assert "Scores on the held-out file" in out


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["absent", "one"], "absent: No such file"),
        (["one", "broken"], "broken:2: "),
        (["--sigma", "2", "one"], "--sigma: 2: must be"),
        (["--selectors", "wss9", "one"], "--selectors: wss9: must be"),
        (["--shrinking", "maybe", "one"], "not on, off or both"),
        (["--runs", "0", "one"], "--runs"),
        (["--test", "one", "one", "two"], "--test goes with one FILE"),
        (["--json", "nowhere/r.json", "one"], "does not exist"),
        (["--plot", "two", "one"], "a folder is needed"),
        (["-t", "4", "one"], "precomputed"),
        (["three"], "needs two classes, got 3"),
    ],
)
def test_bad_input_is_one_line_and_nothing_runs(
    words: list[str],
    said: str,
    capsys: pytest.CaptureFixture[str],
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    (folder / "broken").write_text("1 1:2\n1 1:x\n")
    monkeypatch.setattr(Task, "run", lambda *_: pytest.fail("a run was made"))
    assert said in refusal(capsys, "compare", *words)


def test_one_failing_file_is_reported_and_the_rest_go_on(
    capsys: pytest.CaptureFixture[str], folder: Path
) -> None:
    with pytest.raises(SystemExit) as stopped:
        main(["compare", *QUICK, "--json", "r.json", "one", "three", "two"])
    assert stopped.value.code == 1
    captured = capsys.readouterr()
    assert captured.err == "dpsvm compare: error: three: a comparison needs two classes, got 3\n"
    document = json.loads((folder / "r.json").read_text())
    assert [one["data"]["name"] for one in document["comparisons"]] == ["one", "two"]
    assert document["failures"] == ["three: a comparison needs two classes, got 3"]


def test_ctrl_c_shows_and_keeps_what_is_finished_and_the_same_command_goes_on(
    capsys: pytest.CaptureFixture[str], folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    words = ["compare", *QUICK, "--resume", "state", "--json", "r.json", "one"]
    real, calls = Task.run, []

    def interrupted(self, monitor=None):
        calls.append(self.setting.label)
        if len(calls) >= 4:
            raise KeyboardInterrupt
        return real(self, monitor)

    monkeypatch.setattr(Task, "run", interrupted)
    assert main(words) == 130
    captured = capsys.readouterr()
    assert "wss1" in captured.out
    assert "the same command goes on from state" in captured.err
    kept = len((folder / "state").read_text().splitlines())
    assert kept == 3
    assert len(json.loads((folder / "r.json").read_text())["comparisons"][0]["runs"]) == 3
    calls.clear()
    monkeypatch.setattr(Task, "run", lambda self, m=None: calls.append(1) or real(self, m))
    assert main(words) == 0
    assert len(calls) == 9 - kept


def test_help_names_every_flag(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["compare", "--help"]) == 0
    out = capsys.readouterr().out
    for flag in ("--selectors", "--sigma", "--cv", "--test", "--html", "--resume", "-c cost"):
        assert flag in out


def test_rbf_counts_are_those_of_training(capsys: pytest.CaptureFixture[str], folder: Path) -> None:
    assert main(["train", "-t", "2", "-c", "4", "one", "model"]) == 0
    iterations = re.search(r"#iter = (\d+)", capsys.readouterr().out)[1]
    assert (
        main(["compare", "-q", "-t", "2", "-c", "4", "--selectors", "wss2", "--json", "r", "one"])
        == 0
    )
    [comparison] = json.loads(Path("r").read_text())["comparisons"]
    assert comparison["runs"][0]["iterations"] == int(iterations)
