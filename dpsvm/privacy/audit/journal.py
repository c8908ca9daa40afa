"""The runs of an audit on disk, so that one that was stopped can go on."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from dpsvm.privacy.audit.choice import Rule
from dpsvm.privacy.audit.runs import Batch

_START = b'{"'  # of every line


class Journal:
    """What is known of one audit, one line of JSON each in a file that only grows.

    The first line says which audit it is; another audit is refused. A last line cut short, as a
    killed process leaves it, is dropped. Without a path everything is kept in memory alone.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     journal = Journal(f"{folder}/runs", {"runs": 2})
    ...     journal.add("test", Batch("with", 0, 2, [[1.5], [2.5]]))
    ...     Journal(f"{folder}/runs", {"runs": 2}).values("test", "with")
    {0: [1.5], 1: [2.5]}
    """

    def __init__(self, path: str | os.PathLike[str] | None, key: Mapping[str, Any]) -> None:
        self._path = None if path is None else Path(path)
        self._values: dict[tuple[str, str], dict[int, list[float]]] = {}
        self.rule: Rule | None = None
        self.warnings: dict[str, str] = {}
        if self._path is None:
            return
        lines, self._whole = _whole_lines(self._path)
        if not lines:
            self._append({"audit": dict(key)})
        for number, line in enumerate(lines, 1):
            try:
                self._read(line, number, key)
            except (KeyError, TypeError, AttributeError):
                raise _foreign(self._path, number) from None

    def _read(self, line: dict[str, Any], number: int, key: Mapping[str, Any]) -> None:
        if number == 1:
            self._compare(line["audit"], key)
        elif "rule" in line:
            self.rule = Rule.from_dict(line["rule"])
        else:
            values, said = line["values"], line["warnings"]
            self._keep(
                line["phase"], Batch(line["world"], line["first"], len(values), values, said)
            )

    def _compare(self, found: Mapping[str, Any], key: Mapping[str, Any]) -> None:
        for name, value in key.items():
            if found.get(name) != value:
                raise ValueError(
                    f"{self._path} is another audit: its {name} is {found.get(name)!r}, not "
                    f"{value!r}; everything, the number of runs too, is settled before the first"
                )

    def values(self, phase: str, world: str) -> dict[int, list[float]]:
        """What was measured, by the number of the run."""
        return self._values.setdefault((phase, world), {})

    def add(self, phase: str, batch: Batch) -> None:
        """Keep runs."""
        self._keep(phase, batch)
        self._append(
            {
                "phase": phase,
                "world": batch.world,
                "first": batch.first,
                "values": batch.values,
                "warnings": batch.warnings,
            }
        )

    def settle(self, rule: Rule) -> None:
        """Keep the rule, before any test run is made."""
        self.rule = rule
        self._append({"rule": rule.to_dict()})

    def _keep(self, phase: str, batch: Batch) -> None:
        self.values(phase, batch.world).update(zip(batch.numbers, batch.values, strict=True))
        for category, message in batch.warnings.items():
            self.warnings.setdefault(category, message)

    def _append(self, entry: Mapping[str, Any]) -> None:
        if self._path is None:
            return
        line = json.dumps(entry).encode() + b"\n"
        with self._path.open("ab") as file:
            if self._whole is not None:
                file.truncate(self._whole)
                self._whole = None
            file.write(line)
            file.flush()
            os.fsync(file.fileno())


def stored_random_state(path: str | os.PathLike[str]) -> int | None:
    """The seed of the audit that a file holds; None if there is no such file, or it is empty."""
    lines, _ = _whole_lines(Path(path))
    if not lines:
        return None
    try:
        return int(lines[0]["audit"]["random_state"])
    except (KeyError, TypeError, ValueError):
        raise _foreign(path, 1) from None


def _whole_lines(path: Path) -> tuple[list[Any], int | None]:
    """The lines of a file, and its bytes without a last line cut short; None if there is none."""
    text = path.read_bytes() if path.exists() else b""
    lines, size = [], 0
    for number, line in enumerate(text.splitlines(keepends=True), 1):
        if not line.endswith(b"\n"):
            if not _START.startswith(line[: len(_START)]):  # not ours, so not to be cut
                raise _foreign(path, number)
            break
        try:
            lines.append(json.loads(line))
        except ValueError:
            raise _foreign(path, number) from None
        size += len(line)
    return lines, size if size < len(text) else None


def _foreign(path: str | os.PathLike[str], number: int) -> ValueError:
    return ValueError(f"{os.fspath(path)}:{number}: not a line of an audit")
