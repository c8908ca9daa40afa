"""What sites keep of a finished run, in JSON: a party's part of the model, or the result."""

from __future__ import annotations

import json
from operator import methodcaller
from typing import Any

from dpsvm.federation.job import Job
from dpsvm.federation.site import Site

FORMAT = "dpsvm federation model, version 1"


def dump_model(job: Job, site: Site, model: dict[str, Any]) -> str:
    """The text of a model file; in order of the names, which a resumed run has in another order.

    >>> import numpy as np
    >>> site = Site("lab", features=("age",))
    >>> text = dump_model(Job("r", "sharing", ("lab",), "lab"), site, {"weights": np.array([0.5])})
    >>> load_model(text, "model.json")["weights"]
    [0.5]
    """
    content = {
        "format": FORMAT,
        "run": job.run,
        "algorithm": job.algorithm,
        "site": site.name,
        "features": None if site.features is None else list(site.features),
        **model,
    }
    return json.dumps(content, indent=1, sort_keys=True, default=methodcaller("tolist")) + "\n"


def load_model(text: str, where: str) -> dict[str, Any]:
    """Read a model file; what is none is a ValueError that names it.

    >>> load_model("{}", "model.json")
    Traceback (most recent call last):
    ...
    ValueError: model.json: not a federation model
    """
    try:
        content = json.loads(text)
    except ValueError:
        content = None
    if not isinstance(content, dict) or content.get("format") != FORMAT:
        raise ValueError(f"{where}: not a federation model")
    return content
