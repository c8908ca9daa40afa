"""Who imports whom in the package, and what it may not: run as a script, it prints both.

    python tests/import_graph.py

A cycle is one of modules, imports inside of functions and for type checkers included.
"""

from __future__ import annotations

import ast
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


def imports(root: Path) -> Iterator[Import]:
    """All imports of the package's modules from each other, wherever they stand in a file."""
    known = modules(root)
    for user, path in known.items():
        if path.suffix == ".pyx":
            continue
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Import):
                yield from (Import(user, one.name, None) for one in node.names if one.name in known)
            elif isinstance(node, ast.ImportFrom):
                for one in node.names:
                    module = f"{node.module}.{one.name}"
                    if module in known:
                        yield Import(user, module, None)
                    elif node.module in known:
                        yield Import(user, node.module, one.name)


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
    family = {
        one.user: next((f for f in FAMILIES if one.user.startswith(f)), None) for one in found
    }
    return [
        one
        for one in found
        if family[one.user] is not None
        and any(one.used.startswith(other) for other in FAMILIES if other != family[one.user])
    ]


def package(module: str) -> str:
    """The package of a module: the first two parts of its name."""
    return ".".join(module.split(".")[:2])


def main() -> int:
    """Print the graph of the packages, then what is not allowed."""
    found = list(imports(ROOT))
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
