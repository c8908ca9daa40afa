"""What an attacker tried on consents, keys and reviews, and what came through before."""

from __future__ import annotations

import gzip
import os
import stat
import threading
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from commands import refusal

from bench.federation import sites
from bench.federation.sites import APPROVING, key_of
from dpsvm.cli import main
from dpsvm.federation import FIELDS, InProcessRunner, Job, Message, Refusal, revocations
from dpsvm.federation.config import SiteConfig
from dpsvm.federation.consent import Consent, write_consent
from dpsvm.federation.job import read_toml
from dpsvm.federation.keys import PublicKey
from dpsvm.federation.messages import FROM_PARTY
from dpsvm.federation.review import Review
from dpsvm.federation.revocations import Revocations
from dpsvm.federation.signed import LARGEST

OPEN: dict[str, dict[str, Any]] = {
    "sharing": {"loss": "logistic", "rounds": 2},
    "network": {"graph": "ring", "classes": [-1, 1], "rounds": 2},
    "frank-wolfe": {"rounds": 2, "radius": 0.5, "sketch": 0},
}
DATES = {"issued": datetime(2020, 1, 1, tzinfo=UTC), "expires": datetime(2120, 1, 1, tzinfo=UTC)}


@pytest.fixture
def problem(tmp_path: Path) -> sites.Problem:
    """A private run of three sites, and the approver's key beside them."""
    made = sites.make_problem(tmp_path / "sites", "sharing")
    APPROVING.save(made.folder / "approver")
    for name in (*sites.PARTIES, "approver"):
        key = APPROVING if name == "approver" else key_of(name)
        (made.folder / f"{name}.pub").write_text(key.public.text())
    return made


def approving(
    problem: sites.Problem, *more: str, peers: tuple[str, ...] = ("clinic", "home")
) -> Any:
    folder = problem.folder
    files = [str(folder / f"{name}.pub") for name in peers]
    words = ["approve", str(problem.job_file), str(problem.site_file("lab"))]
    return ["federation", *words, "--key", str(folder / "approver"), "--peers", *files, *more]


# The list of what was taken back


def test_two_who_revoke_at_once_lose_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    listed = Revocations(tmp_path, "lab", APPROVING.public)
    second = threading.Thread(target=listed.add, args=("1" * 64, APPROVING))
    plain, begun = revocations.signed, []

    def signed(*words: Any) -> bytes:
        if not begun:  # the first has read the list and not written it
            begun.append(True)
            second.start()
            second.join(0.3)
        return plain(*words)

    monkeypatch.setattr(revocations, "signed", signed)
    listed.add("0" * 64, APPROVING)
    second.join()
    assert sorted(listed.read()) == ["0" * 64, "1" * 64]


def test_a_long_list_is_read_again_and_none_is_written_that_could_not(tmp_path: Path) -> None:
    listed = Revocations(tmp_path, "lab", APPROVING.public)
    content = {"version": 1, "site": "lab", "revoked": [f"{one:064x}" for one in range(2_000)]}
    path = tmp_path / revocations.FILE
    path.write_bytes(revocations.signed(content, APPROVING, "dpsvm revocations"))
    assert listed.add("f" * 64, APPROVING)
    assert len(listed.read()) == 2_001
    content["revoked"] = ["0" * 64] * (LARGEST // 64)
    with pytest.raises(Refusal, match="bytes are too many to be signed"):
        revocations.signed(content, APPROVING, "dpsvm revocations")


# Keys


@pytest.mark.parametrize(
    ("ours", "told"), [("lab", "that of lab at lab"), ("approver", "that of approver at lab")]
)
def test_no_key_of_a_site_is_that_of_another(
    ours: str, told: str, problem: sites.Problem, capsys: pytest.CaptureFixture[str]
) -> None:
    key = APPROVING if ours == "approver" else key_of(ours)
    file = problem.site_file("lab").parent / "lab.pub"
    file.write_text(key_of("lab").public.text())
    (problem.folder / "home.pub").write_text(PublicKey("home", key.public.key).text())
    assert f"the key of home is {told}" in refusal(capsys, *approving(problem))
    config = SiteConfig.load(problem.site_file("lab"))
    known = {"clinic": key_of("clinic").public, "home": PublicKey("home", key.public.key)}
    consent = Consent.of(problem.job, "lab", known, epsilon=1e9, total=1e9, **DATES)
    write_consent(config.consent_folder, problem.job, consent, APPROVING)
    with pytest.raises(Refusal, match="its own" if ours == "lab" else "that of the approver"):
        config.party(problem.job)


@pytest.mark.parametrize("approver", ["lab", "state/site.key", "x" * 253])
def test_a_pair_of_keys_that_cannot_be_made_leaves_no_other(
    approver: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("lab.toml").write_text('name = "lab"\nstate = "state"\n')
    Path("state").mkdir()
    refusal(capsys, "federation", "keys", "lab.toml", "--approver", approver)
    assert [str(path) for path in Path().rglob("*") if path.is_file()] == ["lab.toml"]


@pytest.mark.skipif(os.name != "posix", reason="files have other rights")
def test_rights_are_those_whatever_the_umask(problem: sites.Problem, tmp_path: Path) -> None:
    site = tmp_path / "new" / "site.toml"
    site.parent.mkdir()
    text = problem.site_file("lab").read_text()
    site.write_text(text.replace('"state"', '"deep/state"'))
    before = os.umask(0)
    try:
        config = SiteConfig.load(site)
        known = {name: key_of(name).public for name in ("clinic", "home")}
        write_consent(
            config.consent_folder,
            problem.job,
            Consent.of(problem.job, "lab", known, **DATES),
            APPROVING,
        )
        assert main(["federation", "keys", str(site), "--approver", str(tmp_path / "a")]) == 0
    finally:
        os.umask(before)
    rights = {
        name: stat.S_IMODE((site.parent / name).stat().st_mode)
        for name in ("deep", "deep/state", "deep/state/consents", "lab.pub", "../a", "../a.pub")
    }
    assert list(rights.values()) == [0o700, 0o700, 0o700, 0o644, 0o600, 0o644]


# Bad input


@pytest.mark.parametrize("date", ["9999-12-31T23:59:59-05:00", "0001-01-01T00:00:00+05:00"])
def test_a_date_beyond_the_years_is_one_line(
    date: str, problem: sites.Problem, capsys: pytest.CaptureFixture[str]
) -> None:
    told = refusal(capsys, *approving(problem, "--expires", date))
    assert f"{date!r} is not a date such as" in told


def test_a_header_too_long_for_csv_tells_no_width(problem: sites.Problem) -> None:
    config = SiteConfig.load(problem.site_file("lab"))
    assert config.source is not None
    assert Review.of(problem.job, config).columns == 3
    Path(config.source.file).write_text("x" * 200_000 + ",y\n1,2\n")
    assert Review.of(problem.job, config).columns is None
    Path(config.source.file).write_bytes(gzip.compress(b"x,y\n")[:8])
    assert Review.of(problem.job, config).takes_part


@pytest.mark.skipif(not os.path.exists("/dev/zero"), reason="there is no such device")
def test_a_device_without_an_end_is_read_to_a_limit() -> None:
    with pytest.raises(ValueError, match="/dev/zero: more than 1048576 bytes are too many"):
        read_toml("/dev/zero")
    with pytest.raises(ValueError, match="not a public key"):
        PublicKey.load("/dev/zero")


# The review


def recorded(problem: sites.Problem) -> dict[str, set[str]]:
    """The kinds of messages that left each site in a run, as a party and as the coordinator."""
    parties, coordinator = problem.make()
    found: dict[str, set[str]] = {}

    class Recording(InProcessRunner):
        """Keeps what kinds there were."""

        def deliver(self, messages: Any) -> dict[str, Message | None]:
            answers = super().deliver(messages)
            found.setdefault("coordinator", set()).update(one.kind for one in messages.values())
            for name, answer in answers.items():
                assert answer is not None
                found.setdefault(name, set()).add(answer.kind)
            return answers

    assert Recording(parties).run(coordinator).ended == "done"
    for one in (*parties, coordinator):
        one.store.close()
    return found


@pytest.mark.parametrize("algorithm", OPEN)
@pytest.mark.parametrize("private", [True, False])
@pytest.mark.parametrize("sums", ["open", "masked"])
def test_a_review_lists_every_message_of_a_run(
    algorithm: str, private: bool, sums: str, tmp_path: Path
) -> None:
    settings = None if private else OPEN[algorithm]
    made = sites.make_problem(tmp_path / "s", algorithm, settings, private=private, sums=sums)
    found = recorded(made)
    coordinator = found.pop("coordinator")
    for name, kinds in found.items():
        lines = dict(Review.of(made.job, SiteConfig.load(made.site_file(name)), rows=24).lines())
        party = " ".join(lines[one] for one in lines if one.startswith("leaves"))
        assert all(f"({kind}: " in party for kind in kinds)
        if made.job.label_owner == name:
            sent = " ".join(text for line, text in lines.items() if line.startswith("sent"))
            assert all(f"({kind}: " in sent for kind in coordinator)
            assert "as the coordinator, all parties: clinic, lab, home" in lines["to whom"]
        assert "to all parties, by the coordinator: how many columns or rows" in lines["passed on"]


def test_a_review_of_an_alignment_lists_what_travels() -> None:
    job = Job("ids-1", "align", ("clinic", "lab"), "clinic")
    lines = dict(Review(job, SiteConfig(name="clinic", state=Path("state"))).lines())
    assert "(common: own, twice)" in lines["sent as coordinator"]
    assert "are not compared" in lines["who is who"]


def test_a_review_counts_the_squares_and_needs_no_other_line_for_masks() -> None:
    job = Job("r", "sharing", ("a", "b"), "a", {"rounds": 2})
    lines = dict(Review(job, SiteConfig(name="b", state=Path("state")), rows=12).lines())
    assert lines["how often"].endswith(
        "24 in all; and in each the sum of their squares, in the same way"
    )
    assert "the same numbers" not in lines["leaves each round"]
    assert "is signed by its site" in lines["who is who"]
    assert set(FIELDS) >= set(FROM_PARTY)
