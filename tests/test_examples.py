"""Every example in a docstring of the package runs and prints what it says."""

from __future__ import annotations

import doctest
import importlib
import inspect
import pkgutil
from types import ModuleType

import pytest

import dpsvm

EXTRAS = {"mpi4py", "nvflare", "matplotlib", "rich", "dp_accounting", "private_set_intersection"}
COMPILED = {"dpsvm._core", "dpsvm._files"}
SCRIPTS = {"dpsvm.__main__"}  # modules that do their work when they are imported


def modules() -> list[str]:
    """The names of all modules, those of packages without names of their own included."""
    found = pkgutil.walk_packages(dpsvm.__path__, "dpsvm.")
    return sorted({one.name for one in found} - SCRIPTS)


@pytest.mark.parametrize("name", modules())
def test_examples_run(name: str) -> None:
    try:
        module = importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name is None or error.name.partition(".")[0] not in EXTRAS:
            raise
        pytest.skip(f"{error.name} is not installed")
    found = doctest.testmod(module)
    assert found.failed == 0
    assert name in COMPILED or found.attempted == written(module)


def written(module: ModuleType) -> int:
    """How many examples a source file has: none may be lost, as those of a wrapped name are."""
    return sum(line.lstrip().startswith(">>> ") for line in inspect.getsource(module).splitlines())
