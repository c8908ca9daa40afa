"""The sites that are attacked, and the doors to them: all that the attacks know of the protocol.

Sites are those of the tutorial in dpsvm/federation/README.md: their files, their data. A job comes
to a site as every runner brings it, by :meth:`SiteConfig.party`.
"""

from __future__ import annotations

import csv
import io
import json
import shutil
import socket
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bench.common import child_environment
from bench.federation.attack_coordinators import Listener, Stopped, in_step
from bench.federation.sites import APPROVING, approve_all, key_of
from dpsvm.federation import InProcessRunner, Job, Party, Turn
from dpsvm.federation.config import SiteConfig
from dpsvm.federation.members import Shape, agreement_of
from dpsvm.federation.nvflare_kits import provision
from dpsvm.federation.nvflare_runner import Federation, NVFlareRunner
from dpsvm.federation.store import FolderCopy
from dpsvm.privacy import BudgetAccountant
from dpsvm.privacy.accounting import epsilon_of

Array = NDArray[np.float64]

TUTORIAL = ("clinic", "lab", "registry")
OWNER = TUTORIAL[0]
DELTA = 1e-5
OPEN = {"loss": "logistic", "rounds": 20}
"""Settings of the tutorial's first job."""
PRIVATE = {
    "loss": "logistic",
    "rounds": 5,
    "rho": 0.03,
    "privacy": "row",
    "epsilon": 10.0,
    "delta": DELTA,
    "data_norm": 4.0,
    "radius": 3.0,
    "target_bound": 2.0,
}
"""Settings of its private job."""


@dataclass(frozen=True)
class Figure:
    """What an attack has got.

    most : above it, something that is claimed does not hold; None where nothing is claimed
    """

    attack: str
    what: str
    value: float
    stopped: str = ""
    most: float | None = None

    @property
    def key(self) -> str:
        """By which it is found again, of another version."""
        return f"{self.attack}: {self.what}"

    @property
    def holds(self) -> bool:
        """Whether what is claimed does."""
        return self.most is None or self.value <= self.most


@dataclass
class World:
    """A folder with the files of some sites."""

    folder: Path
    names: tuple[str, ...]
    secrets: Mapping[str, Array] = field(default_factory=dict)  # columns that were added, by site

    def site(self, name: str) -> SiteConfig:
        """A site, as its file is now."""
        return SiteConfig.load(self.folder / f"{name}.toml")

    def approve(self, job: Job, *, only: Sequence[str] | None = None) -> Job:
        """What those responsible do for a job that their sites, or some, are to take part in."""
        named = {*job.parties, job.label_owner or OWNER} if only is None else only
        approve_all(job, [self.folder / f"{name}.toml" for name in named])
        return job

    def party(self, job: Job, name: str) -> Party:
        """The party of a job that was submitted to a site."""
        try:
            return self.site(name).party(job)
        except ValueError as error:
            raise Stopped(str(error)) from None

    def parties(self, job: Job) -> list[Party]:
        """All parties of a job that was submitted to the sites."""
        return [self.party(job, name) for name in job.parties]

    def listen(self, job: Job) -> Listener:
        """Run a job to its end by the protocol, with a coordinator that keeps what it was sent."""
        parties = self.parties(job)
        runner = Listener(parties)
        try:
            coordinator = self.site(OWNER).coordinator(job)
        except ValueError as error:
            raise Stopped(str(error)) from None
        runner.turn = runner.run(coordinator)
        close([*parties, coordinator])
        if runner.turn.ended != "done":
            raise Stopped(runner.turn.reason)
        return runner

    def race(self, jobs: Sequence[Job], *, opposite: bool) -> list[Turn]:
        """Run jobs at once.

        opposite : those at odd places come to the sites in the opposite order
        """
        runs, sides = [], []
        for number, job in enumerate(jobs):
            parties, coordinator = self.parties(job), self.site(OWNER).coordinator(job)
            sides += [*parties, coordinator]
            runs.append(
                (InProcessRunner(parties[:: -1 if opposite and number % 2 else 1]), coordinator)
            )
        turns = in_step(runs)
        close(sides)
        return turns

    def submit(self, job: Job) -> list[Array]:
        """Run a job over NVIDIA FLARE, with mutual TLS; all vectors that its coordinator kept."""
        files = [self.folder / f"{name}.toml" for name in self.names]
        kits = self.folder / "kits"
        provision(kits, files, port=_free_port())
        with Federation(kits):
            outcome = NVFlareRunner(kits).run(job, timeout=300.0)
        if outcome.ended != "done":
            raise Stopped(str(outcome.reason))
        kept = FolderCopy(self.folder / f"state-{OWNER}" / "coordinator", job.run).load()
        return list(_vectors(kept["lead"]))

    def truth(self, name: str) -> Array:
        """The columns of a site, its rows in the order of a run; read by nothing of dpsvm."""
        header, *lines = csv.reader(io.StringIO((self.folder / f"{name}.csv").read_text()))
        lines.sort(key=lambda line: line[header.index("sample")])
        places = [i for i, one in enumerate(header) if one not in ("sample", "label")]
        return np.array([[float(line[place]) for place in places] for line in lines])

    def ledger(self, name: str) -> BudgetAccountant:
        """The ledger of a site, opened."""
        return BudgetAccountant(path=self.ledger_file(name))

    def ledger_file(self, name: str) -> Path:
        """Its file."""
        return self.folder / f"{name}-ledger.json"

    def ledger_files(self, name: str) -> list[Path]:
        """All that belongs to it, but for what a lock leaves."""
        return [self.ledger_file(name), Path(f"{self.ledger_file(name)}.key")]

    def new_ledger(self, name: str, epsilon: float) -> None:
        """Begin a ledger, as ``dpsvm budget create`` does, in the place of one that is there."""
        for path in self.ledger_files(name):
            path.unlink(missing_ok=True)
        path = self.ledger_file(name)
        BudgetAccountant(epsilon, DELTA, neighbouring="row", path=path, create=True)

    def charged(self, name: str) -> int:
        """How many charges stand in the ledger of a site."""
        return len(self.ledger(name).charges)

    def left(self, name: str, budget: float) -> float:
        """What is left of a site's budget for good, when nothing is awaited any more."""
        return budget - epsilon_of([one.event for one in self.ledger(name).charges], DELTA)

    def reserved(self, name: str) -> float:
        """What open reservations hold of a site's budget, until they expire."""
        ledger = self.ledger(name)
        return epsilon_of([one.event for one in ledger.reservations], DELTA)

    def run_folder(self, name: str, job: Job) -> Path:
        """Where a site keeps what it must not lose of a run."""
        return self.folder / f"state-{name}" / "party" / job.run


def close(sides: Sequence[Any]) -> None:
    """Let others have the folders of parties and coordinators."""
    for side in sides:
        side.store.close()


@contextmanager
def world(
    names: Sequence[str] = TUTORIAL,
    *,
    private: bool = False,
    budget: float | None = None,
    bounds: Mapping[str, float] | None = None,
    secrets: Mapping[str, Callable[[Array], Array]] | None = None,
) -> Iterator[World]:
    """Sites with the data of the tutorial, shared out among these names.

    budget : of a ledger of every site; none without
    secrets : by site, a further column, made of its others
    """
    with tempfile.TemporaryDirectory() as folder:
        made = World(Path(folder), tuple(names))
        for name, text in _tables(tuple(names)).items():
            (made.folder / f"{name}.csv").write_text(text)
        made.secrets = {name: _add(made, name, make) for name, make in (secrets or {}).items()}
        (made.folder / "salt.txt").write_text("0123456789abcdef" * 2)
        for name in names:
            if budget is not None:
                made.new_ledger(name, budget)
            text = _site_text(name, private=private, budget=budget, bounds=bounds or {})
            (made.folder / f"{name}.toml").write_text(text)
            (made.folder / f"state-{name}").mkdir()
            key_of(name).save(made.folder / f"state-{name}" / "site.key")
        (made.folder / "approver.pub").write_text(APPROVING.public.text())
        yield made


def _vectors(kept: Any) -> Iterator[Array]:
    if isinstance(kept, np.ndarray):
        yield from np.atleast_2d(kept)
    for one in kept.values() if isinstance(kept, dict) else kept if isinstance(kept, list) else ():
        yield from _vectors(one)


def _free_port() -> int:
    with socket.socket() as found:
        found.bind(("localhost", 0))
        return int(found.getsockname()[1])


def _site_text(
    name: str, *, private: bool, budget: float | None, bounds: Mapping[str, float]
) -> str:
    allowed = {} if private else {"allow": "not private"}
    parts: dict[str, dict[str, Any]] = {
        "": {"name": name, "state": f"state-{name}"} | allowed,
        "[consent]": {"approver": "approver.pub"},
        "[data]": {"file": f"{name}.csv", "id": "sample", "salt_file": "salt.txt"},
    }
    if name == OWNER:
        parts["[data]"]["label"] = "label"
    if bounds:
        parts["[bounds]"] = dict(bounds)
    if budget is not None:
        parts["[budget]"] = {"ledger": f"{name}-ledger.json"}
    lines = []
    for head, content in parts.items():
        lines += [head, *(f"{key} = {json.dumps(value)}" for key, value in content.items())]
    return "\n".join(lines) + "\n"


@cache
def _tables(names: tuple[str, ...]) -> dict[str, str]:
    """What the tutorial's first command writes."""
    words = ["data", "breast-cancer", "--parties", ",".join(names), "--scale", "range"]
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "dpsvm", *words]
        subprocess.run(
            command, cwd=folder, env=child_environment(), check=True, capture_output=True
        )
        return {name: Path(folder, f"{name}.csv").read_text() for name in names}


def _add(made: World, name: str, make: Callable[[Array], Array]) -> Array:
    """Write a further column into a site's table; it, in the order of a run."""
    path = made.folder / f"{name}.csv"
    added = make(made.truth(name))
    header, *lines = csv.reader(io.StringIO(path.read_text()))
    lines.sort(key=lambda line: line[header.index("sample")])
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow([*header, "secret"])
    writer.writerows([*line, repr(float(one))] for line, one in zip(lines, added, strict=True))
    path.write_text(text.getvalue())
    return added


def public_terms(sites: World, job: Job) -> tuple[float, float]:
    """The relaxation and the rho of a job of ADMM sharing, which all of its sites know."""
    sizes = tuple(sites.truth(name).shape[1] for name in job.parties)
    terms = agreement_of(job, Shape(len(sites.truth(OWNER)), sizes)).terms
    return float(terms.relaxation), float(terms.rho)


def restored(path: Path, kept: Path) -> None:
    """Put a file or a folder back as it was, from a copy."""
    if kept.is_dir():
        shutil.rmtree(path)
        shutil.copytree(kept, path)
    else:
        shutil.copyfile(kept, path)
