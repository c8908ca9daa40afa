"""Every test says of what type its arguments are, and that it returns nothing."""

from __future__ import annotations

import ast
from pathlib import Path


def test_all_tests_are_typed_alike() -> None:
    untyped = [
        f"{path.name}:{node.lineno} {node.name}"
        for path in sorted(Path(__file__).parent.glob("test_*.py"))
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.FunctionDef) and node.name.startswith("test_")
        if node.returns is None
        or any(
            one.annotation is None
            for one in (*node.args.args, *node.args.kwonlyargs)
            if one.arg != "self"
        )
    ]
    assert not untyped
