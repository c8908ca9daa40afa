"""LIBSVM's command-line syntax, which argparse cannot read.

A flag takes what follows it, whatever that looks like (``-g -3``); ``-h`` is shrinking, not help;
``-w-1 2`` carries a class label inside the flag. Long flags may also be written ``--flag=value``.
Flags and file names may be mixed, and ``--`` ends the flags.
"""

from __future__ import annotations

import math
import textwrap
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from dpsvm._renamed import check_word
from dpsvm.cli.layout import WIDTH, prose
from dpsvm.threads import thread_count

_HELP_INDENT = 26

SEE_HELP = " (--help explains the flags)"
"""What follows an error of somebody who may be looking for the flags."""


RENAMED = {
    "--cost": ("--C",),
    "--eta": ("--rho", "--radius"),
    "--iterations": ("--rounds",),
    "--row-norm": ("--data-norm",),
    "--split": ("--parties",),
    "--weight": ("--C",),
}
"""Flags that are gone, and what they are called now: the first that a command has."""


class UsageError(ValueError):
    """The command line cannot be carried out as it is written."""


@dataclass(frozen=True)
class Flag:
    """One flag: how it is written, what it takes, what it means.

    >>> flag = Flag("--n-features", "the public width", "n", read=int)
    >>> flag.name, flag.read("7")
    ('n_features', 7)
    """

    spelling: str
    meaning: str
    takes: str = ""  # the values that follow it, as help shows them: a word for each
    read: Callable[..., Any] = lambda: True  # from the texts of the values; ValueError if it cannot
    default: Any = None
    default_text: str | None = None  # what help says of the default, if not the value itself
    choices: tuple[str, ...] = ()  # further lines of help
    labelled: bool = False  # a class label is part of the flag; the value is a dict by label
    name: str = ""  # of the value, if not as it is spelled

    def __post_init__(self) -> None:
        name = self.name or self.spelling.lstrip("-").replace("-", "_")
        object.__setattr__(self, "name", name)

    def usage(self) -> str:
        """The flag with its values, as help shows it."""
        return f"{self.spelling}{'i' * self.labelled} {self.takes}".rstrip()

    def explanation(self) -> list[str]:
        """The lines of help beside :meth:`usage`."""
        default = self.default_text
        if default is None:
            default = default_text_of(self.default)
        text = f"{self.meaning} (default {default})" if default and self.takes else self.meaning
        lines = textwrap.wrap(text, WIDTH - _HELP_INDENT, break_on_hyphens=False)
        for choice in self.choices:
            indent = " " * (len(choice) - len(choice.lstrip()))
            lines += textwrap.wrap(
                choice, WIDTH - _HELP_INDENT, subsequent_indent=indent, break_on_hyphens=False
            )
        return lines


def reader(convert: Callable[[str], Any], wanted: str) -> Callable[[str], Any]:
    """A ``read`` that reports a text it cannot convert as not being what is ``wanted``.

    >>> reader(int, "a whole number")("x")
    Traceback (most recent call last):
    ...
    ValueError: 'x' is not a whole number
    """

    def read(text: str) -> Any:
        try:
            return convert(text)
        except ValueError:
            raise ValueError(f"{text!r} is not {wanted}") from None

    return read


def whole(least: int, most: int = 2**31 - 1) -> Callable[[str], int]:
    """A reader of whole numbers within bounds.

    >>> whole(1)("7")
    7
    """

    def convert(text: str) -> int:
        value = int(text)
        if not least <= value <= most:
            raise ValueError
        return value

    return reader(convert, f"a whole number from {least} to {most}")


def number(wanted: str, holds: Callable[[float], bool]) -> Callable[[str], float]:
    """A reader of finite numbers for which something holds.

    >>> number("a number above 0", lambda value: value > 0)("0.5")
    0.5
    """

    def convert(text: str) -> float:
        value = float(text)
        if not (math.isfinite(value) and holds(value)):
            raise ValueError
        return value

    return reader(convert, wanted)


def several(what: str) -> Callable[[str], int]:
    """A reader of how many things are done at a time, -1 being one for each core.

    >>> several("threads")("3")
    3
    """
    return reader(lambda text: thread_count(int(text)), f"a number of {what}")


positive = number("a finite number above 0", lambda value: value > 0.0)
"""A reader of positive numbers."""

share = number("a number between 0 and 1, neither included", lambda value: 0.0 < value < 1.0)
"""A reader of deltas and of parts of a whole."""


def one_of(names: Sequence[str], remark: str = "") -> Callable[[str], str]:
    """A reader of one of some names.

    >>> one_of(("yes", "no"))("yes")
    'yes'
    """

    def read(text: str) -> str:
        check_word(text, names)
        if text not in names:
            raise ValueError(f"{text!r} is not {' or '.join(names)}{remark}")
        return text

    return read


def parse(arguments: Sequence[str], flags: Iterable[Flag]) -> tuple[dict[str, Any], list[str]]:
    """The value of every flag, by name, and what is left: the file names.

    >>> parse(["-w-1", "2", "data"], [Flag("-w", "", "x", float, labelled=True)])
    ({'w': {-1: 2.0}}, ['data'])
    """
    by_spelling = {flag.spelling: flag for flag in flags}
    values = {flag.name: {} if flag.labelled else flag.default for flag in by_spelling.values()}
    operands: list[str] = []
    rest = list(arguments)
    while rest:
        word = rest.pop(0)
        if word == "--":
            operands += rest
            break
        if not word.startswith("-") or word == "-":
            operands.append(word)
            continue
        spelling, label, given = _split(word, by_spelling)
        flag = by_spelling[spelling]
        texts = given + [rest.pop(0) for _ in flag.takes.split()[len(given) :] if rest]
        value = _read(flag, word.partition("=")[0] if given else word, texts)
        if flag.labelled:
            values[flag.name][label] = value
        else:
            values[flag.name] = value
    return values, operands


def _split(word: str, by_spelling: dict[str, Flag]) -> tuple[str, int | None, list[str]]:
    """The spelling of a flag, the label in it and the value given with =."""
    if word in by_spelling and not by_spelling[word].labelled:
        return word, None, []
    name, equals, value = word.partition("=")
    if name.startswith("--") and equals and name in by_spelling:
        return name, None, [value]
    flag = by_spelling.get(word[:2])
    if flag is not None and flag.labelled:
        try:
            return flag.spelling, int(word[2:]), []
        except ValueError:
            raise UsageError(f"{word}: no whole number after {flag.spelling}") from None
    for now in RENAMED.get(name, ()):
        if now in by_spelling:
            raise UsageError(f"{name} is called {now} now{SEE_HELP}")
    raise UsageError(f"unknown flag {word}{meant(name, by_spelling)}{SEE_HELP}")


def _read(flag: Flag, word: str, texts: list[str]) -> Any:
    if len(texts) != len(flag.takes.split()):
        raise UsageError(f"{word} must be followed by {flag.takes or 'nothing'}{SEE_HELP}")
    try:
        return flag.read(*texts)
    except ValueError as error:
        said = str(error)
        raise UsageError(said if said.startswith(word) else f"{word}: {said}") from None


def meant(word: str, known: Iterable[str]) -> str:
    """A question after a word that is none of those known, or nothing if none is like it.

    >>> meant("--sigmas", ["--seed", "--sigma"])
    ': did you mean --sigma?'
    """
    from difflib import get_close_matches

    close = get_close_matches(word, list(known), n=1)
    return f": did you mean {close[0]}?" if close else ""


def one_operand(operands: Sequence[str], name: str, usage: str) -> str:
    """The only file name of a command line.

    >>> one_operand(["heart"], "FILE", "usage: dpsvm scale [flags] FILE")
    'heart'
    """
    if len(operands) != 1:
        raise UsageError(f"one {name} is needed, got {len(operands)} ({usage}){SEE_HELP}")
    return operands[0]


def help_page(
    usage: str, about: str, *sections: tuple[str, Iterable[Flag]], ending: str = ""
) -> str:
    """The help of a command.

    about, ending : paragraphs, divided by empty lines
    sections : headings, which may be empty or go on as a paragraph in further lines, and flags

    >>> print(help_page("usage: dpsvm lint FILE", "Reads FILE.", ("Flags", [Flag("-q", "")])))
    usage: dpsvm lint FILE
    <BLANKLINE>
    Reads FILE.
    <BLANKLINE>
    Flags
      -q
    """
    parts = [usage, *map(prose, about.split("\n\n"))]
    for heading, flags in sections:
        title, _, more = heading.partition("\n")
        under = filter(None, (prose(title), prose(more, "  ")))
        parts.append("\n".join([*under, *help_lines(flags)]))
    return "\n\n".join(filter(None, [*parts, prose(ending)]))


def help_lines(flags: Iterable[Flag]) -> list[str]:
    """The flags as lines of help.

    >>> help_lines([Flag("-c", "of a violation", "cost", default=1)])
    ['  -c cost                 of a violation (default 1)']
    """
    lines = []
    for flag in flags:
        left = "  " + flag.usage()
        explanation = flag.explanation()
        if len(left) > _HELP_INDENT - 2:
            lines.append(left)
            left = ""
        for text in explanation or [""]:
            lines.append((left.ljust(_HELP_INDENT) + text).rstrip())
            left = ""
    return lines


def default_text_of(default: Any) -> str:
    """What help says of a default.

    >>> default_text_of(1e-3), default_text_of("wss2"), default_text_of(None)
    ('0.001', 'wss2', '')
    """
    if default is None:
        return ""
    return f"{default:g}" if isinstance(default, (int, float)) else str(default)
