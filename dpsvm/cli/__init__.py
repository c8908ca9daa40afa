"""The command line: ``dpsvm COMMAND``, one module for each command."""

from __future__ import annotations

import os
import sys
import warnings
from importlib import import_module

from dpsvm._lazy import TYPE_CHECKING
from dpsvm._version import __version__

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

_COMMANDS = {
    "train": "train a machine on a LIBSVM data file, with --private under a privacy guarantee",
    "predict": "predict the rows of a data file with a model file",
    "scale": "scale the features of a data file to a range",
    "compare": "compare working-set selectors with wss2 on data files",
    "audit": "test a claimed epsilon by training with and without one record",
    "budget": "begin a privacy ledger, or show what was charged to it",
    "vertical": "train one model over columns split among parties, by ADMM sharing",
    "network": "train one model over rows dealt to the nodes of a network, by ADMM",
    "lasso": "train a sparse linear model, also over columns split among parties, by Frank-Wolfe",
    "run": "run a Python script with these machines in the place of scikit-learn's",
    "federation": "run the distributed algorithms between sites, with their own disks and budgets",
}
_INTERRUPTED, _BROKEN_PIPE, _FAILED = 130, 141, 2
_STANDARD_ERROR = 2


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command and return the exit code: 0, 2 for any error, 130 for Ctrl-C.

    >>> main(["train", "-c", "much", "heart_scale"])
    2
    """
    if sys.stderr is None:
        _discard_errors()
    words = list(sys.argv[1:] if arguments is None else arguments)
    name = f"dpsvm {words[0]}" if words and words[0] in _COMMANDS else "dpsvm"
    try:
        with warnings.catch_warnings():
            warnings.showwarning = lambda message, *_: _say(name, f"warning: {message}")
            _run(words)
        if sys.stdout is not None:  # closed by whoever began this process
            sys.stdout.flush()
        return 0
    except BrokenPipeError:
        # The interpreter flushes standard output once more on its way out.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return _BROKEN_PIPE
    except KeyboardInterrupt:
        return _fail(name, "interrupted", _INTERRUPTED)
    except MemoryError as error:
        return _fail(name, f"error: out of memory{f': {error}' if str(error) else ''}")
    except OSError as error:
        where = f"{error.filename}: " if error.filename is not None else ""
        return _fail(name, f"error: {where}{error.strerror or error}")
    except ValueError as error:
        return _fail(name, f"error: {error}")


def _run(words: list[str]) -> None:
    if not words or words[0] in ("--help", "-h", "help"):
        print(_help())
    elif words[0] == "--version":
        print(f"dpsvm {__version__}")
    elif words[0] not in _COMMANDS:
        raise ValueError(f"unknown command {words[0]!r}: use {', '.join(_COMMANDS)}")
    else:
        command = import_module(f"dpsvm.cli.{words[0]}")
        if "--help" in words and hasattr(command, "help_text"):  # or its subcommands have help
            print(command.help_text())
        else:
            run: Callable[[list[str]], None] = command.run
            run(words[1:])


def _discard_errors() -> None:
    """Stand in for a closed standard error: what is said would go to standard output instead.

    It takes the descriptor itself, which the next file to be opened would have.
    """
    nowhere = os.open(os.devnull, os.O_WRONLY)
    if nowhere != _STANDARD_ERROR:
        os.dup2(nowhere, _STANDARD_ERROR)
        os.close(nowhere)
    sys.stderr = open(_STANDARD_ERROR, "w", closefd=False)  # noqa: SIM115


def _fail(name: str, reason: str, code: int = _FAILED) -> int:
    _say(name, reason)
    return code


def _say(name: str, text: str) -> None:
    print(f"{name}: {' '.join(text.split())}", file=sys.stderr)


def _help() -> str:
    width = max(map(len, _COMMANDS))
    return "\n".join(
        [
            "dpsvm: support vector machines with LIBSVM's files and flags",
            "",
            "usage: dpsvm COMMAND [flags] FILE ...",
            "",
            *(f"  {name:<{width}}  {meaning}" for name, meaning in _COMMANDS.items()),
            "",
            "dpsvm COMMAND --help explains the flags of a command; dpsvm --version tells which.",
        ]
    )
