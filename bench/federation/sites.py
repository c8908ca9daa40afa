"""Small runs between three sites, as folders with everything that a site has: for the benches and
tests of federation.
"""

from __future__ import annotations

import hashlib
import json
import sys
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np

from bench.common import require_program
from dpsvm.federation import Coordinator, Job, Party
from dpsvm.federation.config import SiteConfig
from dpsvm.federation.consent import APPROVER, Consent, others_of, write_consent
from dpsvm.federation.keys import SigningKey
from dpsvm.privacy import BudgetAccountant

PARTIES = ("clinic", "lab", "home")
OWNER = PARTIES[0]
ROUNDS = 4

_ROW = {"data_norm": 1.0, "radius": 1.0, "target_bound": 1.0}
_ENTRY = {"entry_bound": 1.0, "label_bound": 1.0}

PROBLEMS: Mapping[str, dict[str, Any]] = {
    "sharing": {
        "loss": "logistic",
        "rounds": ROUNDS,
        "privacy": "row",
        "epsilon": 20.0,
        "delta": 1e-5,
        **_ROW,
    },
    "network": {
        "graph": "ring",
        "classes": [-1, 1],
        "rounds": ROUNDS,
        "data_norm": 1.0,
        "privacy": "objective",
        "epsilon": 10.0,
    },
    "frank-wolfe": {
        "rounds": ROUNDS,
        "radius": 0.5,
        "sketch": 8,
        "epsilon": 50.0,
        "delta": 1e-5,
        **_ENTRY,
    },
}
"""The settings of a private run of each algorithm."""

_RELATIONS = {"sharing": "row", "network": "replace", "frank-wolfe": "replace"}


@dataclass(frozen=True)
class Problem:
    """A job and its sites in a folder."""

    folder: Path
    job: Job
    name: str = "job.toml"

    @property
    def job_file(self) -> Path:
        """The terms."""
        return self.folder / self.name

    @property
    def site_files(self) -> list[Path]:
        """The coordinator's, then the parties'."""
        return [self.site_file(name) for name in (OWNER, *self.job.parties)]

    @property
    def files(self) -> list[str]:
        """What a runner is given."""
        return [str(path) for path in (self.job_file, *self.site_files)]

    def site_file(self, name: str) -> Path:
        """Of one site."""
        return self.folder / name / "site.toml"

    def run_folder(self, name: str, role: str = "party") -> Path:
        """Where a site keeps the run."""
        return self.folder / name / "state" / role / self.job.run

    def make(self) -> tuple[list[Party], Coordinator]:
        """All sites in this process."""
        names = self.job.parties
        parties = [SiteConfig.load(self.site_file(name)).party(self.job) for name in names]
        return parties, SiteConfig.load(self.site_file(OWNER)).coordinator(self.job)

    def kept(self) -> dict[str, str]:
        """The digests of all that sites keep: keys, models, the result, the last snapshots.

        The file of a lock is none of it, which stays or goes as the locker likes; nor is the count
        of rehearsals, of which a run that is begun twice has more.
        """
        paths = sorted(self.folder.glob("*/state/*/*/*"))
        paths = [path for path in paths if path.name not in ("lock", "rehearsals")]
        return {
            str(path.relative_to(self.folder)): hashlib.sha256(path.read_bytes()).hexdigest()
            for path in paths
        }

    def charges(self) -> dict[str, list[tuple[str, str]]]:
        """What was charged to every ledger, and is still reserved, in order of the labels."""
        found = {}
        for path in sorted(self.folder.glob("*/ledger.json")):
            ledger = BudgetAccountant(path=path)
            lines = [(one.label, repr(one.event)) for one in ledger.charges]
            lines += [(one.label, "reserved") for one in ledger.reservations]
            found[path.parent.name] = sorted(lines)
        return found

    def spent(self) -> dict[str, float]:
        """The epsilon spent, of every ledger."""
        ledgers = sorted(self.folder.glob("*/ledger.json"))
        return {path.parent.name: BudgetAccountant(path=path).total().epsilon for path in ledgers}


def mpirun(arguments: list[str]) -> list[str]:
    """The command that runs this Python as the coordinator and as each party."""
    beside = Path(sys.executable).with_name("mpirun")
    program = str(beside) if beside.is_file() else require_program("mpirun")
    return [program, "-n", str(len(PARTIES) + 1), sys.executable, *arguments]


def make_problem(
    folder: Path,
    algorithm: str,
    settings: Mapping[str, Any] | None = None,
    *,
    rows: int = 24,
    columns: int = 3,
    private: bool = True,
    keys: bool = True,
    sums: str = "masked",
    seed: int = 0,
) -> Problem:
    """Write the job and the sites of a problem.

    private : every site has a ledger
    keys : every site has a noise key that is given, so that runs can be compared byte by byte
    """
    rng = np.random.default_rng(seed)
    settings = PROBLEMS[algorithm] if settings is None else settings
    owner = None if algorithm == "network" else OWNER
    sizes = (rows if algorithm == "network" else columns,) * len(PARTIES)
    job = Job("trial", algorithm, PARTIES, owner, settings, ids=False, sizes=sizes, sums=sums)
    problem = Problem(folder, job)
    folder.mkdir(parents=True, exist_ok=True)
    _write_job(problem)
    labels = np.where(rng.random(rows) < 0.5, -1.0, 1.0)
    for place, name in enumerate(PARTIES):
        table = rng.uniform(-1.0, 1.0, (rows, columns))
        table[:, 0] += labels / 2
        table /= np.maximum(1.0, np.linalg.norm(table, axis=1))[:, None] * (1 + 1e-9)
        _write_site(problem, name, place, table, labels, private=private, keys=keys)
    approve_all(job, problem.site_files)
    return problem


APPROVING = SigningKey(APPROVER, bytes(32))
"""The key that approves all runs of benches and tests."""


def key_of(name: str) -> SigningKey:
    """The key of a site of a bench or test: the same in every folder."""
    return SigningKey(name, hashlib.sha256(name.encode()).digest())


def approve_all(job: Job, site_files: Iterable[str | Path], **changes: Any) -> None:
    """Give sites their keys, and their consents to whatever the job asks.

    Sites whose files cannot be read are left out; changes : of the consents
    """
    for file in dict.fromkeys(map(Path, site_files)):
        with suppress(ValueError, OSError):
            site = SiteConfig.load(file)
            if site.approver is None:
                continue
            site.approver.write_text(APPROVING.public.text())
            site.state.mkdir(parents=True, exist_ok=True)
            if not site.key_file.exists():
                key_of(site.name).save(site.key_file)
            given: dict[str, Any] = {
                "epsilon": 1e9,
                "total": 1e9,
                "not_private": not site.private,
                "issued": datetime(2020, 1, 1, tzinfo=UTC),
                "expires": datetime(2120, 1, 1, tzinfo=UTC),
            }
            known = {name: key_of(name).public for name in others_of(job, site.name)}
            consent = Consent.of(job, site.name, known, **given | changes)
            write_consent(site.consent_folder, job, consent, APPROVING)


def with_ids(
    problem: Problem, rows: Mapping[str, Sequence[int]], name: str = "p{:05}", **changes: Any
) -> Problem:
    """The same sites with a column of sample ids, and a job that matches them.

    rows : which of its rows each site has, and in which order; the id of one is made of its number
    changes : of the job
    """
    for party, own in rows.items():
        home = problem.folder / party
        header, *lines = (home / "data.csv").read_text().splitlines()
        table = [f"{name.format(row)},{lines[row]}" for row in own]
        (home / "data.csv").write_text("\n".join([f"id,{header}", *table, ""]))
        (home / "salt.txt").write_text("a salt of the three sites\n")
        site = home / "site.toml"
        keys = '[data]\nid = "id"\nsalt_file = "salt.txt"\n'
        site.write_text(site.read_text().replace("[data]\n", keys))
    found = replace(problem, job=replace(problem.job, ids=True, **changes))
    _write_job(found)
    return found


def alignment_of(problem: Problem, **changes: Any) -> Problem:
    """The run that aligns the sites of a problem; its job is in a file of its own."""
    owner = problem.job.label_owner
    job = Job("ids-1", "align", problem.job.parties, owner, **changes)
    found = replace(problem, job=job, name="align.toml")
    _write_job(found)
    return found


def _write_job(problem: Problem) -> None:
    head = asdict(problem.job)
    settings = head.pop("settings")
    plain = {name: value for name, value in head.items() if value is not None}
    problem.job_file.write_text(_toml(plain) + "\n[settings]\n" + _toml(settings))


def _write_site(
    problem: Problem,
    name: str,
    place: int,
    table: np.ndarray,
    labels: np.ndarray,
    *,
    private: bool,
    keys: bool,
) -> None:
    home = problem.folder / name
    home.mkdir()
    header = ",".join([*(f"x{j}" for j in range(table.shape[1])), "y"])
    rows = np.column_stack([table, labels])
    np.savetxt(home / "data.csv", rows, "%.17g", ",", header=header, comments="")
    text = _toml({"name": name, "state": "state", "allow": "not private"})
    text += "\n[consent]\n" + _toml({"approver": "approver.pub"})
    text += "\n[data]\n" + _toml({"file": "data.csv", "label": "y"})
    if private:
        text += "\n[budget]\n" + _toml({"ledger": "ledger.json"})
        relation = _RELATIONS[problem.job.algorithm]
        BudgetAccountant(200.0, 1e-3, neighbouring=relation, path=home / "ledger.json", create=True)
    (home / "site.toml").write_text(text)
    if keys:
        for number, role in enumerate(("party", "coordinator")):
            run = problem.run_folder(name, role)
            run.mkdir(parents=True)
            (run / "noise.key").write_bytes(bytes([1 + place, number]) * 16)


def _toml(content: Mapping[str, Any]) -> str:
    """Plain values are written in TOML as in JSON."""
    return "".join(f"{name} = {json.dumps(value)}\n" for name, value in content.items())
