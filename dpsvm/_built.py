"""Imported before all else: a source folder without the compiled core says so, and what to do.

A core that is there but fails to load raises its own error, when it is imported. That of another
copy, which an editable install would offer, is not taken.
"""

from __future__ import annotations

import os
from importlib.machinery import PathFinder

_HERE = os.path.dirname(os.path.abspath(__file__))

if not all(PathFinder.find_spec(f"dpsvm.{name}", [_HERE]) for name in ("_core", "_files")):
    # The name lets ``python -m dpsvm`` tell it in one line, without a traceback.
    raise ImportError(
        f"dpsvm's compiled core is not built in {os.path.dirname(_HERE)}: run 'pip install -e .' "
        "there, or leave the source folder to use an installed dpsvm",
        name="dpsvm",
    )
