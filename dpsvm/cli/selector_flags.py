"""The flags that choose a selector, as it is registered."""

from __future__ import annotations

from dpsvm.cli.options import table_flag
from dpsvm.svm.selectors import NUMBERS, SELECTORS

CHOICES = tuple(f"  {name:<8}{one.label}" for name, one in SELECTORS.items())
NUMBER_FLAGS = tuple(table_flag(name, "x") for name in NUMBERS)
