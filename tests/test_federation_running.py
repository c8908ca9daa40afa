"""Runs that must end well whatever happens: odd numbers, sizes, files, rights, signals, purges."""

from __future__ import annotations

import json
import os
import signal
import stat
import subprocess
import sys
import time
import zipfile
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from commands import environment, refusal, start
from federation_problems import NAMES, SETTINGS, World, close, job_of
from federation_problems import run as run_world

from bench.federation import sites
from dpsvm.admm.network.node import Node
from dpsvm.cli import main
from dpsvm.federation import Coordinator, InProcessRunner, Job, MemoryStore, Message, Party
from dpsvm.federation.config import SiteConfig
from dpsvm.federation.members import Shape, agreement_of, settings_of_job
from dpsvm.federation.nvflare_kits import Kits, prepare
from dpsvm.federation.store import RunFolder, StoreError
from dpsvm.federation.toml_text import parse_toml

posix = pytest.mark.skipif(os.name != "posix", reason="rights are those of POSIX")
with_mpi = pytest.mark.skipif(find_spec("mpi4py") is None, reason="mpi4py is not installed")
needs_nvflare = pytest.mark.skipif(find_spec("nvflare") is None, reason="nvflare is not installed")
OPEN = ["sharing", "network", "frank-wolfe"]


# Numbers


class Liar(InProcessRunner):
    """Puts a number into one party's answer of a round."""

    def __init__(self, parties: list[Party], number: float, at: int) -> None:
        super().__init__(parties)
        self.number, self.at = number, at

    def deliver(self, messages: Any) -> dict[str, Message | None]:
        found = super().deliver(messages)
        told = found["lab"]
        if told is not None and told.round == self.at and told.arrays:
            for array in told.arrays.values():
                array.flat[0] = self.number
        return found


def parts(world: World) -> tuple[list[Party], Coordinator, list[RunFolder]]:
    """The machines of a world, and their stores."""
    stores = [world.store(name) for name in (*NAMES, "hub")]
    parties = [
        Party(world.job, world.site(name), store)
        for name, store in zip(NAMES, stores, strict=False)
    ]
    return parties, Coordinator(world.job, world.site("hub"), stores[-1]), stores


@pytest.mark.parametrize("number", [np.nan, np.inf, -1e9])
@pytest.mark.parametrize("name", ["network", "frank-wolfe"])
def test_a_wild_number_names_its_sender_and_the_run_goes_on(
    name: str, number: float, tmp_path: Path
) -> None:
    expected = World.of(tmp_path / "plain", name)
    run_world(expected)
    world = World.of(tmp_path / "wild", name)
    parties, coordinator, stores = parts(world)
    at = 2 if name == "network" else 1
    turn = Liar(parties, number, at).run(coordinator)
    assert turn.ended == "stopped"
    what = "iterate" if name == "network" else "proposal"
    told = "beyond the sum_range = 65536" if np.isfinite(number) else "not finite"
    assert f"the {what} of lab in round {at} has a number " in str(turn.reason)
    assert told in str(turn.reason)
    close(stores)
    turn, _ = run_world(world)
    assert turn.ended == "done"
    assert world.outcome() == expected.outcome()


@pytest.mark.parametrize("number", [np.nan, 1e300])
def test_a_site_refuses_its_own_wild_numbers_and_charges_nobody_else_for_it(
    number: float, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = World.of(tmp_path, "network")
    parties, coordinator, stores = parts(world)
    emit = Node.emit

    def wild(node: Any) -> Any:
        told = emit(node)
        if node.index == 1 and told.round == 3:
            told = replace(told, weights=np.full_like(told.weights, number))
        return told

    with monkeypatch.context() as patch:
        patch.setattr(Node, "emit", wild)
        turn = InProcessRunner(parties).run(coordinator)
    assert turn.ended == "stopped"
    assert "lab refused: the answer of lab has a number " in str(turn.reason)
    assert [party.held for party in parties] == [3, 2, 3]
    close(stores)
    turn, _ = run_world(world)
    assert turn.ended == "done"


def test_what_the_coordinator_would_ask_is_checked_before_it_is(tmp_path: Path) -> None:
    world = World.of(tmp_path, "frank-wolfe", sum_range=1e-12)
    parties, coordinator, stores = parts(world)
    turn = InProcessRunner(parties).run(coordinator)
    assert "what the coordinator would ask has a number beyond the sum_range" in str(turn.reason)
    close(stores)


# Sizes


@pytest.mark.parametrize(
    ("job", "shape", "told"),
    [
        (job_of("sharing"), Shape(2**26, (3, 2, 2)), "a snapshot of all parties' numbers has"),
        (job_of("network"), Shape(0, (9, 9, 9), 2**27), "what all nodes are told has"),
        (job_of("frank-wolfe"), Shape(30, (2**30, 2, 2)), "a weight for every column has"),
        (
            job_of("frank-wolfe", settings={"radius": 1.0, "rounds": 1000, "sketch": 10**5}),
            Shape(10**4, (5000, 5000, 5000)),
            "a snapshot of all sketches",
        ),
        (
            job_of("frank-wolfe", settings={"radius": 1.0, "rounds": 2, "sketch": 10**6}),
            Shape(10**6, (2, 2, 2)),
            "is too large to be drawn",
        ),
    ],
)
def test_sizes_that_cannot_work_are_refused(job: Job, shape: Shape, told: str) -> None:
    with pytest.raises(ValueError, match=told):
        agreement_of(job, shape)


@pytest.mark.parametrize("algorithm", OPEN)
@pytest.mark.parametrize("rounds", [1_000_001, 10**9, True, 1.5])
def test_rounds_that_cannot_work_are_refused(algorithm: str, rounds: Any) -> None:
    settings = job_of(algorithm).settings | {"rounds": rounds}
    job = job_of(algorithm, settings=settings)
    with pytest.raises(ValueError, match="rounds"):
        agreement_of(job, Shape(30, (3, 2, 2), 7))


def test_a_run_too_large_is_refused_before_anyone_pays(tmp_path: Path) -> None:
    world = World.of(tmp_path, "sharing, private")
    party = Party(world.job, world.site("lab"), MemoryStore())
    rows = {"sizes": np.array([3, 2, 2])}
    many = Message("run-1", 0, "begin", rows, {"rows": 2**40})
    assert party.handle(many).kind == "refusal"
    assert world.charges()["lab"] == 0


# Files of settings


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("a = " + "[" * 500_000, "nested too deep"),
        ("a = " + "{b = " * 50 + "1" + "}" * 50, "nested too deep"),
        ("a." * 400_000 + "a = 1", "a key of more than 16 parts"),
        ('"=".' * 200_000 + "a = 1", "a key of more than 16 parts"),
        ('x = """a""""\n' + "a." * 100_000 + "a = 1", "a key of more than 16 parts"),
        ("a = " + "9" * 100_000, "not TOML"),
        ("a = " + "9" * 30, "'a' is a whole number beyond 64 bits"),
        ("a = 1e400", "'a' must be a finite number, got inf"),
        ("a = [nan]", "'a' must be a finite number, got nan"),
        ("a = 2026-01-01", "'a' cannot be a date or a time"),
        ('"a\\nb" = nan', "must be a finite number"),
        ('a = "' + "\\", "not TOML"),
    ],
)
def test_toml_of_absurd_depth_or_length_is_one_line(text: str, told: str) -> None:
    with pytest.raises(ValueError, match=told) as error:
        parse_toml(text)
    assert "\n" not in str(error.value)


ODD = [
    *("true", "-1", "0", "1e400", "nan", "9223372036854775807", "9" * 25, "1e308", "5e-324"),
    *("2026-01-01", "12:00:00", "''", "'x'", '"a\\u0000b"', '"a\\nb"', "'../../etc'", "'auto'"),
    *("[]", "[1, 2]", "[[]]", "[[1, 2], [3, 'a']]", "{}", "{a = 1}", "[true]", "1.5", "2147483647"),
    *("'" + "x" * 5000 + "'", "[" + "1, " * 3000 + "1]", "[" * 500, "[0.5]", "[-1, 1e308]"),
]
LINES = [
    "[a.b]",
    "[[settings]]",
    "settings.rounds = 3",
    "[data.file]",
    "'a\nb' = 1",
    '"\\u0007" = nan',
]
SITE = """name = "lab"
state = "state"
allow = "not private"
[consent]
approver = "approver.pub"
[data]
file = "lab.csv"
columns = ["crp", "hdl"]
id = "p"
label = "y"
salt_file = "salt.txt"
rows = [0, 2]
[predict]
file = "new.csv"
[bounds]
data_norm = 1.0
radius = 2.0
[budget]
ledger = "ledger.json"
"""


def job_texts() -> list[str]:
    """The job files of all small runs."""
    found = []
    for name in SETTINGS:
        content = json.loads(job_of(name).canonical())
        settings = content.pop("settings")
        lines = [f"{key} = {json.dumps(one)}" for key, one in content.items() if one is not None]
        lines += ["[settings]", *(f"{key} = {json.dumps(one)}" for key, one in settings.items())]
        found.append("\n".join(lines) + "\n")
    return found


def damaged(text: str, random: np.random.Generator) -> bytes:
    """A file with a value, a bit, a line or a piece of it changed."""
    lines, how = text.splitlines(), random.integers(8)
    at = int(random.integers(len(lines)))
    if how <= 3 and "=" in lines[at]:
        lines[at] = f"{lines[at].split('=')[0]}= {ODD[random.integers(len(ODD))]}"
    elif how == 4:
        data = bytearray(text.encode())
        for place in random.integers(len(data), size=3):
            data[place] ^= 1 << int(random.integers(8))
        return bytes(data)
    elif how == 5:
        del lines[at]
    elif how == 6:
        first, size = random.integers(len(text)), random.integers(1, 40)
        return (text[:first] + text[first + size :]).encode()
    else:
        lines.insert(at, LINES[random.integers(len(LINES))])
    return ("\n".join(lines) + "\n").encode()


@pytest.mark.filterwarnings("ignore")
def test_mutated_files_of_settings_are_read_or_refused(tmp_path: Path) -> None:
    random, jobs, file = np.random.default_rng(0), job_texts(), tmp_path / "file.toml"
    (tmp_path / "salt.txt").write_text("s" * 20)
    (tmp_path / "lab.csv").write_text("p,crp,hdl,y\na,1,2,0\nb,1,2,1\nc,2,2,1\n")
    asked = Job("r", "sharing", ("lab",), "lab", {"rounds": 2, "data_norm": 1.0, "radius": 2.0})
    taken = {"job": 0, "site": 0}
    for number in range(1500):
        site = number % 3 == 0
        file.write_bytes(damaged(SITE if site else jobs[random.integers(len(jobs))], random))
        try:
            if site:
                config = SiteConfig.load(file)
                if config.source is not None:
                    config.source.read(labels=True)
                config.check(asked)
            else:
                job = Job.load(file)
                network = job.algorithm == "network"
                sizes = ((10,) * 9 if network else (3, 2, 2))[: len(job.parties)]
                agreement_of(job, Shape(0 if network else 30, sizes, 7 if network else 0))
        except (ValueError, OSError):
            continue
        taken["site" if site else "job"] += 1
    assert min(taken.values()) > 30


def test_texts_and_comments_may_have_as_many_dots_as_they_like() -> None:
    text = 'a = "' + "1." * 99 + '"  # ' + "." * 99 + "\nb.c = [" + "1.5, " * 99 + "]\n"
    found = parse_toml(text + "d = '''" + "x." * 99 + "''''\n")
    assert found["a"] == "1." * 99
    assert found["b"] == {"c": [1.5] * 99}
    assert found["d"] == "x." * 99 + "'"


def test_a_bad_job_file_is_one_line_with_its_name(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    job = tmp_path / "job.toml"
    for text, told in (
        ("a = " + "[" * 100_000, "not TOML: it is nested too deep"),
        ("run = 1e400", "'run' must be a finite number, got inf"),
        (b"\xff\xfe".decode("latin-1"), "not TOML"),
    ):
        job.write_bytes(text.encode("latin-1"))
        said = refusal(capsys, "federation", "check", str(job), "site.toml")
        assert said.startswith(f"{job}: {told}")


@pytest.mark.parametrize(
    ("algorithm", "settings", "told"),
    [
        ("sharing", {"rho": True}, "rho cannot be True"),
        ("sharing", {"lam": {"a": 1}}, "lam cannot be {'a': 1}"),
        ("sharing", {"ball": [1]}, "settings: "),
        ("frank-wolfe", {"rounds": 3, "radius": True}, "radius cannot be True"),
        ("network", {"classes": [0, [1]]}, "classes must be two texts or numbers"),
        ("network", {"classes": [0, 1], "graph": [[0.5, "a"]]}, "graph must be a name or a list"),
    ],
)
def test_settings_of_another_type_are_refused(
    algorithm: str, settings: dict[str, Any], told: str
) -> None:
    owner = None if algorithm == "network" else "a"
    with pytest.raises(ValueError, match=told):
        settings_of_job(Job("r", algorithm, ("a", "b"), owner, settings))


# Rights


@posix
def test_what_a_site_keeps_is_for_its_owner_alone_whatever_the_umask(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        problem = sites.make_problem(tmp_path / "sites", "sharing", keys=False)
        parties, coordinator = problem.make()
        assert InProcessRunner(parties).run(coordinator).ended == "done"
    finally:
        os.umask(before)
    for one in (coordinator, *parties):
        one.store.close()
    kept = [path for name in sites.PARTIES for path in (problem.folder / name / "state").rglob("*")]
    assert {stat.S_IMODE(path.stat().st_mode) for path in kept if path.is_dir()} == {0o700}
    files = {path.name for path in kept if path.is_file()}
    assert {"noise.key", "snapshot", "model.json", "result.json"} <= files
    for path in kept:
        if path.is_file() and not path.name.endswith("lock"):
            public = path.parent.name == "consents"  # an approver of another account may write them
            assert stat.S_IMODE(path.stat().st_mode) == (0o644 if public else 0o600), path


@posix
def test_a_run_that_others_may_look_into_is_refused(tmp_path: Path) -> None:
    with RunFolder(tmp_path / "state" / "party", "heart") as store:
        store.save({"round": 1})
    folder = tmp_path / "state" / "party" / "heart"
    folder.chmod(0o755)
    with pytest.raises(StoreError, match="others may look into this run"):
        RunFolder(tmp_path / "state" / "party", "heart")
    folder.chmod(0o700)
    RunFolder(tmp_path / "state" / "party", "heart").close()
    (tmp_path / "state").chmod(0o777)
    with pytest.raises(StoreError, match="all users may write to this folder"):
        RunFolder(tmp_path / "state" / "party", "heart")
    (tmp_path / "state").chmod(0o700)
    (folder / "noise.key").write_bytes(bytes(32))
    (folder / "noise.key").chmod(0o644)
    RunFolder(tmp_path / "state" / "party", "heart").close()
    assert stat.S_IMODE((folder / "noise.key").stat().st_mode) == 0o600


# Purges


@pytest.fixture
def ended(tmp_path: Path) -> Any:
    """The files of a private run that is over."""
    problem = sites.make_problem(tmp_path / "sites", "sharing")
    parties, coordinator = problem.make()
    assert InProcessRunner(parties).run(coordinator).ended == "done"
    for one in (coordinator, *parties):
        one.store.close()
    return problem


def names_in(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()} - {"lock"}


def test_a_purged_run_keeps_its_model_its_charge_and_its_name(
    ended: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    site, ledger = str(ended.site_file("clinic")), ended.folder / "clinic" / "ledger.json"
    before = ledger.read_bytes()
    assert main(["federation", "purge", site, "trial"]) == 0
    assert names_in(ended.run_folder("clinic")) == {"charged", "purged", "model.json"}
    assert names_in(ended.run_folder("clinic", "coordinator")) == {"purged", "result.json"}
    assert ledger.read_bytes() == before
    assert main(["federation", "status", site]) == 0  # the charge is not taken for lost
    assert "has ended it; what it kept was purged" in " ".join(capsys.readouterr().out.split())
    for words in (["check"], ["simulate"], ["resume"]):
        told = refusal(capsys, "federation", *words, *ended.files)
        assert "is over" in told
    with pytest.raises(ValueError, match="run trial is over at clinic, and was purged"):
        SiteConfig.load(site).party(ended.job)
    with pytest.raises(ValueError, match="run trial is over at clinic, and was purged"):
        SiteConfig.load(site).coordinator(ended.job)
    assert ledger.read_bytes() == before
    assert main(["federation", "purge", site, "trial", "--all"]) == 0
    assert names_in(ended.run_folder("clinic")) == {"charged", "purged"}
    assert main(["federation", "purge", site, "--finished"]) == 0
    assert "is purged at clinic" in capsys.readouterr().out


def test_a_purge_that_was_killed_is_done_again(
    ended: Any, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    site, folder = str(ended.site_file("lab")), ended.run_folder("lab")
    unlink = Path.unlink
    seen: list[Path] = []

    def dies(path: Path, **more: Any) -> None:
        if path.parent == folder and path.name != "lock":
            seen.append(path)
            if len(seen) % 2 == 1:  # one file is removed at each try but the first
                raise KeyboardInterrupt
        unlink(path, **more)

    for _ in range(2):
        with monkeypatch.context() as patch:
            patch.setattr(Path, "unlink", dies)
            main(["federation", "purge", site, "trial"])
        assert "purged" in names_in(folder)
        assert main(["federation", "status", site]) == 0
        with pytest.raises(ValueError, match="was purged"):
            SiteConfig.load(site).party(ended.job)
    assert main(["federation", "purge", site, "trial"]) == 0
    assert names_in(folder) == {"charged", "purged", "model.json"}


def test_a_run_that_is_not_over_is_not_purged(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    problem = sites.make_problem(tmp_path / "sites", "sharing")
    parties, coordinator = problem.make()
    turn = coordinator.start()
    for _ in range(4):
        answers = {
            party.site.name: party.handle(turn.messages[party.site.name]) for party in parties
        }
        turn = coordinator.advance(answers)
    for one in (coordinator, *parties):
        one.store.close()
    site = str(problem.site_file("lab"))
    kept = problem.kept()
    told = refusal(capsys, "federation", "purge", site, "trial")
    assert "run trial is not over at lab: as " in told
    assert main(["federation", "purge", site, "--finished"]) == 0
    assert capsys.readouterr().out == "lab keeps no run that is over\n"
    assert problem.kept() == kept
    assert "keeps nothing of a run liver" in refusal(capsys, "federation", "purge", site, "liver")
    assert "one of both" in refusal(capsys, "federation", "purge", site)
    assert main(["federation", "abort", site, "trial"]) == 0
    assert main(["federation", "purge", site, "trial"]) == 0
    assert names_in(problem.run_folder("lab")) == {"charged", "purged"}
    with pytest.raises(ValueError, match="is over at lab, and was purged"):
        SiteConfig.load(site).party(problem.job)


def test_a_purge_of_a_run_that_a_process_has_is_refused(
    ended: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    site = str(ended.site_file("lab"))
    with RunFolder(ended.run_folder("lab").parent, "trial"):
        told = refusal(capsys, "federation", "purge", site, "trial")
    assert "another process has this run" in told
    assert "snapshot" in names_in(ended.run_folder("lab"))


# Signals and timeouts


def family(process: Any) -> list[Any]:
    """All processes that a process has begun, and that their children have."""
    psutil = pytest.importorskip("psutil")
    found: list[Any] = psutil.Process(process.pid).children(recursive=True)
    return found


def all_gone(processes: list[Any]) -> bool:
    """Whether they end within some seconds."""
    psutil = pytest.importorskip("psutil")
    return not psutil.wait_procs(processes, timeout=20)[1]


def long_run(tmp_path: Path, *flags: str) -> tuple[Any, Any]:
    """A run of MPI that has begun, and its problem."""
    settings = {"loss": "logistic", "rounds": 1_000_000}
    problem = sites.make_problem(tmp_path / "sites", "sharing", settings, private=False)
    process = start("federation", "run-mpi", *problem.files, *flags)
    while not (problem.run_folder("lab") / "snapshot").exists():
        assert process.poll() is None, process.communicate()
        time.sleep(0.05)
    return process, problem


@with_mpi
@posix
def test_sigterm_ends_all_ranks_and_names_the_way_on(tmp_path: Path) -> None:
    process, problem = long_run(tmp_path)
    children = family(process)
    assert len(children) >= 5  # mpirun and four ranks
    process.send_signal(signal.SIGTERM)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 143
    assert f"dpsvm federation run-mpi {problem.job_file}" in err
    assert "--resume goes on with it" in err
    assert all_gone(children)


@with_mpi
@posix
def test_a_rank_that_does_not_answer_stops_the_run_for_all(tmp_path: Path) -> None:
    process, problem = long_run(tmp_path, "--reply-timeout", "2")
    children = family(process)
    ranks = [one for one in children if "dpsvm.federation.mpi" in one.cmdline()]
    [stuck] = [one for one in ranks if one.environ().get("PMI_RANK") == "2"] or ranks[2:3]
    os.kill(stuck.pid, signal.SIGSTOP)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 2
    assert "lab did not answer in round " in err
    assert f"dpsvm federation run-mpi {problem.job_file}" in err
    assert "--resume goes on with it" in err
    assert all_gone(children)


STARTED = """
import subprocess, sys
from dpsvm.cli import main
from dpsvm.cli.federating import nvflare
from dpsvm.federation.nvflare_kits import Kits
from dpsvm.federation.nvflare_runner import Federation

class Sleepers(Federation):
    def __init__(self, folder):
        self.kits, self.processes = Kits(None, {}, None), {}

    def start(self):
        more = [sys.executable, "-c", "import time; time.sleep(600)"]
        wait = [sys.executable, "-c", f"import subprocess; subprocess.run({more!r})"]
        for name in ("server", "lab"):
            self.processes[name] = subprocess.Popen(wait, start_new_session=True)

nvflare.Federation = Sleepers
nvflare.find_spec = lambda name: name
sys.exit(main(["federation", "nvflare", "start", "kits"]))
"""


@posix
def test_sigterm_ends_a_started_federation() -> None:
    words = [sys.executable, "-c", STARTED]
    pipe = subprocess.PIPE
    with subprocess.Popen(words, stdout=pipe, text=True, env=environment()) as process:
        assert process.stdout is not None
        assert "connected" in process.stdout.readline()
        while len(children := family(process)) < 4:
            time.sleep(0.05)
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=60)
    assert process.returncode == 143
    assert all_gone(children)


# Kits of NVFlare


@posix
def test_kits_whose_keys_others_may_read_are_refused(tmp_path: Path) -> None:
    for kind, name in (("server", "localhost"), ("client", "lab"), ("admin", "admin")):
        startup = tmp_path / "dpsvm" / "prod_00" / name / "startup"
        startup.mkdir(parents=True)
        (startup / f"fed_{kind}.json").write_text("{}")
        (startup / f"{kind}.key").write_text("secret")
        (startup / f"{kind}.key").chmod(0o600)
    kits = Kits.find(tmp_path)
    assert [one.name for one in kits.all] == ["localhost", "lab", "admin"]
    key = startup / "admin.key"
    key.chmod(0o640)
    with pytest.raises(ValueError, match=f"others may read {key}: chmod -R go= "):
        Kits.find(tmp_path)
    with pytest.raises(ValueError, match="others may read"):
        prepare(startup.parent, tmp_path / "site.toml")
    key.chmod(0o600)
    authority = tmp_path / "dpsvm" / "state" / "cert.json"
    authority.parent.mkdir()
    authority.write_text("secret")
    authority.chmod(0o604)
    with pytest.raises(ValueError, match=f"others may read {authority}"):
        Kits.find(tmp_path)


@needs_nvflare
def test_keys_are_made_where_they_stay(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    site = tmp_path / "lab.toml"
    site.write_text('name = "lab"\nstate = "state"\n')
    mine, signer = str(tmp_path / "mine"), str(tmp_path / "signer")
    act = ["federation", "nvflare"]
    before = os.umask(0)
    try:
        assert main([*act, "request", str(site), "--output", mine]) == 0
        asked = capsys.readouterr().out.split(":")[0]
        assert main([*act, "sign", signer, asked, "--host", "fl.example", "--port", "8443"]) == 0
        out = capsys.readouterr().out
        assert "client lab, request " in out
        signed, fingerprint = f"{signer}/lab.signed.zip", out.split()[-1]
        key = (tmp_path / "mine" / "lab.key").read_bytes()
        for file in (asked, signed):
            with zipfile.ZipFile(file) as content:
                assert all(key not in content.read(name) for name in content.namelist())
        assert not list((tmp_path / "signer").rglob("lab.key"))
        wrong = ":".join(["SHA256", *["00"] * 32])
        told = refusal(capsys, *act, "assemble", mine, signed, "--fingerprint", wrong)
        assert "fingerprint does not match" in told
        assert main([*act, "assemble", mine, signed, "--fingerprint", fingerprint]) == 0
    finally:
        os.umask(before)
    capsys.readouterr()
    kit = Kits.find(mine).sites["lab"]
    assert str(site) in (kit / "local" / "dpsvm.toml").read_text()
    assert "fl.example:8443" in (kit / "startup" / "fed_client.json").read_text()
    if os.name == "posix":
        for folder in (mine, signer):
            assert stat.S_IMODE(Path(folder).stat().st_mode) == 0o700
            keys = list(Path(folder).rglob("*.key"))
            assert keys
            assert {stat.S_IMODE(one.stat().st_mode) for one in keys} == {0o600}
    assert "not an empty folder" in refusal(capsys, *act, "request", str(site), "--output", mine)
    told = refusal(capsys, *act, "sign", signer, asked)
    assert "was made for the server fl.example:8443, not for localhost:8002" in told


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["request", "lab.toml"], "--output is required"),
        (["request", "--output", "x"], "a SITE or --admin is needed, one of both"),
        (["assemble", "x", "y"], "--fingerprint is required"),
        (["sign", "x"], "FOLDER and REQUEST... are needed, got 1"),
        (["run", "x", "y", "--reply-timeout", "0"], "--reply-timeout: '0' is not a finite number"),
    ],
)
def test_bad_words_for_kits(
    words: list[str],
    told: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr("dpsvm.cli.federating.nvflare.find_spec", lambda name: name)
    assert told in refusal(capsys, "federation", "nvflare", *words)


@pytest.mark.parametrize("kind", ["SessionClosed", "NoConnection"])
def test_a_server_that_is_gone_is_one_line_that_names_the_way_on(
    kind: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    base = {"SessionClosed": Exception, "NoConnection": ConnectionError}[kind]
    gone = type(kind, (base,), {"__module__": "nvflare.fuel.flare_api.api_spec"})

    class Runner:
        def __init__(self, folder: str) -> None:
            self.folder = folder

        def run(self, *_: Any, **__: Any) -> None:
            raise gone("the session is\nclosed")

    monkeypatch.setattr("dpsvm.cli.federating.nvflare.find_spec", lambda name: name)
    monkeypatch.setattr("dpsvm.cli.federating.nvflare.NVFlareRunner", Runner)
    job = sites.make_problem(tmp_path / "sites", "sharing").job_file
    told = refusal(capsys, "federation", "nvflare", "run", "kits", str(job))
    assert told == (
        "NVIDIA FLARE: the session is closed; once that is mended, dpsvm federation nvflare run "
        f"kits {job} goes on with it"
    )


def test_whoever_has_all_sites_is_told_what_one_of_them_keeps_from_the_others(
    tmp_path: Path,
) -> None:
    world = World.of(tmp_path, "sharing")
    parties = [Party(world.job, world.site(one), world.store(one)) for one in NAMES]

    def failing(_: Message) -> Message:
        raise RuntimeError("the disk of the lab")

    parties[1]._handle = failing  # type: ignore[method-assign]
    runner = InProcessRunner(parties)
    turn = runner.run(Coordinator(world.job, world.site("hub"), world.store("hub")))
    assert "disk" not in str(turn.reason)
    assert runner.why(turn).endswith("; lab: RuntimeError: the disk of the lab")
