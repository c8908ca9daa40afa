"""TOML that comes from others: read in little time and memory, to plain values that fit.

The parser of the standard library takes time and memory that grow with the square of a dotted key,
and recurses into what is nested. What no settings need is refused beforehand, and afterwards
whatever is neither a text, a truth value nor a number of 64 bits.
"""

from __future__ import annotations

import math
import re
import tomllib
from typing import Any

_DEEPEST = 16  # tables and lists in one another, and parts of a key
_STRINGS = (
    r'"""(?:\\.|[^\\])*?"{3,5}',
    r"'''.*?'{3,5}",
    r'"(?:\\.|[^"\\\n])*"',
    r"'[^'\n]*'",
)
_TOKEN = re.compile(
    rf"(?P<text>{'|'.join(_STRINGS)}|#[^\n]*)|(?P<dot>\.)|(?P<end>[,=\n\[\]{{}}]+)"
    r"|[^\"'#.,=\n\[\]{}]+",
    re.DOTALL,
)


def parse_toml(text: str) -> dict[str, Any]:
    """The table of a text, or a ValueError that says in one line what is wrong with it.

    >>> parse_toml("rounds = 5")
    {'rounds': 5}
    >>> parse_toml("a = " + "[" * 100_000)
    Traceback (most recent call last):
    ...
    ValueError: not TOML: it is nested too deep
    """
    _check_keys(text)
    try:
        found = tomllib.loads(text)
    except RecursionError:
        raise ValueError("not TOML: it is nested too deep") from None
    except ValueError as error:
        raise ValueError(f"not TOML: {error}") from None
    _check_values(found)
    return found


def _check_keys(text: str) -> None:
    """Refuse keys of many parts; strings and comments may hold what they like."""
    place = dots = 0
    while (token := _TOKEN.match(text, place)) is not None:
        place = token.end()
        if token["dot"]:
            dots += 1
            if dots > _DEEPEST:
                raise ValueError(f"not TOML of settings: a key of more than {_DEEPEST} parts")
        elif token["end"]:
            dots = 0


def _check_values(found: dict[str, Any]) -> None:
    """Refuse what is deep, and values that no settings have; without recursion."""
    left: list[tuple[Any, str, int]] = [(found, "", 0)]
    while left:
        value, name, depth = left.pop()
        if isinstance(value, (dict, list)):
            if depth > _DEEPEST:
                raise ValueError("not TOML of settings: it is nested too deep")
            names = value.items() if isinstance(value, dict) else ((name, one) for one in value)
            left += [(one, str(key), depth + 1) for key, one in names]
        elif isinstance(value, int) and not -(2**63) <= value < 2**63:
            raise ValueError(f"{name!r:.80} is a whole number beyond 64 bits")
        elif isinstance(value, float) and not math.isfinite(value):
            raise ValueError(f"{name!r:.80} must be a finite number, got {value}")
        elif not isinstance(value, (str, int, float)):
            raise ValueError(f"{name!r:.80} cannot be a date or a time, got {value}")
