"""Imports go one way between packages; ``python tests/import_graph.py`` prints the graph."""

from __future__ import annotations

from pathlib import Path

import import_graph as graph
import pytest

FOUND = list(graph.imports(graph.ROOT))
KNOWN_CYCLES = [
    ["dpsvm.privacy.audit.figure", "dpsvm.privacy.audit.report", "dpsvm.privacy.audit.result"],
]


def test_no_family_imports_another() -> None:
    assert graph.sideways(FOUND) == []


def test_no_package_takes_a_private_name_of_another() -> None:
    assert graph.private_names(FOUND) == []


def test_there_is_no_cycle() -> None:
    assert [cycle for cycle in graph.cycles(FOUND) if cycle not in KNOWN_CYCLES] == []


def test_what_is_not_allowed_is_found(tmp_path: Path) -> None:
    files = {
        "a/one.py": "def f():\n    from dpsvm.b import two\n",
        "b/two.py": "from dpsvm.a.one import _f\n",
        "admm/network/x.py": "import dpsvm.frank_wolfe.y\n",
        "frank_wolfe/y.py": "",
    }
    for name, text in files.items():
        path = tmp_path / "dpsvm" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    found = list(graph.imports(tmp_path))
    assert graph.cycles(found) == [["dpsvm.a.one", "dpsvm.b.two"]]
    assert [(one.user, one.name) for one in graph.private_names(found)] == [("dpsvm.b.two", "_f")]
    assert [one.user for one in graph.sideways(found)] == ["dpsvm.admm.network.x"]


@pytest.mark.parametrize("family", graph.FAMILIES)
def test_the_families_are_there(family: str) -> None:
    assert any(one.user.startswith(family) for one in FOUND)
