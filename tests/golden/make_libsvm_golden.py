"""Writes libsvm.json: what LIBSVM's own tools print and write for small problems.

Needs svm-train, svm-predict and svm-scale (Debian's libsvm-tools 3.24) on the PATH:

    python tests/golden/make_libsvm_golden.py
"""

from __future__ import annotations

import json
import re
import subprocess
import tempfile
from pathlib import Path

import numpy as np

# Debian's svm-train reads the values of its flags in single precision (strtof), which moves a
# parameter such as 0.1 by one part in 10^8: all values here are exact in single precision.
TRAIN_CASES = (
    "two",
    "two -t 0 -c 10",
    "two -t 1 -d 2 -r 1 -g 0.5",
    "two -t 3 -g 0.125",
    "two -h 0 -e 0.0009765625",
    "two -w1 3 -w-1 0.5",
    "two -b 1",
    "two -s 1 -n 0.25",
    "two -s 1 -n 0.25 -b 1",
    "two -s 2 -n 0.25",
    "two -v 5",
    "two -v 100",
    "two -v 4 -b 1",
    "two -s 2 -v 3",
    "three",
    "three -t 0 -w9 2",
    "three -b 1",
    "three -s 1 -n 0.25",
    "three -v 5",
    "three -v 3 -b 1",
    "curve -s 3",
    "curve -s 3 -t 0 -p 0.5",
    "curve -s 3 -p 100",
    "curve -s 3 -b 1",
    "curve -s 4 -n 0.375 -c 2",
    "curve -s 4 -b 1",
    "curve -s 3 -v 5",
    "curve -s 4 -v 4",
    "gram -t 4",
    "gram -t 4 -b 1",
    "gram -t 4 -v 3",
    "gram -t 4 -s 2",
    "gram -t 4 -s 3",
)
SCALE_CASES = (
    "two",
    "two -l 0",
    "three -l 0 -u 2 -y -1 1",
    "curve -l -3 -u 0.5 -y 0 10",
)


def _text(labels: np.ndarray, rows: np.ndarray) -> str:
    lines = []
    for label, row in zip(labels, rows, strict=True):
        pairs = [f"{i}:{value:g}" for i, value in enumerate(row, start=1) if value]
        lines.append(" ".join([f"{label:g}", *pairs]))
    return "\n".join(lines) + "\n"


def make_data() -> dict[str, str]:
    """Small problems: overlapping classes, a noisy curve, a Gram matrix."""
    random = np.random.default_rng(20240229)
    sign = np.where(np.arange(40) % 3, -1, 1)
    two = random.normal(size=(40, 4)).round(3) + 0.8 * sign[:, None] * [1, 0.5, 0, 0]
    two[random.random(two.shape) < 0.2] = 0.0
    three = random.normal(size=(48, 3)).round(3)
    labels = np.array([5, -2, 9])[np.arange(48) % 3]
    three[np.arange(48), np.arange(48) % 3] += 1.25
    curve = random.uniform(-2, 2, size=(40, 2)).round(3)
    target = (np.sin(curve[:, 0]) * 3 + curve[:, 1] + random.normal(size=40) / 4).round(3)
    gram = two @ two.T + np.exp(-0.5 * ((two[:, None] - two[None]) ** 2).sum(axis=2))
    serials = [f" 0:{i} 1:" for i in range(1, 41)]
    gram_text = _text(sign, gram.round(4)).split("\n")
    lines = [
        line.replace(" 1:", serial, 1) for line, serial in zip(gram_text, serials, strict=False)
    ]
    return {
        "two": _text(sign, two.round(3)),
        "three": _text(labels, three),
        "curve": _text(target, curve),
        "gram": "\n".join(lines) + "\n",
    }


def _run(folder: Path, *command: str) -> list[str]:
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=True)
    # Left out: advice on speed, which stands amid the dots and stars of a problem.
    printed = re.sub(r"\nWARNING: using -h 0 may be faster\n", "", done.stdout)
    return printed.splitlines()


def train_case(folder: Path, case: str) -> dict[str, object]:
    """What svm-train and svm-predict say of one problem."""
    name, *flags = case.split()
    found: dict[str, object] = {"case": case, "train": _run(folder, "svm-train", *flags, name, "m")}
    if "-v" in flags:
        return found
    predict_flags = ["-b", "1"] if "-b" in flags else []
    found["model"] = (folder / "m").read_text()
    found["predict"] = _run(folder, "svm-predict", *predict_flags, name, "m", "out")
    found["output"] = (folder / "out").read_text().splitlines()
    return found


def scale_case(folder: Path, case: str) -> dict[str, object]:
    """What svm-scale prints of one problem, and its range file."""
    name, *flags = case.split()
    printed = _run(folder, "svm-scale", *flags, "-s", "range", name)
    return {"case": case, "printed": printed, "range": (folder / "range").read_text()}


def main() -> None:
    """Run all cases and write what came out."""
    data = make_data()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for stem, text in data.items():
            (folder / stem).write_text(text)
        golden = {
            "made_by": "LIBSVM 3.24 (Debian libsvm-tools)",
            "data": data,
            "train": [train_case(folder, case) for case in TRAIN_CASES],
            "scale": [scale_case(folder, case) for case in SCALE_CASES],
        }
    path = Path(__file__).with_name("libsvm.json")
    path.write_text(json.dumps(golden, indent=1) + "\n")


if __name__ == "__main__":
    main()
