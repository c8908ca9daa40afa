"""``dpsvm federation export-nvflare``: a job in the form that NVIDIA FLARE takes."""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec

from dpsvm.cli.options import Flag, UsageError, help_page, parse
from dpsvm.federation.job import Job

_USAGE = "usage: dpsvm federation export-nvflare JOB --output FOLDER"
_MODULE = "dpsvm.federation.nvflare_export"
FLAGS = (Flag("--output", "output", "the folder to write; required", ("folder",), str),)


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
    if len(files) != 1:
        raise UsageError(f"one JOB is needed, got {len(files)}; {_USAGE}")
    if values["output"] is None:
        raise UsageError(f"--output is required; {_USAGE}")
    job, folder = Job.load(files[0]), str(values["output"])
    if find_spec(_MODULE) is None:
        raise UsageError("this dpsvm has no NVIDIA FLARE runner: pip install 'dpsvm[nvflare]'")
    import_module(_MODULE).export(job, folder)
    print(f"{folder}: run {job.run} for NVIDIA FLARE")
