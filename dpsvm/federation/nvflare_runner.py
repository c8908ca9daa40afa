"""A federation of NVIDIA FLARE: kits, processes, jobs. ``dpsvm federation nvflare`` calls it.

``provision`` makes the startup kits of a server, of the sites and of an admin, with certificates
for mutual TLS, and prepares them. Its first site coordinates. :class:`Federation` runs all of them
on this machine; across organisations each starts ``startup/start.sh`` of its own kit, after
``prepare``. :class:`NVFlareRunner` submits a job, waits, and gives how it ended.
"""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, redirect_stdout, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dpsvm.federation.job import Job, read_toml
from dpsvm.federation.nvflare_export import AUTHORIZATION, POINTER, RESOURCES, export

ADMIN = "admin@dpsvm.federation"
_PROJECT = "dpsvm"
_LIGHTER = "nvflare.lighter.impl"
_POLL = 0.25
_GRACE = 30.0  # seconds for an orderly end

Watch = Callable[[str], None]
"""Called with the status of a job whenever it changes."""


@dataclass(frozen=True)
class Kits:
    """The startup kits of a federation."""

    server: Path
    sites: Mapping[str, Path]
    admin: Path

    @classmethod
    def find(cls, folder: str | os.PathLike[str]) -> Kits:
        """Those that :func:`provision` made."""
        found: dict[str, list[Path]] = {"server": [], "client": [], "admin": []}
        for kind, kits in found.items():
            pattern = f"{_PROJECT}/prod_00/*/startup/fed_{kind}.json"
            kits.extend(path.parents[1].resolve() for path in sorted(Path(folder).glob(pattern)))
        if len(found["server"]) != 1 or not found["client"] or len(found["admin"]) != 1:
            raise ValueError(f"{folder}: no startup kits of a federation are here")
        sites = {kit.name: kit for kit in found["client"]}
        return cls(found["server"][0], sites, found["admin"][0])


@dataclass(frozen=True)
class Outcome:
    """How a job ended.

    ended : "done", "checked", "stopped", or None if its coordinator never began
    """

    ended: str | None
    reason: str | None
    result: str | None  # the text of result.json
    status: str  # in NVIDIA FLARE's words
    folder: Path | None  # what was downloaded


def provision(
    folder: str | os.PathLike[str],
    sites: Sequence[str | os.PathLike[str]],
    *,
    host: str = "localhost",
    port: int = 8002,
) -> Kits:
    """Make the kits of a server and of some sites, whose files are given, and prepare them.

    The first site coordinates: the server gets its file too.
    """
    folder, files = Path(folder), [Path(site).resolve() for site in sites]
    if folder.exists() and any(folder.iterdir()):
        raise ValueError(f"{folder}: not an empty folder")
    names = [str(read_toml(file).get("name")) for file in files]
    folder.mkdir(parents=True, exist_ok=True)
    project = folder / "project.yml"
    project.write_text(json.dumps(_project(names, host, port), indent=1))  # JSON is YAML
    command = ["-m", "nvflare.cli", "provision", "-p", str(project), "-w", str(folder)]
    done = subprocess.run(
        [sys.executable, *command], stdin=subprocess.DEVNULL, capture_output=True, text=True
    )
    if done.returncode:
        raise RuntimeError(f"provisioning failed: {done.stdout}{done.stderr}")
    kits = Kits.find(folder)
    prepare(kits.server, files[0])
    for name, file in zip(names, files, strict=True):
        prepare(kits.sites[name], file)
    return kits


def prepare(kit: str | os.PathLike[str], site: str | os.PathLike[str]) -> None:
    """Give a kit its policy, and the file of its site."""
    kit, local = Path(kit).resolve(), Path(kit, "local").resolve()
    resources = json.loads((local / "resources.json.default").read_text()) | RESOURCES
    if "servers" in resources:
        _prepare_server(resources, kit)
    (local / "resources.json").write_text(json.dumps(resources, indent=1))
    (local / "authorization.json").write_text(json.dumps(AUTHORIZATION, indent=1))
    (kit / "transfer").mkdir(exist_ok=True)
    point(kit, site)


def point(kit: str | os.PathLike[str], site: str | os.PathLike[str]) -> None:
    """Tell a kit which file its site has; the next job goes by it."""
    name = json.dumps(str(Path(site).resolve()))
    Path(kit, "local", POINTER).write_text(f"site = {name}\n", encoding="utf-8")


class Federation:
    """The server and the sites of a folder, as processes on this machine, until it is left.

    Each has its console.log in its kit. Nothing of them is left behind, whatever happens.
    """

    def __init__(
        self, folder: str | os.PathLike[str], environment: Mapping[str, str] | None = None
    ) -> None:
        self.kits = Kits.find(folder)
        self.processes: dict[str, subprocess.Popen[bytes]] = {}
        # Without it the installed dpsvm gives way to a folder of that name where one happens to be.
        self._environment = {**os.environ, "PYTHONSAFEPATH": "1", **(environment or {})}

    def __enter__(self) -> Federation:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def start(self, timeout: float = 120.0) -> None:
        """Start all, and wait until the server knows every site."""
        try:
            self._start("server", self.kits.server, "server", "org=hub")
            for name, kit in self.kits.sites.items():
                more = (f"uid={name}", f"org={_org(name)}", "heart_beat_interval=2")
                self._start(name, kit, "client", *more)
            self._await_sites(time.monotonic() + timeout)
        except BaseException:
            self._kill()
            raise

    def stop(self) -> None:
        """Ask all to end, and end those that do not."""
        try:
            if any(process.poll() is None for process in self.processes.values()):
                self._ask_to_end()
        finally:
            self._kill()

    def _ask_to_end(self) -> None:
        with suppress(Exception), _session(self.kits, 10.0) as session:
            session.shutdown("all", wait=False)
            end = time.monotonic() + _GRACE
            for process in self.processes.values():
                process.wait(max(0.0, end - time.monotonic()))

    def _start(self, name: str, kit: Path, kind: str, *more: str) -> None:
        module = f"nvflare.private.fed.app.{kind}.{kind}_train"
        given = ["-m", str(kit), "-s", f"fed_{kind}.json", "--set", "secure_train=true"]
        with open(kit / "console.log", "ab") as log:
            self.processes[name] = subprocess.Popen(
                [sys.executable, "-u", "-m", module, *given, "config_folder=config", *more],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                env=self._environment,
                start_new_session=True,  # a group to end, with the processes of its jobs
            )

    def _await_sites(self, end: float) -> None:
        with _session(self.kits, end - time.monotonic()) as session:
            while True:
                there = {client.name for client in session.get_system_info().client_info}
                if there >= set(self.kits.sites):
                    return
                for name, process in self.processes.items():
                    if process.poll() is not None:
                        raise RuntimeError(f"{name} has ended: console.log in its kit says why")
                if time.monotonic() > end:
                    raise TimeoutError(f"the server knows only {', '.join(sorted(there))}")
                time.sleep(_POLL)

    def _kill(self) -> None:
        for process in self.processes.values():
            if hasattr(os, "killpg"):
                with suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)
            else:  # Windows has no groups to end
                process.kill()
            process.wait()
        self.processes.clear()


class NVFlareRunner:
    """Submits jobs to a federation that is running, as its admin."""

    def __init__(self, folder: str | os.PathLike[str]) -> None:
        self.kits = Kits.find(folder)

    def run(
        self, job: Job, watch: Watch | None = None, *, dry: bool = False, timeout: float = 0.0
    ) -> Outcome:
        """Run a job to its end, or resume it; what is interrupted here is aborted there.

        timeout : seconds to wait for the end, 0 for as long as it takes
        """
        with tempfile.TemporaryDirectory() as folder:
            export(job, folder, dry=dry)
            return self.submit(Path(folder, "job"), watch, timeout=timeout)

    def submit(
        self, folder: str | os.PathLike[str], watch: Watch | None = None, *, timeout: float = 0.0
    ) -> Outcome:
        """Run the job of a folder."""
        with _session(self.kits) as session:
            identity = session.submit_job(os.fspath(folder))
            try:
                meta = _awaited(session, identity, watch, timeout)
            except BaseException:
                with suppress(Exception):
                    session.abort_job(identity)
                raise
            return _outcome(meta, Path(session.download_job_result(identity), "workspace"))


@contextmanager
def _session(kits: Kits, timeout: float = 30.0) -> Iterator[Any]:
    from nvflare.fuel.flare_api.flare_api import new_secure_session

    with redirect_stdout(sys.stderr):  # it says that it is connecting
        session = new_secure_session(kits.admin.name, str(kits.admin), timeout=timeout)
    try:
        yield session
    finally:
        with suppress(Exception):
            session.close()


def _awaited(session: Any, identity: str, watch: Watch | None, timeout: float) -> Mapping[str, Any]:
    began, last = time.monotonic(), ""
    while True:
        meta: Mapping[str, Any] = session.get_job_meta(identity)
        status = str(meta["status"])
        if status != last and watch is not None:
            watch(status)
        if status.startswith("FINISHED"):
            return meta
        if timeout and time.monotonic() > began + timeout:
            raise TimeoutError(f"the job is {status} after {timeout:g} seconds")
        last = status
        time.sleep(_POLL)


def _outcome(meta: Mapping[str, Any], folder: Path) -> Outcome:
    status, told, result = str(meta["status"]), folder / "outcome.json", folder / "result.json"
    if not told.is_file():
        detail = "; ".join(map(str, meta.get("job_deploy_detail") or ()))
        reason = f"NVIDIA FLARE ended the job: {status}{detail and ', '}{detail}"
        return Outcome(None, reason, None, status, folder if folder.is_dir() else None)
    content = json.loads(told.read_text(encoding="utf-8"))
    text = result.read_text(encoding="utf-8") if result.is_file() else None
    return Outcome(content["ended"], content["reason"], text, status, folder)


def _prepare_server(resources: dict[str, Any], kit: Path) -> None:
    """Stores in the kit, not in a folder that all federations of a machine share; no long waits."""
    resources["servers"][0]["heart_beat_timeout"] = 30
    storage = resources["snapshot_persistor"]["args"]["storage"]["args"]
    storage["root_dir"] = str(kit / "snapshot-storage")
    arguments = {one["id"]: one.setdefault("args", {}) for one in resources["components"]}
    arguments["job_manager"]["uri_root"] = str(kit / "jobs-storage")
    arguments["job_scheduler"] |= {
        "max_jobs": 1,
        "min_schedule_interval": 1.0,
        "max_schedule_interval": 2.0,
        "max_schedule_count": 60,
    }


def _project(names: Sequence[str], host: str, port: int) -> dict[str, Any]:
    server = {"name": host, "type": "server", "org": "hub"}
    builders: dict[str, dict[str, Any]] = {
        "workspace.WorkspaceBuilder": {"template_file": ["master_template.yml"]},
        "static_file.StaticFileBuilder": {"config_folder": "config", "scheme": "grpc"},
        "cert.CertBuilder": {},
        "signature.SignatureBuilder": {},
    }
    return {
        "api_version": 3,
        "name": _PROJECT,
        "description": "sites that train a joint model",
        "participants": [
            {**server, "fed_learn_port": port, "admin_port": port},
            *({"name": name, "type": "client", "org": _org(name)} for name in names),
            {"name": ADMIN, "type": "admin", "org": "hub", "role": "lead"},
        ],
        "builders": [{"path": f"{_LIGHTER}.{p}", "args": args} for p, args in builders.items()],
    }


def _org(name: str) -> str:
    return re.sub(r"\W", "_", name)
