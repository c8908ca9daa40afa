"""The table of a site, from CSV or LIBSVM text: strict, with file and line in every error.

What leaves a site before a run is charged is counted without reading a value: lines, the names of
the columns, sample ids. :meth:`Source.count` does that, :meth:`Source.read` the rest.
"""

from __future__ import annotations

import csv
import math
from array import array
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from dpsvm._streams import open_text
from dpsvm.data import load_libsvm
from dpsvm.federation.job import check_keys, told_where

_KEYS = {"file", "columns", "id", "label", "n_features", "rows"}
_WIDEST = 1 << 26  # columns of LIBSVM text


@dataclass(frozen=True, eq=False)
class Table:
    """Rows of a site's columns, sorted by sample id where there are ids."""

    columns: Any  # dense, or CSR of LIBSVM text; of width 0 where there are none, or none wanted
    names: tuple[str, ...]
    ids: tuple[str, ...] | None = None
    labels: Any = None

    def holds(self, *, labels: bool, columns: bool) -> bool:
        """Whether what is asked for is there."""
        return (self.labels is not None or not labels) and (bool(self.names) or not columns)

    def chosen(self, ids: Sequence[str]) -> Table:
        """The rows of these ids, in their order; a KeyError if one is not there."""
        places = {one: place for place, one in enumerate(self.ids or ())}
        rows = np.array([places[one] for one in ids], dtype=np.intp)
        labels = None if self.labels is None else self.labels[rows]
        return replace(self, columns=self.columns[rows], ids=tuple(ids), labels=labels)

    def only(self, *, labels: bool, columns: bool) -> Table:
        """What is asked for, without the rest."""
        return replace(
            self,
            columns=self.columns if columns else self.columns[:, :0],
            names=self.names if columns else (),
            labels=self.labels if labels else None,
        )


@dataclass(frozen=True, eq=False)
class Counted:
    """What is known of a table whose values were not read."""

    rows: int
    header: tuple[str, ...] = ()  # of CSV
    ids: tuple[str, ...] | None = None  # sorted

    def chosen(self, ids: Sequence[str]) -> Counted:
        """The rows of these ids; a KeyError if one is not there."""
        if not set(ids) <= set(self.ids or ()):
            raise KeyError
        return replace(self, rows=len(ids), ids=tuple(ids))


@dataclass(frozen=True, kw_only=True)
class Source:
    """Where a table comes from.

    >>> Source.of({"file": "lab.csv", "colums": ["age"]}, Path("."), "[data]")
    Traceback (most recent call last):
    ...
    ValueError: [data]: unknown key 'colums'; known are columns, file, id, label, n_features, rows
    """

    file: Path
    columns: tuple[Any, ...] | None = None
    id: str | None = None
    label: str | None = None
    n_features: int | None = None
    rows: tuple[int, int] | None = None  # every k-th from the first on: (first, k)

    @classmethod
    def of(cls, content: Mapping[str, Any], folder: Path, where: str) -> Source:
        """What a table of settings says."""
        with told_where(where):
            check_keys(content, _KEYS, {"file"})
            file, columns, rows = content["file"], content.get("columns"), content.get("rows")
            if not isinstance(file, str) or not file:
                raise ValueError(f"file must be a path, got {file!r}")
            if columns is not None and (not isinstance(columns, list) or not columns):
                raise ValueError(f"columns must be a list, got {columns!r}")
            if columns is not None and any(columns.count(one) > 1 for one in columns):
                raise ValueError(f"columns names one twice, got {columns!r}")
            for name in ("id", "label"):
                if not isinstance(content.get(name, ""), str):
                    raise ValueError(f"{name} must be a column's name, got {content[name]!r}")
            width = content.get("n_features")
            if width is not None and (type(width) is not int or not 1 <= width <= _WIDEST):
                raise ValueError(f"n_features must be a whole number to {_WIDEST}, got {width!r}")
            if rows is not None and not _is_pair(rows, 0):
                raise ValueError(f"rows must be [first, k], got {rows!r}")
            return cls(
                file=folder / file,
                columns=None if columns is None else tuple(columns),
                id=content.get("id"),
                label=content.get("label"),
                n_features=width,
                rows=None if rows is None else (rows[0], rows[1]),
            )

    def another(self, content: Mapping[str, Any], folder: Path) -> Source:
        """The same columns of another file."""
        with told_where("[predict]"):
            check_keys(content, {"file"}, {"file"})
        return replace(self, file=Source.of(content, folder, "[predict]").file, rows=None)

    @property
    def is_csv(self) -> bool:
        """Whether the file's name says so, compressed or not."""
        return ".csv" in self.file.suffixes

    def count(self) -> Counted:
        """Its rows, ids and names of columns; no value is read."""
        found = self._scan(labels=False, columns=None) if self.is_csv else self._lines()
        return self._some(found)

    def names(self, counted: Counted, *, labels: bool, columns: bool = True) -> tuple[str, ...]:
        """The names of the columns, and a refusal if others that are needed are not there."""
        if not columns and not self.is_csv:
            return ()
        if not self.is_csv:
            return tuple(str(place + 1) for place in self._places())
        with told_where(f"{self.file}: line 1"):
            return tuple(self._wanted(list(counted.header), labels)[: None if columns else 0])

    def read(self, *, labels: bool, columns: bool = True, counted: Counted | None = None) -> Table:
        """The table; with labels if they are asked for, without columns if they are not.

        counted : what must be found again
        """
        if self.is_csv:
            table, found = self._read_csv(labels, columns)
        else:
            table, found = self._read_libsvm(labels)
        if counted is not None and (counted.rows, counted.ids) != (found.rows, found.ids):
            raise ValueError(f"{self.file}: the file was changed after its rows were counted")
        return table.only(labels=labels, columns=columns)

    def _some(self, found: Counted) -> Counted:
        """The rows that are wanted, of which there must be some."""
        if self.rows is not None:
            first, step = self.rows
            ids = None if found.ids is None else found.ids[first::step]
            found = replace(found, rows=len(range(found.rows)[first::step]), ids=ids)
        if not found.rows:
            those = "" if self.rows is None else f" among rows = {list(self.rows)}"
            raise ValueError(f"{self.file}: the file has no rows{those}")
        return found

    def _lines(self) -> Counted:
        if self.id is not None or self.label is not None:
            raise ValueError(f"{self.file}: LIBSVM text has no named columns for id and label")
        with open_text(self.file) as file:
            return Counted(sum(bool(line.split(b"#")[0].strip(b" \t\r\n")) for line in file))

    def _places(self, found: int = 0) -> NDArray[np.intp]:
        """The columns of LIBSVM text; the largest that was found counts if no width was given."""
        width = self.n_features
        for pair in self.columns or ():
            if not _is_pair(pair, 1) or (width is not None and pair[1] > width):
                limit = "on" if width is None else f"to {width}"
                raise ValueError(
                    f"{self.file}: columns of LIBSVM text are pairs [first, last] from 1 {limit}, "
                    f"got {pair!r}"
                )
        if sum(last - first + 1 for first, last in self.columns or ()) > _WIDEST:
            raise ValueError(
                f"{self.file}: more than {_WIDEST} columns, got {list(self.columns or ())!r}"
            )
        if self.columns is None:
            return np.arange(found if width is None else width)
        places = np.concatenate([np.arange(a - 1, b) for a, b in self.columns])
        if len(np.unique(places)) != len(places):
            raise ValueError(f"{self.file}: columns overlap, got {list(self.columns)!r}")
        return places

    @property
    def has_width(self) -> bool:
        """Whether it says how many columns there are, without a look at the numbers."""
        return self.is_csv or self.n_features is not None or self.columns is not None

    def _read_libsvm(self, labels: bool) -> tuple[Table, Counted]:
        if self.id is not None or self.label is not None:
            self._lines()
        X, y = load_libsvm(self.file, n_features=self.n_features)
        found = self._some(Counted(len(y)))
        places = self._places(X.shape[1])
        X.resize(X.shape[0], max(X.shape[1], int(places.max(initial=-1)) + 1))
        rows = slice(None) if self.rows is None else slice(self.rows[0], None, self.rows[1])
        part = sparse.csr_array(sparse.csc_array(X)[:, places])[rows]
        names = tuple(str(place + 1) for place in places)
        return Table(sparse.csr_array(part), names, None, y[rows] if labels else None), found

    def _read_csv(self, labels: bool, columns: bool) -> tuple[Table, Counted]:
        if labels and self.label is None:
            raise ValueError(f"{self.file}: [data] does not say which column is the label")
        numbers, keys, texts = array("d"), list[str](), list[str]()
        found = self._scan(labels=labels, columns=columns, numbers=numbers, keys=keys, texts=texts)
        wanted = self._wanted(list(found.header), labels)[: None if columns else 0]
        some = self._some(found)
        table = np.frombuffer(numbers, dtype=np.float64).reshape(found.rows, len(wanted))
        order = None
        if self.id is not None:
            order = np.array(sorted(range(len(keys)), key=keys.__getitem__), dtype=np.intp)
        if self.rows is not None:
            order = (np.arange(found.rows) if order is None else order)[
                self.rows[0] :: self.rows[1]
            ]
        if order is not None:
            table = np.ascontiguousarray(table[order])
        own = None
        if labels:
            places = range(len(texts)) if order is None else order
            own = _labels([texts[place] for place in places], f"{self.file}: {self.label!r}")
        return Table(table, tuple(wanted), some.ids, own), some

    def _scan(
        self,
        *,
        labels: bool,
        columns: bool | None,
        numbers: array[float] | None = None,
        keys: list[str] | None = None,
        texts: list[str] | None = None,
    ) -> Counted:
        """Go through CSV, and keep numbers, ids and labels as they lie if they are wanted."""
        own, same, rows = [] if keys is None else keys, dict[str, str](), 0
        with open_text(self.file) as file:
            reader = csv.reader(_decoded(file), strict=True)
            try:
                header = next(reader, [])
                wanted = self._wanted(header, labels)[: None if columns else 0]
                places = [header.index(name) for name in wanted]
                key = None if self.id is None else header.index(self.id)
                label = header.index(self.label) if labels and self.label is not None else None
                for fields in reader:
                    if len(fields) != len(header):
                        raise ValueError(f"{len(fields)} fields, the first line has {len(header)}")
                    rows += 1
                    if key is not None:
                        own.append(_text(fields[key], header[key]))
                    if numbers is not None:
                        numbers.extend([_number(fields[one], header[one]) for one in places])
                    if label is not None and texts is not None:
                        text = _text(fields[label], header[label])
                        texts.append(same.setdefault(text, text))
            except (ValueError, csv.Error) as error:
                unread = isinstance(error, UnicodeDecodeError)  # the reader has not got that line
                line = max(reader.line_num + unread, 1)
                raise ValueError(f"{self.file}: line {line}: {error}") from None
        ids = None if key is None else tuple(sorted(own))
        for one, next_one in pairwise(ids or ()):
            if one == next_one:
                raise ValueError(f"{self.file}: the sample id {one!r} is there twice")
        return Counted(rows, tuple(header), ids)

    def _wanted(self, header: list[str], labels: bool) -> list[str]:
        if len(set(header)) != len(header) or not header:
            raise ValueError("the names of the columns must be there, and differ")
        special = [name for name in (self.id, self.label) if name is not None]
        named = list(self.columns or [])
        # New samples have no labels yet; a file without the named column is fine for those.
        needed = [name for name in special if labels or name != self.label]
        for name in (*needed, *named):
            if name not in header:
                raise ValueError(f"there is no column {name!r}: the columns are {header!r}")
        wanted = named or [name for name in header if name not in special]
        if set(wanted) & set(special):
            raise ValueError("ids and labels cannot be among the columns")
        return wanted


def _is_pair(value: Any, least: int) -> bool:
    whole = isinstance(value, list) and len(value) == 2 and all(type(n) is int for n in value)
    return whole and value[0] >= least and value[1] >= max(1, value[0] if least else 1)


def _number(text: str, name: str) -> float:
    try:
        value = float(text)
    except ValueError:
        raise ValueError(f"{text!r} in column {name!r} is not a number") from None
    if not math.isfinite(value) or "_" in text:
        raise ValueError(f"{text!r} in column {name!r} is not a finite number")
    return value


def _text(text: str, name: str) -> str:
    if not text:
        raise ValueError(f"column {name!r} is empty")
    return text


def _decoded(lines: Iterable[bytes]) -> Iterator[str]:
    """Lines of text; the mark that some programs put before the first one is left out."""
    for number, line in enumerate(lines):
        yield line.decode("utf-8" if number else "utf-8-sig")


def _labels(texts: list[str], where: str) -> Any:
    """Numbers where all of them are, else texts."""
    try:
        numbers = np.array([float(text) for text in texts])
    except ValueError:
        return np.array(texts)
    if not np.all(np.isfinite(numbers)):
        raise ValueError(f"{where} holds a label that is not a finite number")
    return numbers
