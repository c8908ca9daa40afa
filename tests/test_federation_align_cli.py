"""``dpsvm federation align``, and what other subcommands make of alignments."""

from __future__ import annotations

import csv
import json
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from commands import refusal

from bench.federation.sites import (
    OWNER,
    PARTIES,
    Problem,
    alignment_of,
    approve_all,
    make_problem,
    with_ids,
)
from dpsvm.cli import main
from dpsvm.cli.federating.predict import spreadsheet_field
from dpsvm.federation import align as aligning
from dpsvm.federation.alignments import Alignment
from dpsvm.federation.job import Job
from dpsvm.federation.party import Party

needs_psi = pytest.mark.skipif(
    find_spec("private_set_intersection") is None, reason="openmined-psi is not installed"
)
warned = pytest.mark.filterwarnings("always::dpsvm.PrivacyLeakWarning")
OPEN = {"loss": "logistic", "rounds": 4}
ROWS = {"clinic": range(20), "lab": range(19, 1, -1), "home": [*range(10, 20), *range(5)]}
COMMON = [2, 3, 4, *range(10, 20)]


def federation(*words: str) -> int:
    return main(["federation", *words])


def sites_of(problem: Problem) -> list[str]:
    """The label owner's file, and those of the other parties."""
    return [str(problem.site_file(name)) for name in PARTIES]


def refused(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    """The one line on standard error of a command that does nothing."""
    capsys.readouterr()
    return refusal(capsys, "federation", *words)


def make(folder: Path, **more: Any) -> tuple[Problem, Problem]:
    """Sites whose samples are partly common, and the run that aligns them."""
    problem = make_problem(folder, "sharing", OPEN, rows=20, private=False)
    problem = with_ids(problem, ROWS, alignment="ids-1")
    return problem, alignment_of(problem, **more)


def kept(problem: Problem, name: str, run: str = "ids-1") -> tuple[str, ...]:
    """The ids of an alignment at a site."""
    return Alignment.load(problem.folder / name / "state" / "alignments", run, name).ids


@needs_psi
def test_align_prints_counts_and_training_takes_the_rows(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    problem, alignment = make(tmp_path / "sites")
    sites, job = sites_of(problem), str(alignment.job_file)
    assert federation("check", job, *sites) == 0
    out = " ".join(capsys.readouterr().out.split())
    assert "ids clinic 20 as the label owner; clinic 20, lab 18, home 15" in out
    assert aligning.REVEALED in out
    for name in PARTIES:  # each at home
        assert federation("check", job, str(problem.site_file(name))) == 0
        assert f"the side of {name} only" in " ".join(capsys.readouterr().out.split())
    assert not list(tmp_path.glob("sites/*/state/alignments"))
    assert federation("align", job, *sites) == 0
    out = " ".join(capsys.readouterr().out.split())
    assert "ids of clinic 20 ids of lab 18 ids of home 15 common 13, in alignments/ids-1" in out
    assert aligning.REVEALED in out
    assert {kept(problem, name) for name in PARTIES} == {tuple(f"p{row:05}" for row in COMMON)}
    assert federation("check", str(problem.job_file), *sites) == 0
    out = " ".join(capsys.readouterr().out.split())
    assert "rows 13" in out
    assert "13 of alignment ids-1, the same at all sites" in out
    record = str(tmp_path / "record.json")
    assert federation("simulate", "-q", str(problem.job_file), *sites, "--json", record) == 0
    assert json.loads(Path(record).read_text())["job"]["alignment"] == "ids-1"


@needs_psi
def test_the_label_owner_needs_neither_columns_nor_to_be_a_party(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    problem, _ = make(tmp_path / "sites")
    text = problem.job_file.read_text().replace('"sharing"', '"align"').split("\nsizes")[0]
    text = text.replace('["clinic", "lab", "home"]', '["lab"]').replace("trial", "ids-1")
    job = tmp_path / "align.toml"
    job.write_text(text)
    for name in (OWNER, "lab"):  # an alignment compares no digest of ids
        site = problem.site_file(name)
        site.write_text(site.read_text().replace('salt_file = "salt.txt"\n', ""))
    (problem.folder / OWNER / "data.csv").write_text("id\np00003\np00001\np00002\n")
    site = problem.site_file(OWNER)
    site.write_text(site.read_text().replace('label = "y"\n', ""))
    words = [str(job), str(site), str(problem.site_file("lab"))]
    approve_all(Job.load(job), words[1:])
    assert federation("align", "-q", *words) == 0
    assert capsys.readouterr().out == ""
    assert kept(problem, OWNER) == kept(problem, "lab") == ("p00002", "p00003")
    assert "run ids-1 is over: another run needs another name" in refused(capsys, "align", *words)


@needs_psi
def test_an_interrupted_alignment_is_resumed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    problem, alignment = make(tmp_path / "sites")
    words, handle = [str(alignment.job_file), *sites_of(problem)], Party.handle

    def interrupted(party: Party, message: Any) -> Any:
        if party.site.name == "home" and message.round == 2:
            raise KeyboardInterrupt
        return handle(party, message)

    with monkeypatch.context() as patched:
        patched.setattr(Party, "handle", interrupted)
        assert federation("align", *words) == 130
        assert "--resume goes on with it" in capsys.readouterr().err
    told = refused(capsys, "align", *words)
    assert "run ids-1 has begun" in told
    assert "--resume goes on with it" in told
    assert federation("align", "--resume", *words) == 0
    assert len({kept(problem, name) for name in PARTIES}) == 1


@needs_psi
def test_nothing_in_common_is_said_before_any_training(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    problem, alignment = make(tmp_path / "sites")
    data = problem.folder / "lab" / "data.csv"
    data.write_text(data.read_text().replace("\np", "\nq"))
    told = refused(capsys, "align", str(alignment.job_file), *sites_of(problem))
    assert "no sample is common to all sites: there is nothing to train on" in told
    told = refused(capsys, "simulate", str(problem.job_file), *sites_of(problem))
    assert "clinic has no alignment ids-1" in told


@warned
@needs_psi
def test_new_samples_are_aligned_by_a_run_of_their_own(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    problem, alignment = make(tmp_path / "sites")
    sites = sites_of(problem)
    for name in PARTIES:
        home = problem.folder / name
        lines = (home / "data.csv").read_text().replace("\np0000", "\n=p").replace("\np000", "\n-p")
        (home / "new.csv").write_text(lines)
        site = home / "site.toml"
        site.write_text(site.read_text() + '\n[predict]\nfile = "new.csv"\n')
    assert federation("align", "-q", str(alignment.job_file), *sites) == 0
    assert federation("simulate", "-q", str(problem.job_file), *sites) == 0
    second, predict = tmp_path / "second.toml", tmp_path / "predict.toml"
    text = alignment.job_file.read_text()
    second.write_text(text.replace("ids-1", "ids-2") + 'of = "predict"\n')
    head = text.replace('"ids-1"', '"p"').replace('"align"', '"predict"')
    head = head.replace("\n[settings]", '\nalignment = "{}"\n[settings]\nmodel = "trial"')
    approve_all(Job.load(second), sites)
    assert federation("align", "-q", str(second), *sites) == 0
    predict.write_text(head.format("ids-2"))
    approve_all(Job.load(predict), sites)
    output = str(tmp_path / "out.csv")
    assert federation("predict", "-q", str(predict), *sites, "--output", output) == 0
    assert Path(output).read_text().startswith('"\'-p10",')
    with open(output, newline="") as file:
        ids = [row[0] for row in csv.reader(file)]
    assert ids == [f"'{one}" for one in kept(problem, "lab", "ids-2")]
    assert ids == [*(f"'-p{row}" for row in COMMON[3:]), "'=p2", "'=p3", "'=p4"]
    predict.write_text(head.format("ids-1"))
    approve_all(Job.load(predict), sites)
    told = refused(capsys, "predict", str(predict), *sites, "--output", output)
    assert "alignment ids-1 is of [data] samples, and run p has those of [predict]" in told


@needs_psi
def test_more_ids_than_messages_can_hold_are_refused_by_check(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    problem, alignment = make(tmp_path / "sites")
    monkeypatch.setattr(aligning, "LARGEST", (1 << 20) + 1000)
    words = [str(alignment.job_file), *sites_of(problem)]
    for command in (["check", *words], ["check", *words[:2]], ["align", *words]):
        told = refused(capsys, *command)
        assert "bytes of points are too many for a message or a snapshot" in told
    assert not list(tmp_path.glob("sites/*/state/*/ids-1/snapshot"))


@needs_psi
@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["align", "{job}", "{sites}"], "the algorithm must be 'align', got 'sharing'"),
        (["simulate", "{align}", "{sites}"], "aligns: dpsvm federation align carries it out"),
        (["align", "--resume", "{align}", "{sites}"], "has not begun at these sites"),
        (["align", "{align}"], "JOB and a SITE or more are needed, got 1"),
    ],
)
def test_wrong_words_are_one_line(
    words: list[str], told: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    problem, alignment = make(tmp_path / "sites")
    given: list[str] = []
    for word in words:
        files = {"{job}": problem.job_file, "{align}": alignment.job_file}
        given += sites_of(problem) if word == "{sites}" else [str(files.get(word, word))]
    assert told in refused(capsys, *given)


def test_a_site_without_a_column_of_ids_cannot_align(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    problem, alignment = make(tmp_path / "sites")
    site = problem.site_file("lab")
    site.write_text(site.read_text().replace('id = "id"\n', ""))
    told = refused(capsys, "check", str(alignment.job_file), *sites_of(problem))
    assert "lab has no sample ids, which run ids-1 aligns" in told


@pytest.mark.parametrize("text", ["=1+1", "+1", "-1", "@SUM(A1)", "\t=1", "\r=1", '=a"b', "=a,b\n"])
def test_what_a_spreadsheet_would_compute_is_written_as_text(text: str) -> None:
    field = spreadsheet_field(text)
    assert field.startswith("\"'")
    assert next(csv.reader([field], strict=True))[0] == f"'{text}"


@pytest.mark.parametrize("text", ["p1", "a,b", 'a"b', "a\nb", "a=b", " =1", "é", "0"])
def test_other_texts_and_numbers_are_written_as_they_are(text: str) -> None:
    assert next(csv.reader([spreadsheet_field(text)], strict=True))[0] == text
    assert spreadsheet_field("p1") == "p1"
    assert spreadsheet_field(-0.5) == "-0.5"
    assert spreadsheet_field(-1) == "-1"
