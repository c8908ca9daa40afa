"""``dpsvm federation``: every subcommand on made-up sites, and everything that it refuses."""

from __future__ import annotations

import contextlib
import csv
import json
import os
import re
import signal
import stat
import sys
import time
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from commands import refusal, start

from bench.federation.sites import approve_all
from dpsvm.admm import SharingADMMClassifier
from dpsvm.cli import main
from dpsvm.cli.federating import nvflare, run_mpi, simulate
from dpsvm.cli.federating.cast import Cast
from dpsvm.cli.federation import SUBCOMMANDS
from dpsvm.federation import InProcessRunner, Job, MemoryStore, Party, RunFolder, tables
from dpsvm.federation.config import SiteConfig
from dpsvm.federation.keys import introduce
from dpsvm.federation.messages import Message
from dpsvm.federation.models import load_model
from dpsvm.federation.secure_sum import Roster
from dpsvm.privacy.accountant import BudgetAccountant

warned = pytest.mark.filterwarnings("always::dpsvm.PrivacyLeakWarning")
ROWS, NEW = 60, 8
COLUMNS = {"office": ["age"], "lab": ["crp", "hdl"], "ward": ["pulse"], "shop": ["dose", "days"]}
PARTIES = ["lab", "ward", "shop"]
SITES = ["office.toml", "shop.toml", "lab.toml", "ward.toml"]
JOB = {"run": "heart", "algorithm": "sharing", "parties": PARTIES, "label_owner": "office"}
OPEN = {"loss": "logistic", "lam": 0.1, "rounds": 9}
APPROVED = {"allow": "not private", "consent": {"approver": "approver.pub"}}
PRIVATE = {"loss": "logistic", "rounds": 5, "privacy": "row", "epsilon": 2.0, "delta": 1e-5}
PRIVATE |= {"data_norm": 1.0, "radius": 1.0, "target_bound": 2.0}


def write_toml(path: str, content: dict[str, Any]) -> None:
    plain = {name: value for name, value in content.items() if not isinstance(value, dict)}
    lines = [f"{name} = {json.dumps(value)}" for name, value in plain.items()]
    for name, value in content.items():
        if isinstance(value, dict):
            lines += [f"[{name}]", *(f"{key} = {json.dumps(one)}" for key, one in value.items())]
    Path(path).write_text("\n".join(lines) + "\n")


def write_job(path: str = "job.toml", settings: dict[str, Any] | None = None, **more: Any) -> None:
    write_toml(path, JOB | more | {"settings": OPEN if settings is None else settings})


def write_csv(path: str, header: list[str], rows: list[list[Any]]) -> None:
    with open(path, "w", newline="") as file:
        csv.writer(file).writerows([header, *rows])


def read_csv(path: str) -> list[list[str]]:
    with open(path, newline="") as file:
        return list(csv.reader(file))


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    """A folder with a label owner and three parties, whose rows lie in different orders."""
    monkeypatch.chdir(tmp_path)
    build()
    return tmp_path


def build() -> None:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((ROWS + NEW, 6))
    X /= 1.01 * np.linalg.norm(X, axis=1, keepdims=True)
    y = np.where(X @ [1.0, -2.0, 1.0, 3.0, -1.0, 2.0] > 0, "ill", "well")
    Path("salt.txt").write_text("0123456789abcdef" * 4)
    place = 0
    for name, columns in COLUMNS.items():
        own = X[:, place : place + len(columns)]
        place += len(columns)
        header = ["patient", *columns]
        rows = [[f"p{row:03}", *own[row].tolist()] for row in range(ROWS + NEW)]
        write_csv(f"{name}-new.csv", header, [rows[ROWS + row] for row in rng.permutation(NEW)])
        order = rng.permutation(ROWS)
        data = {"file": f"{name}.csv", "id": "patient", "salt_file": "salt.txt"}
        if name == "office":
            data["label"] = "state"
            write_csv("office.csv", [*header, "state"], [[*rows[row], y[row]] for row in order])
        else:
            write_csv(f"{name}.csv", header, [rows[row] for row in order])
        site = {"name": name, "state": f"state-{name}", "data": data}
        site["predict"] = {"file": f"{name}-new.csv"}
        BudgetAccountant(3.0, 1e-5, neighbouring="row", path=f"{name}.ledger", create=True)
        site |= APPROVED | {"budget": {"ledger": f"{name}.ledger"}}
        write_toml(f"{name}.toml", site)
    write_job()


def fix_noise(run: str) -> None:
    for number, name in enumerate(COLUMNS):
        for role in ("party", "coordinator"):
            where = Path(f"state-{name}", role, run)
            where.mkdir(parents=True)
            (where / "noise.key").write_bytes(bytes([number]) * 32)


def approve(*words: str) -> None:
    """What a command is about to run, at all sites that can be read."""
    if words[:1] and words[0] in ("simulate", "resume", "predict"):
        files = [word for word in words[1:] if word.endswith(".toml")]
        with contextlib.suppress(ValueError, OSError, IndexError):
            approve_all(Job.load(files[0]), files[1:])


def federation(*words: str) -> int:
    approve(*words)
    return main(["federation", *words])


def refused(capsys, *words: str) -> str:
    """The one line on standard error of a command that does nothing."""
    capsys.readouterr()
    approve(*words)
    return refusal(capsys, "federation", *words)


def new_ledger(name: str, epsilon: float, delta: float = 0.0, *, neighbouring: str) -> None:
    """Another one in the place of a site's, with a key of its own."""
    for suffix in ("", ".key"):
        Path(f"{name}.ledger{suffix}").unlink()
    more: dict[str, Any] = {"neighbouring": neighbouring, "path": f"{name}.ledger"}
    BudgetAccountant(epsilon, delta, create=True, **more)


def spent(name: str) -> float:
    return BudgetAccountant(path=f"{name}.ledger").total().epsilon


def interrupt_at(monkeypatch, number: int) -> None:
    """Ctrl-C after so many rounds."""

    def progress(*_: Any) -> Any:
        ticks = iter(range(1, 1000))

        def tick() -> None:
            if next(ticks) == number:
                raise KeyboardInterrupt

        return _Context(tick)

    monkeypatch.setattr(simulate, "runs_progress", progress)


class _Context:
    def __init__(self, value: Any) -> None:
        self.value = value

    def __enter__(self) -> Any:
        return self.value

    def __exit__(self, *_: object) -> None:
        pass


def models(run: str = "heart") -> dict[str, bytes]:
    kept = sorted(Path().glob(f"state-*/*/{run}/*.json"))
    return {str(path): path.read_bytes() for path in kept}


# What it does


def test_check_tells_what_it_checked_and_leaves_nothing_behind(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write_job(settings=PRIVATE)
    before = sorted(folder.rglob("*"))
    assert federation("check", "job.toml", *SITES) == 0
    out, err = capsys.readouterr()
    assert err == ""
    assert Job.load("job.toml").digest in out
    assert re.search(r"^rows +60$", out, re.M)
    assert re.search(r"^columns +lab 2, ward 1, shop 2$", out, re.M)
    assert "60, the same at all sites" in out
    assert "not private set intersection" in " ".join(out.split())
    assert "data_norm = 1.0 (no site has it in its [bounds])" in out
    assert re.search(r"^guarantee +epsilon = 2, delta = 1e-05 \(row\)", out, re.M)
    assert re.search(r"^budget of lab +epsilon = 3 is left, 1 after the run$", out, re.M)
    assert "has not begun" in out
    assert max(map(len, out.splitlines())) <= 80
    assert sorted(folder.rglob("*")) == before
    assert spent("lab") == 0


@pytest.mark.parametrize(
    ("site", "told"), [("lab", "columns +crp, hdl"), ("office", "labels +of 60 rows")]
)
def test_a_site_checks_its_own_side(
    site: str, told: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write_job(settings=PRIVATE)
    assert federation("check", "job.toml", f"{site}.toml") == 0
    out = capsys.readouterr().out
    assert re.search(rf"^{told}$", out, re.M)
    assert f"the side of {site} only" in out
    assert "not private" not in out.replace("not private set", "")
    assert not (folder / f"state-{site}").exists()


@pytest.mark.parametrize(("sums", "close"), [("open", 0.0), ("masked", 1e-10)])
def test_simulate_gives_the_model_of_the_estimator_beside_that_of_the_label_owner(
    sums: str, close: float, capsys: pytest.CaptureFixture[str]
) -> None:
    write_job(sums=sums)
    assert federation("simulate", "job.toml", *SITES, "--json", "out.json") == 0
    out, err = capsys.readouterr()
    assert err == ""
    assert re.search(r"^ended +9 rounds \(rounds\)$", out, re.M)
    assert re.search(r"^budget of lab +epsilon = 3 was left, 3 now$", out, re.M)
    assert "outside" not in out
    assert max(map(len, out.splitlines())) <= 80
    tables = {name: SiteConfig.load(f"{name}.toml").source for name in COLUMNS}
    y = tables["office"].read(labels=True).labels
    blocks = [tables[name].read(labels=False).columns for name in PARTIES]
    model = SharingADMMClassifier(**OPEN).fit(blocks, y)
    for name, coef in zip(PARTIES, model.coefs_, strict=True):
        kept = json.loads(Path(f"state-{name}/party/heart/model.json").read_text())
        assert kept["weights"] == pytest.approx(coef.tolist(), rel=close, abs=close)
        assert kept["features"] == COLUMNS[name]
    alone = SharingADMMClassifier(**OPEN).fit(tables["office"].read(labels=False).columns, y)
    record = json.loads(Path("out.json").read_text())
    assert len(record["history"]) == 9
    assert record["beside"]["alone"] == "office alone"
    losses = [record["beside"][name]["loss"] for name in ("joint", "local")]
    assert losses[0] == record["history"][-1]["loss"] < losses[1]
    own = tables["office"].read(labels=False).columns
    assert record["beside"]["local"]["accuracy"] == pytest.approx(alone.score(own, y))
    assert record["result"]["guarantee"] is None
    assert record["budgets"]["lab"] == {"before": 3.0, "after": 3.0}


def test_a_private_run_is_charged_and_its_baseline_is_outside(
    capsys: pytest.CaptureFixture[str],
) -> None:
    write_job(settings=PRIVATE)
    assert federation("simulate", "job.toml", *SITES, "--json", "out.json") == 0
    out = capsys.readouterr().out
    assert re.search(
        r"^guarantee +epsilon = 2, delta = 1e-05 \(row\), of the messages alone$", out, re.M
    )
    assert re.search(r"^budget of ward +epsilon = 3 was left, 1 now$", out, re.M)
    assert re.search(r"^budget of office +epsilon = 3 was left, 3 now$", out, re.M)
    assert "outside the guarantee" in " ".join(out.split())
    assert json.loads(Path("out.json").read_text())["outside_guarantee"] == ["beside"]
    assert "another run needs another name" in refused(capsys, "simulate", "job.toml", *SITES)
    assert spent("ward") == pytest.approx(2.0)
    assert federation("check", "job.toml", *SITES) == 0
    out = capsys.readouterr().out
    assert re.search(r"^budget of lab +epsilon = 1 is left, 1 after the run$", out, re.M)
    assert "shop (party) has ended it" in " ".join(out.split())


def test_quiet_means_quiet(capsys: pytest.CaptureFixture[str]) -> None:
    assert federation("simulate", "-q", "job.toml", *SITES) == 0
    assert capsys.readouterr() == ("", "")


def test_the_label_owner_may_be_a_party_and_have_no_columns_otherwise(
    capsys: pytest.CaptureFixture[str],
) -> None:
    write_job(run="both", parties=["office", "lab"])
    assert federation("simulate", "job.toml", "office.toml", "office.toml", "lab.toml") == 0
    assert "office alone" in capsys.readouterr().out
    rows = [[row[0], row[-1]] for row in read_csv("office.csv")]
    write_csv("office.csv", rows[0], rows[1:])
    write_job()
    assert federation("simulate", "job.toml", *SITES) == 0
    assert "office has no columns of its own" in capsys.readouterr().out
    told = refused(capsys, "check", "job.toml", "lab.toml", "lab.toml", "ward.toml", "shop.toml")
    assert "is coordinated by its label owner office, not by lab" in told
    write_job(run="none", parties=["office", "lab"])
    told = refused(capsys, "check", "job.toml", "office.toml", "lab.toml")
    assert "office has no columns beside ids and labels" in told


def network_files() -> list[str]:
    """Nodes with rows of their own and one set of columns."""
    rng = np.random.default_rng(1)
    for name in PARTIES:
        X = rng.standard_normal((30, 3)) / 4
        y = (X @ [1.0, -1.0, 2.0] + 0.1 * rng.standard_normal(30) > 0).astype(int)
        rows = [[*row, label] for row, label in zip(X.tolist(), y, strict=True)]
        write_csv(f"{name}.csv", ["a", "b", "c", "y"], rows)
        write_csv(f"{name}-new.csv", ["c", "a", "b"], [[x[2], x[0], x[1]] for x in X.tolist()])
        site = {"name": name, "state": f"state-{name}", "predict": {"file": f"{name}-new.csv"}}
        site |= APPROVED | {"data": {"file": f"{name}.csv", "label": "y"}}
        write_toml(f"{name}.toml", site)
    settings = {"classes": [0, 1], "data_norm": 1.5, "constant": 0.5, "rounds": 41}
    settings |= {"C": 20.0, "lam": 0.1}
    content = {"run": "net", "algorithm": "network", "parties": PARTIES, "settings": settings}
    write_toml("job.toml", content)
    return [f"{name}.toml" for name in PARTIES]


def test_a_network_and_its_nodes_predictions(capsys: pytest.CaptureFixture[str]) -> None:
    sites = network_files()
    assert federation("check", "job.toml", *sites) == 0
    assert re.search(r"^rows +lab 30, ward 30, shop 30$", capsys.readouterr().out, re.M)
    assert federation("check", "job.toml", sites[1]) == 0
    assert federation("simulate", "job.toml", *sites, "--json", "out.json") == 0
    out = capsys.readouterr().out
    assert "a node alone, on average" in out
    record = json.loads(Path("out.json").read_text())
    assert 0 < record["beside"]["joint"]["loss"] < 1
    write_toml(
        "predict.toml",
        JOB | {"run": "p", "algorithm": "predict", "settings": {"model": "net"}},
    )
    assert federation("predict", "predict.toml", "ward.toml", "--output", "p.csv") == 0
    out, err = capsys.readouterr()
    assert "every node of a network predicts by itself" in out
    assert err == ""
    model = load_model(Path("state-ward/party/net/model.json").read_text(), "model.json")
    table = SiteConfig.load("ward.toml").source.read(labels=True)
    scores = table.columns @ model["weights"] + model["intercept"]
    predicted = [int(line) for line in Path("p.csv").read_text().split()]
    assert predicted == (scores > 0).astype(int).tolist()
    assert np.mean(predicted == table.labels) > 0.8
    told = refused(capsys, "predict", "predict.toml", *sites, "--output", "p.csv")
    assert "give one SITE" in told


@pytest.mark.parametrize("algorithm", ["sharing", "network", "frank-wolfe", "owner and party"])
def test_a_simulation_makes_the_terms_once_and_reads_each_file_once(
    algorithm: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    sites, name = SITES, algorithm
    if algorithm == "network":
        sites = network_files()
    elif algorithm == "frank-wolfe":
        header, *rows = read_csv("office.csv")
        write_csv("office.csv", header, [[*row[:-1], int(row[-1] == "ill")] for row in rows])
        write_job(algorithm=algorithm, settings={"radius": 3.0, "rounds": 3})
    elif algorithm == "owner and party":
        sites, name = ["office.toml", "office.toml", "lab.toml"], "sharing"
        write_job(parties=["office", "lab"])
    made, read = [], []
    module = import_module(f"dpsvm.federation.{name.replace('-', '_')}")
    agree, open_text = module.agree, tables.open_text
    monkeypatch.setattr(module, "agree", lambda *given: made.append(1) or agree(*given))
    monkeypatch.setattr(tables, "open_text", lambda path: read.append(path.name) or open_text(path))
    assert federation("simulate", "job.toml", *sites) == 0
    assert "alone" in capsys.readouterr().out
    assert len(made) == 1
    files = [f"{Path(site).stem}.csv" for site in set(sites)]
    assert sorted(read) == sorted(files + files)  # to count, and once it is paid for


def test_a_private_network_charges_its_nodes(capsys: pytest.CaptureFixture[str]) -> None:
    sites = network_files()
    for name in PARTIES:
        new_ledger(name, 3.0, neighbouring="replace")
        with open(f"{name}.toml", "a") as file:
            file.write(f'[budget]\nledger = "{name}.ledger"\n')
    settings = {"classes": [0, 1], "data_norm": 1.5, "rounds": 6, "C": 10.0, "lam": 0.1}
    settings |= {"privacy": "objective", "epsilon": 2.5}
    content = {"run": "net", "algorithm": "network", "parties": PARTIES, "settings": settings}
    write_toml("job.toml", content)
    assert federation("check", "job.toml", "office.toml", *sites) == 0
    out = capsys.readouterr().out
    assert re.search(r"^budget of shop +epsilon = 3 is left, 0.5\d* after the run$", out, re.M)
    assert federation("check", "job.toml", "office.toml") == 0
    assert "this side is not charged" in capsys.readouterr().out
    assert federation("simulate", "job.toml", "office.toml", *sites) == 0
    out = " ".join(capsys.readouterr().out.split())
    assert "guarantee epsilon = 2.5 (replace)" in out
    assert "outside the guarantee" in out


@warned
def test_frank_wolfe_and_its_joint_predictions(capsys: pytest.CaptureFixture[str]) -> None:
    rows = read_csv("office.csv")
    numbers = [[*row[:-1], 1.0 if row[-1] == "ill" else -1.0] for row in rows[1:]]
    write_csv("office.csv", rows[0], numbers)
    settings = {"radius": 3.0, "rounds": 30}
    write_job(algorithm="frank-wolfe", settings=settings)
    assert federation("simulate", "job.toml", *SITES, "--json", "out.json") == 0
    assert "office alone" in capsys.readouterr().out
    record = json.loads(Path("out.json").read_text())
    joint, alone = (record["beside"][name]["value"] for name in ("joint", "local"))
    assert joint < alone
    write_job("predict.toml", algorithm="predict", run="p", settings={"model": "heart"})
    assert federation("predict", "predict.toml", *SITES, "--output", "p.csv") == 0
    written = read_csv("p.csv")
    parts = record["result"]["weights"]
    scores = np.zeros(NEW)
    for name, part in zip(PARTIES, parts, strict=True):
        scores += SiteConfig.load(f"{name}.toml").predict.read(labels=False).columns @ part
    assert [float(row[1]) for row in written] == pytest.approx(scores.tolist())


@warned
def test_joint_predictions_warn_and_are_written_by_id(capsys: pytest.CaptureFixture[str]) -> None:
    assert federation("simulate", "-q", "job.toml", *SITES) == 0
    write_job("predict.toml", algorithm="predict", run="p", settings={"model": "heart"})
    assert federation("check", "predict.toml", *SITES) == 0
    assert federation("check", "predict.toml", "lab.toml") == 0
    capsys.readouterr()
    for _ in range(2):  # nothing is kept, so that it can be repeated
        assert federation("predict", "predict.toml", *SITES, "--output", "p.csv") == 0
        out, err = capsys.readouterr()
        assert "p.csv: 8 samples, predicted by all parties together" in out
        assert err.startswith("dpsvm federation: warning: a joint prediction shows")
    written = read_csv("p.csv")
    assert [row[0] for row in written] == [f"p{row:03}" for row in range(ROWS, ROWS + NEW)]
    scores = np.zeros(NEW)
    for name in PARTIES:
        model = load_model(Path(f"state-{name}/party/heart/model.json").read_text(), "m")
        table = SiteConfig.load(f"{name}.toml").predict.read(labels=False)
        scores += table.columns @ model["weights"]
    assert [row[1] for row in written] == ["well" if one > 0 else "ill" for one in scores]


@warned
def test_columns_of_new_samples_are_taken_by_name(capsys: pytest.CaptureFixture[str]) -> None:
    assert federation("simulate", "-q", "job.toml", *SITES) == 0
    write_job("predict.toml", algorithm="predict", run="p", settings={"model": "heart"})
    assert federation("predict", "-q", "predict.toml", *SITES, "--output", "p.csv") == 0
    rows = read_csv("lab-new.csv")
    write_csv("lab-new.csv", rows[0][::-1], [row[::-1] for row in rows[1:]])
    assert federation("predict", "-q", "predict.toml", *SITES, "--output", "q.csv") == 0
    assert Path("p.csv").read_bytes() == Path("q.csv").read_bytes()
    write_csv("lab-new.csv", ["patient", "crp"], [row[:2] for row in rows[1:]])
    told = refused(capsys, "predict", "predict.toml", *SITES, "--output", "q.csv")
    assert "there is no column 'hdl'" in told


# Interrupts


@pytest.mark.parametrize("settings", [OPEN, PRIVATE])
def test_an_interrupted_run_ends_with_the_bytes_of_one_that_was_not(
    settings: dict[str, Any],
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    write_job(settings=settings)
    fix_noise("heart")
    assert federation("simulate", "-q", "job.toml", *SITES) == 0
    whole = models()
    assert len(whole) == 4
    second = folder / "second"
    second.mkdir()
    monkeypatch.chdir(second)
    build()
    write_job(settings=settings)
    fix_noise("heart")
    with monkeypatch.context() as patch:
        interrupt_at(patch, 3)
        assert federation("simulate", "job.toml", *SITES) == 130
    out, err = capsys.readouterr()
    words = " ".join(["job.toml", SITES[0], "lab.toml", "ward.toml", "shop.toml"])
    assert f"dpsvm federation resume {words} goes on from round 4" in err
    assert err.endswith("dpsvm federation: interrupted\n")
    assert out == ""
    told = refused(capsys, "simulate", "job.toml", *SITES)
    assert "run heart has begun: office (coordinator) asks for round 4" in told
    assert f"dpsvm federation resume {words} goes on with it" in told
    assert federation("check", "job.toml", *SITES) == 0
    assert "lab (party) holds round 3" in " ".join(capsys.readouterr().out.split())
    before = [spent(name) for name in COLUMNS]
    with monkeypatch.context() as patch:
        interrupt_at(patch, 4)  # of which three are those that it has
        assert federation("resume", "job.toml", *SITES) == 130
    assert federation("simulate", "--resume", "job.toml", *SITES) == 0
    assert [spent(name) for name in COLUMNS] == before
    assert models() == whole
    assert federation("resume", "job.toml", *SITES) == 0
    assert "it was over already" in capsys.readouterr().out


def test_ctrl_c_ends_a_real_process_and_tells_how_to_go_on(
    capsys: pytest.CaptureFixture[str],
) -> None:
    write_job(settings=OPEN | {"rounds": 1_000_000})
    approve("simulate", "job.toml", *SITES)
    process = start("federation", "simulate", "job.toml", *SITES)
    while not Path("state-lab/party/heart/snapshot").exists():
        assert process.poll() is None
        time.sleep(0.02)
    assert federation("status", "lab.toml") == 0  # while the other process has the run
    assert re.search("holds round|about to begin", capsys.readouterr().out)
    assert "another process has this run" in refused(capsys, "resume", "job.toml", *SITES)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=120)
    assert process.returncode == 130
    assert out == ""
    assert "dpsvm federation resume job.toml" in err
    assert "Traceback" not in err
    assert not list(Path().rglob(".dpsvm-*"))


# status, abort, new-salt, and the other engines


def test_status_tells_of_runs_charges_and_budgets(capsys: pytest.CaptureFixture[str]) -> None:
    assert federation("status", "lab.toml") == 0
    assert "runs                    none" in capsys.readouterr().out
    write_job(settings=PRIVATE)
    assert federation("simulate", "-q", "job.toml", *SITES) == 0
    with RunFolder("state-lab/party", "heart"):
        assert federation("status", "lab.toml", "heart") == 0
    out = capsys.readouterr().out
    assert re.search(r"^ +as party +has ended it$", out, re.M)
    assert "charged, model.json, noise.key, rehearsals, snapshot" in " ".join(out.split())
    assert re.search(r"^ +rehearsals +2$", out, re.M)
    assert "epsilon = 2 (federation run heart at lab as party, noise key " in " ".join(out.split())
    assert "epsilon = 1 is left" in out
    assert federation("status", "office.toml") == 0
    assert re.search(r"^ +as coordinator +has ended it$", capsys.readouterr().out, re.M)
    assert "lab keeps nothing of a run liver" in refused(capsys, "status", "lab.toml", "liver")


@pytest.mark.parametrize("damage", ["cut", "foreign", "lost", "ledger"])
def test_status_reports_what_is_broken_and_the_rest(
    damage: str, capsys: pytest.CaptureFixture[str]
) -> None:
    write_job(settings=PRIVATE)
    assert federation("simulate", "-q", "job.toml", *SITES) == 0
    snapshot = Path("state-lab/party/heart/snapshot")
    told = "this snapshot cannot be used"
    if damage == "cut":
        snapshot.write_bytes(snapshot.read_bytes()[:-3])
    elif damage == "foreign":
        snapshot.write_bytes(Path("state-office/coordinator/heart/snapshot").read_bytes())
        told = "this is no snapshot of a party"
    elif damage == "lost":
        for file in snapshot.parent.iterdir():
            file.unlink()
        snapshot.parent.rmdir()
        told = "run heart was charged, and nothing else of it is kept"
    else:
        Path("lab.ledger").unlink()
        told = "no such ledger"
    assert federation("status", "lab.toml") == 2
    out, err = capsys.readouterr()
    assert "budget" in out
    assert told in err
    assert err.count("\n") == 1


def test_an_aborted_run_is_refused_and_its_charge_stands(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    write_job(settings=PRIVATE)
    interrupt_at(monkeypatch, 2)
    assert federation("simulate", "job.toml", *SITES) == 130
    assert federation("abort", "--reason", "consent was withdrawn", "lab.toml", "heart") == 0
    assert "what it was charged stands" in capsys.readouterr().out
    for words in (["resume"], ["simulate", "--resume"], ["check"]):
        told = refused(capsys, *words, "job.toml", *SITES)
        assert "run heart was given up at lab: consent was withdrawn" in told
    assert spent("lab") == pytest.approx(2.0)
    assert federation("status", "lab.toml") == 0
    assert "has given it up: consent was withdrawn (holds round 2)" in capsys.readouterr().out
    assert "keeps nothing of a run liver" in refused(capsys, "abort", "lab.toml", "liver")
    assert federation("abort", "office.toml", "heart") == 0
    capsys.readouterr()
    assert "given up at office" in refused(capsys, "resume", "job.toml", *SITES)


def test_a_run_that_another_process_has_is_given_up_for_later(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    interrupt_at(monkeypatch, 2)
    assert federation("simulate", "job.toml", *SITES) == 130
    with RunFolder("state-lab/party", "heart"):
        assert federation("abort", "lab.toml", "heart") == 0
    assert "another process has this run" in capsys.readouterr().out


def test_an_ended_run_is_not_aborted(capsys: pytest.CaptureFixture[str]) -> None:
    assert federation("simulate", "-q", "job.toml", *SITES) == 0
    told = refused(capsys, "abort", "lab.toml", "heart")
    assert "run heart is over at lab" in told
    assert federation("resume", "-q", "job.toml", *SITES) == 0


def test_a_party_that_was_aborted_while_it_ran_stays_out_of_step() -> None:
    job = Job("r", "sharing", ("lab",), "office", {"rounds": 2}, ids=False)
    store = MemoryStore()
    [site] = introduce([SiteConfig.load("lab.toml").site(job, labels=False)])
    party = Party(job, site, store)
    hello = party.hello()
    keys = [[bytes.fromhex(hello.text(name))] for name in ("key", "signature")]
    arrays = {"sizes": np.array([2]), **Roster(job, *keys).arrays}
    party.handle(Message("r", 0, "begin", arrays, {"rows": ROWS}))
    store.write("aborted", "enough")
    wrong = Message("r", 1, "neighbours", {"weights": np.zeros((1, 1))})
    assert party.handle(wrong).kind == "refusal"
    for _ in range(2):
        told = party.handle(Message("r", 0, "begin", arrays, {"rows": ROWS}))
        assert told.text("reason") == "run r was given up at lab: enough"


def test_a_new_salt_is_secret_and_never_replaced(capsys: pytest.CaptureFixture[str]) -> None:
    assert federation("new-salt", "fresh.txt") == 0
    text = Path("fresh.txt").read_text()
    assert re.fullmatch(r"[0-9a-f]{64}\n", text)
    assert stat.S_IMODE(Path("fresh.txt").stat().st_mode) == 0o600
    assert "there is a file already" in refused(capsys, "new-salt", "fresh.txt")
    assert Path("fresh.txt").read_text() == text
    assert "folder to write to does not exist" in refused(capsys, "new-salt", "no/salt")
    assert federation("new-salt", "other.txt") == 0
    assert Path("other.txt").read_text() != text


def test_mpi_is_started_with_a_process_for_each_site(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(run_mpi, "find_spec", lambda name: name)
    log = tmp_path / "log"
    fake = tmp_path / "bin" / "mpirun"
    fake.parent.mkdir()
    fake.write_text(f'#!/bin/sh\nprintf "%s " "$@" >> {log}\nexit ${{FAKE_CODE:-0}}\n')
    fake.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(fake.with_name("python")))
    assert federation("run-mpi", "job.toml", *SITES) == 0
    words = log.read_text().split()
    assert words[:2] == ["-n", "4"]
    assert words[3:] == [
        *("-P", "-m", "dpsvm.federation.mpi", "job.toml"),
        *("office.toml", "lab.toml", "ward.toml", "shop.toml"),
    ]
    monkeypatch.setenv("FAKE_CODE", "2")
    assert "mpirun gave exit code 2" in refused(capsys, "run-mpi", "job.toml", *SITES)
    assert "has not begun" in refused(capsys, "run-mpi", "--resume", "job.toml", *SITES)
    Path("state-lab/party/heart").mkdir(parents=True)
    told = Cast.load(["job.toml", *SITES], "")
    assert "--resume" in run_mpi.mpi_command(told, resume=True)


def test_without_mpirun_it_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(run_mpi, "find_spec", lambda name: name)
    monkeypatch.setattr(sys, "executable", "/nowhere/python")
    monkeypatch.setenv("PATH", "/nowhere")
    assert "pip install 'dpsvm[mpi]'" in refused(capsys, "run-mpi", "job.toml", *SITES)
    monkeypatch.setattr(run_mpi, "find_spec", lambda name: None)
    assert "pip install 'dpsvm[mpi]'" in refused(capsys, "run-mpi", "job.toml", *SITES)


def test_a_job_is_exported_for_nvflare(capsys: pytest.CaptureFixture[str]) -> None:
    assert federation("export-nvflare", "job.toml", "--output", "flare") == 0
    assert json.loads(Path("flare/job/app/config/job.json").read_text())["run"] == "heart"
    assert "not an empty folder" in refused(
        capsys, "export-nvflare", "job.toml", "--output", "flare"
    )
    assert "--output is required" in refused(capsys, "export-nvflare", "job.toml")


def test_a_simulation_shows_its_progress_on_a_terminal_alone() -> None:
    pty = pytest.importorskip("pty", reason="needs a POSIX terminal")
    pytest.importorskip("rich")
    terminal, theirs = pty.openpty()
    approve("simulate", "job.toml", *SITES)
    with start("federation", "simulate", "job.toml", *SITES, stderr=theirs) as process:
        os.close(theirs)
        shown = b""
        with contextlib.suppress(OSError):  # Linux's end of file, once the other side is closed
            while part := os.read(terminal, 65536):
                shown += part
        told = process.communicate()[0]
    os.close(terminal)
    assert process.returncode == 0
    assert b"100%" in shown
    assert told.startswith("run ")
    assert "%" not in told


LIMITS = ["--timeout", "9", "--reply-timeout", "3"]


class TestNvflare:
    @pytest.fixture(autouse=True)
    def installed(self, monkeypatch):
        """As if NVIDIA FLARE were there."""
        monkeypatch.setattr(nvflare, "find_spec", lambda name: name)

    def test_kits_are_made_and_prepared_by_the_runner(
        self, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
    ) -> None:
        asked: list[object] = []
        kits = SimpleNamespace(server=Path("kits/prod/server"), sites={"clinic": 1, "lab": 2})

        def provision(folder, sites, **where):
            asked.append((folder, sites, where))
            return kits

        monkeypatch.setattr(nvflare, "provision", provision)
        assert federation("nvflare", "provision", "kits", "a", "b", "--port", "9000") == 0
        assert asked == [("kits", ("a", "b"), {"host": "localhost", "port": 9000})]
        out, err = capsys.readouterr()
        assert out == "kits/prod: kits of the server and of clinic, lab\n"
        assert "warning: kits holds the keys of all sites" in err

    @pytest.mark.parametrize(
        ("ended", "reason", "code", "told"),
        [
            ("done", None, 0, "SUBMITTED\nresults\ndone\n"),
            ("stopped", "a party is gone", 2, "the run stopped: a party is gone"),
            (None, "no party came", 2, "the run failed: no party came"),
        ],
    )
    def test_a_job_is_run_and_its_end_is_told(
        self,
        ended: str | None,
        reason: str | None,
        code: int,
        told: str,
        monkeypatch: pytest.MonkeyPatch,
        capsys: pytest.CaptureFixture[str],
    ) -> None:
        class Runner:
            def __init__(self, folder):
                assert folder == "kits"

            def run(self, job, watch, *, dry, timeout, reply_timeout):
                assert job.run == "heart"
                assert (dry, timeout, reply_timeout) == (True, 9.0, 3.0)
                watch("SUBMITTED")
                return SimpleNamespace(ended=ended, reason=reason, folder=Path("results"))

        monkeypatch.setattr(nvflare, "NVFlareRunner", Runner)
        assert federation("nvflare", "run", "kits", "job.toml", "--dry", *LIMITS) == code
        out, err = capsys.readouterr()
        assert told in (err if code else out)
        again = "dpsvm federation nvflare run kits job.toml goes on with it"
        assert (again in err) == (code != 0)

    def test_a_process_that_ends_is_an_error(
        self, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
    ) -> None:
        class Broken:
            def __init__(self, folder):
                self.kits = SimpleNamespace(sites={"clinic": 1})
                self.processes = {"clinic": SimpleNamespace(poll=lambda: 1)}

            def __enter__(self):
                return self

            def __exit__(self, *_):
                self.processes.clear()

        monkeypatch.setattr(nvflare, "Federation", Broken)
        assert federation("nvflare", "start", "kits") == 2
        out, err = capsys.readouterr()
        assert out == "clinic are connected; Ctrl-C ends\n"
        assert "console.log in its kit says why" in err

    @pytest.mark.parametrize(
        ("words", "told"),
        [
            (["provison"], "unknown subcommand 'provison': did you mean provision?"),
            (["provision", "kits"], "FOLDER and SITE... are needed, got 1"),
            (["run", "kits"], "FOLDER and JOB are needed, got 1"),
            (["start", "a", "b"], "FOLDER are needed, got 2"),
            (["start", "absent"], "absent: no startup kits of a federation are here"),
            (["provision", "k", "a", "--port", "x"], "--port: 'x' is not a whole number"),
        ],
    )
    def test_bad_input(
        self, words: list[str], told: str, capsys: pytest.CaptureFixture[str]
    ) -> None:
        assert told in refused(capsys, "nvflare", *words)

    def test_without_nvflare_it_says_what_to_install(
        self, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
    ) -> None:
        monkeypatch.setattr(nvflare, "find_spec", lambda name: None)
        told = refused(capsys, "nvflare", "run", "kits", "job.toml")
        assert "pip install 'dpsvm[nvflare]'" in told

    @pytest.mark.parametrize("name", nvflare.ACTIONS)
    def test_help(self, name: str, capsys: pytest.CaptureFixture[str]) -> None:
        assert federation("nvflare", name, "--help") == 0
        out = capsys.readouterr().out
        assert out.startswith(f"usage: dpsvm federation nvflare {name} ")
        assert federation("nvflare", "--help") == 0
        assert f"  {name} " in capsys.readouterr().out


@pytest.mark.parametrize("name", SUBCOMMANDS)
def test_every_subcommand_has_help(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert federation(name, "--help") == 0
    out = capsys.readouterr().out
    assert out.startswith(f"usage: dpsvm federation {name}")
    assert max(map(len, out.splitlines())) <= 80
    if name == "check":
        assert "NOT private set intersection" in " ".join(out.split())


def test_help_lists_the_subcommands(capsys: pytest.CaptureFixture[str]) -> None:
    assert federation("--help") == 0
    out = capsys.readouterr().out
    assert federation() == 0
    assert capsys.readouterr().out == out
    assert all(re.search(rf"^  {name} ", out, re.M) for name in SUBCOMMANDS)
    assert max(map(len, out.splitlines())) <= 80
    assert main(["--help"]) == 0
    assert "federation" in capsys.readouterr().out


# What it refuses


def drop_row() -> None:
    Path("lab.csv").write_text(Path("lab.csv").read_text().rsplit("\n", 2)[0] + "\n")


def rename_id() -> None:
    Path("lab.csv").write_text(Path("lab.csv").read_text().replace("p007", "p7"))


def other_salt() -> None:
    Path("other.txt").write_text("fedcba9876543210" * 4)
    site = Path("lab.toml").read_text().replace("salt.txt", "other.txt")
    Path("lab.toml").write_text(site)


def no_ids() -> None:
    Path("lab.toml").write_text(Path("lab.toml").read_text().replace('id = "patient"\n', ""))


def change(old: str, new: str, path: str = "lab.toml") -> Any:
    def act() -> None:
        text = Path(path).read_text()
        assert old in text
        Path(path).write_text(text.replace(old, new, 1))

    return act


def bounds(**values: Any) -> Any:
    def act() -> None:
        lines = [f"{name} = {json.dumps(value)}" for name, value in values.items()]
        with open("lab.toml", "a") as file:
            file.write("\n".join(["[bounds]", *lines, ""]))

    return act


FAULTS = [
    (drop_row, "office has 60 rows, lab has 59"),
    (rename_id, "the sample ids of lab are not those of office, in number, order or salt"),
    (other_salt, "the sample ids of lab are not those of office"),
    (no_ids, "lab has no sample ids, and run heart matches rows by them"),
    (change('id = "patient"\n', 'columns = ["crp"]\n'), "lab has no sample ids"),
    (bounds(data_norm=2.0), "lab agreed to data_norm = 2, and run heart says 1.0"),
    (bounds(entry_bound=2.0), "lab agreed to entry_bound = 2, and run heart says nothing of it"),
    (bounds(data_norm="much"), "lab.toml: [bounds] data_norm must be a number, got 'much'"),
    (change("[data]", "[date]"), "lab.toml: unknown key 'date'"),
    (change("file =", "flie ="), "lab.toml: [data]: unknown key 'flie'"),
    (change("rounds", "ruonds", "job.toml"), "settings: unknown setting 'ruonds'"),
    (change("run =", "name =", "job.toml"), "job.toml: unknown key 'name'"),
    (change("[settings]", "[settings", "job.toml"), "job.toml: not TOML"),
    (change('"lab"', '"bal"', "job.toml"), "lab.toml: lab is no party of run heart"),
    (change('"sharing"', '"caring"', "job.toml"), "algorithm must be one of"),
    (change("rounds = 5", "rounds = 0", "job.toml"), "settings: rounds must be"),
    (change("rounds = 5", 'rounds = "5"', "job.toml"), "settings: rounds must be"),
    (change("rounds = 5", "box = 5", "job.toml"), "settings: box must be [low, high], got 5"),
    (change('name = "lab"', 'name = "ward"'), "are both of ward"),
    (change('"state-lab"', '"state-ward"'), "have one state folder"),
    (change("lab.csv", "bal.csv"), "bal.csv: No such file or directory"),
    (change("salt.txt", "pepper.txt"), "pepper.txt: No such file or directory"),
    (change("lab.ledger", "bal.ledger"), "bal.ledger: no such ledger"),
    (lambda: Path("lab.ledger").write_text("{}"), "lab.ledger: not a privacy ledger"),
    (lambda: Path("salt.txt").write_text("short"), "a salt needs 16 characters or more, got 5"),
    (lambda: Path("lab.toml").unlink(), "lab.toml: No such file or directory"),
    (lambda: Path("job.toml").unlink(), "job.toml: No such file or directory"),
    (change("p007,", "p007,x", "lab.csv"), "is not a number"),
    (change("p007,", "p007,1,", "lab.csv"), "4 fields, the first line has 3"),
    (change("p007,", ",", "lab.csv"), "column 'patient' is empty"),
    (change("p007,", "p008,", "lab.csv"), "lab.csv: the sample id 'p008' is there twice"),
    (change("crp", "hdl", "lab.csv"), "lab.csv: line 1: the names of the columns"),
    (change(",well", ",", "office.csv"), "column 'state' is empty"),
    (change(",well", ",dead", "office.csv"), "y must hold two classes, got 3"),
    (change('label = "state"', "", "office.toml"), "does not say which column is the label"),
    (change("epsilon = 2.0", "epsilon = 4.0", "job.toml"), "epsilon = 4 (Gaussian) does not fit"),
    (change("radius = 1.0\n", "", "job.toml"), "radius"),
    (change("[budget]", "[budgets]"), "unknown key 'budgets'"),
]


@pytest.mark.parametrize("command", ["check", "simulate"])
@pytest.mark.parametrize(("act", "told"), FAULTS, ids=[told for _, told in FAULTS])
def test_a_fault_is_one_line_and_charges_nobody(
    command: str, act: Any, told: str, capsys: pytest.CaptureFixture[str]
) -> None:
    write_job(settings=PRIVATE)
    act()
    assert told in refused(capsys, command, "job.toml", *SITES)
    for name in ("office", "ward", "shop"):
        assert spent(name) == 0
    assert not list(Path().glob("state-*/*/*/snapshot"))


def test_the_line_of_a_malformed_file_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    lines = Path("lab.csv").read_text().splitlines()
    lines[12] = lines[12] + '"'
    Path("lab.csv").write_text("\n".join(lines) + "\n")
    assert "lab.csv: line 13: " in refused(capsys, "check", "job.toml", *SITES)


def test_a_private_run_without_a_ledger_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    write_job(settings=PRIVATE)
    text = Path("lab.toml").read_text().split("[budget]")[0]
    Path("lab.toml").write_text(text)
    for words in (SITES, ["lab.toml"]):
        told = refused(capsys, "check", "job.toml", *words)
        assert "this is a private run, and lab has no ledger to charge" in told


def test_an_exhausted_budget_is_refused_before_anyone_pays(
    capsys: pytest.CaptureFixture[str],
) -> None:
    write_job(settings=PRIVATE)
    assert federation("simulate", "-q", "job.toml", *SITES) == 0
    write_job(settings=PRIVATE | {"epsilon": 2.5}, run="heart-2")
    for command in ("check", "simulate"):
        told = refused(capsys, command, "job.toml", *SITES)
        assert "refused: epsilon = 2.5 (Gaussian) does not fit: 2 of 3 is spent" in told
    assert "does not fit" in refused(capsys, "check", "job.toml", "ward.toml")
    for name in PARTIES:
        assert spent(name) == pytest.approx(2.0)


LOST = {
    "ledger": "no such ledger; dpsvm budget create begins one, never in the place of one",
    "new ledger": "the ledger of lab does not hold the charge of run heart",
    "snapshot": "its snapshot is lost: it cannot go on",
    "key": "the key of a run that has begun is lost",
    "cut": "this snapshot cannot be used",
    "coordinator": "of which the coordinator has no snapshot: begin another run",
}


@pytest.mark.parametrize("damage", LOST)
def test_what_is_lost_is_never_begun_anew(
    damage: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    write_job(settings=PRIVATE)
    with monkeypatch.context() as patch:
        interrupt_at(patch, 2)
        assert federation("simulate", "job.toml", *SITES) == 130
    where = Path("state-lab/party/heart")
    told = LOST[damage]
    if damage in ("ledger", "new ledger"):
        if damage == "new ledger":
            new_ledger("lab", 3.0, 1e-5, neighbouring="row")
        else:
            Path("lab.ledger").unlink()
    elif damage == "coordinator":
        Path("state-office/coordinator/heart/snapshot").unlink()
    elif damage == "cut":
        (where / "snapshot").write_bytes(b"DPSVMFR1")
    else:
        (where / {"snapshot": "snapshot", "key": "noise.key"}[damage]).unlink()
    assert told in refused(capsys, "resume", "job.toml", *SITES)
    if damage != "coordinator":
        assert told in refused(capsys, "check", "job.toml", *SITES)
    assert [spent(name) for name in ("ward", "shop")] == pytest.approx([2.0, 2.0])


def test_other_terms_versions_and_runs_are_refused() -> None:
    """What files cannot show: each site has been given a job of its own."""
    cast = Cast.load(["job.toml", *SITES], "")
    other = Job("heart", "sharing", tuple(PARTIES), "office", OPEN | {"rounds": 8})
    for terms in (cast.job, other):
        approve_all(terms, SITES)
    coordinator = cast.coordinator.coordinator(cast.job)
    jobs = [cast.job, other, cast.job]
    parties = [site.party(job) for site, job in zip(cast.parties, jobs, strict=True)]
    turn = InProcessRunner(parties).run(coordinator)
    assert turn.ended == "stopped"
    assert "ward was given other terms for run heart than the coordinator" in str(turn.reason)
    greet = {"version": 1, "job": cast.job.digest}
    told = parties[0].handle(Message("heart", -1, "greet", scalars=greet)).text("reason")
    assert "lab speaks version 2 of the protocol, the coordinator version 1" in told
    greet["version"] = 2
    told = parties[0].handle(Message("liver", -1, "greet", scalars=greet)).text("reason")
    assert told == "lab takes part in run heart, not in liver"


def test_a_run_begun_with_other_terms_is_refused(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with monkeypatch.context() as patch:
        interrupt_at(patch, 2)
        assert federation("simulate", "job.toml", *SITES) == 130
    write_job(settings=OPEN | {"rounds": 12})
    for command in ("check", "resume"):
        told = refused(capsys, command, "job.toml", *SITES)
        assert "run heart was begun with other terms" in told


def test_a_table_that_was_changed_halfway_is_refused(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with monkeypatch.context() as patch:
        interrupt_at(patch, 2)
        assert federation("simulate", "job.toml", *SITES) == 130
    drop_row()
    told = refused(capsys, "resume", "job.toml", *SITES)
    assert "the data of lab are not those the run began with" in told


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["cheek"], "unknown subcommand 'cheek': did you mean check?"),
        (["check"], "JOB and a SITE or more are needed, got 0"),
        (["check", "job.toml"], "JOB and a SITE or more are needed, got 1"),
        (["simulate", "job.toml", "office.toml"], "run heart needs the SITE of lab, ward, shop"),
        (["simulate", "job.toml", *SITES, "--jason", "x"], "unknown flag --jason"),
        (["simulate", "job.toml", *SITES, "--json", "no/x"], "folder to write to does not exist"),
        (["simulate", "job.toml", *SITES, "--json", "lab.ledger"], "cannot be both the ledger of"),
        (["simulate", "job.toml", *SITES, "--json", "lab.csv"], "cannot be both data of lab"),
        (["simulate", "job.toml", *SITES, "lab.toml"], "are both of lab"),
        (["simulate", "--resume", "job.toml", *SITES], "run heart has not begun"),
        (["resume", "job.toml", *SITES], "run heart has not begun"),
        (["simulate", "predict.toml", *SITES], "dpsvm federation predict carries it out"),
        (["predict", "job.toml", *SITES], "--output is required"),
        (["predict", "job.toml", *SITES, "--output", "p"], "must be 'predict', got 'sharing'"),
        (["predict", "predict.toml", "--output", "p"], "JOB and a SITE or more are needed"),
        (["status"], "SITE is needed"),
        (["status", "lab.toml", "a/b"], "RUN must be a name"),
        (["abort", "lab.toml"], "SITE and RUN are needed, got 1"),
        (["new-salt"], "one FILE is needed, got 0"),
        (["export-nvflare"], "one JOB is needed, got 0"),
    ],
)
def test_bad_words_are_one_line_with_the_reason(
    words: list[str], told: str, capsys: pytest.CaptureFixture[str]
) -> None:
    write_job("predict.toml", algorithm="predict", run="p", settings={"model": "heart"})
    assert told in refused(capsys, *words)


@pytest.mark.parametrize(
    ("settings", "told"),
    [
        ({"model": "liver"}, "lab has no model of run liver: it did not finish there"),
        ({"model": 5}, "settings: model, the run that predicts, must be a name"),
        ({"model": "heart", "rounds": 3}, "settings: unknown key 'rounds'"),
    ],
)
def test_a_prediction_needs_a_finished_run(
    settings: dict[str, Any], told: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert federation("simulate", "-q", "job.toml", *SITES) == 0
    write_job("predict.toml", algorithm="predict", run="p", settings=settings)
    words = ["predict", "predict.toml", *SITES, "--output", "p.csv"]
    assert told.replace("lab", "office") in refused(capsys, *words)
    assert not Path("p.csv").exists()


def test_a_ledger_that_is_charged_twice_must_cover_both(capsys: pytest.CaptureFixture[str]) -> None:
    """The label owner pays as a party and, where labels are protected, as the coordinator."""
    rows = read_csv("office.csv")
    numbers = [[*row[:-1], 0.5 if row[-1] == "ill" else -0.5] for row in rows[1:]]
    write_csv("office.csv", rows[0], numbers)
    for name in ("office", "lab"):
        new_ledger(name, 30.0, 1e-5, neighbouring="replace")
    settings = {"radius": 1.0, "rounds": 3, "sketch": 40, "epsilon": 20.0, "delta": 1e-5}
    settings |= {"entry_bound": 1.0, "label_bound": 1.0}
    sizes = [len(read_csv("office.csv")[0]) - 2, len(read_csv("lab.csv")[0]) - 1]
    more = {"algorithm": "frank-wolfe", "parties": ["office", "lab"], "sizes": sizes}
    write_job(settings=settings, **more)
    for command in ("check", "simulate"):
        told = refused(capsys, command, "job.toml", "office.toml", "lab.toml")
        assert "charges this ledger 2 times, and it does not cover all of it" in told
    assert spent("lab") == 0
