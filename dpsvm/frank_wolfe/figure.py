"""The picture of a comparison: the value step by step, and the gap, or what the parties sent."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from dpsvm.distributed.figure import draw_levels, on_log_axis, panels
from dpsvm.frank_wolfe.comparison import CENTRAL, PRIVATE, ZERO, Comparison
from dpsvm.report.palette import CENTRAL_LOOK, COLOURS, FIRST_LOOK, MIDDLE_LOOK
from dpsvm.report.picture import legend

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_DECADES = 100.0  # a span of values that a linear axis would not show
_LEVELS = {PRIVATE: MIDDLE_LOOK, CENTRAL: CENTRAL_LOOK, ZERO: FIRST_LOOK}


def picture(comparison: Comparison, title: str) -> Figure:
    """Value by step on the left; on the right the gap, with parties the bytes sent to date.

    With parties the value is the one that the messages tell, of the sketched problem: it is all
    that a private run has, and a run without parties keeps its own.
    """
    model = comparison.model
    if model.history_ is None:
        raise ValueError("a private run without parties keeps no history to draw")
    figure, values, right = panels(title)
    if model.traffic_ is None:
        _steps(values, right, model.history_)
    else:
        _rounds(values, right, comparison)
    draw_levels(values, comparison, _LEVELS, "objective")
    low, high = values.get_ylim()
    values.set(yscale="log" if 0.0 < _DECADES * low < high else "linear", ylabel="objective")
    return figure


def _steps(values: Axes, gaps: Axes, history: Any) -> None:
    steps = history["iteration"]
    values.plot(steps, on_log_axis(history["value"]), color=COLOURS[0], label="this model")
    values.set(xlabel="step")
    gaps.plot(steps, on_log_axis(history["gap"]), color=COLOURS[0])
    gaps.set(yscale="log", xlabel="step", ylabel="gap: at least the distance to the optimum")


def _rounds(values: Axes, sent: Axes, comparison: Comparison) -> None:
    model = comparison.model
    rounds = np.array([one.round for one in model.history_])
    told = on_log_axis(np.array([one.released_value for one in model.history_]))
    values.plot(rounds, told, color=COLOURS[0], label="this model, as the messages tell it")
    values.set(xlabel="round")
    up = [one.traffic.up_bytes for one in model.history_]
    sent.plot(rounds, up, color=COLOURS[0], label="counted")
    if model.predicted_traffic_ is not None:
        longest = model.predicted_traffic_.up_bytes / rounds[-1] * rounds
        sent.plot(rounds, longest, label="by proposals without a cache", **_LEVELS[ZERO])
    sent.set(xlabel="round", ylabel="bytes sent by the parties", ylim=(0, None))
    legend(sent)
