"""Every example in the privacy package's documentation runs as printed."""

from __future__ import annotations

import doctest
import importlib
import pkgutil

import pytest

import dpsvm.privacy

MODULES = ["dpsvm.privacy"] + [
    module.name for module in pkgutil.walk_packages(dpsvm.privacy.__path__, "dpsvm.privacy.")
]


@pytest.mark.parametrize("name", MODULES)
def test_every_example_in_the_docstrings_runs(name: str) -> None:
    assert doctest.testmod(importlib.import_module(name)).failed == 0


def test_every_public_name_has_a_docstring() -> None:
    for name in dpsvm.privacy.__all__:
        assert getattr(dpsvm.privacy, name).__doc__, name
