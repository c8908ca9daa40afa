"""``dpsvm federation keys``, ``review``, ``approve`` and ``revoke``, and runs with and without."""

from __future__ import annotations

import json
import os
import re
import stat
from pathlib import Path
from typing import Any

import pytest
from commands import refusal

from dpsvm.cli import main
from dpsvm.federation.config import SiteConfig
from dpsvm.federation.consent import Consent
from dpsvm.federation.job import Job
from dpsvm.federation.keys import PublicKey, SigningKey
from dpsvm.privacy.accountant import BudgetAccountant

NAMES = ("clinic", "lab", "ward")
FILES = [f"{name}.toml" for name in NAMES]
ROWS = 12
ROW = {"loss": "logistic", "rounds": 3, "privacy": "row", "epsilon": 2.0, "delta": 1e-5}
ROW |= {"data_norm": 1.0, "radius": 1.0, "target_bound": 2.0}
OPEN = {"loss": "logistic", "rounds": 3}


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Three sites that are private only, without keys, and a private job."""
    monkeypatch.chdir(tmp_path)
    for place, name in enumerate(NAMES):
        names = "sample,x,y" + (",label" if name == "clinic" else "")
        rows = [f"s{row},{(row + place) % 3 / 4},{row % 2 / 3}" for row in range(ROWS)]
        rows = [f"{text},{row % 2}" if name == "clinic" else text for row, text in enumerate(rows)]
        Path(f"{name}.csv").write_text("\n".join([names, *rows, ""]))
        BudgetAccountant(5.0, 1e-5, neighbouring="row", path=f"{name}.ledger", create=True)
        write_site(name)
    Path("salt").write_text("0123456789abcdef" * 4)
    write_job()
    return tmp_path


def write_site(name: str, *, allow: str = "") -> None:
    label = 'label = "label"\n' if name == "clinic" else ""
    Path(f"{name}.toml").write_text(
        f'name = "{name}"\nstate = "state-{name}"\n{allow}\n[data]\nfile = "{name}.csv"\n'
        f'id = "sample"\nsalt_file = "salt"\n{label}[consent]\napprover = "approver.pub"\n'
        f'[bounds]\n{"" if allow else "data_norm = 1.0"}\n[budget]\nledger = "{name}.ledger"\n'
    )


def write_job(settings: dict[str, Any] | None = None, **more: Any) -> None:
    head = {"run": "heart", "algorithm": "sharing", "parties": list(NAMES), "label_owner": "clinic"}
    lines = [f"{name} = {json.dumps(value)}" for name, value in (head | more).items()]
    own = ROW if settings is None else settings
    lines += ["[settings]", *(f"{name} = {json.dumps(value)}" for name, value in own.items())]
    Path("job.toml").write_text("\n".join(lines) + "\n")


def federation(*words: str) -> int:
    return main(["federation", *words])


def refused(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    capsys.readouterr()
    return refusal(capsys, "federation", *words)


def make_keys() -> None:
    assert federation("keys", "clinic.toml", "--approver", "approver") == 0
    for name in NAMES[1:]:
        assert federation("keys", f"{name}.toml") == 0


def approve_words(name: str, *more: str) -> list[str]:
    peers = [f"{other}.pub" for other in NAMES if other != name]
    return ["approve", "job.toml", f"{name}.toml", "--key", "approver", "--peers", *peers, *more]


def approve_all() -> None:
    for name in NAMES:
        assert federation(*approve_words(name)) == 0


def consent_of(name: str) -> Consent:
    site, job = SiteConfig.load(f"{name}.toml"), Job.load("job.toml")
    from dpsvm.federation.consent import utc_now

    return site.consent_to(job, utc_now())


def journal(name: str) -> list[dict[str, Any]]:
    text = Path(f"state-{name}/journal.jsonl").read_text()
    return [json.loads(line) for line in text.splitlines()]


# keys


def test_keys_are_made_once_and_are_secret(capsys: pytest.CaptureFixture[str]) -> None:
    make_keys()
    out = capsys.readouterr().out
    assert "hand lab.pub to the approver of every other site" in out
    assert "approver: secret, for whoever approves runs" in out
    for path in ("approver", "state-lab/site.key"):
        assert stat.S_IMODE(os.stat(path).st_mode) == 0o600
    assert stat.S_IMODE(os.stat("state-lab").st_mode) == 0o700
    public = PublicKey.load("lab.pub")
    assert public == SigningKey.load("state-lab/site.key", "lab").public
    assert PublicKey.load("approver.pub") == SigningKey.load("approver", "approver").public
    before = {path: path.read_bytes() for path in Path().rglob("*") if path.is_file()}
    told = refused(capsys, "keys", "lab.toml", "--approver", "second")
    assert "state-lab/site.key: there is a file already, left as it is, and no key" in told
    assert {path: path.read_bytes() for path in Path().rglob("*") if path.is_file()} == before


@pytest.mark.parametrize("there", ["lab.pub", "state-lab/site.key", "approver", "approver.pub"])
def test_nothing_that_exists_is_replaced(there: str, capsys: pytest.CaptureFixture[str]) -> None:
    Path(there).parent.mkdir(exist_ok=True)
    Path(there).write_text("mine")
    told = refused(capsys, "keys", "lab.toml", "--approver", "approver")
    assert f"{there}: there is a file already" in told
    made = [Path(one) for one in ("lab.pub", "state-lab/site.key", "approver", "approver.pub")]
    assert [str(path) for path in made if path.exists()] == [there]
    assert Path(there).read_text() == "mine"


def test_a_key_that_cannot_be_written_leaves_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    assert "folder to write to does not exist" in refused(
        capsys, "keys", "lab.toml", "--approver", "no/approver"
    )
    assert not Path("state-lab").exists()
    Path("state-lab").write_text("a file, not a folder")
    refused(capsys, "keys", "lab.toml")
    assert not Path("lab.pub").exists()


# review


def test_review_prints_what_would_leave(capsys: pytest.CaptureFixture[str]) -> None:
    assert federation("review", "job.toml", "lab.toml", "--rows", "12") == 0
    text = capsys.readouterr().out
    out = " ".join(text.split())
    assert max(map(len, text.splitlines())) <= 88  # a digest is not broken
    assert "in at most 3 rounds: 12 numbers in each, 36 in all" in out
    assert "guarantee epsilon = 2, delta = 1e-05 (row)" in out
    assert "a standard deviation of" in out
    assert "data_norm = 1; rows beyond the public bounds of the job are clipped" in out
    assert not Path("state-lab").exists()


@pytest.mark.parametrize(
    "settings",
    [
        OPEN | {"loss": "\u001b[2J\u202eevil\n"},
        OPEN | {"\u001b[31mred": 1},
        OPEN | {"intercept": "\u001b]0;title\u0007"},
        OPEN | {"graph": ["\r\u001b[1A approved"]},
    ],
)
def test_hostile_terms_do_not_reach_the_screen(
    settings: dict[str, Any], capsys: pytest.CaptureFixture[str]
) -> None:
    write_job(settings)
    capsys.readouterr()
    federation("review", "job.toml", "lab.toml")
    out, err = capsys.readouterr()
    for text in (out, err):
        assert text.replace("\n", "").isprintable()
    assert err.count("\n") <= 1


def test_review_of_a_stranger_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    write_job(parties=["clinic", "lab"])
    told = refused(capsys, "review", "job.toml", "ward.toml")
    assert "ward is neither a party of run heart nor its label owner" in told


# approve


def test_a_run_needs_the_consent_of_every_site(capsys: pytest.CaptureFixture[str]) -> None:
    told = refused(capsys, "simulate", "job.toml", *FILES)
    assert "approver.pub: No such file or directory" in told
    make_keys()
    told = refused(capsys, "simulate", "job.toml", *FILES)
    assert "clinic has not approved these terms of run heart" in told
    assert federation("check", "job.toml", *FILES) == 0
    assert re.search(r"^consent +clinic none; lab none; ward none$", capsys.readouterr().out, re.M)
    assert federation(*approve_words("lab")) == 0
    out = " ".join(capsys.readouterr().out.split())
    assert "what can be inferred" in out
    assert "at most 2 for this run, at most 5 in all" in out
    told = refused(capsys, "simulate", "job.toml", *FILES)
    assert "clinic has not approved these terms of run heart" in told
    assert "has not approved" in journal("clinic")[-1]["refused"]
    approve_all()
    capsys.readouterr()
    assert federation("check", "job.toml", *FILES) == 0
    out = " ".join(capsys.readouterr().out.split())
    assert re.search(r"consent clinic yes, until \S+Z; lab yes, until \S+Z; ward yes", out)
    assert federation("simulate", "-q", "job.toml", *FILES) == 0
    assert Path("state-lab/party/heart/model.json").exists()
    assert [line["asked"]["kind"] for line in journal("ward")][-1] == "end"
    write_job(ROW | {"epsilon": 1.9}, run="heart-2")
    assert "has not approved" in refused(capsys, "simulate", "job.toml", *FILES)


def test_a_consent_lasts_thirty_days_and_costs_what_the_run_does() -> None:
    make_keys()
    assert federation(*approve_words("lab")) == 0
    found = consent_of("lab")
    assert (found.expires - found.issued).days == 30
    assert (found.epsilon, found.total, found.not_private) == (2.0, 5.0, False)
    assert found.known["ward"] == PublicKey.load("ward.pub")
    more = ["--expires", "2120-01-31", "--epsilon", "3", "--total-epsilon", "4"]
    assert federation(*approve_words("lab", *more)) == 0
    found = consent_of("lab")
    assert (found.until, found.epsilon, found.total) == ("2120-01-31T00:00:00Z", 3.0, 4.0)


def test_an_earlier_consent_does_not_hold_beside_a_new_one(
    capsys: pytest.CaptureFixture[str],
) -> None:
    make_keys()
    assert federation(*approve_words("lab", "--total-epsilon", "5")) == 0
    [file] = Path("state-lab/consents").glob("*.consent")
    old = file.read_bytes()
    assert federation(*approve_words("lab", "--total-epsilon", "3")) == 0
    assert consent_of("lab").total == 3.0
    file.write_bytes(old)
    with pytest.raises(ValueError, match="lab has taken back its consent"):
        consent_of("lab")
    assert federation("check", "job.toml", *FILES) == 0
    assert "lab no: lab has taken back its consent" in " ".join(capsys.readouterr().out.split())


def own(path: str, text: str) -> None:
    Path(path).write_text(text)


def other_name() -> None:
    own("ward.pub", Path("ward.pub").read_text().replace("ward", "bank"))


def same_key() -> None:
    own("ward.pub", Path("clinic.pub").read_text().replace("clinic", "ward"))


def other_approver() -> None:
    own("approver", f"{'11' * 32}\n")


def as_written(old: str, new: str, path: str = "lab.toml") -> Any:
    return lambda: own(path, Path(path).read_text().replace(old, new))


REFUSED = [
    (other_name, [], "ward.pub: the key of 'bank', which is no other site of run heart"),
    (same_key, [], "ward.pub: ward has the key of clinic"),
    (lambda: own("ward.pub", "dpsvm-key ward 00"), [], "not a public key of dpsvm federation"),
    (lambda: own("ward.pub", "x" * 9000), [], "not a public key of dpsvm federation"),
    (lambda: Path("ward.pub").unlink(), [], "ward.pub: No such file or directory"),
    (other_approver, [], "the approver of lab"),
    (lambda: own("approver", "short"), [], "not a signing key of dpsvm federation"),
    (lambda: os.chmod("approver", 0o644), [], "others may read this secret"),
    (as_written("approver.pub", "lab.pub"), [], "the key of 'lab', not of an approver"),
    (
        as_written('[consent]\napprover = "approver.pub"\n', ""),
        [],
        "names no approver in [consent]",
    ),
    (as_written("data_norm = 1.0", ""), [], "lab takes part in private runs only, and has no"),
    (as_written("data_norm = 1.0", "data_norm = 2.0"), [], "lab agreed to data_norm = 2, and run"),
    (as_written('[budget]\nledger = "lab.ledger"\n', ""), [], "and has no ledger for them"),
    (as_written("state =", "private = true\nstate ="), [], "'private' is gone"),
    (lambda: write_job(OPEN), [], 'private runs only unless its file says allow = "not private"'),
    (lambda: write_job(run="x\u001b"), [], "run must be a name"),
    (lambda: write_job(parties=["clinic", "lab"]), [], "the key of 'ward', which is no other site"),
    (lambda: write_job(ROW | {"rounds": 0}), [], "rounds must be"),
    (lambda: None, ["--expires", "2020-01-01"], "--expires: 2020-01-01T00:00:00Z is over"),
    (lambda: None, ["--expires", "soon"], "--expires: 'soon' is not a date such as"),
    (lambda: None, ["--epsilon", "1.5"], "--epsilon: the run costs 2, more than 1.5"),
    (lambda: None, ["--epsilon", "nan"], "--epsilon: 'nan' is not a number from 0 on"),
    (lambda: None, ["clinic.pub"], "clinic.pub: a second key of clinic"),
    (lambda: None, ["lab.pub"], "lab.pub: the key of 'lab', which is no other site"),
]


@pytest.mark.parametrize(("act", "more", "told"), REFUSED, ids=[told for *_, told in REFUSED])
def test_what_cannot_be_approved_is_one_line_and_writes_nothing(
    act: Any, more: list[str], told: str, capsys: pytest.CaptureFixture[str]
) -> None:
    make_keys()
    act()
    assert told in refused(capsys, *approve_words("lab", *more))
    assert not Path("state-lab/consents").exists()


def test_words_that_are_missing_are_named(capsys: pytest.CaptureFixture[str]) -> None:
    make_keys()
    words = ["approve", "job.toml", "lab.toml"]
    assert "--key is required" in refused(capsys, *words)
    words += ["--key", "approver"]
    assert "--peers: the public key of clinic, ward is needed as well" in refused(capsys, *words)
    words += ["--peers", "clinic.pub"]
    assert "--peers: the public key of ward is needed as well" in refused(capsys, *words)
    assert "--key is required" in refused(capsys, "revoke", "job.toml", "lab.toml")
    assert "one SITE is needed, got 0" in refused(capsys, "keys")


def test_an_open_run_is_approved_where_the_site_says_so(
    capsys: pytest.CaptureFixture[str],
) -> None:
    write_job(OPEN)
    for name in NAMES:
        write_site(name, allow='allow = "not private"')
    make_keys()
    told = refused(capsys, *approve_words("lab", "--epsilon", "1"))
    assert "--epsilon is for a private run" in told
    approve_all()
    assert (consent_of("lab").epsilon, consent_of("lab").not_private) == (None, True)
    assert federation("simulate", "-q", "job.toml", *FILES) == 0
    write_site("lab")
    write_job(OPEN)
    told = refused(capsys, "simulate", "--resume", "job.toml", *FILES)
    assert "lab takes part in private runs only" in told


def test_a_budget_below_the_run_is_refused_by_the_consent(
    capsys: pytest.CaptureFixture[str],
) -> None:
    make_keys()
    approve_all()
    assert federation(*approve_words("lab", "--total-epsilon", "1")) == 0
    told = refused(capsys, "simulate", "job.toml", *FILES)
    assert "lab would have spent epsilon = 2 in all, and it agreed to at most 1" in told
    assert BudgetAccountant(path="ward.ledger").total().epsilon == 0


def test_a_consent_folder_of_its_own(capsys: pytest.CaptureFixture[str]) -> None:
    file = Path("lab.toml")
    file.write_text(file.read_text().replace("[consent]\n", '[consent]\nfolder = "agreed"\n'))
    make_keys()
    approve_all()
    assert len(list(Path("agreed").glob("heart-*.consent"))) == 1
    assert not Path("state-lab/consents").exists()
    assert federation("simulate", "-q", "job.toml", *FILES) == 0
    Path("blocked").write_text("a file, not a folder")
    file.write_text(file.read_text().replace('"agreed"', '"blocked"'))
    capsys.readouterr()
    assert federation(*approve_words("lab")) == 2
    assert "blocked" in capsys.readouterr().err


@pytest.mark.skipif(
    os.name != "posix" or getattr(os, "geteuid", lambda: 0)() == 0,
    reason="needs a user whom permissions bind",
)
def test_folders_that_cannot_be_written_are_told(capsys: pytest.CaptureFixture[str]) -> None:
    make_keys()
    os.chmod("state-lab", 0o500)
    try:
        assert "Permission denied" in refused(capsys, *approve_words("lab"))
    finally:
        os.chmod("state-lab", 0o700)


# revoke


def test_a_revoked_run_stays_revoked(capsys: pytest.CaptureFixture[str]) -> None:
    make_keys()
    approve_all()
    capsys.readouterr()
    assert federation("revoke", "job.toml", "lab.toml", "--key", "approver") == 0
    assert "is taken back: it answers nothing of it from now on" in capsys.readouterr().out
    assert federation("revoke", "job.toml", "lab.toml", "--key", "approver") == 0
    assert "was taken back" in capsys.readouterr().out
    told = refused(capsys, "simulate", "job.toml", *FILES)
    assert "lab has taken back its consent" in told
    assert "lab has taken back its consent" in journal("lab")[-1]["refused"]
    told = refused(capsys, *approve_words("lab"))
    assert "taken back its consent to these terms of run heart for good" in told
    Path("state-lab/consents/revoked").unlink()
    told = refused(capsys, "simulate", "job.toml", *FILES)
    assert "the list of what lab has taken back is gone, or shorter than it was" in told


def test_only_the_approver_revokes(capsys: pytest.CaptureFixture[str]) -> None:
    make_keys()
    approve_all()
    own("other", f"{'11' * 32}\n")
    os.chmod("other", 0o600)
    words = ["revoke", "job.toml", "lab.toml", "--key", "other"]
    assert "other: not the key of" in refused(capsys, *words)
    Path("state-lab/consents/revoked").write_text("{}\nnothing\n")
    told = refused(capsys, "simulate", "job.toml", *FILES)
    assert "the list of what lab has taken back is broken" in told
    words = ["revoke", "job.toml", "lab.toml", "--key", "approver"]
    assert "is broken" in refused(capsys, *words)
