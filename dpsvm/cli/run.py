"""``dpsvm run``: a Python program with dpsvm's classes in the place of scikit-learn's.

Python itself runs the program, so that all is as ever: arguments, paths, standard streams, exit
code, tracebacks. ``PYTHONPATH`` makes it, and every Python it starts, read ``dpsvm/startup``.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

from dpsvm.cli.options import UsageError, help_page

_USAGE = "usage: dpsvm run SCRIPT [arguments], or dpsvm run -m MODULE [arguments]"
_PACKAGE = Path(__file__).resolve().parent.parent
_FOLLOWED = {"-m": "a module", "-c": "a command"}


def _help() -> str:
    return help_page(
        _USAGE,
        "Runs a Python script or module as python would, with dpsvm's SVC, NuSVC, SVR, NuSVR and "
        "OneClassSVM in the place of scikit-learn's, however the program imports them; so do the "
        "Python processes that it starts. DPSVM_VERBOSE=1 tells what was taken over.",
    )


def run(arguments: list[str]) -> None:
    """Carry out the command: it ends as the program does."""
    if arguments[:1] == ["--help"]:
        print(_help())
        return
    _check(arguments)
    command = [sys.executable, *arguments]
    sys.stdout.flush()
    if os.name == "posix":
        os.execve(sys.executable, command, _environment())
    with subprocess.Popen(command, env=_environment()) as process:
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the program's to answer
        raise SystemExit(process.wait())


def _check(arguments: list[str]) -> None:
    if not arguments:
        raise UsageError(f"expected a script or -m and a module ({_USAGE})")
    first, *rest = arguments
    if first in _FOLLOWED and not rest:
        raise UsageError(f"{first} needs {_FOLLOWED[first]} ({_USAGE})")
    if first.startswith("-") and first != "-" and first not in _FOLLOWED:
        raise UsageError(f"unknown flag {first}: set python's by its environment ({_USAGE})")


def _environment() -> dict[str, str]:
    startup = str(_PACKAGE / "startup")
    before = os.environ.get("PYTHONPATH", "").split(os.pathsep)
    paths = [startup, *(path for path in before if path not in ("", startup))]
    if sys.path[0] == str(_PACKAGE.parent):  # python -m dpsvm, in the source folder
        paths.append(sys.path[0])
    if os.pathsep in startup:
        raise UsageError(f"{startup}: PYTHONPATH cannot hold a folder with {os.pathsep!r} in it")
    return os.environ | {"PYTHONPATH": os.pathsep.join(paths)}
