"""``dpsvm federation export-nvflare``: a job in the form that NVIDIA FLARE takes."""

from __future__ import annotations

from dpsvm.cli.options import Flag, UsageError, help_page, one_operand, parse
from dpsvm.federation.job import Job
from dpsvm.federation.nvflare_export import export

_USAGE = "usage: dpsvm federation export-nvflare JOB --output FOLDER"
FLAGS = (Flag("--output", "the folder to write; required", "folder", str),)


def help_text() -> str:
    """The help of the subcommand."""
    return help_page(
        _USAGE,
        "Writes the folder of an NVIDIA FLARE job. It names classes of the dpsvm that every "
        "site has installed, and ships no code and no data.",
        ("", FLAGS),
    )


def run(arguments: list[str]) -> None:
    """Carry out the subcommand."""
    values, files = parse(arguments, FLAGS)
    path = one_operand(files, "JOB", _USAGE)
    if values["output"] is None:
        raise UsageError(f"--output is required; {_USAGE}")
    job, folder = Job.load(path), str(values["output"])
    export(job, folder)
    print(f"{folder}: run {job.run} for NVIDIA FLARE")
