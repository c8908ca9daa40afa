"""LIBSVM's own tools, and text they print, as tests need them."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dpsvm.data import dump_libsvm

GOLDEN: dict[str, Any] = json.loads((Path(__file__).parent / "golden/libsvm.json").read_text())
TOOLS = ("svm-train", "svm-predict", "svm-scale")

needs_libsvm = pytest.mark.skipif(
    not all(map(shutil.which, TOOLS)), reason="LIBSVM's tools are not on the PATH"
)


def write_data(folder: Path) -> None:
    """Put the data of the golden cases into a folder."""
    for name, text in GOLDEN["data"].items():
        (folder / name).write_text(text)


def slow_data(path: Path) -> None:
    """A problem that takes minutes: pure noise with a hard margin."""
    random = np.random.default_rng(0)
    dump_libsvm(random.normal(size=(4000, 30)), np.where(random.random(4000) < 0.5, 1, -1), path)


def run_tool(*command: str, folder: Path) -> str:
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=True)
    return done.stdout


def assert_same_text(ours: list[str], theirs: list[str], tolerance: float) -> None:
    """The same words in the same places, and numbers within a relative tolerance."""
    assert len(ours) == len(theirs)
    for our_line, their_line in zip(ours, theirs, strict=True):
        our_words, their_words = _words(our_line), _words(their_line)
        assert len(our_words) == len(their_words), (our_line, their_line)
        for our_word, their_word in zip(our_words, their_words, strict=True):
            if our_word != their_word:
                expected = pytest.approx(float(their_word), rel=tolerance, abs=1e-6)
                assert float(our_word) == expected, (our_line, their_line)


def _words(line: str) -> list[str]:
    return re.split(r"[\s,=%()/:]+", line.strip())
