"""Imports go one way between packages; ``python tests/import_graph.py`` prints the graph."""

from __future__ import annotations

from pathlib import Path

import import_graph as graph
import pytest

FOUND = list(graph.imports(graph.ROOT))


def test_no_family_imports_another() -> None:
    assert graph.sideways(FOUND) == []


def test_no_package_takes_a_private_name_of_another() -> None:
    assert graph.private_names(FOUND) == []


def test_no_cycle_leaves_its_package() -> None:
    # Inside of one, a method may call the module that is built on its class (Model.save).
    for modules in graph.cycles(FOUND):
        assert len({graph.package(module) for module in modules}) == 1, modules


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
