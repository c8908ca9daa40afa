"""Who imports whom in the package, and what it may not: run as a script, it prints both.

    python tests/import_graph.py

A cycle is one of modules, imports inside of functions, for type checkers, by name in a string and
in Cython included. Who takes a name from a package takes it from the module that it stands in.
"""

from __future__ import annotations

import ast
import re
import sys
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent
FAMILIES = ("dpsvm.admm.network", "dpsvm.admm.sharing", "dpsvm.frank_wolfe")


class Import(NamedTuple):
    """One module's use of another, and the name it takes, if it takes one."""

    user: str
    used: str
    name: str | None


def modules(root: Path) -> dict[str, Path]:
    """The modules of the package, by name, those of Cython with them."""
    found = {}
    for path in sorted((root / "dpsvm").rglob("*.py*")):
        if path.suffix not in (".py", ".pyx"):
            continue
        parts = path.relative_to(root).with_suffix("").parts
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


def imports(root: Path) -> list[Import]:
    """All imports of the package's modules from each other, wherever they stand in a file."""
    known = modules(root)
    found = [one for user, path in known.items() for one in _written(user, path, known)]
    homes = {(one.user, one.name): one for one in found if one.name is not None}
    return [*found, *(one for taken in found for one in _behind(taken, homes))]


def _written(user: str, path: Path, known: dict[str, Path]) -> Iterator[Import]:
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".pyx":  # of which the lines that import are Python's
        lines = [line.strip() for line in text.splitlines()]
        text = "\n".join(line for line in lines if re.match("(import|from) dpsvm.*[^(,]$", line))
    aliases: dict[str, str] = {}
    attributes = []
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Import):
            for one in node.names:
                aliases[one.asname or one.name] = one.name
                if one.name in known:
                    yield Import(user, one.name, None)
        elif isinstance(node, ast.ImportFrom):
            source = _absolute(user, path, node)
            for one in node.names:
                if f"{source}.{one.name}" in known:
                    aliases[one.asname or one.name] = f"{source}.{one.name}"
                    yield Import(user, f"{source}.{one.name}", None)
                elif source in known:
                    yield Import(user, source, one.name)
        elif isinstance(node, ast.Attribute):
            attributes.append(node)
        elif isinstance(node, ast.Constant) and node.value in known and "." in str(node.value):
            yield Import(user, str(node.value), None)
    for node in attributes:  # module._name, and package.module.name
        source = aliases.get(ast.unparse(node.value), ast.unparse(node.value))
        if source in known and (source in aliases.values() or source.startswith("dpsvm.")):
            yield Import(user, source, node.attr)


def _absolute(user: str, path: Path, node: ast.ImportFrom) -> str:
    """The module that names are taken from, an import with dots included."""
    if not node.level:
        return str(node.module)
    parts = user.split(".") if path.stem == "__init__" else user.split(".")[:-1]
    parts = parts[: len(parts) - node.level + 1]
    return ".".join([*parts, node.module] if node.module else parts)


def _behind(taken: Import, homes: dict[tuple[str, str | None], Import]) -> Iterator[Import]:
    """Where a name really stands that was taken from a module which imports it itself."""
    seen = {taken.used}
    one = homes.get((taken.used, taken.name))
    while one is not None and one.used not in seen:
        seen.add(one.used)
        yield Import(taken.user, one.used, one.name)
        one = homes.get((one.used, one.name))


def cycles(found: list[Import]) -> list[list[str]]:
    """Sets of modules that lead to each other, by Tarjan's algorithm."""
    edges = defaultdict(set)
    for one in found:
        edges[one.user].add(one.used)
    order: dict[str, int] = {}
    low: dict[str, int] = {}
    stack: list[str] = []
    result = []

    def visit(node: str) -> None:
        order[node] = low[node] = len(order)
        stack.append(node)
        for other in sorted(edges[node]):
            if other not in order:
                visit(other)
                low[node] = min(low[node], low[other])
            elif other in stack:
                low[node] = min(low[node], order[other])
        if low[node] == order[node]:
            together = stack[stack.index(node) :]
            del stack[stack.index(node) :]
            if len(together) > 1 or node in edges[node]:
                result.append(sorted(together))

    for node in sorted(edges):
        if node not in order:
            visit(node)
    return result


def private_names(found: list[Import]) -> list[Import]:
    """Imports of a private name, or from a private module below a package, by another package."""
    return [
        one
        for one in found
        if package(one.user) != package(one.used)
        and (
            (one.name is not None and one.name.startswith("_") and not one.name.startswith("__"))
            or any(part.startswith("_") for part in one.used.split(".")[2:])
        )
    ]


def sideways(found: list[Import]) -> list[Import]:
    """Imports of a family by another."""

    def family(module: str) -> str | None:
        return next((one for one in FAMILIES if f"{module}.".startswith(f"{one}.")), None)

    pairs = [(one, family(one.user), family(one.used)) for one in found]
    return [one for one, own, other in pairs if own is not None and other not in (None, own)]


def package(module: str) -> str:
    """The package of a module: the first two parts of its name."""
    return ".".join(module.split(".")[:2])


def main() -> int:
    """Print the graph of the packages, then what is not allowed."""
    found = imports(ROOT)
    edges = sorted({(package(one.user), package(one.used)) for one in found})
    for user in sorted({user for user, _ in edges}):
        print(f"{user}: {', '.join(used for one, used in edges if one == user and used != user)}")
    faults = [f"cycle: {', '.join(one)}" for one in cycles(found)]
    faults += [f"private: {one.user} takes {one.name or one.used}" for one in private_names(found)]
    faults += [f"sideways: {one.user} imports {one.used}" for one in sideways(found)]
    print("\n".join(["", *faults, f"{len(faults)} faults"]))
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
