"""Malformed files of every kind are rejected with their line and the reason, as tables say."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from dpsvm.data import LibsvmFormatError, Range, load_libsvm
from dpsvm.svm.model import Model

MALFORMED = Path(__file__).parent / "malformed"
READERS = {"data": load_libsvm, "models": Model.load, "range": Range.read}
TABLES = {
    kind: [line.split("\t") for line in (MALFORMED / f"{kind}.tsv").read_text().splitlines()[1:]]
    for kind in READERS
}


@pytest.mark.parametrize(
    ("kind", "name", "error"),
    [(kind, name, error) for kind, table in TABLES.items() for name, error in table],
)
def test_a_malformed_file_is_rejected_with_its_line_and_reason(
    kind: str, name: str, error: str
) -> None:
    reader: Callable[[Path], object] = READERS[kind]
    path = MALFORMED / kind / name
    with pytest.raises(LibsvmFormatError) as caught:
        reader(path)
    separator = ":" if caught.value.line is not None else ": "
    assert str(caught.value) == f"{path}{separator}{error}"


@pytest.mark.parametrize("kind", READERS)
def test_every_malformed_file_is_in_the_table(kind: str) -> None:
    names = sorted(path.name for path in (MALFORMED / kind).iterdir())
    assert names == [name for name, _ in TABLES[kind]]
