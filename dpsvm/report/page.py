"""Comparisons as one HTML page that needs nothing else: no network, no script."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from html import escape
from typing import TYPE_CHECKING

from dpsvm.comparison.settings import Setting
from dpsvm.comparison.summary import Summary
from dpsvm.report import words
from dpsvm.report.boundary import boundary
from dpsvm.report.charts import boundary_chart, error_chart, gap_chart, objective_chart, ratio_chart
from dpsvm.report.curves import curves
from dpsvm.report.palette import Style, styles
from dpsvm.report.records import configuration
from dpsvm.report.style import CSS

if TYPE_CHECKING:
    from dpsvm.comparison.comparison import Comparison, Plan

Looks = Mapping[Setting, Style]

_TITLE = "Working-set selectors against wss2"
_LEAD = (
    "How many iterations each way of choosing the next pair takes, how close to the optimum it "
    "ends, and what the trained machine is worth. iterationRatio and objError are the DPWSS "
    "paper's: iterations divided by wss2's, and the distance of the dual objective from wss2's."
)


def page(comparisons: Sequence[Comparison], failures: Sequence[str] = ()) -> str:
    """The whole page."""
    return "\n".join(
        [
            "<!DOCTYPE html>",
            '<html lang="en"><head><meta charset="utf-8">',
            '<meta name="viewport" content="width=device-width, initial-scale=1">',
            '<link rel="icon" href="data:,">',
            f"<title>{_TITLE}</title><style>{CSS}</style></head><body>",
            f"<header><div><h1>{_TITLE}</h1><p>{escape(_LEAD)}</p></div></header><main>",
            "<h2>Data</h2>",
            _table(words.data_columns(), [words.data_cells(one.data.facts) for one in comparisons]),
            *(_section(comparison) for comparison in comparisons),
            *(f'<p class="failed">{escape(failure)}</p>' for failure in failures),
            "</main>",
            _footer(comparisons[0].plan),
            "</body></html>\n",
        ]
    )


def _section(comparison: Comparison) -> str:
    looks = styles(line.setting for line in comparison.summaries)
    parts = [f"<section><h2>{escape(comparison.data.name)}</h2>"]
    for shrinking in dict.fromkeys(line.setting.shrinking for line in comparison.summaries):
        parts.append(_block(comparison, shrinking, looks))
    parts += [_boundary(comparison), "</section>"]
    return "\n".join(parts)


def _block(comparison: Comparison, shrinking: bool, looks: Looks) -> str:
    """Tables, notes and charts of one shrinking setting."""
    lines = [one for one in comparison.summaries if one.setting.shrinking == shrinking]
    title = escape(words.shrinking_title(comparison, shrinking))
    parts = [
        f"<h3>Iterations <small>{title}</small></h3>",
        _lines_table(words.ITERATION_COLUMNS, lines, words.iteration_cells, looks),
        "<h3>Where it ended <small>gap: lowest to highest of the runs</small></h3>",
        _lines_table(words.SOLUTION_COLUMNS, lines, words.solution_cells, looks),
    ]
    parts.append(_notes(comparison.notes(shrinking)))
    compared = [
        ("iterationRatio", "1 is wss2; bars span the runs", ratio_chart(lines, looks)),
        ("objError", "logarithmic; bars span the runs", error_chart(lines, looks)),
    ]
    parts.append(_figures(compared))
    drawn = curves(comparison, shrinking)
    if drawn:
        gap = gap_chart(drawn, looks, comparison.plan.parameters.tol)
        objective = objective_chart(drawn, looks)
        parts += [
            f"<h3>Convergence <small>of each first run</small></h3>{_legend(lines, looks)}",
            _figures(
                [
                    ("Gap", "a curve ends where its run stopped", gap),
                    ("Objective", "lower is better", objective),
                ]
            ),
        ]
    for where, place in words.SCORE_WHERE.items():
        scored = [line for line in lines if line.scores(where) is not None]
        if scored:
            cells = partial(words.score_cells, where=where)
            parts.append(f"<h3>Scores <small>{place}, means of the runs</small></h3>")
            parts.append(_lines_table(words.SCORE_COLUMNS, scored, cells, looks))
    return "\n".join(part for part in parts if part)


def _boundary(comparison: Comparison) -> str:
    found = boundary(comparison)
    if found is None:
        return ""
    first, second = found.features
    lead = (
        f"Machines trained on features {first} and {second} alone, two that tell the classes "
        f"apart well. Black is wss2; each coloured line is one dpwss run. Dots are class "
        f"{_class(max(comparison.data.labels))}, crosses the other."
    )
    figures = [
        (setting.label, f"{len(runs)} runs; no privacy guarantee", boundary_chart(found, setting))
        for setting, runs in found.drawn.items()
    ]
    title = "Boundaries with and without dpwss"
    return f'<h3>{title}</h3><p class="lead">{escape(lead)}</p>{_figures(figures)}'


def _class(label: object) -> str:
    return f"{label:g}" if isinstance(label, float) else str(label)


def _figures(figures: Sequence[tuple[str, str, str]]) -> str:
    return f'<div class="pair">{"".join(_figure(*figure) for figure in figures)}</div>'


def _figure(title: str, caption: str, svg: str) -> str:
    said = f"<figcaption>{escape(title)}<small>{escape(caption)}</small></figcaption>"
    return f"<figure>{said}{svg}</figure>"


def _notes(notes: Sequence[str]) -> str:
    if not notes:
        return ""
    items = "".join(f"<li>{escape(note)}</li>" for note in notes)
    return f'<div class="notes"><strong>Before reading dpwss</strong><ul>{items}</ul></div>'


def _legend(lines: Sequence[Summary], looks: Looks) -> str:
    entries = [
        f"<span>{_swatch(looks[line.setting])}{escape(line.setting.label)}</span>" for line in lines
    ]
    return f'<div class="legend">{"".join(entries)}</div>'


def _swatch(style: Style) -> str:
    dash = f' stroke-dasharray="{style.dash}"' if style.dash else ""
    line = f'<line x1="0" y1="5" x2="30" y2="5" stroke="{style.colour}"{dash}/>'
    return f'<svg class="swatch" viewBox="0 0 30 10" aria-hidden="true">{line}</svg>'


def _lines_table(
    columns: Sequence[str],
    lines: Sequence[Summary],
    cells: Callable[[Summary], list[str]],
    looks: Looks,
) -> str:
    rows = []
    for line in lines:
        first, *rest = cells(line)
        css = ' class="reference"' if line.setting.is_reference else ""
        marked = f"<td>{_swatch(looks[line.setting])}{escape(first)}</td>"
        rows.append(f"<tr{css}>{marked}{''.join(f'<td>{escape(cell)}</td>' for cell in rest)}</tr>")
    return _framed(columns, rows)


def _table(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    cells = ["".join(f"<td>{escape(cell)}</td>" for cell in row) for row in rows]
    return _framed(columns, [f"<tr>{row}</tr>" for row in cells])


def _framed(columns: Sequence[str], rows: Sequence[str]) -> str:
    head = "".join(f"<th>{escape(column)}</th>" for column in columns)
    body = "".join(rows)
    table = f"<thead><tr>{head}</tr></thead><tbody>{body}</tbody>"
    return f'<div class="wide"><table>{table}</table></div>'


def _footer(plan: Plan) -> str:
    facts = configuration(plan)
    numbers = ", ".join(f"{name} {value}" for name, value in facts["parameters"].items())
    versions = ", ".join(f"{name} {value}" for name, value in facts["versions"].items())
    folds = "none" if plan.cv is None else f"{plan.cv} folds"
    items = {
        "Selectors": "; ".join(f"{name}: {label}" for name, label in facts["selectors"].items()),
        "Machine": numbers,
        "Runs": f"{plan.runs} of each setting that draws, seeds from {plan.seed} on",
        "Cross-validation": folds,
        "Versions": versions,
        "Instruction set": facts["cpu"],
    }
    entries = "".join(f"<dt>{k}</dt><dd>{escape(str(v))}</dd>" for k, v in items.items())
    return f"<footer><div><h3>Configuration</h3><dl>{entries}</dl></div></footer>"
