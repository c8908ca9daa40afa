"""The accuracy of diffprivlib's LogisticRegression on given splits, for privacy_utility.py.

    ENVIRONMENT/bin/python bench/privacy/diffprivlib_utility.py FOLDER

FOLDER has data.npz (X, y) and task.json; prints for each epsilon the test accuracy on every split,
the mean over draws of the noise. It runs where diffprivlib is installed, and dpsvm need not be.
"""

from __future__ import annotations

import json
import sys
import warnings
from pathlib import Path
from typing import Any

import numpy as np


def fresh_seeds(task: dict[str, Any]) -> np.ndarray:
    """A seed for every draw on every split."""
    splits, draws = len(task["splits"]), task["draws"]
    return np.arange(splits * draws).reshape(splits, draws)


def main(folder: Path) -> None:
    from diffprivlib.models import LogisticRegression

    data, task = np.load(folder / "data.npz"), json.loads((folder / "task.json").read_text())
    X, y = data["X"], data["y"]

    def score(epsilon: float, train: Any, test: Any, seed: int) -> float:
        model = LogisticRegression(
            epsilon=epsilon, data_norm=task["data_norm"], random_state=int(seed), max_iter=1000
        )
        return float(model.fit(X[train], y[train]).score(X[test], y[test]))

    warnings.simplefilter("ignore")  # it says that it takes the labels from the data
    found = [
        [
            float(np.mean([score(epsilon, *split, seed) for seed in seeds]))
            for split, seeds in zip(task["splits"], fresh_seeds(task), strict=True)
        ]
        for epsilon in task["epsilons"]
    ]
    print(json.dumps(found))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
