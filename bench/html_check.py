"""Does the page of ``dpsvm compare --html`` come out right in a real browser?

    python bench/html_check.py [PAGE] [--screenshot FILE]

Opens the page (by default one made here from scikit-learn's breast-cancer data) in headless
Chromium at several widths: nothing may be said on the console, no address may be fetched, every
chart must be drawn with its marks, and nothing may have to be scrolled sideways. Saves a
screenshot. Exit code 1 if anything is wrong.
"""

from __future__ import annotations

import argparse
import html
import json
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from common import ROOT, Absent, child_environment, run

WIDTHS = (1280, 800, 500)  # 500 is as narrow as Chromium opens a window
KINDS = {"iterationRatio", "objError", "gap", "objective", "boundary"}
ARGUMENTS = ["--sigma", "0.1,0.5,0.7,0.9", "--shrinking", "both", "--cv", "5"]
# Runs in a copy of the page: the page itself has no script.
PROBE = """
<script>
addEventListener("load", () => {
  const root = document.documentElement;
  const sideways = [...document.querySelectorAll("*")]
    .filter(e => innerWidth >= 1000 && e.scrollWidth > e.clientWidth + 1 && e.clientWidth > 0)
    .filter(e => getComputedStyle(e).overflowX !== "visible").map(e => e.className || e.tagName);
  const charts = [...document.querySelectorAll("svg.chart")].map(svg => {
    const box = svg.getBoundingClientRect();
    const marks = [...svg.querySelectorAll(".mark")];
    const drawn = marks.filter(m => { const b = m.getBBox(); return b.width + b.height > 0; });
    const outside = [...svg.querySelectorAll("text")].filter(t => {
      const b = t.getBoundingClientRect();
      return b.left < box.left - 1 || b.right > box.right + 1;
    }).map(t => t.textContent);
    return {kind: svg.dataset.kind, width: box.width, height: box.height, outside,
            marks: marks.length, drawn: drawn.length};
  });
  const report = document.createElement("pre");
  report.id = "probe";
  report.textContent = JSON.stringify({width: root.clientWidth, needed: root.scrollWidth,
    height: root.scrollHeight, sideways, charts,
    fetched: performance.getEntriesByType("resource").map(e => e.name)});
  document.body.append(report);
});
</script>
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
            "--no-first-run",
            "--disable-background-networking",
            "--hide-scrollbars",
            "--enable-logging=stderr",
            f"--user-data-dir={profile}",
            f"--window-size={width},{height}",
            *flags,
            page.resolve().as_uri(),
        ]
        return subprocess.run(command, capture_output=True, text=True, timeout=180, check=True)


def probe(page: Path, width: int) -> tuple[dict[str, Any], list[str]]:
    """What the page measures at a width, and what was said on the console."""
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder) / "probed.html"
        copy.write_text(page.read_text().replace("</body>", f"{PROBE}</body>"))
        done = open_page(copy, width, 900, "--dump-dom")
    found = re.search(r'<pre id="probe">(.*?)</pre>', done.stdout, re.DOTALL)
    if found is None:
        raise RuntimeError(f"the page did not load: {done.stderr[-400:]}")
    said = [line for line in done.stderr.splitlines() if "CONSOLE" in line]
    return json.loads(html.unescape(found[1])), said


def faults(seen: dict[str, Any], said: Sequence[str]) -> list[str]:
    """All that is wrong with what was seen."""
    width = seen["width"]
    wrong = [f"{width}: console: {line}" for line in said]
    wrong += [f"{width}: fetched {name}" for name in seen["fetched"]]
    if seen["needed"] > width:
        wrong.append(f"{width}: needs {seen['needed']} pixels, so it scrolls sideways")
    wrong += [f"{width}: {name} scrolls sideways" for name in seen["sideways"]]
    missing = KINDS - {chart["kind"] for chart in seen["charts"]}
    wrong += [f"{width}: no {kind} chart" for kind in sorted(missing)]
    for chart in seen["charts"]:
        if not chart["drawn"] or chart["drawn"] < chart["marks"] or chart["height"] < 50:
            wrong.append(f"{width}: chart {chart['kind']} is not drawn: {chart}")
        wrong += [f"{width}: {chart['kind']}: {words!r} is cut" for words in chart["outside"]]
    return wrong


def make_page(path: Path) -> None:
    command = [
        sys.executable,
        "-P",
        "-m",
        "dpsvm",
        "compare",
        "-q",
        *ARGUMENTS,
        "--html",
        str(path),
    ]
    subprocess.run(command, check=True, env=child_environment())


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("page", nargs="?", type=Path, help="the page to check")
    parser.add_argument("--screenshot", type=Path, default=ROOT / "build" / "compare.png")
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
            kinds = len(seen["charts"])
            print(
                f"width {seen['width']}: needs {seen['needed']}, {kinds} charts, {len(said)} said"
            )
            if width == WIDTHS[0]:
                options.screenshot.parent.mkdir(parents=True, exist_ok=True)
                shot = f"--screenshot={options.screenshot.resolve()}"
                open_page(page, width, seen["height"], shot)
    print(*wrong, sep="\n", end="\n" if wrong else "")
    print(f"{len(wrong)} faults; screenshot: {options.screenshot}")
    return 1 if wrong else 0


if __name__ == "__main__":
    run(main)
