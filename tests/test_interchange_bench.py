"""The benches of interchange: they agree on a small subset, and they can disagree."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from benches import report_of

from bench.interop import foreign_scripts as scripts
from bench.interop.interchange import QUICK, Answer, Tool, answer, by_sklearn, judge


def test_every_tool_that_is_here_reads_the_machines() -> None:
    report = report_of("interop/interchange.py", "--quick")
    verdict = report.partition("as_sklearn(): ")[2]
    assert int(verdict.split()[0]) >= 3
    if find_spec("skl2onnx") is None or find_spec("onnxruntime") is None:
        assert "left out: skl2onnx + onnxruntime" in report
        pytest.skip("skl2onnx or onnxruntime is not installed; scikit-learn's part agrees")
    assert "left out: skl2onnx" not in report


def test_a_tool_that_decides_otherwise_is_found() -> None:
    case = QUICK[0]

    def wrong(machine: Any, X: np.ndarray) -> Any:
        right = answer(machine, X)
        return Answer(right.labels[::-1], right.values + 1e-3)

    assert judge(Tool("right", by_sklearn, (), 1e-12), case)[-1] == "yes"
    assert judge(Tool("wrong", wrong, (), 1e-12), case)[-1] == "NO"


def test_a_tool_that_refuses_the_genuine_machine_judges_nothing() -> None:
    def refuses(machine: Any, X: np.ndarray) -> Any:
        raise RuntimeError("this release is not supported")

    assert Tool("right", by_sklearn, (), 0.0).unusable() is None
    assert "own SVC" in Tool("refuses", refuses, (), 0.0).unusable()
    assert Tool("absent", refuses, ("no_such_module",), 0.0).unusable() == (
        "no_such_module not installed"
    )


def test_outputs_are_compared_number_by_number() -> None:
    same = scripts.same_text
    assert same("score 0.9512 in 1.5 s\n", "score 0.9515 in 27.1 s\n")
    assert same("no numbers", "no  numbers\n")
    assert not same("score 0.95", "score 0.97")
    assert not same("3 classes", "4 classes")
    assert not same("a 1", "b 1")
    assert not same("1", "")


def test_a_program_runs_both_ways_and_its_pictures_are_compared(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    script = tmp_path / "program.py"
    script.write_text(
        "import matplotlib.pyplot as plt\n"
        "from sklearn.svm import SVC\n"
        "machine = SVC().fit([[0.0], [1.0], [3.0]], [0, 1, 1])\n"
        "print('decides', machine.decision_function([[0.2]]))\n"
        "plt.plot(machine.decision_function([[i / 10] for i in range(30)]))\n"
        "plt.show()\n"
    )
    plain = scripts.perform([], script, tmp_path, 600)
    ours = scripts.perform(["-m", "dpsvm", "run"], script, tmp_path, 600)
    assert scripts.judge("program.py", plain, ours) == ["program.py", 1, 1, "0.00%", "yes"]
    assert scripts.judge("program.py", ours, plain)[-1] == "NO"  # nothing was taken over
    [picture] = plain.pictures
    other = scripts.Outcome(0, plain.printed, ours.complaints, [1 - picture])
    assert scripts.judge("program.py", plain, other)[-1] == "NO"
