"""``dpsvm federation``: the distributed algorithms between sites, a module for each subcommand."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module

from dpsvm.cli.options import UsageError

SUBCOMMANDS = {
    "check": "validate a job and the files of its sites; nothing is run and nothing charged",
    "simulate": "run a job with all of its sites on this machine",
    "resume": "go on with a run that was interrupted",
    "status": "what a site keeps of its runs",
    "predict": "predict new samples with a finished run",
    "run-mpi": "run a job with a process for each site, by mpirun",
    "export-nvflare": "write a job for NVIDIA FLARE",
    "abort": "give up a run at a site",
    "new-salt": "write a fresh salt for the matching of sample ids",
}


def run(arguments: list[str]) -> None:
    """Carry out a subcommand, or print the help of one, or of all."""
    if not arguments or arguments[0] in ("--help", "-h", "help"):
        print(_help())
        return
    name, *rest = arguments
    if name not in SUBCOMMANDS:
        raise UsageError(f"unknown subcommand {name!r}: use {', '.join(SUBCOMMANDS)}")
    command = import_module(f"dpsvm.cli.federating.{name.replace('-', '_')}")
    if "--help" in rest:
        print(command.help_text())
    else:
        carry_out: Callable[[list[str]], None] = command.run
        carry_out(rest)


def _help() -> str:
    width = max(map(len, SUBCOMMANDS))
    return "\n".join(
        [
            "usage: dpsvm federation SUBCOMMAND [flags] ...",
            "",
            "Trains one model over the data of several sites. JOB is a TOML file with the public",
            "terms of a run, the same for all sites; SITE is a TOML file with the data, bounds,",
            "privacy ledger and state folder of one site. Where several are given, the first is",
            "the coordinator's: the label owner's, or in a network any.",
            "",
            *(f"  {name:<{width}}  {meaning}" for name, meaning in SUBCOMMANDS.items()),
            "",
            "dpsvm federation SUBCOMMAND --help explains one. The exit code is 0, 2 for an error,",
            "or 130 for Ctrl-C.",
        ]
    )
