"""Pictures written to files, whole or not at all."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from dpsvm.data import atomic_write

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def check_format(path: str | Path) -> None:
    """Refuse an ending that names no format of a picture.

    >>> check_format("picture.png")
    """
    from matplotlib.backend_bases import FigureCanvasBase

    known = FigureCanvasBase.get_supported_filetypes()
    if _ending(path) not in known:
        raise ValueError(f"{path}: the ending must be one of {', '.join(sorted(known))}")


def write(figure: Figure, path: str | Path) -> None:
    """Write a picture; the ending of the path names the format."""
    with atomic_write(path, "wb") as file:
        figure.savefig(file, format=_ending(path), dpi=130)


def _ending(path: str | Path) -> str:
    return Path(path).suffix.lstrip(".").lower()
