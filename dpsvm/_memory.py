"""What an object remembers from round to round, taken out whole and put back.

Snapshots of distributed runs are made of this: an object that was built anew from the same terms
and data, and recalls what another one remembered, goes on as that one would have, to the bit.
"""

from __future__ import annotations

from typing import Any, ClassVar


class Remembers:
    """An object whose attributes named in ``_memory`` are all that rounds change.

    Their values are numbers, texts, None, arrays, lists and dicts of these by name, or objects that
    remember themselves.

    >>> class Counter(Remembers):
    ...     _memory = ("count",)
    ...     count = 0
    >>> counter, other = Counter(), Counter()
    >>> counter.count = 3
    >>> other.recall(counter.remember())
    >>> other.count
    3
    """

    _memory: ClassVar[tuple[str, ...]] = ()

    def remember(self) -> dict[str, Any]:
        """Everything that rounds have changed. Arrays are not copied."""
        return {name: _out(getattr(self, name)) for name in self._memory}

    def recall(self, memory: dict[str, Any]) -> None:
        """Go on from what another one remembered."""
        if set(memory) != set(self._memory):
            raise ValueError(
                f"a {type(self).__name__} remembers {', '.join(self._memory)}, got "
                f"{', '.join(sorted(memory))}"
            )
        for name, value in memory.items():
            own = getattr(self, name)
            if isinstance(own, Remembers):
                own.recall(value)
            else:
                setattr(self, name, value)


def _out(value: Any) -> Any:
    if isinstance(value, Remembers):
        return value.remember()
    if isinstance(value, dict):
        return dict(value)
    return list(value) if isinstance(value, (list, tuple)) else value
