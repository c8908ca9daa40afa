"""Small runs of every distributed algorithm between sites, with and without privacy."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from dpsvm.federation import Coordinator, InProcessRunner, Job, Message, Party, RunFolder, Site
from dpsvm.federation.keys import SigningKey
from dpsvm.federation.secure_sum import Roster, SumKey
from dpsvm.federation.store import Phase, no_phase
from dpsvm.privacy import BudgetAccountant

NAMES = ("clinic", "lab", "registry")
SALT = "a salt of the sites"
ROWS = 30

_rng = np.random.default_rng(5)
TABLE = _rng.uniform(-1.0, 1.0, (ROWS, 7)) / np.sqrt(7.0)
LABELS = np.where(TABLE @ _rng.standard_normal(7) > 0.0, 1.0, -1.0)
BLOCKS = [TABLE[:, :3], TABLE[:, 3:5], TABLE[:, 5:]]
SHARES = [np.arange(node, ROWS, 3) for node in range(3)]
KEYS = {name: SigningKey(name, bytes([place + 1]) * 32) for place, name in enumerate(NAMES)}
KNOWN = {name: key.public for name, key in KEYS.items()}
IDS = tuple(f"p{number:02d}" for number in range(ROWS))

SETTINGS: dict[str, tuple[str, dict[str, Any], str]] = {
    "sharing": ("sharing", {"rounds": 4}, ""),
    "sharing, adaptive l1": (
        "sharing",
        {"rounds": 4, "penalty": "l1", "lam": 0.1, "adaptive_rho": True, "intercept": "lab"},
        "",
    ),
    "sharing, private": (
        "sharing",
        {"rounds": 4, "rho": 0.05, "privacy": "row", "epsilon": 2.0, "delta": 1e-5}
        | {"data_norm": 1.0, "radius": 1.0, "target_bound": 2.0},
        "row",
    ),
    "sharing, open": ("sharing", {"rounds": 4}, ""),
    "network": ("network", {"classes": [-1, 1], "graph": "path", "rounds": 5}, ""),
    "network, private": (
        "network",
        {"classes": [-1, 1], "graph": "path", "rounds": 5, "data_norm": 1.0}
        | {"privacy": "objective", "epsilon": 5.0, "start_seed": 3},
        "replace",
    ),
    "frank-wolfe": ("frank-wolfe", {"radius": 1.0, "rounds": 5, "sketch": 8, "tau": 1}, ""),
    "frank-wolfe, private": (
        "frank-wolfe",
        {"radius": 1.0, "rounds": 5, "sketch": 8, "epsilon": 50.0, "delta": 1e-5}
        | {"entry_bound": 1.0, "label_bound": 1.0},
        "replace",
    ),
}
"""By name: the algorithm, its settings, and the relation its budget is for, "" without one."""

PRIVATE = [name for name, (_, _, relation) in SETTINGS.items() if relation]


def job_of(name: str, **changes: Any) -> Job:
    """The terms of a run."""
    algorithm, settings, _ = SETTINGS[name]
    owner = None if algorithm == "network" else NAMES[0]
    fields: dict[str, Any] = {"run": "run-1", "settings": settings, "ids": algorithm != "network"}
    if SETTINGS[name][2] and algorithm == "frank-wolfe":
        fields["sizes"] = tuple(block.shape[1] for block in BLOCKS)
    if name.endswith(", open"):
        fields["sums"] = "open"
    fields |= changes
    return Job(algorithm=algorithm, parties=NAMES, label_owner=owner, **fields)


def site_of(name: str, table: Any = None, **fields: Any) -> Site:
    """A site with its keys, and those of the others."""
    return Site(name, table, **{"identity": KEYS[name], "known": KNOWN, **fields})


def roster_of(party: Party) -> Roster:
    """The sum keys of a run: the party's own, and others that were signed."""
    job, keys, signatures = party.job, [], []
    for name in job.parties:
        told = SumKey(bytes([7]) * 32).introduced(job, KEYS[name])
        if name == party.site.name:
            told = {"key": party.hello().text("key"), "signature": party.hello().text("signature")}
        keys.append(bytes.fromhex(str(told["key"])))
        signatures.append(bytes.fromhex(str(told["signature"])))
    return Roster(job, keys, signatures)


def opening(
    party: Party, kind: str = "begin", sizes: Iterable[int] = (3, 2, 2), rows: int = ROWS
) -> Message:
    """What begins a run at one party, or rehearses that."""
    arrays = {"sizes": np.array(sizes), **(roster_of(party).arrays if party.job.masked else {})}
    return Message(party.job.run, 0 if kind == "begin" else -1, kind, arrays, {"rows": rows})


def opening_among(parties: list[Party], kind: str = "begin") -> Message:
    """What begins a run among all of its parties, which have the same rows."""
    job, sites = parties[0].job, [party.site for party in parties]
    roster = Roster.of_hellos(job, [party.hello() for party in parties])
    arrays = {"sizes": np.array([site.columns for site in sites]), **roster.arrays}
    number = 0 if kind == "begin" else -1
    return Message(job.run, number, kind, arrays, {"rows": sites[0].rows})


@dataclass
class World:
    """The folders of all sites of one run, under one folder."""

    folder: Path
    job: Job
    relation: str
    budget: float = 100.0

    @classmethod
    def of(cls, folder: Path, name: str, **changes: Any) -> World:
        """A world in which nothing has happened; the noise is the same in all of them."""
        job = job_of(name, **changes)
        world = cls(folder, job, SETTINGS[name][2])
        for place, site in enumerate((*NAMES, "hub")):
            home = world.state(site) / job.run
            home.mkdir(parents=True)
            (home / "noise.key").write_bytes(bytes([place + 1]) * 32)
            if world.relation:
                BudgetAccountant(
                    world.budget,
                    1e-4,
                    neighbouring=world.relation,
                    path=world.ledger(site),
                    create=True,
                )
        return world

    def state(self, site: str) -> Path:
        """Where a site keeps its runs."""
        return self.folder / site / "state"

    def ledger(self, site: str) -> Path:
        """The ledger of a site."""
        return self.folder / site / "ledger.json"

    def site(self, name: str, **changes: Any) -> Site:
        """A party's side of the data; "hub" is the coordinator."""
        fields: dict[str, Any] = {}
        if name == "hub":
            fields = {} if self.job.algorithm == "network" else {"labels": LABELS}
            name = self.job.label_owner or name
            ledger = self.ledger("hub")
        elif self.job.algorithm == "network":
            own = SHARES[NAMES.index(name)]
            fields, ledger = {"table": TABLE[own], "labels": LABELS[own]}, self.ledger(name)
        else:
            fields, ledger = {"table": BLOCKS[NAMES.index(name)]}, self.ledger(name)
        if self.job.ids:
            fields |= {"ids": IDS, "salt": SALT}
        fields |= {"identity": KEYS.get(name), "known": KNOWN}
        if self.relation:
            fields["ledger"] = BudgetAccountant(path=ledger)
        return Site(name, **{**fields, **changes})

    def store(self, site: str) -> RunFolder:
        """The folder of the run at a site."""
        return RunFolder(self.state(site), self.job.run)

    def new_ledger(self, site: str, epsilon: float = 100.0, delta: float = 1e-4) -> None:
        """Another ledger, and its key, in the place of a site's."""
        for suffix in ("", ".key"):
            Path(f"{self.ledger(site)}{suffix}").unlink()
        more: dict[str, Any] = {"neighbouring": self.relation, "path": self.ledger(site)}
        BudgetAccountant(epsilon, delta, create=True, **more)

    def charges(self) -> dict[str, int]:
        """How many charges every ledger holds."""
        if not self.relation:
            return {}
        return {
            site: len(BudgetAccountant(path=self.ledger(site)).charges) for site in (*NAMES, "hub")
        }

    def outcome(self) -> dict[str, bytes]:
        """What the sites keep of a finished run, byte for byte."""
        files = {site: "model.json" for site in NAMES} | {"hub": "result.json"}
        return {
            site: (self.state(site) / self.job.run / name).read_bytes()
            for site, name in files.items()
        }


Sent = dict[tuple[str, int, str], set[bytes]]
"""Every message that left a party, by party, round and kind."""


class Recorder(InProcessRunner):
    """Sends bytes, and keeps all that leaves a party."""

    def __init__(self, parties: list[Party], sent: Sent) -> None:
        super().__init__(parties)
        self.sent = sent

    def deliver(self, messages: Any) -> dict[str, Message | None]:
        """The answers, kept."""
        found: dict[str, Message | None] = {}
        for name, message in messages.items():
            data = self.parties[name].handle_bytes(message.encode())
            answer = Message.decode(data)
            if answer.kind != "hello":  # tells how far its sender is
                self.sent.setdefault((name, answer.round, answer.kind), set()).add(data)
            found[name] = answer
        return found


def run(
    world: World,
    sent: Sent | None = None,
    phases: Callable[[str], Phase] = lambda site: no_phase,
    changes: dict[str, dict[str, Any]] | None = None,
) -> Any:
    """Run the sites of a world from what they keep, and let go of their folders."""
    stores = {site: world.store(site) for site in (*NAMES, "hub")}
    given = changes or {}
    try:
        parties = [
            Party(
                given.get(site, {}).get("job", world.job),
                world.site(site, **given.get(site, {}).get("site", {})),
                stores[site],
                phase=phases(site),
            )
            for site in NAMES
        ]
        hub = given.get("hub", {})
        coordinator = Coordinator(
            world.job, world.site("hub", **hub.get("site", {})), stores["hub"], phase=phases("hub")
        )
        return Recorder(parties, {} if sent is None else sent).run(coordinator), parties
    finally:
        close(stores.values())


def close(stores: Iterable[RunFolder]) -> None:
    """What the end of a process does."""
    for store in stores:
        store.close()


def one_thread() -> None:
    """Pin BLAS, for whole processes."""
    os.environ |= dict.fromkeys(("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS"), "1")
