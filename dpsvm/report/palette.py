"""Colours that colour-blind readers can tell apart, and dashes for settings of one selector."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from dpsvm.comparison.settings import Setting

# Okabe and Ito (2008).
COLOURS = {
    "wss2": "#000000",
    "wss1": "#0072B2",
    "wss3": "#E69F00",
    "wss4": "#009E73",
    "wss-wr": "#CC79A7",
    "dpwss": "#D55E00",
}
OTHERS = "#56B4E9"
POSITIVE, NEGATIVE = "#0072B2", "#7A7F87"
DASHES = ("", "8 3", "4 3", "1.5 2.5", "8 3 1.5 3", "8 3 1.5 3 1.5 3")


@dataclass(frozen=True)
class Style:
    """How one setting is drawn; an empty dash is a solid line."""

    colour: str
    dash: str


def styles(settings: Iterable[Setting]) -> dict[Setting, Style]:
    """A colour by selector, and a dash by place among the settings of that selector.

    Settings that differ only in shrinking look the same.

    >>> styles([Setting("wss4", sigma=0.1), Setting("wss4", sigma=0.5)])[Setting("wss4", sigma=0.5)]
    Style(colour='#009E73', dash='8 3')
    """
    seen: dict[str, list[str]] = {}
    found = {}
    for setting in settings:
        labels = seen.setdefault(setting.selector, [])
        if setting.label not in labels:
            labels.append(setting.label)
        dash = DASHES[labels.index(setting.label) % len(DASHES)]
        found[setting] = Style(COLOURS.get(setting.selector, OTHERS), dash)
    return found
