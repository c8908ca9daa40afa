"""``dpsvm federation nvflare`` and ``export-nvflare``: kits, a server with its sites, and jobs."""

from __future__ import annotations

import math
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from types import SimpleNamespace
from typing import Any

from dpsvm.cli.dispatch import dispatch
from dpsvm.cli.federating.command import Command
from dpsvm.cli.options import Flag, UsageError, help_page, one_operand, whole
from dpsvm.federation.job import Job
from dpsvm.federation.nvflare_export import export
from dpsvm.federation.nvflare_runner import Federation, NVFlareRunner, prepare, provision

_USAGE = "usage: dpsvm federation nvflare"
_EXPORT = "usage: dpsvm federation export-nvflare JOB --output FOLDER"


@contextmanager
def _engine() -> Iterator[None]:
    """NVIDIA FLARE at work: it must be installed, and tells what fails as a RuntimeError."""
    if find_spec("nvflare") is None:
        raise UsageError("NVIDIA FLARE is not installed: pip install 'dpsvm[nvflare]'")
    try:
        yield
    except RuntimeError as error:
        raise ValueError(str(error)) from error


@_engine()
def _provision(folder: str, *sites: str, **where: Any) -> None:
    kits = provision(folder, sites, **where)
    print(f"{kits.server.parent}: kits of the server and of {', '.join(kits.sites)}")


@_engine()
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


@_engine()
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


def _export(*files: str, output: str | None) -> None:
    path = one_operand(files, "JOB", _EXPORT)
    if output is None:
        raise UsageError(f"--output is required; {_EXPORT}")
    job = Job.load(path)
    export(job, output)
    print(f"{output}: run {job.run} for NVIDIA FLARE")


ACTIONS = {
    "provision": Command(
        f"{_USAGE} provision FOLDER SITE... [flags]",
        "Makes startup kits with keys and certificates in FOLDER: of a server, of an admin and of "
        "every SITE, the file of a site. The first coordinates: the server gets its file too.",
        _provision,
        (
            Flag("--host", "of the server", "name", str, "localhost"),
            Flag("--port", "of the server", "n", whole(1, 65535), 8002),
        ),
        ("FOLDER and SITE... are needed", 2, math.inf),
    ),
    "prepare": Command(
        f"{_USAGE} prepare KIT SITE",
        "Gives a startup kit that was made elsewhere its policy, and the file of its site.",
        prepare,
        needs=("KIT and SITE are needed", 2, 2),
    ),
    "start": Command(
        f"{_USAGE} start FOLDER",
        "Runs the server and all sites of FOLDER as processes on this machine, until Ctrl-C.",
        _start,
        needs=("FOLDER are needed", 1, 1),
    ),
    "run": Command(
        f"{_USAGE} run FOLDER JOB [flags]",
        "Submits a job as the admin of FOLDER and waits for its end. The same line resumes a run "
        "that was interrupted.",
        _run,
        (Flag("--dry", "greet and rehearse only", default=False),),
        ("FOLDER and JOB are needed", 2, 2),
    ),
}


def _help() -> str:
    return help_page(
        f"{_USAGE} SUBCOMMAND ...",
        "Runs jobs of dpsvm federation by NVIDIA FLARE, with mutual TLS between the sites.",
        ("Subcommands", [Flag(name, one.about) for name, one in ACTIONS.items()]),
    )


def _nvflare(arguments: list[str]) -> None:
    dispatch(arguments, ACTIONS, "subcommand", _help)


COMMANDS = {
    "nvflare": SimpleNamespace(run=_nvflare),  # help is that of its own subcommands
    "export-nvflare": Command(
        _EXPORT,
        "Writes the folder of an NVIDIA FLARE job. It names classes of the dpsvm that every "
        "site has installed, and ships no code and no data.",
        _export,
        (Flag("--output", "the folder to write; required", "folder", str),),
    ),
}
