"""``dpsvm federation run-mpi``: a process for each site, which talk by MPI."""

from __future__ import annotations

import shutil
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

from dpsvm.cli.federating.cast import Cast
from dpsvm.cli.options import Flag, UsageError, help_page, parse

_USAGE = "usage: dpsvm federation run-mpi JOB SITE... [--resume]"
_MODULE = "dpsvm.federation.mpi"
_ADVICE = "pip install 'dpsvm[mpi]'"
_GRACE = 0.4  # seconds for mpirun to end after Ctrl-C, and again after a signal
FLAGS = (Flag("--resume", "go on with a run that was interrupted", default=False),)


def help_text() -> str:
    """The help of the subcommand."""
    return help_page(
        _USAGE,
        "Runs a job by mpirun: one process for the coordinator, whose SITE is the first, and "
        "one for each party. It is for the machines of one organisation: every process may "
        "read the files of its own site only, but MPI does not know who is who.",
        ("", FLAGS),
    )


def run(arguments: list[str]) -> None:
    """Carry out the subcommand."""
    values, words = parse(arguments, FLAGS)
    cast = Cast.load(words, _USAGE)
    command = mpi_command(cast, resume=values["resume"])
    if values["resume"]:
        cast.require_begun()
    else:
        cast.refuse_begun(f"{cast.resume_command('run-mpi')} --resume")
    code = _run(command, cast)
    if code != 0:
        raise ValueError(f"run {cast.job.run} has not ended: mpirun gave exit code {code}")


def mpi_command(cast: Cast, *, resume: bool) -> list[str]:
    """The words that start the processes."""
    if find_spec(_MODULE) is None or find_spec("mpi4py") is None:
        raise UsageError(f"there is no MPI for Python here: {_ADVICE}")
    beside = Path(sys.executable).with_name("mpirun")
    mpirun = str(beside) if beside.is_file() else shutil.which("mpirun")
    if mpirun is None:
        raise UsageError(f"there is no mpirun here: {_ADVICE}")
    count = str(len(cast.parties) + 1)
    python = [sys.executable, "-P", "-m", _MODULE, cast.job_path, *cast.paths]  # as installed
    return [mpirun, "-n", count, *python, *(["--resume"] if resume else [])]


def _run(command: list[str], cast: Cast) -> int:
    with subprocess.Popen(command) as process:
        try:
            return process.wait()
        except KeyboardInterrupt:
            _end(process)  # a terminal has sent Ctrl-C to mpirun as well
            again = f"{cast.resume_command('run-mpi')} --resume"
            print(f"dpsvm federation: {again} goes on with it", file=sys.stderr)
            raise


def _end(process: subprocess.Popen[bytes]) -> None:
    for harder in (process.terminate, process.kill):
        try:
            process.wait(_GRACE)
            return
        except subprocess.TimeoutExpired:
            harder()
