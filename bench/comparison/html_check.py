"""Does the page of ``dpsvm compare --html`` come out right in a real browser?

    python bench/comparison/html_check.py [PAGE] [--screenshots FOLDER]

Opens the page (by default one made here: three of scikit-learn's data sets, eight settings) in
headless Chromium, as wide as a desk, a tablet and a phone. Of the page: nothing is said on the
console, no address is fetched, nothing but tables is scrolled sideways, and what is too wide
scrolls by itself, can be reached from the keyboard and keeps its first column in sight; the
contents link to every heading. Of each chart: it is drawn, none of its words is cut or covers
another, curves and keys of one comparison look different, every curve goes on to the last step and
the gap of the tables, and settings without a picture of their boundary are named. Saves
screenshots. Exit code 1 if anything is wrong.
"""

from __future__ import annotations

import argparse
import html
import json
import math
import re
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

sys.path.append(str(Path(__file__).resolve().parents[2]))

import numpy as np

from bench.common import ROOT, Absent, child_environment, run

WIDTHS = (1400, 800, 390)
NARROWEST = 500  # window that Chromium opens; the page stands in a frame of its own width
KINDS = {"iterationRatio", "objError", "gap", "objective", "boundary"}
SIGMAS = "0.1,0.3,0.5,0.6,0.7,0.75,0.8"
ARGUMENTS = ["--selectors", "dpwss", "--selection-epsilon", "0.0125", "--sigma", SIGMAS]
ARGUMENTS += ["--runs", "3", "--cv", "3"]
CLOSE = 0.1  # how far a dot may be from its number: decades, as ticks are read off a screen
# Runs in a copy of the page: the page itself has no script.
PROBE = """
<script>
addEventListener("load", () => {
  const root = document.documentElement;
  const all = (where, what) => [...where.querySelectorAll(what)];
  const box = e => {
    const b = e.getBoundingClientRect();
    return {left: b.left, right: b.right, top: b.top, bottom: b.bottom};
  };
  const words = e => e.textContent.trim().replace(/\\s+/g, " ");
  const own = e => [...e.childNodes].filter(n => n.nodeType === 3).map(n => n.data).join(" ");
  const texts = svg => all(svg, "text").filter(t => words(t));
  const told = svg => all(svg, "circle, g").filter(e => e.querySelector(":scope > title"));
  const centre = e => {
    const b = e.getBoundingClientRect();
    return {tip: e.querySelector("title").textContent, x: (b.left + b.right) / 2,
            y: (b.top + b.bottom) / 2};
  };
  const stroke = e => {
    const s = getComputedStyle(e);
    return [s.stroke, s.strokeDasharray.replaceAll("px", "")].join(" ");
  };
  const chart = svg => {
    const marks = all(svg, ".mark");
    const drawn = marks.filter(m => { const b = m.getBBox(); return b.width + b.height > 0; });
    return {kind: svg.dataset.kind, box: box(svg), marks: marks.length, drawn: drawn.length,
      texts: texts(svg).map(t => ({words: words(t), ...box(t)})),
      ticks: all(svg, ".xtick text, .ytick text, text.tick").map(t => ({words: words(t),
        ...box(t)})),
      ends: told(svg).map(centre).filter(e => / stops /.test(e.tip)),
      curves: all(svg, "path.curve, .curve path").map(stroke)};
  };
  const table = t => {
    const around = t.parentElement, first = t.querySelector("tbody td");
    return {name: words(t.querySelector("th")), needed: t.scrollWidth, width: around.clientWidth,
      scrolls: ["auto", "scroll"].includes(getComputedStyle(around).overflowX),
      reached: around.tabIndex >= 0, kept: getComputedStyle(first).position === "sticky",
      columns: all(t, "th").map(words),
      rows: all(t, "tbody tr").map(r => all(r, "td").map(words)),
      keys: all(t, ".swatch line").map(stroke)};
  };
  const section = s => ({name: own(s.querySelector("h2")).trim(),
    charts: all(s, ".chart").map(chart),
    tables: all(s, "table").map(table), key: all(s, ".legend line").map(stroke),
    captions: all(s, "figcaption").map(own), said: all(s, ".lead").map(words).join(" ")});
  const links = all(document, "nav a, .contents a").map(a => a.getAttribute("href"));
  const report = {width: root.clientWidth, needed: root.scrollWidth, height: root.scrollHeight,
    links, broken: links.filter(l => !(l.startsWith("#") && document.getElementById(l.slice(1)))),
    headings: all(document, "main h2, main h3").map(h => ({words: words(h), id: h.id})),
    tables: all(document, "table").map(table), sections: all(document, "section").map(section),
    fetched: performance.getEntriesByType("resource").map(e => e.name)};
  parent.postMessage(JSON.stringify(report), "*");
});
</script>
"""
FRAME = """<!DOCTYPE html><body style="margin: 0"><pre id="probe"></pre><script>
addEventListener("message", e => {{ document.getElementById("probe").textContent = e.data; }});
</script><iframe src="page.html" style="border: 0; width: {width}px; height: {height}px"></iframe>
"""


def browser() -> str:
    for name in ("chromium", "chromium-browser", "google-chrome"):
        path = shutil.which(name)
        if path:
            return path
    raise Absent("no chromium on PATH (Debian: apt-get install chromium)")


def open_page(page: Path, width: int, height: int, *flags: str) -> subprocess.CompletedProcess[str]:
    """Run the browser once, with a profile of its own."""
    with tempfile.TemporaryDirectory() as profile:
        command = [
            browser(),
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            "--disable-quic",
            "--no-first-run",
            "--disable-background-networking",
            "--disable-component-update",
            "--disable-sync",
            "--hide-scrollbars",
            "--enable-logging=stderr",
            f"--user-data-dir={profile}",
            f"--window-size={width},{height}",
            *flags,
            page.resolve().as_uri(),
        ]
        return subprocess.run(command, capture_output=True, text=True, timeout=180, check=True)


def framed(page: Path, width: int, height: int, folder: Path, probe: str = "") -> Path:
    """A page that shows a copy of another in a frame of a width."""
    (folder / "page.html").write_text(page.read_text().replace("</body>", f"{probe}</body>"))
    around = folder / "frame.html"
    around.write_text(FRAME.format(width=width, height=height))
    return around


def probe(page: Path, width: int) -> tuple[dict[str, Any], list[str]]:
    """What the page measures at a width, and what was said on the console."""
    with tempfile.TemporaryDirectory() as folder:
        around = framed(page, width, 900, Path(folder), PROBE)
        done = open_page(around, max(width, NARROWEST), 900, "--dump-dom")
    found = re.search(r'<pre id="probe">(.+?)</pre>', done.stdout, re.DOTALL)
    if found is None:
        raise RuntimeError(f"the page did not load: {done.stderr[-400:]}")
    said = [line for line in done.stderr.splitlines() if "CONSOLE" in line]
    return json.loads(html.unescape(found[1])), said


def screenshot(page: Path, width: int, height: int, path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        around = framed(page, width, height, Path(folder))
        window = max(width, NARROWEST)
        open_page(around, window, height, f"--screenshot={path.resolve()}")


def faults(seen: dict[str, Any], said: Sequence[str]) -> list[str]:
    """All that is wrong with what was seen."""
    found = [*(f"console: {line}" for line in said), *_page(seen)]
    for section in seen["sections"]:
        for chart in section["charts"]:
            found += (f"{section['name']}: {chart['kind']}: {line}" for line in _chart(chart))
        parts = (_looks(section), _ends(section), _omitted(section))
        found += (f"{section['name']}: {line}" for part in parts for line in part)
    return [f"{seen['width']}: {line}" for line in found]


def _page(seen: dict[str, Any]) -> Iterator[str]:
    yield from (f"fetched {name}" for name in seen["fetched"])
    if seen["needed"] > seen["width"]:
        yield f"needs {seen['needed']} pixels, so it scrolls sideways"
    for table in seen["tables"]:
        if table["needed"] > table["width"] + 1:
            for word in ("scrolls", "reached", "kept"):
                if not table[word]:
                    yield f"a table of {table['columns'][:3]} is cut: not {word}"
    yield from (f"the contents lead nowhere: {link}" for link in seen["broken"])
    linked = {link.removeprefix("#") for link in seen["links"]}
    for heading in seen["headings"]:
        if heading["id"] not in linked or not heading["id"]:
            yield f"not in the contents: {heading['words']}"


def _chart(chart: dict[str, Any]) -> Iterator[str]:
    box = chart["box"]
    if not chart["drawn"] or chart["drawn"] < chart["marks"] or box["bottom"] - box["top"] < 50:
        yield f"{chart['drawn']} of {chart['marks']} marks are drawn"
    for number, text in enumerate(chart["texts"]):
        inside = box["left"] - 1 <= text["left"] and text["right"] <= box["right"] + 1
        if not (inside and box["top"] - 2 <= text["top"] and text["bottom"] <= box["bottom"] + 2):
            yield f"{text['words']!r} is cut"
        for other in chart["texts"][:number]:
            if _overlap(text, other, "left", "right") and _overlap(text, other, "top", "bottom"):
                yield f"{text['words']!r} covers {other['words']!r}"


def _overlap(one: dict[str, float], other: dict[str, float], low: str, high: str) -> bool:
    common = min(one[high], other[high]) - max(one[low], other[low])
    return common > 0.35 * min(one[high] - one[low], other[high] - other[low])


def _looks(section: dict[str, Any]) -> Iterator[str]:
    """Colours and dashes that two settings share; the settings are the rows of a table."""
    sets = [(f"key of the table of {one['columns'][1]}", one["keys"]) for one in section["tables"]]
    charts = [one for one in section["charts"] if one["kind"] in ("gap", "objective")]
    sets += [(f"curves of {chart['kind']}", chart["curves"]) for chart in charts]
    for where, looks in sets:
        for look, count in Counter(looks).items():
            if count > 1:
                yield f"{where}: {count} settings look alike: {look}"
        dashes = [look.partition(") ")[2] for look in looks]
        if len(set(dashes)) < len(dashes):
            yield f"{where}: {len(dashes)} settings, {len(set(dashes))} dashes"


def _ends(section: dict[str, Any]) -> Iterator[str]:
    """Gaps and iterations of the tables that the dots at the ends of the curves do not show."""
    told: dict[tuple[str, str], list[float]] = {}
    for table in section["tables"]:
        for row in table["rows"]:
            cells = dict(zip(table["columns"], row, strict=True))
            if "iterations" in cells:
                ends = (
                    (cells["min"], cells["max"]) if cells["min"] != "-" else [cells["iterations"]]
                )
                told[row[0], "iterations"] = [_number(end) for end in ends]
            if "gap" in cells:
                told[row[0], "gap"] = [_number(end) for end in cells["gap"].split(" to ")]
    for chart in (one for one in section["charts"] if one["kind"] == "gap"):
        at_x, at_y = _axes(chart)
        ended = {end["tip"].partition(" stops ")[0]: end for end in chart["ends"]}
        for (label, what), numbers in told.items():
            if label not in ended:
                yield f"gap: the curve of {label} has no end"
                continue
            end = ended[label]
            shown = at_x(end["x"]) if what == "iterations" else at_y(end["y"])
            low, high = min(numbers), max(numbers)
            if high > 0 and not low * 10**-CLOSE <= shown <= high * 10**CLOSE:
                span = f"{low:g} to {high:g}"
                yield f"gap: the curve of {label} ends at {what} {shown:.3g}, not {span}"


def _axes(chart: dict[str, Any]) -> tuple[Any, Any]:
    """From pixels to numbers, by the logarithmic ticks from 1 on below and all on the left."""
    ticks = [(tick, _number(tick["words"])) for tick in chart["ticks"] if _is_number(tick["words"])]
    bottom = max(tick["top"] for tick, _ in ticks)
    below = [one for one in ticks if one[0]["bottom"] > bottom and one[1] >= 1]
    left = [one for one in ticks if one[0]["bottom"] <= bottom and one[1] > 0]
    x = [((tick["left"] + tick["right"]) / 2, math.log10(value)) for tick, value in below]
    y = [((tick["top"] + tick["bottom"]) / 2, math.log10(value)) for tick, value in left]

    def reader(points: list[tuple[float, float]]) -> Any:
        slope, start = np.polyfit(*zip(*points, strict=True), 1)
        return lambda at: 10.0 ** (slope * at + start)

    return reader(x), reader(y)


def _number(words: str) -> float:
    return float(words.replace(",", "").replace("\N{MINUS SIGN}", "-"))


def _is_number(words: str) -> bool:
    return re.fullmatch(r"-?[\d.,]+(e-?\d+)?", words) is not None


def _omitted(section: dict[str, Any]) -> Iterator[str]:
    """Settings whose boundary is neither drawn nor said to be left out."""
    if any(chart["kind"] == "boundary" for chart in section["charts"]):
        named = {name.strip() for name in section["captions"]}
        told = set(re.findall(r"[\w-]+(?: \w+=[\d.e-]*\d)*", section["said"]))
        for label in (row[0] for row in section["tables"][0]["rows"]):
            if label not in named | told:
                yield f"boundary: {label} is left out and not named"


def make_page(path: Path) -> None:
    """Compare three of scikit-learn's data sets."""
    from sklearn.datasets import load_breast_cancer, load_digits, load_iris
    from sklearn.preprocessing import minmax_scale

    from dpsvm.data import dump_libsvm

    files = []
    for name, load, classes in (
        ("breast-cancer", load_breast_cancer, (0, 1)),
        ("iris-setosa-or-versicolor", load_iris, (0, 1)),
        ("digits_3_or_8", load_digits, (3, 8)),
    ):
        X, y = load(return_X_y=True)
        kept = np.isin(y, classes)
        files.append(str(path.with_name(name)))
        dump_libsvm(
            minmax_scale(X[kept], (-1, 1)), np.where(y[kept] == classes[1], 1, -1), files[-1]
        )
    command = [sys.executable, "-P", "-m", "dpsvm", "compare", "-q", *ARGUMENTS]
    command += ["--html", str(path), *files]
    subprocess.run(command, check=True, env=child_environment())


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("page", nargs="?", type=Path, help="the page to check")
    parser.add_argument("--screenshots", type=Path, default=ROOT / "build" / "compare")
    options = parser.parse_args(argv)
    browser()
    with tempfile.TemporaryDirectory() as folder:
        page = options.page or Path(folder) / "compare.html"
        if options.page is None:
            make_page(page)
        wrong = []
        for width in WIDTHS:
            seen, said = probe(page, width)
            wrong += faults(seen, said)
            kinds = Counter(chart["kind"] for one in seen["sections"] for chart in one["charts"])
            wrong += [f"{width}: no {kind} chart" for kind in sorted(KINDS - kinds.keys())]
            print(
                f"width {width}: needs {seen['needed']}, {kinds.total()} charts, {len(said)} said"
            )
            screenshot(page, width, seen["height"], options.screenshots / f"{width}.png")
    print(*wrong, sep="\n", end="\n" if wrong else "")
    print(f"{len(wrong)} faults; screenshots: {options.screenshots}")
    return 1 if wrong else 0


if __name__ == "__main__":
    run(main)
