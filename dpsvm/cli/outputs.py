"""The files that a command writes: refused before any work is done, written when all of it is."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from dpsvm.cli.files import require_apart, require_folder
from dpsvm.cli.options import UsageError
from dpsvm.data import atomic_write
from dpsvm.report.picture import check_format, write
from dpsvm.report.plain_json import dumps

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def require_matplotlib() -> None:
    """Refuse a --plot that nothing could draw."""
    if find_spec("matplotlib") is None:
        raise UsageError("--plot needs matplotlib: pip install 'dpsvm[report]'")


def check_outputs(read: Mapping[str, str | None], written: Mapping[str, str | None]) -> None:
    """Refuse files that could not be written, or that are read as well.

    read, written : by flag, or "FILE"; None where a flag was not given

    >>> check_outputs({"FILE": "train"}, {"--json": "train"})
    Traceback (most recent call last):
    ...
    dpsvm.cli.options.UsageError: train cannot be both FILE and --json
    """
    require_apart({**read, **written})
    for path in written.values():
        if path is not None:
            require_folder(path)
    if (plot := written.get("--plot")) is not None:
        require_matplotlib()
        check_format(plot)


def write_outputs(
    json: str | None,
    record: Callable[[], dict[str, Any]],
    plot: str | None,
    picture: Callable[[], Figure],
) -> None:
    """Write the record and the picture of a run, each if it was asked for."""
    if json is not None:
        with atomic_write(json) as file:
            file.write(dumps(record()))
    if plot is not None:
        write(picture(), plot)
