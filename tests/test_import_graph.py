"""Imports go one way between packages; ``python tests/import_graph.py`` prints the graph."""

from __future__ import annotations

from pathlib import Path

import import_graph as graph
import pytest

FOUND = graph.imports(graph.ROOT)


def test_no_family_imports_another() -> None:
    assert graph.sideways(FOUND) == []


def test_no_package_takes_a_private_name_of_another() -> None:
    assert graph.private_names(FOUND) == []


def test_there_is_no_cycle() -> None:
    assert graph.cycles(FOUND) == []


def graph_of(files: dict[str, str], folder: Path) -> list[graph.Import]:
    for name, text in files.items():
        path = folder / "dpsvm" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return graph.imports(folder)


def test_what_is_not_allowed_is_found(tmp_path: Path) -> None:
    files = {
        "a/one.py": "def f():\n    from dpsvm.b import two\n",
        "b/two.py": "from dpsvm.a.one import _f\n",
        "admm/network/x.py": "import dpsvm.frank_wolfe.y\n",
        "frank_wolfe/y.py": "",
    }
    found = graph_of(files, tmp_path)
    assert graph.cycles(found) == [["dpsvm.a.one", "dpsvm.b.two"]]
    assert [(one.user, one.name) for one in graph.private_names(found)] == [("dpsvm.b.two", "_f")]
    assert [one.user for one in graph.sideways(found)] == ["dpsvm.admm.network.x"]


WAYS = {
    "in a function": "def f():\n    from dpsvm.b import two\n",
    "for type checkers": "if TYPE_CHECKING:\n    import dpsvm.b.two as other\n",
    "by dots": "from ..b import two\n",
    "by dots, a name": "from ..b.two import f\n",
    "by a name in a string": "import_module('dpsvm.b.two')\n",
    "by a table": "HOMES = {'dpsvm.b.two': ('f',)}\n",
    "through a package": "from dpsvm.c import f\n",
    "through two packages": "from dpsvm import f\n",
}


@pytest.mark.parametrize("text", WAYS.values(), ids=WAYS)
def test_a_cycle_is_found_however_it_is_written(text: str, tmp_path: Path) -> None:
    files = {
        "__init__.py": "from dpsvm.c import f\n",
        "a/__init__.py": "",
        "a/one.py": text,
        "b/__init__.py": "",
        "b/two.py": "from dpsvm.a import one\nf = one\n",
        "c/__init__.py": "from dpsvm.b.two import f\n",
    }
    loops = graph.cycles(graph_of(files, tmp_path))
    assert any({"dpsvm.a.one", "dpsvm.b.two"} <= set(loop) for loop in loops)


def test_a_cycle_through_cython_is_found(tmp_path: Path) -> None:
    files = {
        "_core.pyx": "from dpsvm.a import f\ncdef int x\n",
        "a.py": "from dpsvm import _core\n",
    }
    assert graph.cycles(graph_of(files, tmp_path)) == [["dpsvm._core", "dpsvm.a"]]


@pytest.mark.parametrize(
    "text",
    [
        "from dpsvm.b import two\ntwo._hidden()\n",
        "import dpsvm.b.two\ndpsvm.b.two._hidden()\n",
        "import dpsvm.b.two as other\nother._hidden()\n",
        "from dpsvm.b.two import _hidden as open\n",
        "from ..b.two import _hidden\n",
        "from dpsvm.b import _secret\n",
    ],
)
def test_a_private_name_is_found_however_it_is_taken(text: str, tmp_path: Path) -> None:
    files = {"a/one.py": text, "b/two.py": "", "b/_secret.py": ""}
    assert [one.user for one in graph.private_names(graph_of(files, tmp_path))] == ["dpsvm.a.one"]


def test_a_family_behind_the_package_of_both_is_found(tmp_path: Path) -> None:
    files = {
        "admm/__init__.py": "from dpsvm.admm.sharing.y import Y\n",
        "admm/sharing/y.py": "",
        "frank_wolfe/x.py": "from dpsvm.admm import Y\n",
        "admm/networks.py": "import dpsvm.admm.sharing.y\n",  # no family, for all its name
    }
    assert [one.user for one in graph.sideways(graph_of(files, tmp_path))] == [
        "dpsvm.frank_wolfe.x"
    ]


@pytest.mark.parametrize("family", graph.FAMILIES)
def test_the_families_are_there(family: str) -> None:
    assert any(one.user.startswith(family) for one in FOUND)
