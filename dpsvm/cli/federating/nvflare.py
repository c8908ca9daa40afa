"""``dpsvm federation nvflare`` and ``export-nvflare``: kits, a server with its sites, and jobs."""

from __future__ import annotations

import math
import shlex
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from types import SimpleNamespace
from typing import Any

from dpsvm.cli.dispatch import dispatch
from dpsvm.cli.federating.command import REPLY_TIMEOUT, Command
from dpsvm.cli.interrupt import ended_in_order
from dpsvm.cli.options import Flag, UsageError, help_page, one_operand, positive, whole
from dpsvm.federation.job import Job
from dpsvm.federation.members import most_rounds
from dpsvm.federation.nvflare_export import export
from dpsvm.federation.nvflare_kits import HOST, PORT, assemble, prepare, provision, request, sign
from dpsvm.federation.nvflare_runner import Federation, NVFlareRunner
from dpsvm.progress import awaited_words, rounds_progress

_USAGE = "usage: dpsvm federation nvflare"
_EXPORT = "usage: dpsvm federation export-nvflare JOB --output FOLDER"


@contextmanager
def _engine() -> Iterator[None]:
    """NVIDIA FLARE at work: it must be installed; what fails is told in one line."""
    if find_spec("nvflare") is None:
        raise UsageError("NVIDIA FLARE is not installed: pip install 'dpsvm[nvflare]'")
    try:
        yield
    except RuntimeError as error:
        raise ValueError(str(error)) from error
    except Exception as error:
        if not type(error).__module__.startswith("nvflare."):
            raise
        raise ValueError(f"NVIDIA FLARE: {error or type(error).__name__}") from error


@_engine()
def _provision(folder: str, *sites: str, **where: Any) -> None:
    kits = provision(folder, sites, **where)
    names = ", ".join(kits.sites)
    print(f"{kits.server.parent if kits.server else folder}: kits of the server and of {names}")
    print(
        f"dpsvm federation: warning: {folder} holds the keys of all sites, and that which signs "
        "certificates: whoever reads it can be any of them. Between organisations let each make "
        "its own: request, sign, assemble",
        file=sys.stderr,
    )


@_engine()
def _request(site: str | None = None, *, output: str | None, admin: bool, **more: Any) -> None:
    if output is None:
        raise UsageError(f"--output is required; {_USAGE} request")
    if admin == (site is not None):
        raise UsageError("a SITE or --admin is needed, one of both")
    file = request(output, site, **more)
    print(f"{file}: send this to the signer; the key beside it stays")


@_engine()
def _sign(folder: str, *requests: str, **where: Any) -> None:
    found = sign(folder, requests, **where)
    for one in found:
        print(f"{one.file}: {one.kind} {one.name}, request {one.key[:16]}; send it back")
    print(f"fingerprint to tell them over another channel: {found[-1].fingerprint}")


@_engine()
def _assemble(folder: str, signed: str, *, fingerprint: str | None) -> None:
    if fingerprint is None:
        raise UsageError(f"--fingerprint is required; {_USAGE} assemble")
    print(f"{assemble(folder, signed, fingerprint=fingerprint)}: the kit")


@_engine()
def _start(folder: str) -> None:
    try:
        with ended_in_order(), Federation(folder) as federation:
            names = ", ".join(federation.kits.sites) or "the server"
            print(f"{names} are connected; Ctrl-C ends", flush=True)
            while all(process.poll() is None for process in federation.processes.values()):
                time.sleep(1.0)
    except KeyboardInterrupt:
        return
    raise RuntimeError("a process has ended: console.log in its kit says why")


@_engine()
def _run(
    folder: str, job: str, *, dry: bool, reply_timeout: float | None, timeout: float | None
) -> None:
    def watch(status: str) -> None:
        print(status, flush=True)

    terms = Job.load(job)
    again = shlex.join(["dpsvm", "federation", "nvflare", "run", folder, job])
    advice = f"{again} goes on with it"
    rounds = most_rounds(terms)
    with ended_in_order(), rounds_progress(rounds) as show:

        def told(number: int, awaited: list[str], seconds: float) -> None:
            if show is not None:
                show(number - 1, awaited_words(awaited, seconds))

        more: dict[str, Any] = {} if show is None else {"told": told}
        if reply_timeout is not None:
            more["reply_timeout"] = reply_timeout
        runner = NVFlareRunner(folder)
        try:
            with _engine():
                outcome = runner.run(terms, watch, dry=dry, timeout=timeout or 0.0, **more)
        except (ValueError, TimeoutError) as error:
            raise ValueError(f"{error}; once that is mended, {advice}") from None
        except (KeyboardInterrupt, SystemExit):
            print(f"dpsvm federation: {advice}", file=sys.stderr)
            raise
    if outcome.folder is not None:
        print(outcome.folder)
    reason = "" if outcome.reason is None else f": {outcome.reason}"
    if outcome.ended not in ("done", "checked"):
        ending = f"the run {outcome.ended or 'failed'}{reason}"
        raise ValueError(f"{ending}; once that is mended, {advice}")
    print(f"{outcome.ended}{reason}")


def _export(*files: str, output: str | None) -> None:
    path = one_operand(files, "JOB", _EXPORT)
    if output is None:
        raise UsageError(f"--output is required; {_EXPORT}")
    job = Job.load(path)
    export(job, output)
    print(f"{output}: run {job.run} for NVIDIA FLARE")


_SERVER = (
    Flag("--host", "of the server", "name", str, HOST),
    Flag("--port", "of the server", "n", whole(1, 65535), PORT),
)

ACTIONS = {
    "provision": Command(
        f"{_USAGE} provision FOLDER SITE... [flags]",
        "Makes startup kits with keys and certificates in FOLDER: of a server, of an admin and of "
        "every SITE, the file of a site. The first coordinates: the server gets its file too. "
        "FOLDER then holds the keys of all of them: it is for one machine, or to try it out.",
        _provision,
        _SERVER,
        ("FOLDER and SITE... are needed", 2, math.inf),
    ),
    "request": Command(
        f"{_USAGE} request (SITE | --admin) --output FOLDER [flags]",
        "Makes a key that stays in the new FOLDER, and a request for its certificate, which is to "
        "be sent to the signer: for a SITE, for the server at which it coordinates, or for the "
        "admin who submits jobs.",
        _request,
        (
            Flag("--output", "the folder to make; required", "folder", str),
            Flag("--server", "for the server of this name", "name", str),
            Flag("--admin", "for the admin", default=False),
            _SERVER[1],
        ),
        ("SITE or --admin is needed", 0, 1),
    ),
    "sign": Command(
        f"{_USAGE} sign FOLDER REQUEST... [flags]",
        "Gives certificates for requests, whose names and digests are to be compared with those "
        "who made them. FOLDER is the signer's own, made when it is not there, and holds no key "
        "but the signer's. Prints the fingerprint that assemble needs.",
        _sign,
        _SERVER,
        ("FOLDER and REQUEST... are needed", 2, math.inf),
    ),
    "assemble": Command(
        f"{_USAGE} assemble FOLDER SIGNED --fingerprint HEX",
        "Makes the startup kit in the FOLDER of a request, from what the signer sent back, and "
        "prepares it. start FOLDER then runs it, and run FOLDER JOB if it is the admin's.",
        _assemble,
        (Flag("--fingerprint", "as the signer told it; required", "hex", str),),
        ("FOLDER and SIGNED are needed", 2, 2),
    ),
    "prepare": Command(
        f"{_USAGE} prepare KIT SITE",
        "Gives a startup kit that was made elsewhere its policy, and the file of its site.",
        prepare,
        needs=("KIT and SITE are needed", 2, 2),
    ),
    "start": Command(
        f"{_USAGE} start FOLDER",
        "Runs the server and the sites that have kits in FOLDER, or in the folders in it, as "
        "processes on this machine, until Ctrl-C or SIGTERM.",
        _start,
        needs=("FOLDER are needed", 1, 1),
    ),
    "run": Command(
        f"{_USAGE} run FOLDER JOB [flags]",
        "Submits a job as the admin of FOLDER and waits for its end. The same line resumes a run "
        "that was interrupted.",
        _run,
        (
            Flag("--dry", "greet and rehearse only", default=False),
            REPLY_TIMEOUT,
            Flag("--timeout", "for the whole run; then it is aborted", "seconds", positive),
        ),
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
