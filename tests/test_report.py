"""What every picture and page is made of: looks, canvases, contents, and the extra they need."""

from __future__ import annotations

import re
import warnings
from itertools import islice
from xml.etree import ElementTree

import pytest

from dpsvm import _extras, progress
from dpsvm.cli import main
from dpsvm.report import html
from dpsvm.report.palette import dash_patterns, looks


def test_no_dash_is_another_one_begun_elsewhere_or_repeated() -> None:
    seen = set()
    for dashes in islice(dash_patterns(), 60):
        whole = dashes * (60 // max(len(dashes), 1))
        turned = {whole[at:] + whole[:at] for at in range(0, max(len(dashes), 1), 2)}
        assert not turned & seen
        seen |= turned


def test_no_two_labels_look_alike_and_only_the_first_is_black() -> None:
    found = looks(map(str, range(40)))
    assert len(set(found.values())) == 40
    assert [label for label, look in found.items() if look.colour == "#000000"] == ["0"]


def test_the_contents_link_to_every_heading() -> None:
    body = [html.heading(2, "a & b"), html.heading(3, "first", "aside"), html.heading(2, "c")]
    text = html.document("title", "lead", body, {})
    links = re.findall(r'href="#([\w-]+)">([^<]*)</a>', text.partition("</nav>")[0])
    assert [words for _, words in links] == ["a &amp; b", "first", "c"]
    for name, words in links:
        assert re.search(rf'<h[23] id="{name}">{words}', text)


class TestPictures:
    @pytest.fixture(autouse=True)
    def matplotlib(self):
        pytest.importorskip("matplotlib")

    def test_a_picture_in_a_page_is_the_same_each_time_and_tells_its_marks(self) -> None:
        from dpsvm.report.picture import canvas, mark, svg

        def draw(title):
            figure, [axes] = canvas(title="a < b")
            [line] = axes.plot([0, 1], [0, 1], label="one")
            mark(line, "curve", 'said "so" & so')
            return svg(figure, "gap", title)

        assert draw("x") == draw("x")
        [marked] = ElementTree.fromstring(draw("x")).iterfind(".//g[@class='mark curve']")
        assert marked.find("title").text == 'said "so" & so'
        names = [set(re.findall(r' id="(\w+)"', draw(title))) for title in "xy"]
        assert names[0]
        assert not names[0] & names[1]

    def test_nothing_of_a_long_title_or_legend_is_cut_and_no_curve_is_covered(self) -> None:
        from dpsvm.report.picture import canvas, legend

        figure, [axes] = canvas(title="a title that is far too long for one line " * 4)
        for number in range(9):
            axes.plot([0, 1], [number, -number], label=f"a curve with a long name, number {number}")
        legend(axes)
        figure.draw_without_rendering()
        whole, names = figure.bbox, axes.get_legend().get_window_extent()
        for part in (names, figure._suptitle.get_window_extent()):
            assert whole.x0 <= part.x0 < part.x1 <= whole.x1
            assert whole.y0 <= part.y0 < part.y1 <= whole.y1
        assert names.y0 >= axes.get_window_extent().y1


class TestWithoutTheExtra:
    @pytest.fixture(autouse=True)
    def nothing_is_installed(self, monkeypatch, tmp_path):
        monkeypatch.chdir(tmp_path)
        monkeypatch.setattr(_extras, "find_spec", lambda _: None)

    @pytest.mark.parametrize("flag", ["--plot", "--html"])
    def test_a_picture_names_it_in_one_line(
        self, flag: str, capsys: pytest.CaptureFixture[str]
    ) -> None:
        assert main(["compare", flag, "made"]) == 2
        said = f"dpsvm compare: error: {flag} needs matplotlib: pip install 'dpsvm[report]'\n"
        assert capsys.readouterr().err == said

    def test_a_canvas_names_it(self) -> None:
        from dpsvm.report.picture import canvas

        with pytest.raises(ImportError, match=r"pip install 'dpsvm\[report\]'"):
            canvas()

    def test_a_bar_names_it_once_and_work_goes_on(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("sys.stderr.isatty", lambda: True)
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("default")
            for _ in range(2):
                with progress.solver_progress() as monitor:
                    assert monitor is None
        [warning] = said
        assert str(warning.message) == "a progress bar needs rich: pip install 'dpsvm[report]'"
        assert warning.filename == __file__
