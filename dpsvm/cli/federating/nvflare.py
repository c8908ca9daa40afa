"""``dpsvm federation nvflare``: startup kits, a server with its sites, and jobs for them."""

from __future__ import annotations

import signal
import time
from collections.abc import Callable
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any

from dpsvm.cli.dispatch import dispatch
from dpsvm.cli.options import Flag, UsageError, help_page, parse, whole
from dpsvm.federation.job import Job
from dpsvm.federation.nvflare_runner import Federation, NVFlareRunner, prepare, provision

_CALL = "dpsvm federation nvflare"


@dataclass(frozen=True)
class _Action:
    """One of the subcommands: what it takes, and what it does with that."""

    operands: str
    about: str
    carry_out: Callable[..., None]  # of the operands, and the flags by name
    flags: tuple[Flag, ...] = ()
    engine: bool = True  # whether NVIDIA FLARE must be installed

    def help_text(self) -> str:
        """Its help."""
        return help_page(self._usage, self.about, *([("", self.flags)] if self.flags else []))

    def run(self, arguments: list[str]) -> None:
        """Carry it out."""
        values, operands = parse(arguments, self.flags)
        wanted = self.operands.split()[1:]
        some = "..." in self.operands and len(operands) > len(wanted)
        if not some and len(operands) != len(wanted):
            names = " and ".join(wanted)
            raise UsageError(f"{names} are needed, got {len(operands)}; {self._usage}")
        if self.engine and find_spec("nvflare") is None:
            raise UsageError("NVIDIA FLARE is not installed: pip install 'dpsvm[nvflare]'")
        try:
            self.carry_out(*operands, **values)
        except RuntimeError as error:
            raise ValueError(str(error)) from error

    @property
    def _usage(self) -> str:
        flags = " [flags]" if self.flags else ""
        return f"usage: {_CALL} {self.operands}{flags}"


def _provision(folder: str, *sites: str, **where: Any) -> None:
    kits = provision(folder, sites, **where)
    print(f"{kits.server.parent}: kits of the server and of {', '.join(kits.sites)}")


def _start(folder: str) -> None:
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        with Federation(folder) as federation:
            print(f"{', '.join(federation.kits.sites)} are connected; Ctrl-C ends", flush=True)
            while all(process.poll() is None for process in federation.processes.values()):
                time.sleep(1.0)
    except KeyboardInterrupt:
        return
    raise RuntimeError("a process has ended: console.log in its kit says why")


def _run(folder: str, job: str, *, dry: bool) -> None:
    def watch(status: str) -> None:
        print(status, flush=True)

    outcome = NVFlareRunner(folder).run(Job.load(job), watch, dry=dry)
    if outcome.folder is not None:
        print(outcome.folder)
    reason = "" if outcome.reason is None else f": {outcome.reason}"
    if outcome.ended not in ("done", "checked"):
        raise RuntimeError(f"the run {outcome.ended or 'failed'}{reason}")
    print(f"{outcome.ended}{reason}")


ACTIONS = {
    "provision": _Action(
        "provision FOLDER SITE...",
        "Makes startup kits with keys and certificates in FOLDER: of a server, of an admin and of "
        "every SITE, the file of a site. The first coordinates: the server gets its file too.",
        _provision,
        (
            Flag("--host", "of the server", "name", str, "localhost"),
            Flag("--port", "of the server", "n", whole(1, 65535), 8002),
        ),
    ),
    "prepare": _Action(
        "prepare KIT SITE",
        "Gives a startup kit that was made elsewhere its policy, and the file of its site.",
        prepare,
        engine=False,
    ),
    "start": _Action(
        "start FOLDER",
        "Runs the server and all sites of FOLDER as processes on this machine, until Ctrl-C.",
        _start,
    ),
    "run": _Action(
        "run FOLDER JOB",
        "Submits a job as the admin of FOLDER and waits for its end. The same line resumes a run "
        "that was interrupted.",
        _run,
        (Flag("--dry", "greet and rehearse only", default=False),),
    ),
}


def _help() -> str:
    return help_page(
        f"usage: {_CALL} SUBCOMMAND ...",
        "Runs jobs of dpsvm federation by NVIDIA FLARE, with mutual TLS between the sites.",
        ("Subcommands", [Flag(name, one.about) for name, one in ACTIONS.items()]),
    )


def run(arguments: list[str]) -> None:
    """Carry out a subcommand, or print the help of one, or of all."""
    dispatch(arguments, ACTIONS, "subcommand", _help)
