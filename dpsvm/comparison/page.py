"""Resultss as one HTML page."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from html import escape
from typing import Any

from dpsvm.comparison import charts, words
from dpsvm.comparison.boundary import boundary
from dpsvm.comparison.results import Plan, Results
from dpsvm.report import html, palette
from dpsvm.report.picture import canvas, svg

_TITLE = "Working-set selectors against wss2"
_LEAD = (
    "How many iterations each way of choosing the next pair takes, how close to the optimum it "
    "ends, and what the trained machine is worth. iterationRatio and objError are the DPWSS "
    "paper's: iterations divided by wss2's, and the distance of the dual objective from wss2's."
)


def page(comparisons: Sequence[Results], failures: Sequence[str] = ()) -> str:
    """The whole page."""
    facts = [html.row(words.data_cells(one.data.facts)) for one in comparisons]
    body = [html.heading(2, "Data"), html.table("Data", words.DATA_COLUMNS, facts)]
    for comparison in comparisons:
        body += _chapter(comparison)
    body += [f'<p class="failed">{escape(failure)}</p>' for failure in failures]
    return html.document(_TITLE, _LEAD, body, _facts(comparisons[0].plan))


def _chapter(comparison: Results) -> Iterator[str]:
    yield f"<section>{html.heading(2, comparison.data.name)}"
    for shrinking in comparison.by_shrinking:
        yield from _block(comparison, shrinking)
    yield from _boundaries(comparison)
    yield "</section>"


def _block(comparison: Results, shrinking: bool) -> Iterator[str]:
    """Tables, notes and charts of one shrinking setting."""
    lines = comparison.by_shrinking[shrinking]
    both = len(comparison.by_shrinking) > 1
    state = f", shrinking {words.state(shrinking)}" if both else ""
    looks = palette.looks(line.setting.label for line in comparison.summaries)

    def shown(table: words.Table) -> Iterator[str]:
        rows = [
            html.row(
                table.cells(one),
                looks[one.setting.label],
                "reference" * one.setting.is_reference,
            )
            for one in table.lines
        ]
        yield html.heading(3, f"{table.title}{state}", table.aside)
        yield html.table(f"{comparison.data.name}: {table.title}", table.header, rows)

    iterations, ended, *scores = words.tables(comparison, shrinking)
    yield from shown(iterations)
    yield from shown(ended)
    yield _notes(comparison.notes(shrinking))

    def picture(kind: str, draw: Callable[..., None], *given: Any, height: float = 3.4) -> str:
        figure, [axes] = canvas(height=height)
        draw(axes, *given)
        return svg(figure, kind, f"{comparison.data.name}{state}: {kind}")

    tall = 0.9 + 0.27 * len(lines)
    ratio = picture("iterationRatio", charts.ratio_chart, lines, looks, height=tall)
    error = picture("objError", charts.error_chart, lines, looks, height=tall)
    yield html.figures(
        [
            ("iterationRatio", "1 is wss2; bars span the runs", ratio),
            ("objError", "logarithmic; bars span the runs", error),
        ]
    )
    drawn, tol = charts.curves(comparison, shrinking), comparison.plan.parameters.tol
    yield html.heading(3, f"Convergence{state}", "of each first run")
    yield html.key({line.setting.label: looks[line.setting.label] for line in lines})
    gap = f"a dot where the run stopped; dashed: the tolerance, {tol:g}"
    if any(curve.gap.min() <= 0.0 for curve in drawn):
        gap += "; 0 lies on the lower edge"
    yield html.figures(
        [
            ("Gap", gap, picture("gap", charts.gap_chart, drawn, looks, tol)),
            (
                "Objective",
                "lower is better",
                picture("objective", charts.objective_chart, drawn, looks),
            ),
        ]
    )
    for table in scores:
        yield from shown(table)


def _boundaries(comparison: Results) -> Iterator[str]:
    found = boundary(comparison)
    if found is None:
        return
    first, second = found.features
    lead = (
        f"Machines trained on features {first} and {second} alone, two that tell the classes "
        f"apart well. Black is wss2; each coloured line is one run. Dots are class "
        f"{_class(max(comparison.data.labels))}, crosses the other. "
        f"{words.undrawn(comparison, found.drawn)}"
    )
    shown = []
    for setting, runs in found.drawn.items():
        figure, [axes] = canvas()
        charts.boundary_chart(axes, found, setting)
        name = f"{comparison.data.name}: boundaries of {setting.label}"
        caption = f"{len(runs)} runs; no privacy guarantee"
        shown.append((setting.label, caption, svg(figure, "boundary", name)))
    yield html.heading(3, "Boundaries")
    yield f'<p class="lead">{escape(lead)}</p>{html.figures(shown)}'


def _class(label: object) -> str:
    return f"{label:g}" if isinstance(label, float) else str(label)


def _notes(notes: Sequence[str]) -> str:
    if not notes:
        return ""
    items = "".join(f"<li>{escape(note)}</li>" for note in notes)
    return f'<div class="notes"><strong>Before reading this</strong><ul>{items}</ul></div>'


def _facts(plan: Plan) -> dict[str, str]:
    facts = plan.configuration()
    numbers = ", ".join(f"{name} {value}" for name, value in facts["parameters"].items())
    versions = ", ".join(f"{name} {value}" for name, value in facts["versions"].items())
    return {
        "Selectors": "; ".join(f"{name}: {label}" for name, label in facts["selectors"].items()),
        "Machine": numbers,
        "Runs": f"{plan.runs} of each setting that draws, seeds from {plan.seed} on",
        "Cross-validation": "none" if plan.cv is None else f"{plan.cv} folds",
        "Versions": versions,
        "Instruction set": facts["cpu"],
    }
