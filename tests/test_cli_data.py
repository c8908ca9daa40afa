"""``dpsvm data``: scikit-learn's sets as files that the other commands take."""

from __future__ import annotations

import csv
import os
from pathlib import Path

import numpy as np
import pytest
from commands import refusal
from sklearn import datasets

from dpsvm.cli import main
from dpsvm.cli.data import SETS
from dpsvm.data import load_libsvm


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    """An empty current folder."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


def bunch_of(name):
    return getattr(datasets, f"load_{name.replace('-', '_')}")()


@pytest.mark.parametrize("name", SETS)
def test_a_set_is_written_to_the_bit(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["data", name]) == 0
    found = bunch_of(name)
    assert f"{len(found.target)} rows" in capsys.readouterr().out
    X, y = load_libsvm(name, n_features=found.data.shape[1])
    assert np.array_equal(X.toarray(), found.data)
    assert np.array_equal(y, 2 * found.target - 1 if name == "breast-cancer" else found.target)


@pytest.mark.parametrize("words", [[], ["--help"]])
def test_the_sets_are_listed_with_their_sizes(
    words: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["data", *words]) == 0
    out = " ".join(capsys.readouterr().out.split())
    for name in SETS:
        rows, columns = bunch_of(name).data.shape
        assert f"{name} {rows} rows, {columns} features, " in out


def test_nothing_is_written_without_a_name(folder: Path) -> None:
    assert main(["data"]) == 0
    assert os.listdir(folder) == []


def test_a_split_is_a_partition_by_its_seed(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["data", "wine", "--split", "0.25", "--seed", "7"]) == 0
    assert "seed 7" in capsys.readouterr().out
    train, test = (load_libsvm(name)[0].toarray() for name in ("wine", "wine.t"))
    assert len(test) == round(0.25 * 178)
    both = np.vstack([train, test])
    whole = bunch_of("wine").data
    assert np.array_equal(both[np.lexsort(both.T)], whole[np.lexsort(whole.T)])
    for seed, same in (("7", True), ("8", False)):
        assert main(["data", "wine", "other", "--split", "0.25", "--seed", seed, "--force"]) == 0
        assert (Path("other").read_bytes() == Path("wine").read_bytes()) is same


def test_scales() -> None:
    assert main(["data", "digits", "--scale", "range"]) == 0
    X = load_libsvm("digits", n_features=64)[0].toarray()
    whole = bunch_of("digits").data
    constant = np.ptp(whole, axis=0) == 0
    assert constant.any()
    assert np.all(X[:, constant] == 0)
    assert np.all(X[:, ~constant].min(axis=0) == -1)
    assert np.all(X[:, ~constant].max(axis=0) == 1)
    assert main(["data", "diabetes", "--scale", "standard"]) == 0
    X, y = load_libsvm("diabetes")
    table = np.column_stack([X.toarray(), y])
    assert np.allclose(table.mean(axis=0), 0)
    assert np.allclose(table.std(axis=0), 1)


def test_tables_of_parties_hold_every_column_once_and_match_by_their_ids() -> None:
    assert main(["data", "iris", "--parties", "clinic,lab,registry", "--split", "0.2"]) == 0
    whole = bunch_of("iris")
    for ending, count in ((".csv", 120), (".t.csv", 30)):
        tables, columns, orders = {}, [], []
        for party in ("clinic", "lab", "registry"):
            with open(f"{party}{ending}", newline="") as file:
                header, *rows = list(csv.reader(file))
            assert header[0] == "sample"
            assert (header[1] == "label") is (party == "clinic")
            columns += [name for name in header if name not in ("sample", "label")]
            orders.append([row[0] for row in rows])
            assert len(set(orders[-1])) == count
            for row in rows:
                tables.setdefault(row[0], []).extend(map(float, row[1:]))
        assert columns == whole.feature_names
        assert orders[0] != orders[1]
        for sample, (label, *values) in tables.items():
            place = int(sample[1:])
            assert label == whole.target[place]
            assert values == whole.data[place].tolist()


def test_rows_are_missing_from_each_table_by_itself() -> None:
    assert main(["data", "iris", "--parties", "clinic,lab", "--missing", "0.1"]) == 0
    found = []
    for party in ("clinic", "lab"):
        lines = Path(f"{party}.csv").read_text().splitlines()[1:]
        found.append({one.split(",")[0] for one in lines})
    assert [len(one) for one in found] == [135, 135]
    assert 120 <= len(found[0] & found[1]) < 135


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["irs"], "unknown data set 'irs': did you mean iris?"),
        (["wine", "a", "b"], "unexpected 'b'"),
        (["iris", "--splt", "1"], "unknown flag --splt: did you mean --split?"),
        (["iris", "--split", "1"], "--split: '1' is not a number between 0 and 1"),
        (["iris", "--scale", "log"], "--scale: 'log' is not none or range or standard"),
        (["iris", "--parties", "a,a"], "--parties: 'a,a' is not a list of different names"),
        (["iris", "--parties", "a,../b"], "is not a list of different names"),
        (["iris", "--parties", "a,b,c,d,e"], "--parties: 5 cannot share 4 columns"),
        (["iris", "file", "--parties", "a,b"], "--parties names the files"),
        (["iris", "--missing", "0.1"], "--missing is of the tables of --parties"),
        (["iris", "--parties", "a,b", "--missing", "1"], "'1' is not a number between 0 and 1"),
        (["iris", "no/file"], "no/file: the folder to write to does not exist"),
        (["iris", "old"], "old: there is a file already, left as it is"),
        (["iris", "new", "--split", "0.5"], "new.t: there is a file already, left as it is"),
    ],
)
def test_bad_input_is_one_line_and_changes_nothing(
    words: list[str], told: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("old", "new.t"):
        Path(name).write_text("mine")
    assert told in refusal(capsys, "data", *words)
    assert sorted(os.listdir(folder)) == ["new.t", "old"]
    assert Path("old").read_text() == Path("new.t").read_text() == "mine"


def test_a_file_is_written_over_when_that_is_asked_for() -> None:
    Path("iris").write_text("mine")
    assert main(["data", "iris", "--force"]) == 0
    assert Path("iris").read_text().startswith("0 1:5.1 ")


def test_what_is_written_trains() -> None:
    assert main(["data", "breast-cancer", "--scale", "range", "--split", "0.3"]) == 0
    assert main(["train", "-q", "-t", "0", "breast-cancer", "model"]) == 0
    assert main(["predict", "-q", "breast-cancer.t", "model", "out"]) == 0
    labels = load_libsvm("breast-cancer.t")[1]
    assert np.mean(np.loadtxt("out") == labels) > 0.95
