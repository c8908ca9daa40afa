"""``dpsvm federation run-mpi``: a process for each site, which talk by MPI."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory

from dpsvm.cli.federating.cast import Cast
from dpsvm.cli.federating.command import REPLY_TIMEOUT, RESUME, Command
from dpsvm.cli.interrupt import ended_in_order
from dpsvm.cli.options import UsageError
from dpsvm.federation.members import most_rounds
from dpsvm.progress import Rounds, awaited_words, rounds_progress

_USAGE = "usage: dpsvm federation run-mpi JOB SITE... [flags]"
_MODULE = "dpsvm.federation.mpi"
_ADVICE = "pip install 'dpsvm[mpi]'"
_GRACE = 0.4  # seconds for mpirun to end after Ctrl-C
_TIDY = 5.0  # and to end its processes after a signal
_LOOK = 0.3


def _run_mpi(*words: str, resume: bool, reply_timeout: float | None) -> None:
    cast = Cast.load(words, _USAGE)
    command = mpi_command(cast, resume=resume)
    again = f"{cast.resume_command('run-mpi')} --resume"
    cast.check_begun(resume=resume, again=again)
    if reply_timeout is not None:
        command += ["--reply-timeout", str(reply_timeout)]
    rounds = most_rounds(cast.job)
    with ended_in_order(), rounds_progress(rounds) as show, TemporaryDirectory() as folder:
        file = Path(folder, "progress")
        if show is not None:
            command += ["--progress", str(file)]
        with subprocess.Popen(command) as process:
            try:
                code = _waited(process, file, show)
            except BaseException:
                _end(process)  # a terminal has sent Ctrl-C to mpirun as well
                print(f"dpsvm federation: {again} goes on with it", file=sys.stderr)
                raise
    if code != 0:
        begun = f"; once that is mended, {again} goes on with it" if cast.kept() else ""
        raise ValueError(f"run {cast.job.run} has not ended: mpirun gave exit code {code}{begun}")


def _waited(process: subprocess.Popen[bytes], file: Path, show: Rounds | None) -> int:
    """The exit code; meanwhile it shows how far the run is."""
    while show is not None:
        with suppress(subprocess.TimeoutExpired):
            return process.wait(_LOOK)
        with suppress(OSError, ValueError):
            number, awaited, seconds = json.loads(file.read_text(encoding="utf-8"))
            show(number - 1, awaited_words(awaited, seconds))
    return process.wait()


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


def _end(process: subprocess.Popen[bytes]) -> None:
    for seconds, harder in ((_GRACE, process.terminate), (_TIDY, process.kill)):
        try:
            process.wait(seconds)
            return
        except subprocess.TimeoutExpired:
            harder()


COMMANDS = {
    "run-mpi": Command(
        _USAGE,
        "Runs a job by mpirun: one process for the coordinator, whose SITE is the first, and "
        "one for each party. It is for the machines of one organisation: every process may "
        "read the files of its own site only, but MPI does not know who is who.",
        _run_mpi,
        (RESUME, REPLY_TIMEOUT),
    )
}
