"""LIBSVM's three programs: what its grid.py, its easy.py and scripts like them are given."""

from __future__ import annotations

import sys

from dpsvm.cli import main


def train() -> int:
    """``dpsvm-train``: what ``dpsvm train`` does."""
    return main(["train", *sys.argv[1:]])


def predict() -> int:
    """``dpsvm-predict``: what ``dpsvm predict`` does."""
    return main(["predict", *sys.argv[1:]])


def scale() -> int:
    """``dpsvm-scale``: what ``dpsvm scale`` does."""
    return main(["scale", *sys.argv[1:]])
