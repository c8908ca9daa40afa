"""The pictures of ``frank_wolfe.py``."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np

from bench.frank_wolfe.private import CENTRAL, OPEN, ROUNDS, Utility
from bench.frank_wolfe.uplink import PARTIES, Curve

DPI = 110
LEAST = 1e-7  # of a gap that is drawn


def _canvas(width: float, height: float):
    from matplotlib.figure import Figure

    return Figure(figsize=(width, height), layout="constrained")


def convergence(
    path: Path, curves: Mapping[tuple[str, str], Mapping[str, np.ndarray]], runs: int
) -> None:
    """A row for each problem, a panel for each sampling: mean, range and Theorem 1's bound."""
    from dpsvm.report.palette import COLOURS

    problems = list(dict.fromkeys(problem for problem, _ in curves))
    figure = _canvas(14.0, 2.7 * len(problems) + 0.6)
    grid = figure.subplots(len(problems), 5, sharex=True, sharey="row", squeeze=False)
    for row, problem in zip(grid, problems, strict=True):
        names = [name for one, name in curves if one == problem]
        for axes, name in zip(row, names, strict=True):
            found = curves[problem, name]
            values, bound = np.maximum(found["runs"], 1e-12), found["bound"]
            t = np.arange(1, len(bound))
            low, high = values.min(axis=0)[1:], values.max(axis=0)[1:]
            axes.fill_between(t, low, high, color=COLOURS[0], alpha=0.25, linewidth=0)
            axes.plot(t, values.mean(axis=0)[1:], color=COLOURS[0], label="mean and range")
            axes.plot(t, bound[1:], "--", color=COLOURS[1], label="bound on the mean")
            axes.set(xscale="log", yscale="log", title=name)
            axes.title.set_fontsize("medium")
        row[0].set_ylabel(f"{problem}\nf(x_t) - f*", fontsize="small")
    for axes in grid[-1]:
        axes.set_xlabel("t")
    grid[0][0].legend(fontsize="small", loc="lower left")
    figure.suptitle(f"Theorem 1 for five samplings, {runs} runs each")
    figure.savefig(path, dpi=DPI)


def utility(path: Path, found: Utility) -> None:
    """F/F0 against n times epsilon, distributed and central, by n."""
    from dpsvm.report.palette import COLOURS

    figure = _canvas(10.0, 5.0)
    axes = figure.subplots()
    sizes = sorted({n for _, n in found.curves})
    for n, colour in zip(sizes, COLOURS, strict=False):
        for method, line, marker in ((OPEN, "-", "o"), (CENTRAL, "--", "s")):
            values = found.curves[method, n]
            mean = values.mean(axis=1)
            ends = np.array([mean - values.min(axis=1), values.max(axis=1) - mean])
            axes.errorbar(
                n * np.array(found.epsilons),
                mean,
                ends,
                linestyle=line,
                marker=marker,
                markersize=4,
                capsize=3,
                color=colour,
                label=f"{'distributed' if method == OPEN else 'central'}, n = {n:,}",
            )
    axes.axhline(1.0, color="0.6", linewidth=0.8, label="x = 0")
    axes.set(xscale="log", yscale="log", xlabel="n epsilon", ylabel="F/F0 (outside the guarantee)")
    figure.legend(*axes.get_legend_handles_labels(), loc="outside right upper", fontsize="small")
    title = f"Private Frank-Wolfe, {PARTIES} parties, {ROUNDS} rounds: mean and range of "
    axes.set_title(f"{title}{values.shape[1]} seeds", fontsize="medium")
    figure.savefig(path, dpi=DPI)


def uplink(path: Path, title: str, curves: Mapping[str, Curve]) -> None:
    """The least relative gap so far against numbers sent up; a panel for each way to send."""
    from dpsvm.report.palette import COLOURS

    figure = _canvas(14.0, 5.2)
    panels = {
        "every party, each column once": lambda name: "no cache" not in name,
        "every party, every time (no cache)": lambda name: "no cache" in name,
        "only the winner (dotted: no cache)": lambda name: True,
    }
    colours: dict[str, str] = {}
    row = figure.subplots(1, len(panels), sharex=True, sharey=True)
    for axes, (panel, shown) in zip(row, panels.items(), strict=True):
        for name, (up, gaps) in curves.items():
            once = len(up) == 1
            if not once and (not shown(name) or ("winner" in name) != panel.startswith("only")):
                continue
            what = name.replace(", no cache", "").partition(", winner")[0]
            what = what.removeprefix("all features once, ").removeprefix("sketch, ")
            colour = colours.setdefault(what, COLOURS[len(colours) % len(COLOURS)])
            look = {"linestyle": ":" if panel.startswith("only") and "no cache" in name else "-"}
            if once:
                look = {"marker": "*", "markersize": 12, "linestyle": "none"}
            sketched = what.startswith("m = ")
            label = f"all features once, {what}" if once else what
            label = f"sketch, {what}" if sketched and not once else label
            least = np.minimum.accumulate(np.maximum(gaps, LEAST))
            axes.plot(up, least, color=colour, label=label, **look)
        axes.set(xscale="log", yscale="log", xlabel="numbers sent up, all parties and rounds")
        axes.set_title(panel, fontsize="medium")
        axes.grid(color="0.9")
    row[0].set_ylabel("(f(x) - f*) / f(0), least so far")
    labels = dict(zip(*reversed(row[0].get_legend_handles_labels()), strict=True))
    figure.legend(labels.values(), labels, loc="outside lower center", ncols=5, fontsize="small")
    figure.suptitle(title)
    figure.savefig(path, dpi=DPI)
