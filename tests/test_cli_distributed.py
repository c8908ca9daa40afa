"""What ``dpsvm vertical``, ``network`` and ``lasso`` do alike, with and without privacy."""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
import pytest
from commands import refusal

from dpsvm.cli import lasso, main, network, vertical
from dpsvm.data import dump_libsvm, load_libsvm
from dpsvm.privacy import BudgetAccountant

WIDTH = 6
PLAIN = {
    "vertical": ["--parties", "4,2", "--rounds", "4"],
    "network": ["--nodes", "3", "--C", "10", "--rounds", "4", "--n-features", "6"],
    "lasso": ["--radius", "0.5", "--parties", "4,2", "--rounds", "4"],
}
PRIVATE = {
    "vertical": [
        *("--privacy", "row", "--epsilon", "5", "--delta", "1e-5", "--data-norm", "1"),
        *("--radius", "1", "--target-bound", "2"),
    ],
    "network": ["--privacy", "objective", "--epsilon", "5"],
    "lasso": [
        *("--epsilon", "50", "--delta", "1e-5", "--entry-bound", "1", "--public-labels"),
        *("--sketch", "20"),
    ],
}
RELATION = {"vertical": "row", "network": "replace", "lasso": "features"}
COMMANDS = {
    "vertical": vertical.COMMAND,
    "network": network.COMMAND,
    "lasso": lasso.COMMAND,
}
every = pytest.mark.parametrize("name", COMMANDS)


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    """A current folder with rows of norm below 1, and two unknown tokens in a file."""
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    X = rng.standard_normal((120, WIDTH))
    X /= 1.01 * np.linalg.norm(X, axis=1, keepdims=True)
    y = np.where(X @ rng.standard_normal(WIDTH) > 0, 1, -1)
    dump_libsvm(X[:90], y[:90], "train")
    dump_libsvm(X[90:], y[90:], "test")
    lines = Path("train").read_text().splitlines()
    lines[:2] = [re.sub(" ", " qid:7 ", line, count=1) for line in lines[:2]]
    Path("ranked").write_text("\n".join(lines) + "\n")
    return tmp_path


def outputs(capsys, *words):
    assert main(words) == 0
    return capsys.readouterr()


@every
def test_a_model_file_predicts_what_the_estimator_does(
    name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    outputs(capsys, name, *PLAIN[name], "--model", "model", "--json", "out.json", "train")
    record = json.loads(Path("out.json").read_text())
    assert Path("model").read_text().startswith("svm_type ")
    outputs(capsys, "predict", "test", "model", "predictions")
    decisions = load_libsvm("test", n_features=WIDTH)[0] @ record["coef"] + record["intercept"]
    expected = decisions if name == "lasso" else np.where(decisions > 0, 1, -1)
    assert np.allclose(np.loadtxt("predictions"), expected, rtol=1e-9)


@every
def test_a_private_model_file_keeps_its_guarantee(
    name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    words = [*PLAIN[name], *PRIVATE[name], "--model", "model.gz", "--json", "out.json"]
    out, _ = outputs(capsys, name, *words, "train")
    outputs(capsys, name, *words[:-4], "--model", "model", "--json", "out.json", "train")
    saved = json.loads(Path("model").read_text())
    record = json.loads(Path("out.json").read_text())
    assert saved["report"] == record["privacy"]
    assert f"guarantee               {saved['report']['guarantee']}"[:60] in out
    assert ("no guarantee covers these weights" in out) is (name == "vertical")
    assert (record["coef"] is None) is (name == "vertical")
    outputs(capsys, "predict", "test", "model", "predictions")
    if name != "vertical":
        decisions = load_libsvm("test", n_features=WIDTH)[0] @ record["coef"] + record["intercept"]
        expected = decisions if name == "lasso" else np.where(decisions > 0, 1, -1)
        assert np.allclose(np.loadtxt("predictions"), expected, rtol=1e-9)
    outputs(capsys, "predict", "-q", "test", "model.gz", "predictions")


def test_a_broken_file_of_a_private_model_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    words = [*PLAIN["network"], *PRIVATE["network"], "--model", "model", "-q"]
    outputs(capsys, "network", *words, "train")
    document = json.loads(Path("model").read_text())
    for change, reason in (
        ({"format": "a poem"}, "not a private model: its format is 'a poem'"),
        ({"coef": ["1 1:2"]}, "not a private model: coef must be 1 x 6 numbers"),
        ({"coef": 3}, "not a private model: coef must be 1 x 6 numbers"),
        ({"classes": ["no", "yes"]}, "its labels are no numbers"),
        ({"classes": [0.5, 1.5]}, "a LIBSVM model file holds integer labels only"),
    ):
        Path("broken").write_text(json.dumps(document | change))
        assert refusal(capsys, "predict", "test", "broken", "out").startswith(f"broken: {reason}")


@every
def test_a_private_run_tells_no_figure_on_its_data_unless_it_is_asked(
    name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    words = [name, *PLAIN[name], *PRIVATE[name], "--json", "out.json"]
    out, err = outputs(capsys, *words, "ranked")
    record = json.loads(Path("out.json").read_text())
    assert err == ""  # not how many tokens were ignored
    for label in ("objective", "L(t)", "gap", "train loss", "model  "):
        assert not re.search(rf"^{re.escape(label)}\b", out, re.M)
    assert record["outcomes"] == record["outside_guarantee"] == []
    assert record["verdict"] is None
    for one in record["history"]:
        measured = {"objective", "loss", "lyapunov", "gradient_norm", "test_loss", "test_error"}
        assert not any(one.get(figure) for figure in measured)
    out, _ = outputs(capsys, *words, "--compare", "ranked")
    record = json.loads(Path("out.json").read_text())
    before, after = out.split("outside the guarantee, because computed on the data:")
    assert "objective" not in before.split("outside  ")[0]
    assert re.search(r"^model .* objective", after, re.M)
    assert record["outside_guarantee"][-2:] == ["outcomes", "verdict"]


@every
def test_held_out_rows_of_a_private_run_are_marked_and_alone(
    name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    words = [*PLAIN[name], *PRIVATE[name], "--test", "test"]
    out, _ = outputs(capsys, name, *words, "train")
    _, after = out.split("outside the guarantee, for the rows of the test file:")
    _, row = after.strip().splitlines()
    assert row.count(" - ") + row.count(" -\n") >= 2
    assert re.search(r"\d\.\d+$", row)


@every
def test_a_ledger_is_charged_once_and_told_of(
    name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    create = ["--epsilon", "60", "--delta", "1e-5", "--neighbouring", RELATION[name], "ledger"]
    assert main(["budget", "create", *create]) == 0
    words = [*PLAIN[name], *PRIVATE[name], "--ledger", "ledger"]
    out, _ = outputs(capsys, name, *words, "train")
    assert re.search(r"^ledger +ledger: 60 before, [\d.]+ is left$", out, re.M)
    assert len(BudgetAccountant(path="ledger").charges) == 1


@every
def test_nothing_is_printed_when_that_is_asked(
    name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    for quiet in ("-q", "--quiet"):
        assert outputs(capsys, name, *PLAIN[name], quiet, "train") == ("", "")


@every
def test_all_lines_fit_into_80_columns(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    for words in (["--help"], [*PLAIN[name], "--test", "test", "train"], ["--private"]):
        given = words
        if words == ["--private"]:
            given = [*PLAIN[name], *PRIVATE[name], "--compare", "--test", "test", "train"]
        out, _ = outputs(capsys, name, *given)
        assert max(map(len, out.splitlines())) <= 80
    help_text = COMMANDS[name].help_text()
    assert all(f"  {flag.spelling}" in help_text for flag in COMMANDS[name].flags)


@pytest.mark.parametrize(
    ("name", "words", "told"),
    [
        ("vertical", ["--split", "4,2"], "--split is called --parties now"),
        ("vertical", ["--weight", "1"], "--weight is called --C now"),
        ("vertical", ["--row-norm", "1"], "--row-norm is called --data-norm now"),
        ("network", ["--eta", "1"], "--eta is called --rho now"),
        ("network", ["--cost", "1"], "--cost is called --C now"),
        ("network", ["--iterations", "1"], "--iterations is called --rounds now"),
        ("lasso", ["--eta", "1"], "--eta is called --radius now"),
        ("network", ["--grpah", "ring"], "unknown flag --grpah: did you mean --graph?"),
        ("vertical", ["--ledger", "l"], "--ledger goes with --privacy"),
        ("lasso", ["--compare"], "--compare goes with --epsilon"),
        ("vertical", [*PRIVATE["vertical"], "--more"], "--more with --privacy needs --compare"),
        ("vertical", [*PRIVATE["vertical"], "--diagnose"], "--diagnose reads the columns"),
        ("network", ["--model", "train"], "train cannot be both FILE and --model"),
        ("lasso", ["--model", "no/where"], "no/where: the folder to write to does not exist"),
    ],
)
def test_bad_input_is_one_line_in_the_words_of_the_command_line(
    name: str, words: list[str], told: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert told in refusal(capsys, name, *PLAIN[name], *words, "train")


@every
def test_the_messages_of_a_private_run_are_drawn_without_measuring_the_data(
    name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("matplotlib")
    words = [*PLAIN[name], *PRIVATE[name], "--plot", "a.png", "--json", "a.json", "train"]
    outputs(capsys, name, *words)
    assert Path("a.png").read_bytes().startswith(b"\x89PNG")
    told = json.loads(Path("a.json").read_text())
    assert told["outcomes"] == []
    assert told["verdict"] is None
    for one in told["outside_guarantee"]:  # none of which is drawn: there is nothing of it
        series = one.removeprefix("history.")
        assert {str(round[series]) for round in told["history"]} <= {"nan", "None", "NaN"}


@every
def test_a_picture_of_an_unknown_ending_is_refused_before_the_run(
    name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("matplotlib")
    words = [*PLAIN[name], "--plot", "picture.xyz", "absent"]
    assert "picture.xyz: the ending must be one of" in refusal(capsys, name, *words)


@pytest.mark.parametrize("label", ["0.5", "3"])
def test_a_label_that_a_private_run_refuses_is_told_with_its_line(
    label: str, capsys: pytest.CaptureFixture[str]
) -> None:
    lines = Path("train").read_text().splitlines()
    lines[4] = re.sub(r"^\S+", label, lines[4])
    Path("train").write_text("\n".join(lines) + "\n")
    told = refusal(capsys, "network", *PLAIN["network"], *PRIVATE["network"], "train")
    assert f"train:5: label {label} is not in --classes -1,1" in told
