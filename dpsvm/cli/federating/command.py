"""What the subcommands of ``dpsvm federation`` are: a usage, a text, flags, and what they do."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

from dpsvm.cli.options import Flag, UsageError, help_page, parse, positive

RESUME = Flag("--resume", "go on with a run that was interrupted", default=False)
REPLY_TIMEOUT = Flag(
    "--reply-timeout", "that a party has for an answer; then the run stops", "seconds", positive
)


@dataclass(frozen=True)
class Command:
    """One subcommand.

    >>> greet = Command("usage: greet WHO", "Greets.", print, needs=("one WHO is needed", 1, 1))
    >>> greet.run(["Ada"])
    Ada
    """

    usage: str
    about: str
    carry_out: Callable[..., None]  # of the words of the command line, and of the flags by name
    flags: tuple[Flag, ...] = ()
    needs: tuple[str, int, float] = "", 0, math.inf  # what is said of other numbers of words

    def help_text(self) -> str:
        """Its help."""
        return help_page(self.usage, self.about, *([("", self.flags)] if self.flags else []))

    def run(self, arguments: list[str]) -> None:
        """Carry it out."""
        values, words = parse(arguments, self.flags)
        needed, least, most = self.needs
        if not least <= len(words) <= most:
            raise UsageError(f"{needed}, got {len(words)}; {self.usage}")
        self.carry_out(*words, **values)
