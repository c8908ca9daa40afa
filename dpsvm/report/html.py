"""A page that needs nothing else, no network and no script, and what it is made of."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from html import escape

from dpsvm.report.palette import Look
from dpsvm.report.style import CSS


def document(title: str, lead: str, body: Iterable[str], facts: Mapping[str, str]) -> str:
    """The whole page: a table of contents is made of its headings, the facts stand at its foot."""
    text, contents = _with_contents("\n".join(body))
    entries = "".join(f"<dt>{k}</dt><dd>{escape(v)}</dd>" for k, v in facts.items())
    return "\n".join(
        [
            "<!DOCTYPE html>",
            '<html lang="en"><head><meta charset="utf-8">',
            '<meta name="viewport" content="width=device-width, initial-scale=1">',
            '<link rel="icon" href="data:,">',
            f"<title>{escape(title)}</title><style>{CSS}</style></head><body>",
            f"<header><div><h1>{escape(title)}</h1><p>{escape(lead)}</p></div></header><main>",
            contents,
            text,
            "</main>",
            f"<footer><div><h3>Configuration</h3><dl>{entries}</dl></div></footer>",
            "</body></html>\n",
        ]
    )


def heading(level: int, words: str, aside: str = "") -> str:
    """A heading of the page; only its words stand in the contents."""
    small = f" <small>{escape(aside)}</small>" if aside else ""
    return f"<h{level}>{escape(words)}{small}</h{level}>"


def _with_contents(body: str) -> tuple[str, str]:
    """The body with a name for each heading of level 2 and 3, and links to them."""
    chapters: list[tuple[str, list[str]]] = []

    def named(found: re.Match[str]) -> str:
        level, words, rest = found.groups("")
        if level == "2":
            name = f"part-{len(chapters) + 1}"
            chapters.append((f'<a href="#{name}">{words}</a>', []))
            rest += ' <a class="up" href="#contents">contents</a>'
        else:
            links = chapters[-1][1]
            name = f"part-{len(chapters)}-{len(links) + 1}"
            links.append(f'<a href="#{name}">{words}</a>')
        return f'<h{level} id="{name}">{words}{rest}</h{level}>'

    text = re.sub(r"<h([23])>([^<]*?)( <small>.*?)?</h\1>", named, body)
    items = "".join(
        f"<li>{chapter}{f'<span>{chr(10).join(links)}</span>' if links else ''}</li>"
        for chapter, links in chapters
    )
    return text, f'<nav id="contents" aria-label="Contents"><ul>{items}</ul></nav>'


def table(name: str, columns: Sequence[str], rows: Iterable[str]) -> str:
    """A table of :func:`row`, which is scrolled by itself where the screen is narrow."""
    head = "".join(f"<th>{escape(column)}</th>" for column in columns)
    body = f"<thead><tr>{head}</tr></thead><tbody>{''.join(rows)}</tbody>"
    box = f'<div class="wide" role="region" tabindex="0" aria-label="{escape(name)}">'
    return f"{box}<table>{body}</table></div>"


def row(cells: Sequence[str], look: Look | None = None, css: str = "") -> str:
    """A row; with a look, its first cell shows how the charts draw it."""
    first, *rest = map(escape, cells)
    shown = f"{swatch(look)}<span>{first}</span>" if look else first
    kind = f' class="{css}"' if css else ""
    return f"<tr{kind}><td>{shown}</td>{''.join(f'<td>{cell}</td>' for cell in rest)}</tr>"


def swatch(look: Look) -> str:
    """A short piece of a curve."""
    dashes = " ".join(f"{1.5 * part:g}" for part in look.dashes)
    dash = f' stroke-dasharray="{dashes}"' if dashes else ""
    line = f'<line x1="0" y1="5" x2="36" y2="5" stroke="{look.colour}"{dash}/>'
    return f'<svg class="swatch" viewBox="0 0 36 10" aria-hidden="true">{line}</svg>'


def key(looks: Mapping[str, Look]) -> str:
    """What the curves of the charts that follow are."""
    entries = [f"<span>{swatch(look)}{escape(label)}</span>" for label, look in looks.items()]
    return f'<div class="legend">{"".join(entries)}</div>'


def figures(shown: Iterable[tuple[str, str, str]]) -> str:
    """Charts side by side, each with a title, a caption and its picture."""
    parts = [
        f"<figure><figcaption>{escape(title)}<small>{escape(caption)}</small></figcaption>"
        f"{picture}</figure>"
        for title, caption, picture in shown
    ]
    return f'<div class="pair">{"".join(parts)}</div>'
