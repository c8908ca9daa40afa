"""The data sets that are not in the repository, and the mark of the tests that need them."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

SHARED = Path(os.environ.get("DPSVM_DATA") or Path(__file__).resolve().parents[2] / "shared")
ABSENT = None if (SHARED / "data").is_dir() else "no ../shared and no DPSVM_DATA: no data to run on"

needs_data = pytest.mark.data  # skipped by conftest.py without the data; chosen by -m data
