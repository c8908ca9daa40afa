"""A federation of NVIDIA FLARE: processes and jobs. ``dpsvm federation nvflare`` calls it.

:class:`Federation` runs the kits of a folder on this machine; across organisations each runs its
own, or starts ``startup/start.sh`` of it. :class:`NVFlareRunner` submits a job, waits, and gives
how it ended.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, redirect_stdout, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from dpsvm.federation.job import Job
from dpsvm.federation.nvflare_export import STATS, export
from dpsvm.federation.nvflare_kits import Kits, org_of
from dpsvm.federation.site import Refusal

_POLL = 0.25
_GRACE = 30.0  # seconds for an orderly end

_LOOK = 1.0  # seconds between looks at how far a job is

Watch = Callable[[str], None]
"""Called with the status of a job whenever it changes."""

Told = Callable[[int, list[str], float], None]
"""Called now and then with the round, who has not answered in it, and for how many seconds."""


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


class Federation:
    """The server and the sites of a folder, as processes on this machine, until it is left.

    Each has its console.log in its kit. Nothing of them is left behind, whatever happens. Where
    the admin's kit is not among them, nobody here can ask the server who is there.
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
            if self.kits.server is not None:
                self._start("server", self.kits.server, "server", "org=hub")
            for name, kit in self.kits.sites.items():
                more = (f"uid={name}", f"org={org_of(name)}", "heart_beat_interval=2")
                self._start(name, kit, "client", *more)
            if self.kits.admin is not None and self.kits.server is not None:
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
        if self.kits.admin is None or self.kits.server is None:
            for process in self.processes.values():
                process.terminate()
            self._wait(_GRACE / 3)
            return
        with suppress(Exception), _session(self.kits, 10.0) as session:
            session.shutdown("all", wait=False)
            self._wait(_GRACE)

    def _wait(self, seconds: float) -> None:
        end = time.monotonic() + seconds
        with suppress(subprocess.TimeoutExpired):
            for process in self.processes.values():
                process.wait(max(0.0, end - time.monotonic()))

    def _start(self, name: str, kit: Path, kind: str, *more: str) -> None:
        module = f"nvflare.private.fed.app.{kind}.{kind}_train"
        given = ["-m", str(kit), "-s", f"fed_{kind}.json", "--set", "secure_train=true"]
        mine = partial(os.open, mode=0o600)
        with open(kit / "console.log", "ab", opener=mine) as log:
            self.processes[name] = subprocess.Popen(
                [sys.executable, "-u", "-m", module, *given, "config_folder=config", *more],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                env=self._environment,
                start_new_session=True,  # a group to end, with the processes of its jobs
                umask=0o077 if os.name == "posix" else -1,
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
        self,
        job: Job,
        watch: Watch | None = None,
        *,
        dry: bool = False,
        reply_timeout: float = 600.0,
        timeout: float = 0.0,
        told: Told | None = None,
    ) -> Outcome:
        """Run a job to its end, or resume it; what is interrupted here is aborted there.

        reply_timeout : seconds that a party has for an answer
        timeout : seconds to wait for the end, 0 for as long as it takes
        told : hears who is awaited
        """
        with tempfile.TemporaryDirectory() as folder:
            export(job, folder, dry=dry, reply_timeout=reply_timeout)
            return self.submit(Path(folder, "job"), watch, timeout=timeout, told=told)

    def submit(
        self,
        folder: str | os.PathLike[str],
        watch: Watch | None = None,
        *,
        timeout: float = 0.0,
        told: Told | None = None,
    ) -> Outcome:
        """Run the job of a folder."""
        with _session(self.kits) as session:
            identity = session.submit_job(os.fspath(folder))
            try:
                meta = _awaited(session, identity, watch, timeout, told)
            except BaseException:
                with suppress(Exception):
                    session.abort_job(identity)
                raise
            return _outcome(meta, Path(session.download_job_result(identity), "workspace"))


@contextmanager
def _session(kits: Kits, timeout: float = 30.0) -> Iterator[Any]:
    from nvflare.fuel.flare_api.flare_api import new_secure_session

    if kits.admin is None:
        raise Refusal("the kit of the admin, who submits jobs, is not in this folder")
    with redirect_stdout(sys.stderr):  # it says that it is connecting
        session = new_secure_session(kits.admin.name, str(kits.admin), timeout=timeout)
    try:
        yield session
    finally:
        with suppress(Exception):
            session.close()


def _awaited(
    session: Any, identity: str, watch: Watch | None, timeout: float, told: Told | None
) -> Mapping[str, Any]:
    began, last = time.monotonic(), ""
    looked = began
    while True:
        meta: Mapping[str, Any] = session.get_job_meta(identity)
        status = str(meta["status"])
        if status != last and watch is not None:
            watch(status)
        if status.startswith("FINISHED"):
            return meta
        if timeout and time.monotonic() > began + timeout:
            raise TimeoutError(f"the job is {status} after {timeout:g} seconds, and is aborted")
        last = status
        if told is not None and time.monotonic() > looked + _LOOK and status == "RUNNING":
            with suppress(Exception):  # it is to look at, and no more
                stats = session.show_stats(identity, "server", None)
                told(*stats["server"][STATS]["asked"])
            looked = time.monotonic()
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
