"""What estimators refuse and warn of, in the words of whoever typed flags."""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterable, Iterator
from contextlib import contextmanager

from dpsvm.cli.options import Flag

_DATA = {"y": "the labels", "X": "the rows"}
_LEADS = "needs|without|larger|smaller|raise|lower|or"


@contextmanager
def in_flags(flags: Iterable[Flag]) -> Iterator[None]:
    """Errors and warnings name flags in the place of an estimator's parameters."""
    words = {flag.name: flag.spelling for flag in flags}
    show = warnings.showwarning
    with warnings.catch_warnings():
        warnings.showwarning = lambda message, category, *where: show(
            category(spelled(str(message), words)), category, *where
        )
        try:
            yield
        except ValueError as error:
            raise ValueError(spelled(str(error), words)) from error


def spelled(text: str, words: dict[str, str]) -> str:
    """A text with the spellings of flags in the place of their names.

    Names that are words as well are left alone where they may be meant as words.

    >>> words = {"data_norm": "--data-norm", "loss": "--loss", "privacy": "--privacy"}
    >>> spelled("loss='hinge' needs data_norm, got privacy=None", words)
    '--loss hinge needs --data-norm, got no --privacy'
    >>> spelled("loss must be finite: the loss is not", words)
    '--loss must be finite: the loss is not'
    """

    def given(match: re.Match[str]) -> str:
        flag, value = words[match[2]], match[3].strip("'")
        if value == "None":
            return f"{'leave out' if match[1] else 'no'} {flag}"
        return f"{match[1] or ''}{flag}" + ("" if value == "True" else f" {value}")

    text = re.sub(r"^The '(\w+)' parameter of \w+ ", r"\1 ", text)  # as scikit-learn says it
    names = "|".join(map(re.escape, words))
    long = "|".join(re.escape(name) for name in words if "_" in name) or "_"
    text = re.sub(rf"\b(leave )?({names})=('[^']*'|[\w.+-]*\w)", given, text)
    text = re.sub(rf"(?<!-)\b(?:{long})\b", lambda match: words.get(match[0], match[0]), text)
    text = re.sub(rf"\b({_LEADS}) ({names})\b", lambda match: f"{match[1]} {words[match[2]]}", text)
    subjects = _DATA | words
    first = "|".join(map(re.escape, subjects))
    return re.sub(rf"^({first})(?= )", lambda match: subjects[match[1]], text)
