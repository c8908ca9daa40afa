"""``dpsvm federation resume``: simulate, from where it was interrupted."""

from __future__ import annotations

from dpsvm.cli.federating.simulate import OUTPUT_FLAGS, simulate
from dpsvm.cli.options import help_page, parse

_USAGE = "usage: dpsvm federation resume JOB SITE... [flags]"


def help_text() -> str:
    """The help of the subcommand."""
    return help_page(
        _USAGE,
        "Goes on with a run of dpsvm federation simulate that was interrupted, from the last "
        "round that all sites hold, to the very model of a run without the interrupt. Nothing "
        "is charged twice.",
        ("", OUTPUT_FLAGS),
    )


def run(arguments: list[str]) -> None:
    """Carry out the subcommand."""
    values, words = parse(arguments, OUTPUT_FLAGS)
    simulate(words, _USAGE, resume=True, **values)
