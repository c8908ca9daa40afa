"""The check of the page in a browser: silent on a page as it is made, and loud on each fault."""

from __future__ import annotations

import re
from typing import Any

import pytest
from sklearn.datasets import make_classification

from bench.comparison import html_check
from dpsvm import compare
from dpsvm.comparison.page import page

SIGMAS = (0.1, 0.3, 0.5, 0.6, 0.7, 0.75, 0.8)
WIDE = '<p style="width: 450px">a paragraph</p></main>'
# Each with what is said of it; those of a group are made on one page, as a browser starts slowly.
MUTANTS = {
    "charts": {
        "a label that is cut": (
            r"(iterationRatio.*?>)(dpwss \S+ sigma=0.1<)",
            r"\1a word more: \2",
            "is cut",
        ),
        "words on words": (r"(<text.*?</text>)", r"\1\1", "covers"),
        "a setting left out": (r"Not drawn: [^<]*", "", "left out and not named"),
        "a curve that stops short": (
            r"(wss2</span></td><td>1</td><td>)\d+",
            r"\g<1>9999",
            "ends at iterations",
        ),
        "settings that look alike": (r' stroke-dasharray="[^"]*"', "", "dashes"),
        "a link to nothing": (r'id="part-2-1"', 'id="elsewhere"', "lead nowhere"),
    },
    "tables": {
        "one colour": (
            r'stroke="#0072B2" stroke-dasharray="[^"]*"',
            'stroke="#000000"',
            "look alike",
        ),
        "a gap that is not the last": (
            r"(wss2</span></td><td>[-.\d]+</td><td>0</td><td>)[^<]*",
            r"\g<1>7",
            "ends at gap",
        ),
        "a table that is cut": (r"overflow-x: auto", "overflow-x: hidden", "not scrolls"),
        "a table out of reach": (r' tabindex="0"', "", "not reached"),
        "a column out of sight": (r"position: sticky", "", "not kept"),
    },
    "page": {
        "no contents": (r"<nav.*?</nav>", "", "not in the contents"),
        "a page that is too wide": (r"</main>", WIDE, "scrolls sideways"),
        "an address": (
            r"</main>",
            '<img src="http://localhost:9/none" alt=""></main>',
            "//localhost:9",
        ),
    },
}


@pytest.fixture(scope="module")
def check():
    pytest.importorskip("matplotlib")
    try:
        html_check.browser()
    except html_check.Absent as error:
        pytest.skip(str(error))


@pytest.fixture(scope="module")
def made():
    X, y = make_classification(60, 5, flip_y=0.2, random_state=0)
    settings = {"selectors": ["dpwss"], "selection_epsilon": [0.0125], "sigma": SIGMAS}
    return page([compare(X, y, runs=2, name="blobs", **settings)])


@pytest.fixture
def faults(check, tmp_path):
    def found(text: str, width: int = 390) -> list[str]:
        (tmp_path / "made.html").write_text(text)
        return html_check.faults(*html_check.probe(tmp_path / "made.html", width))

    return found


@pytest.mark.parametrize("width", [1400, 390])
def test_a_page_as_it_is_made_has_no_fault(made: Any, faults: Any, width: int) -> None:
    assert faults(made, width) == []


@pytest.mark.parametrize("group", MUTANTS)
def test_each_fault_is_seen(made: Any, faults: Any, group: str) -> None:
    text = made
    for pattern, instead, _ in MUTANTS[group].values():
        text, changed = re.subn(pattern, instead, text, flags=re.DOTALL)
        assert changed
    found = faults(text)
    for name, (*_, said) in MUTANTS[group].items():
        assert any(said in line for line in found), name
