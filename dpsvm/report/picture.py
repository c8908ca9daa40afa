"""The one engine of all charts: matplotlib's canvases, written to files or into pages.

A chart is drawn on the axes of a :func:`canvas`, so the same code serves a file and a page.
"""

from __future__ import annotations

import io
import re
import textwrap
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from dpsvm._extras import missing
from dpsvm.data import atomic_write

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_LETTERS = 10.0  # of a title to an inch
_KEYS = 13.0  # of a legend, which is smaller
_KEY = 8  # letters as wide as the line before a name


def canvas(
    rows: int = 1, columns: int = 1, *, width: float = 5.0, height: float = 4.2, title: str = ""
) -> tuple[Figure, list[Axes]]:
    """A figure and its panels, row by row; the title is broken so that none of it is cut.

    width, height : of one panel, in inches

    >>> figure, (left, right) = canvas(1, 2, title="Two panels")
    """
    if (words := missing("matplotlib", "a picture")) is not None:
        raise ImportError(words)
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width * columns, height * rows), layout="constrained")
    panels = figure.subplots(rows, columns, squeeze=False)
    for axes in panels.flat:
        axes.grid(color="#e8ebef", linewidth=0.8)
        axes.set_axisbelow(True)
        axes.spines[["top", "right"]].set_visible(False)
    if title:
        fit = int(_LETTERS * width * columns)
        lines = [part for line in title.splitlines() for part in textwrap.wrap(line, fit)]
        figure.suptitle("\n".join(lines), fontsize="medium")
    return figure, list(np.ravel(panels))


def legend(axes: Axes) -> None:
    """Name the curves above their panel, where nothing is covered, in as many columns as fit."""
    width = 1.2 * axes.bbox.width / axes.figure.dpi  # before room is made for words, in inches
    look = _legend_look(axes, width)
    axes.legend(loc="lower left", bbox_to_anchor=(0.0, 1.0), alignment="left", **look)


def shared_legend(figure: Figure, axes: Axes) -> None:
    """Name the curves of a panel at the foot of the picture, for all panels."""
    look = _legend_look(axes, figure.get_figwidth())
    figure.legend(*axes.get_legend_handles_labels(), loc="outside lower center", **look)


def _legend_look(axes: Axes, width: float) -> dict[str, Any]:
    names = axes.get_legend_handles_labels()[1]
    fit = max(1, int(width * _KEYS / (max(map(len, names)) + _KEY)))
    look = {"ncols": min(fit, len(names)), "handlelength": 3.0, "borderaxespad": 0.2}
    return look | {"frameon": False, "fontsize": "small"}


def mark(artist: Artist, kind: str, tip: str = "") -> None:
    """Have a page tell this from the rest of a chart, and say something when it is pointed at."""
    artist.set_gid(f"mark {kind}|{tip}")


def check_format(path: str | Path) -> None:
    """Refuse an ending that names no format of a picture.

    >>> check_format("picture.png")
    """
    from matplotlib.backend_bases import FigureCanvasBase

    known = FigureCanvasBase.get_supported_filetypes()
    if _ending(path) not in known:
        raise ValueError(f"{path}: the ending must be one of {', '.join(sorted(known))}")


def write(figure: Figure, path: str | Path) -> None:
    """Write a picture, whole or not at all; the ending of the path names the format."""
    with atomic_write(path, "wb") as file:
        figure.savefig(file, format=_ending(path), dpi=130)


def _ending(path: str | Path) -> str:
    return Path(path).suffix.lstrip(".").lower()


def svg(figure: Figure, kind: str, title: str) -> str:
    """The picture as an element of a page, with its words as words; equal pictures, equal text.

    kind : one word, by which the page and its checks know the chart
    """
    import matplotlib

    text = io.StringIO()
    nothing: dict[str, Any] = dict.fromkeys(("Creator", "Date", "Format", "Type"))
    with matplotlib.rc_context({"svg.fonttype": "none", "svg.hashsalt": title}):
        figure.savefig(text, format="svg", metadata=nothing)
    found = re.fullmatch(r'.*?<svg .*?viewBox="(.*?)".*?>(.*)</svg>\s*', text.getvalue(), re.S)
    assert found is not None
    box, shapes = found.groups()
    shapes = re.sub(
        r"<metadata>.*?</metadata>|<style.*?</style>|<!--.*?-->", "", shapes, flags=re.S
    )
    shapes = re.sub(r"; font-family: [^;\"]*", "", re.sub(r"\s+", " ", shapes))  # the page has one
    shapes = re.sub(r"""<g id=(["'])(mark [^|]*)\|(.*?)\1>""", _told, shapes)
    shapes = re.sub(r'<g id="([xy]tick)_\d+">', r'<g class="\1">', shapes)
    shapes = re.sub(r'(<g) id="[^"]*"', r"\1", shapes).replace("xlink:href", "href")
    start = f'<svg class="chart" data-kind="{kind}" viewBox="{box}" role="img">'
    return f"{start}\n<title>{escape(title)}</title>{shapes}</svg>"


def _told(found: re.Match[str]) -> str:
    tip = f"<title>{found[3]}</title>" if found[3] else ""
    return f'<g class="{found[2]}">{tip}'
