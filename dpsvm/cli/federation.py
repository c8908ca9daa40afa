"""``dpsvm federation``: the distributed algorithms between sites."""

from __future__ import annotations

from importlib import import_module

from dpsvm.cli.dispatch import dispatch
from dpsvm.cli.options import Flag, help_page

SUBCOMMANDS = {
    "keys": "make the key of a site, and that of its approver",
    "review": "what a job would have leave a site, and what others can infer",
    "approve": "sign a site's consent to a job: without one it answers nothing",
    "revoke": "take a consent back",
    "check": "validate a job and the files of its sites; nothing is run and nothing charged",
    "align": "find the samples that all sites have, by private set intersection",
    "simulate": "run a job with all of its sites on this machine",
    "resume": "go on with a run that was interrupted",
    "status": "what a site keeps of its runs",
    "predict": "predict new samples with a finished run",
    "run-mpi": "run a job with a process for each site, by mpirun",
    "nvflare": "run jobs by NVIDIA FLARE: keys, kits, processes, runs",
    "export-nvflare": "write a job for NVIDIA FLARE",
    "abort": "give up a run at a site",
    "purge": "remove what a site keeps of runs that are over",
    "new-salt": "write a fresh salt for the matching of sample ids",
}

_SHARED = {
    **dict.fromkeys(("review", "revoke"), "approve"),
    **dict.fromkeys(("status", "abort"), "runs"),
    "resume": "simulate",
    "export-nvflare": "nvflare",
}
"""The modules of those that share one; that of any other has its name."""


def run(arguments: list[str]) -> None:
    """Carry out a subcommand, or print the help of one, or of all."""
    name = arguments[0] if arguments else ""
    found = {}
    if name in SUBCOMMANDS:
        module = _SHARED.get(name, name.replace("-", "_"))
        found = import_module(f"dpsvm.cli.federating.{module}").COMMANDS
    dispatch(arguments, {**SUBCOMMANDS, **found}, "subcommand", _help)


def _help() -> str:
    return help_page(
        "usage: dpsvm federation SUBCOMMAND [flags] ...",
        "Trains one model over the data of several sites. JOB is a TOML file with the public terms "
        "of a run, the same for all sites; SITE is a TOML file with the data, bounds, privacy "
        "ledger and state folder of one site. Where several are given, the first is the "
        "coordinator's: the label owner's, or in a network any.",
        ("Subcommands", [Flag(name, meaning) for name, meaning in SUBCOMMANDS.items()]),
        ending="dpsvm federation SUBCOMMAND --help explains one. The exit code is 0, 2 for an "
        "error, or 130 for Ctrl-C.",
    )
