"""A table of commands, of which the first word names one."""

from __future__ import annotations

from importlib import import_module

from dpsvm._lazy import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import Any


def dispatch(
    words: Sequence[str], commands: Mapping[str, Any], kind: str, help_text: Callable[[], str]
) -> None:
    """Carry out the command that the first word names, or print its help, or that of all.

    commands : by name what has a ``run`` and may have a ``help_text``, or the name of a module

    >>> dispatch(["--help"], {}, "command", lambda: "usage: ...")
    usage: ...
    """
    if not words or words[0] in ("--help", "-h", "help"):
        print(help_text())
        return
    name, *rest = words
    if name not in commands:
        from dpsvm.cli.options import UsageError, meant

        hint = meant(name, commands) or f": use {', '.join(commands)}"
        raise UsageError(f"unknown {kind} {name!r}{hint}")
    command = commands[name]
    if isinstance(command, str):
        command = import_module(command)
    if "--help" in rest and hasattr(command, "help_text"):  # or its own commands have help
        print(command.help_text())
    else:
        command.run(rest)
