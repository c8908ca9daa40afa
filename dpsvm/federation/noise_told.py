"""The noise of a private run in plain words, known before anybody pays for it."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from typing import Any

from dpsvm.federation.job import Job
from dpsvm.federation.members import Shape, agreement_of


def agreed_quietly(job: Job, shape: Shape) -> Any:
    """What the sites would agree on, without the warnings of a run."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return agreement_of(job, shape)


def noise_told(job: Job, agreed: Any) -> list[tuple[str, str]]:
    """How large the noise will be, and what is known of everybody together; [] without noise.

    agreed : what the sites agree on, of their shape

    >>> settings = {"privacy": "row", "epsilon": 2.0, "delta": 1e-5, "rounds": 20}
    >>> settings |= {"data_norm": 1.0, "radius": 3.0, "target_bound": 2.0}
    >>> job = Job("heart-1", "sharing", ("lab", "ward"), "lab", settings)
    >>> for label, text in noise_told(job, agreed_quietly(job, Shape(100, (3, 2)))):
    ...     print(f"{label}: {text.partition(';')[0]}")
    expected noise: a standard deviation of 55.33 on every number that is sent
    all parties together: of a person who has a row at every party: epsilon = 2.954
    """
    if agreed.calibration is None:
        return []
    figures = agreed.calibration.figures
    told = [("expected noise", _NOISE[job.algorithm](figures, job.settings))]
    whole = figures.get("whole_record")
    if whole is not None:
        text = f"of a person who has a row at every party: epsilon = {whole:.4g}"
        told.append(("all parties together", text))
    return told


def _of_sharing(figures: Mapping[str, Any], settings: Mapping[str, Any]) -> str:
    scale = max(figures["noise_scales"])
    told = f"a standard deviation of {scale:.4g} on every number that is sent"
    if figures["mode"] == "row":
        size = float(settings["data_norm"]) * float(settings["radius"])
        told += f"; the numbers themselves are at most data_norm x radius = {size:.4g}"
    return told


def _of_network(figures: Mapping[str, Any], settings: Mapping[str, Any]) -> str:
    scales = [max(row) for row in figures["output_scales"]]
    told = f"at most {max(scales):.4g} on the weights of an update"
    if figures["alphas"] is not None:
        least = min(min(row) for row in figures["alphas"])
        told += f", and a linear term of a size up to {1.0 / least:.4g} within each"
    return f"{told}; weights are for rows of a norm of at most 1"


def _of_frank_wolfe(figures: Mapping[str, Any], settings: Mapping[str, Any]) -> str:
    return (
        f"a standard deviation of {figures['sketch_noise']:.4g} on every number of a sketch, "
        f"of which a record moves {figures['sketch_sensitivity']:.4g} at most; entries are at "
        f"most entry_bound = {float(settings['entry_bound']):g}"
    )


_NOISE = {"sharing": _of_sharing, "network": _of_network, "frank-wolfe": _of_frank_wolfe}
