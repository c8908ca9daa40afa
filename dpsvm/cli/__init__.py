"""The command line: ``dpsvm COMMAND``, one module for each command."""

from __future__ import annotations

import os
import sys
import warnings

from dpsvm._lazy import TYPE_CHECKING
from dpsvm._version import __version__
from dpsvm.cli.dispatch import dispatch

if TYPE_CHECKING:
    from collections.abc import Sequence

_COMMANDS = {
    "train": "train a machine on a LIBSVM data file, with --private under a privacy guarantee",
    "predict": "predict the rows of a data file with a model file",
    "scale": "scale the features of a data file to a range",
    "compare": "compare working-set selectors with wss2 on data files",
    "audit": "test a claimed epsilon by training with and without one record",
    "budget": "begin a privacy ledger, or show what was charged to it",
    "data": "write one of scikit-learn's data sets as a data file, to try the others on",
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
    if words[:1] == ["--version"]:
        print(f"dpsvm {__version__}")
    else:
        dispatch(words, {name: f"dpsvm.cli.{name}" for name in _COMMANDS}, "command", _help)


def _discard_errors() -> None:
    """Stand in for a standard error that is closed, or that nothing can be written to.

    It takes the descriptor itself, which the next file to be opened would have: what is said would
    go there, or to standard output.
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
    try:
        print(f"{name}: {' '.join(text.split())}", file=sys.stderr)
    except OSError:  # of a full disk, say: the exit code still tells
        _discard_errors()


def _help() -> str:
    from dpsvm.cli.options import Flag, help_page

    return help_page(
        "usage: dpsvm COMMAND [flags] FILE ...",
        "Support vector machines with LIBSVM's files and flags, and linear models that are private "
        "or trained across parties.",
        ("Commands", [Flag(name, meaning) for name, meaning in _COMMANDS.items()]),
        ending="dpsvm COMMAND --help explains the flags of a command; dpsvm --version tells which.",
    )
