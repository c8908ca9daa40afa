"""The files of a site: tables in CSV and LIBSVM text, and the settings around them."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from federation_problems import opening_among
from scipy import sparse

from bench.federation.sites import approve_all
from dpsvm.federation import (
    Job,
    MemoryStore,
    Party,
    Refusal,
    RunFolder,
    StoreError,
)
from dpsvm.federation.config import SiteConfig
from dpsvm.federation.keys import introduce
from dpsvm.federation.site import digest_of
from dpsvm.federation.store import FolderCopy
from dpsvm.federation.tables import Source
from dpsvm.privacy.accountant import BudgetAccountant

CSV = "patient,age,bmi,state\np2,40,1.5,ill\np1,50,-2e-1,well\np3,60,.5,ill\n"
LIBSVM = "1 1:0.5 3:2\n-1 2:1\n1 1:-1 4:3\n-1 3:1\n"


@pytest.fixture(autouse=True)
def _in_a_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("lab.csv").write_text(CSV)
    Path("lab.txt").write_text(LIBSVM)


def source(**content: Any) -> Source:
    return Source.of({"file": "lab.csv"} | content, Path(), "[data]")


def table(**content: Any) -> Any:
    labels = "label" in content
    return source(**content).read(labels=labels)


# CSV


def test_rows_are_sorted_by_id() -> None:
    found = table(id="patient", label="state")
    assert found.ids == ("p1", "p2", "p3")
    assert found.names == ("age", "bmi")
    assert found.columns.tolist() == [[50, -0.2], [40, 1.5], [60, 0.5]]
    assert found.labels.tolist() == ["well", "ill", "ill"]
    assert found.columns.flags.c_contiguous


def test_without_ids_rows_stay_as_they_lie() -> None:
    found = table(columns=["bmi", "age"], label="state")
    assert found.ids is None
    assert found.columns.tolist() == [[1.5, 40], [-0.2, 50], [0.5, 60]]


def test_numbers_are_labels_where_all_are() -> None:
    Path("lab.csv").write_text("x,y\n1,1\n2,-1.0\n")
    assert table(label="y").labels.tolist() == [1.0, -1.0]
    Path("lab.csv").write_text("x,y\n1,1\n2,b\n")
    assert table(label="y").labels.tolist() == ["1", "b"]


def test_labels_and_columns_only_if_they_are_asked_for() -> None:
    asked = source(id="patient", label="state")
    assert asked.read(labels=False).labels is None
    owner = asked.read(labels=True, columns=False)
    assert owner.columns.shape == (3, 0)
    assert owner.names == ()
    assert owner.labels.tolist() == ["well", "ill", "ill"]
    Path("lab.csv").write_text("patient,state\np2,1\np1,0\n")
    assert asked.read(labels=True).columns.shape == (2, 0)


def test_a_column_that_is_not_wanted_need_not_hold_numbers() -> None:
    Path("lab.csv").write_text("patient,name,age\np1,Ann,4\n")
    assert table(id="patient", columns=["age"]).columns.tolist() == [[4]]
    Path("owner.csv").write_text("patient,name,state\np1,Ann,4\n")
    owner = source(file="owner.csv", id="patient", label="state")
    assert owner.read(labels=True, columns=False).labels.tolist() == [4]


def test_every_kth_row_of_the_sorted() -> None:
    found = table(id="patient", label="state", rows=[1, 2])
    assert found.ids == ("p2",)
    assert found.columns.tolist() == [[40, 1.5]]
    assert found.labels.tolist() == ["ill"]


def test_quotes_line_ends_marks_and_compression() -> None:
    Path("lab.csv").write_bytes(b'\xef\xbb\xbf"patient","a,b"\r\n"p""1",2\r\n')
    found = table(id="patient")
    assert found.ids == ('p"1',)
    assert found.names == ("a,b",)
    Path("lab.csv.gz").write_bytes(gzip.compress(CSV.encode()))
    assert table(file="lab.csv.gz", id="patient", label="state").columns.shape == (3, 2)
    Path("lab.csv").write_text("patient,a")
    with pytest.raises(ValueError, match="the file has no rows"):
        table(id="patient")
    Path("lab.csv").write_text("patient,a\np1,3")
    assert table(id="patient").columns.tolist() == [[3]]


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("", "line 1: the names of the columns must be there, and differ"),
        ("patient,a,a\n", "line 1: the names of the columns must be there, and differ"),
        ("a,b\n1,2\n", r"line 1: there is no column 'patient': the columns are \['a', 'b'\]"),
        ("patient,a\np1,1\np2,x\n", "line 3: 'x' in column 'a' is not a number"),
        ("patient,a\np1,1\np2,\n", "line 3: '' in column 'a' is not a number"),
        ("patient,a\np1,nan\n", "line 2: 'nan' in column 'a' is not a finite number"),
        ("patient,a\np1,1e999\n", "line 2: '1e999' in column 'a' is not a finite number"),
        ("patient,a\np1,1_0\n", "line 2: '1_0' in column 'a' is not a finite number"),
        ("patient,a\np1,1,2\n", "line 2: 3 fields, the first line has 2"),
        ("patient,a\np1\n", "line 2: 1 fields, the first line has 2"),
        ("patient,a\n\np1,1\n", "line 2: 0 fields, the first line has 2"),
        ('patient,a\np1,1\np2,"1\n', "line 3: unexpected end of data"),
        ('patient,a\np1,"1"2\n', "line 2: ',' expected after '\"'"),
        ("patient,a\n,1\n", "line 2: column 'patient' is empty"),
        ("patient,a\np1,1\np1,2\n", "the sample id 'p1' is there twice"),
        ("patient,a\n", "the file has no rows"),
    ],
)
def test_what_is_wrong_is_told_with_file_and_line(text: str, told: str) -> None:
    Path("lab.csv").write_text(text)
    with pytest.raises(ValueError, match=f"lab.csv: {told}"):
        table(id="patient")


@pytest.mark.parametrize(
    ("rows", "told"),
    [
        ("1,\n", "line 2: column 'y' is empty"),
        ("1,1\n2,inf\n", "'y' holds a label that is not a finite number"),
        ("1,nan\n", "'y' holds a label that is not a finite number"),
    ],
)
def test_labels_are_there_and_finite(rows: str, told: str) -> None:
    Path("lab.csv").write_text(f"x,y\n{rows}")
    with pytest.raises(ValueError, match=told):
        table(label="y")


def test_bytes_that_are_no_text_are_told() -> None:
    Path("lab.csv").write_bytes(b"patient,a\np1,1\np\xff,2\n")
    with pytest.raises(ValueError, match=r"lab.csv: line 3: 'utf-8' codec"):
        table(id="patient")


def test_labels_that_nobody_named_are_refused() -> None:
    with pytest.raises(ValueError, match="does not say which column is the label"):
        source(id="patient").read(labels=True)


def test_ids_and_labels_are_no_columns() -> None:
    with pytest.raises(ValueError, match="ids and labels cannot be among the columns"):
        table(id="patient", columns=["patient", "age"])


def test_new_samples_have_the_same_columns_and_need_no_labels() -> None:
    new = source(id="patient", label="state").another({"file": "new.csv"}, Path())
    Path("new.csv").write_text("age,patient,bmi\n1,p9,2\n")
    assert new.read(labels=False).columns.tolist() == [[1, 2]]
    Path("new.csv").write_text("age,patient,state,bmi\n1,p9,,2\n")
    assert new.read(labels=False).names == ("age", "bmi")
    with pytest.raises(ValueError, match="unknown key 'rows'"):
        source().another({"file": "new.csv", "rows": [0, 1]}, Path())


# LIBSVM text


def test_libsvm_text_is_cut_by_index() -> None:
    found = table(file="lab.txt", n_features=5, columns=[[3, 4], [1, 1]])
    assert sparse.issparse(found.columns)
    assert found.columns.toarray().tolist() == [[2, 0, 0.5], [0, 0, 0], [0, 3, -1], [1, 0, 0]]
    assert found.names == ("3", "4", "1")
    assert found.ids is None
    whole = source(file="lab.txt").read(labels=True)
    assert whole.columns.shape == (4, 4)
    assert whole.labels.tolist() == [1, -1, 1, -1]
    owner = source(file="lab.txt", rows=[1, 2]).read(labels=True, columns=False)
    assert owner.columns.shape == (2, 0)
    assert owner.labels.tolist() == [-1, -1]


@pytest.mark.parametrize(
    ("content", "told"),
    [
        ({"id": "patient"}, "LIBSVM text has no named columns for id and label"),
        ({"columns": ["age"]}, r"pairs \[first, last\] from 1 on, got 'age'"),
        ({"columns": [[0, 2]]}, r"pairs \[first, last\] from 1 on, got \[0, 2\]"),
        ({"columns": [[0, 2]], "n_features": 4}, r"from 1 to 4, got \[0, 2\]"),
        ({"columns": [[3, 2]]}, r"got \[3, 2\]"),
        ({"columns": [[3, 5]], "n_features": 4}, r"got \[3, 5\]"),
        ({"columns": [[1, 3], [2, 4]]}, "columns overlap"),
        ({"n_features": 2}, "lab.txt"),
        ({"rows": [9, 1]}, r"the file has no rows among rows = \[9, 1\]"),
    ],
)
def test_libsvm_text_that_does_not_fit_is_refused(content: dict[str, Any], told: str) -> None:
    with pytest.raises(ValueError, match=told):
        table(file="lab.txt", **content)


@pytest.mark.parametrize(
    ("content", "told"),
    [
        ({"file": ""}, "file must be a path"),
        ({"file": 5}, "file must be a path"),
        ({"columns": "age"}, "columns must be a list"),
        ({"columns": []}, "columns must be a list"),
        ({"columns": ["age", "age"]}, "columns names one twice"),
        ({"id": 1}, "id must be a column's name"),
        ({"label": ["a"]}, "label must be a column's name"),
        ({"n_features": 0}, "n_features must be a whole number to 67108864"),
        ({"n_features": 2**40}, "n_features must be a whole number to 67108864"),
        ({"n_features": True}, "n_features must be a whole number to 67108864"),
        ({"rows": [1]}, r"rows must be \[first, k\]"),
        ({"rows": [0, 0]}, r"rows must be \[first, k\]"),
        ({"rows": [-1, 1]}, r"rows must be \[first, k\]"),
        ({"colums": ["age"]}, "unknown key 'colums'"),
    ],
)
def test_settings_of_a_table_are_checked(content: dict[str, Any], told: str) -> None:
    with pytest.raises(ValueError, match=told):
        source(**content)


# The file of a site


def site(text: str) -> SiteConfig:
    Path("site.toml").write_text(text)
    return SiteConfig.load("site.toml")


def full_site(**data: Any) -> SiteConfig:
    salt = Path("the.salt")
    salt.write_text("a salt of sixteen characters or more")
    content = {"file": "lab.csv", "id": "patient", "label": "state", "salt_file": str(salt)} | data
    lines = [f"{name} = {json.dumps(value)}" for name, value in content.items()]
    head = ['name = "lab"', 'state = "state"', 'allow = "not private"']
    consent = ["[consent]", 'approver = "approver.pub"']
    return site("\n".join([*head, *consent, "[data]", *lines]))


OPEN = "name = 'lab'\nstate = 's'\nallow = 'not private'"


def job(**more: Any) -> Job:
    terms = {"run": "r", "algorithm": "sharing", "parties": ("lab",), "label_owner": "lab"}
    return Job(**(terms | more))


def test_paths_are_relative_to_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    full_site()
    monkeypatch.chdir("/")
    found = SiteConfig.load(tmp_path / "site.toml")
    assert found.source.file == tmp_path / "lab.csv"
    assert found.state == tmp_path / "state"


def test_the_owner_has_labels_and_rows_and_no_columns() -> None:
    owner = full_site().owner(job())
    assert (owner.rows, owner.columns, owner.features) == (3, 0, None)
    assert owner.open().labels.tolist() == ["well", "ill", "ill"]
    member = full_site().member(job())
    assert (member.rows, member.columns, member.features) == (3, 2, ("age", "bmi"))
    assert member.open().labels is None
    assert member.digest() == owner.digest() == digest_of(("p1", "p2", "p3"), full_site().salt)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("name = 'lab'", "'state' is missing"),
        ("name = 'la b'\nstate = 's'", "name must be a name"),
        ("name = 'lab'\nstate = 5", "state must be a path, got 5"),
        ("name = 'lab'\nstate = 's'\ndata = 5", r"\[data\] must be a table, got 5"),
        ("name = 'lab'\nstate = 's'\n[budget]", "'ledger' is missing"),
        ("name = 'lab'\nstate = 's'\n[budget]\nledger = 1", "ledger must be a path, got 1"),
        ("name = 'lab'\nstate = 's'\n[bounds]\ndata_norm = true", "data_norm must be a number"),
        ("name = 'lab'\nstate = 's'\n[predict]\nfile = 'n'", r"\[predict\] goes with \[data\]"),
        ("name = 'lab'\nstate = 's'\n[data]\nid = 'p'", r"\[data\]: 'file' is missing"),
        ("name = lab", "not TOML"),
        ("name = 'lab'\nname = 'lab'", "not TOML"),
    ],
)
def test_a_site_file_is_checked(text: str, told: str) -> None:
    with pytest.raises(ValueError, match=f"site.toml: .*{told}"):
        site(text)


def test_a_site_can_refuse_all_that_is_not_private() -> None:
    text = "name = 'lab'\nstate = 's'\n[data]\nfile = 'lab.csv'\nlabel = 'state'"
    [member] = introduce([site(text + "\ncolumns = ['age']").site(job(ids=False), labels=False)])
    party = Party(job(ids=False), member, MemoryStore())
    assert (
        party.handle(opening_among([party])).text("reason") == "lab takes part in private runs only"
    )
    missing = r"lab takes part in private runs only, and has no \[bounds\] and no ledger"
    with pytest.raises(Refusal, match=missing):
        site(text).member(job(ids=False))
    with pytest.raises(ValueError, match="allow can be 'not private' only, got 'all'"):
        site("name = 'lab'\nstate = 's'\nallow = 'all'")
    with pytest.raises(ValueError, match=r"'private' is gone: .* allow = 'not private'"):
        site("name = 'lab'\nstate = 's'\nprivate = true")


def test_ids_without_a_salt_are_refused() -> None:
    bare = site(
        'name = "lab"\nstate = "state"\n[data]\nfile = "lab.csv"\nid = "patient"\nlabel = "state"\n'
    )
    with pytest.raises(Refusal, match="lab has no salt_file"):
        bare.site(job(), labels=False)


def test_a_salt_is_long_and_stays_out_of_the_settings() -> None:
    Path("salt.txt").write_text("0123456789abcdef\n")
    assert full_site(salt_file="salt.txt").salt == "0123456789abcdef"
    Path("salt.txt").write_text("0123456789")
    with pytest.raises(ValueError, match="a salt needs 16 characters or more, got 10"):
        full_site(salt_file="salt.txt")
    with pytest.raises(FileNotFoundError):
        full_site(salt_file="absent.txt")


def test_what_a_job_asks_of_a_site_must_be_there() -> None:
    with pytest.raises(Refusal, match=r"lab has no \[data\]"):
        site(OPEN).member(job())
    keep_model({"weights": [1.0, 2.0], "features": ["age", "bmi"]})
    prediction = job(algorithm="predict", settings={"model": "old"})
    with pytest.raises(Refusal, match=r"lab has no \[predict\]"):
        full_site().member(prediction)
    with pytest.raises(ValueError, match="has the parties a, b, and not 'lab'"):
        full_site().member(job(parties=("a", "b"), label_owner="a"))
    with pytest.raises(Refusal, match="is coordinated by its label owner other"):
        full_site().owner(job(label_owner="other"))
    text = OPEN + "\n[data]\nfile = 'lab.csv'\ncolumns = ['age']\nlabel = 'state'"
    with pytest.raises(Refusal, match="lab has no sample ids"):
        site(text).member(job())
    assert site(text).member(job(ids=False)).ids is None
    with pytest.raises(StoreError, match=r"l\.json: no such ledger"):
        site(text + "\n[budget]\nledger = 'l.json'").member(job(ids=False))


@pytest.mark.parametrize(
    ("said", "told"),
    [
        ({}, "says nothing of it"),
        ({"data_norm": 2.0}, r"says 2\.0"),
        ({"data_norm": "1"}, "says '1'"),
        ({"data_norm": [1.0]}, r"says \[1\.0\]"),
        ({"data_norm": True}, "says True"),
    ],
)
def test_bounds_are_those_that_were_agreed(said: dict[str, Any], told: str) -> None:
    text = "name = 'lab'\nstate = 's'\n[bounds]\ndata_norm = 1"
    site(text).check(job(settings={"data_norm": 1.0}))
    site(text).check(job(algorithm="predict", settings={"model": "r"}))
    with pytest.raises(Refusal, match=f"lab agreed to data_norm = 1, and run r {told}"):
        site(text).check(job(settings=said))


def keep_model(model: dict[str, Any]) -> None:
    where = Path("state/party/old")
    where.mkdir(parents=True, exist_ok=True)
    content = {"format": "dpsvm federation model, version 1", "algorithm": "sharing"} | model
    (where / "model.json").write_text(json.dumps(content))


def test_new_samples_are_read_in_the_columns_of_the_model() -> None:
    keep_model({"weights": [1.0, 2.0], "intercept": 0.0, "features": ["bmi", "age"]})
    Path("new.csv").write_text("age,extra,bmi,patient\n1,9,2,p9\n")
    full_site()
    with open("site.toml", "a") as file:
        file.write("\n[predict]\nfile = 'new.csv'\n")
    prediction = job(algorithm="predict", settings={"model": "old"})
    found = SiteConfig.load("site.toml").member(prediction)
    assert found.open().table.tolist() == [[2, 1]]
    assert found.model["weights"] == [1.0, 2.0]


def test_new_samples_of_libsvm_text_must_have_the_models_columns() -> None:
    keep_model({"weights": [0.0] * 4, "intercept": 0.0, "features": ["1", "2", "3", "4"]})
    Path("new.txt").write_text("0 1:1 6:1\n")
    text = OPEN.replace("'s'", "'state'") + "\n[data]\nfile = 'lab.txt'\n"
    text += "{}[predict]\nfile = 'new.txt'"
    prediction = job(algorithm="predict", settings={"model": "old"}, ids=False)
    with pytest.raises(Refusal, match="the columns are not those of the model"):
        site(text.format("")).member(prediction)
    found = site(text.format("n_features = 6\ncolumns = [[1, 4]]\n")).member(prediction)
    assert found.open().table.toarray().tolist() == [[1, 0, 0, 0]]


def test_a_site_that_is_refused_lets_go_of_its_run() -> None:
    BudgetAccountant(1.0, path="ledger", create=True).spend(
        0.5, label="federation run r at lab as party, noise key 0123456789abcdef"
    )
    full_site()
    with open("site.toml", "a") as file:
        file.write("\n[budget]\nledger = 'ledger'\n")
    approve_all(job(), ["site.toml"])
    kept = []
    for _ in range(2):  # not "another process has this run"
        with pytest.raises(StoreError, match="its snapshot is lost") as caught:
            SiteConfig.load("site.toml").party(job())
        kept.append(caught)
    RunFolder("state/party", "r").close()


def test_a_copy_of_a_folder_takes_no_lock_and_changes_nothing() -> None:
    with RunFolder("state", "r") as store:
        store.key(begun=False)
        store.save({"round": 1, "weights": np.array([0.5])})
        store.write("aborted", "enough")
        before = {path: path.read_bytes() for path in Path("state/r").iterdir()}
        copy = FolderCopy("state", "r")
        assert copy.load()["round"] == 1
        assert copy.key(begun=True) == store.key(begun=True)
        assert copy.read("aborted") == "enough"
        copy.save({"round": 2})
        assert store.load()["round"] == 1
        assert {path: path.read_bytes() for path in Path("state/r").iterdir()} == before
    Path("state/r/noise.key").unlink()
    with pytest.raises(StoreError, match="the key of a run that has begun is lost"):
        FolderCopy("state", "r").key(begun=True)
    Path("state/r/noise.key").write_bytes(b"short")
    with pytest.raises(StoreError, match="a key has 32 bytes, this one 5"):
        FolderCopy("state", "r").key(begun=True)
    Path("state/r/snapshot").write_bytes(b"short")
    with pytest.raises(StoreError, match="cannot be used"):
        FolderCopy("state", "r").load()
    assert FolderCopy("state", "none").load() is None
    assert not Path("state/none").exists()
