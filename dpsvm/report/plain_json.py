"""JSON that every reader understands."""

from __future__ import annotations

import json
import math
from typing import Any


def dumps(value: Any) -> str:
    """Return indented JSON text; JSON has no NaN and no infinity, they become null.

    >>> print(dumps({"gap": float("nan")}))
    {
      "gap": null
    }
    <BLANKLINE>
    """
    return json.dumps(_finite(value), indent=2, allow_nan=False) + "\n"


def _finite(value: Any) -> Any:
    if isinstance(value, dict):
        return {str(key): _finite(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_finite(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
