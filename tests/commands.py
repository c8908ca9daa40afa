"""Python and dpsvm's commands, as tests run them: here, or in processes of their own."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import dpsvm
from dpsvm.cli import main


def environment(**variables: str) -> dict[str, str]:
    """These variables, and that the package under test is the one that is found."""
    paths = [str(Path(dpsvm.__path__[0]).parent), os.environ.get("PYTHONPATH")]
    return os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, paths))} | variables


def python(*words: str, **variables: str) -> subprocess.CompletedProcess[str]:
    """Run Python with these words."""
    return subprocess.run(
        [sys.executable, *words],
        capture_output=True,
        text=True,
        env=environment(**variables),
        check=False,
    )


def start(*words: str, **options: Any) -> subprocess.Popen[str]:
    """Begin a command of dpsvm; its output is read from pipes unless the options say otherwise."""
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    command = [sys.executable, "-m", "dpsvm", *words]
    return subprocess.Popen(command, text=True, env=environment(), **(pipes | options))


def interrupted(*words: str, once: Callable[[], object]) -> list[str]:
    """What a command says to Ctrl-C, pressed once something is true; it must print nothing else."""
    with start(*words) as process:
        while not once():
            assert process.poll() is None
            time.sleep(0.1)
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=120)
    assert process.returncode == 130
    assert out == ""
    return err.splitlines()


def refusal(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    """The reason in the one line that a command fails with; it must print nothing else."""
    assert main(words) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith(f"dpsvm {words[0]}: error: ")
    assert err.count("\n") == 1
    return err.removeprefix(f"dpsvm {words[0]}: error: ").removesuffix("\n")
