"""Each benchmark runs to the end on a small subset, and agrees. No time is ever judged here."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

import pytest
from shared_data import SHARED, needs_data

import dpsvm

ROOT = Path(__file__).resolve().parent.parent
BENCH = ROOT / "bench"

needs_libsvm = pytest.mark.skipif(
    shutil.which("svm-train") is None or shutil.which("svm-predict") is None,
    reason="LIBSVM's programs are not on PATH",
)
needs_perf = pytest.mark.skipif(shutil.which("perf") is None, reason="no perf")
needs_compiler = pytest.mark.skipif(shutil.which("g++") is None, reason="no g++")


def run_bench(script: str, *words: str) -> subprocess.CompletedProcess[str]:
    """Run a benchmark on the dpsvm these tests import."""
    home = str(Path(dpsvm.__path__[0]).parent)
    return subprocess.run(
        [sys.executable, str(BENCH / script), *words],
        capture_output=True,
        text=True,
        env=os.environ | {"PYTHONPATH": home},
        check=False,
    )


@needs_data
def test_exactness_agrees_on_the_quick_sets() -> None:
    done = run_bench("exactness.py", str(SHARED), "--quick")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "LIBSVM 3.24 as printed (truth/libsvm.csv): 8 of 8" in done.stdout


@needs_data
def test_speed_finds_the_optimum_of_every_library() -> None:
    done = run_bench("speed.py", str(SHARED), "--quick", "--libraries", "dpsvm", "scikit-learn")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "another optimum than scikit-learn on: none of 1" in done.stdout


@needs_data
def test_roofline_counts_the_kernel_values_of_both_precisions() -> None:
    done = run_bench("roofline.py", str(SHARED), "--quick")
    assert done.returncode == 0, done.stdout + done.stderr
    for workload, layout in (("a1a", "bits"), ("heart", "dense")):
        for dtype in ("float32", "float64"):
            assert re.search(rf"{workload} +{dtype} +{layout} ", done.stdout)


@needs_data
@needs_perf
def test_profiles_sort_every_sample_into_a_phase() -> None:
    done = run_bench("profiles.py", str(SHARED), "--quick")
    if "perf cannot record" in done.stderr:
        pytest.skip(done.stderr.strip())
    assert done.returncode == 0, done.stdout + done.stderr
    shares = re.findall(
        r"^  a5a float32 +[a-zA-Z ]+?  +(?:[\d.]+%|-) +([\d.]+)%", done.stdout, re.M
    )
    assert sum(map(float, shares)) == pytest.approx(100, abs=1)


@pytest.mark.skipif(find_spec("clarabel") is None, reason="no clarabel")
def test_core_fuzz_finds_nothing() -> None:
    done = run_bench("core_fuzz.py", "--quick", "--count", "300")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "300 cases of seed 1, 0 failed" in done.stdout


@pytest.mark.parametrize("case", [41, 1012, 3429, 3542, 4361])  # each of them failed once
def test_cases_that_the_core_fuzz_found_stay_mended(case: int) -> None:
    pytest.importorskip("clarabel")
    done = run_bench("core_fuzz.py", "--case", str(case))
    assert done.returncode == 0, done.stdout + done.stderr


def test_symbols_belong_to_phases() -> None:
    command = [sys.executable, "-m", "doctest", str(BENCH / "phases.py")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout


@needs_data
def test_speed_tells_every_bar_in_both_precisions() -> None:
    words = ("--all", "--quick", "--libraries", "dpsvm", "scikit-learn")
    done = run_bench("speed.py", str(SHARED), *words)
    assert done.returncode == 0, done.stdout + done.stderr
    for dtype, goal in (("float64", 2), ("float32", 3)):
        for title in ("Fit", "Predict", "The fastest other's time over dpsvm's"):
            assert f"{title}, {dtype}" in done.stdout
        for work in ("fit", "predict", "decision_function"):
            assert f"{dtype}: {work}, no workload below 1: " in done.stdout
            bar = f"{dtype}: {work}, geometric mean of the fastest other's time over dpsvm's"
            assert f"{bar} at least {goal}: " in done.stdout
        for which in ("smallest", "largest"):
            bar = f"{dtype}: memory of the fit no more than the {which} other's: "
            assert bar in done.stdout
        assert f"{dtype}: objective within 1e-06 of LIBSVM's: yes" in done.stdout


@needs_data
def test_speed_goes_on_from_the_runs_it_kept(tmp_path: Path) -> None:
    words = ["--quick", "--libraries", "dpsvm", "--keep", str(tmp_path / "runs.json")]
    first = run_bench("speed.py", str(SHARED), *words)
    again = run_bench("speed.py", str(SHARED), *words)
    assert "1/1 dpsvm" in first.stderr
    assert again.stderr == ""
    assert again.stdout == first.stdout
    other = run_bench("speed.py", str(SHARED), *words, "--threads", "1")
    assert other.returncode == 1
    assert "take another file" in other.stderr


@needs_data
def test_speed_puts_liblinear_beside_a_linear_kernel() -> None:
    words = ("--workloads", "svmguide1-linear", "heart", "--libraries", "dpsvm", "liblinear")
    done = run_bench("speed.py", str(SHARED), "--quick", *words)
    assert done.returncode == 0, done.stdout + done.stderr
    lines = [line.split() for line in done.stdout.splitlines()]
    assert sum(words[:2] == ["svmguide1-linear", "liblinear"] for words in lines) == 2
    assert not any(words[:2] == ["heart", "liblinear"] for words in lines)


def test_speed_fails_on_an_optimum_that_is_not_libsvms(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(BENCH)
    turns, bars = import_module("turns"), import_module("speed_bars")

    def judged(objective: float) -> dict[str, bool]:
        own = {"seconds": 1.0, "predict_seconds": 1.0, "fit_mb": 9.0, "taken": 0.0}
        other = own | {"seconds": 4.0, "fit_mb": 8.0, "objective": -100.0}
        runs = {
            "dpsvm": turns.Runs([own | {"objective": objective}]),
            "LIBSVM": turns.Runs([other]),
            "scikit-learn": turns.Runs([{"absent": "not installed"}]),
        }
        return {v.line: v.failed for v in bars.judge({"heart": runs}, "float64")}

    near, far = judged(-100.00009), judged(-100.00011)
    assert not any(near.values())
    assert sum(far.values()) == 1
    assert far["float64: objective within 1e-06 of LIBSVM's: NO, apart: heart (-1.1e-06) of 1"]
    told = "\n".join(near)
    assert "fit, geometric mean of the fastest other's time over dpsvm's at least 2: yes, 4" in told
    assert "no more than the largest other's: NO, more on: heart (+1.0 MB) of 1" in told


def test_every_library_is_run_in_every_round_and_a_failed_one_once(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.syspath_prepend(BENCH)
    turns = import_module("turns")
    seconds = {"dpsvm": 2.0, "slow": 600.0, "failed": None}

    def fit_once(library: str, *_: object, **__: object) -> dict[str, object]:
        took = seconds[library]
        return {"absent": "failed"} if took is None else {"seconds": took}

    monkeypatch.setattr(turns, "fit_once", fit_once)
    runs = turns.take_turns("heart", list(seconds), tmp_path, turns.Plan(repeats=5, threads=1))
    counts = {name: len(known.answers) for name, known in runs.items()}
    assert counts == {"dpsvm": 5, "slow": 5, "failed": 1}


def test_growth_tells_seconds_and_exponents() -> None:
    done = run_bench("growth.py", "--quick", "--libraries", "dpsvm", "scikit-learn")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "dpsvm gave no answer at: none" in done.stdout
    assert "scikit-learn: exponent " in done.stdout


def test_accounting_lies_between_dp_accountings_bounds() -> None:
    pytest.importorskip("dp_accounting")
    done = run_bench("accounting.py", "--quick")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "optimistic and pessimistic estimates: 4 of 4" in done.stdout


def test_no_sensitivity_bound_is_exceeded_by_a_short_attack() -> None:
    done = run_bench("sensitivity_attack.py", "--quick")
    assert done.returncode == 0, done.stdout + done.stderr
    assert re.search(r"^bounds exceeded: 0 of \d+$", done.stdout, re.M)
    assert "output: norm of w - w': the tightest ratio found is " in done.stdout


@needs_data
def test_the_audit_refutes_what_is_wrong_and_not_what_is_right() -> None:
    done = run_bench("audit.py", str(SHARED), "--quick", "--jobs", "1")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "unique feature: not private for any epsilon: yes" in done.stdout
    assert "what has the right noise is not refuted: yes, 3 of 3" in done.stdout
    assert "a quarter of the noise is caught: yes, 2 of 2" in done.stdout


@needs_data
def test_dpwss_behaves_as_published_on_a_few_seeds() -> None:
    done = run_bench("dpwss.py", str(SHARED), "--quick")
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.count("within 6%") == 5
    assert "an iteration of dpwss at most 1.3 times wss2's: " in done.stdout


@needs_data
@needs_libsvm
def test_models_are_exchanged_with_libsvm() -> None:
    done = run_bench("interop.py", str(SHARED), "--quick")
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.skipif(
    not all(map(shutil.which, ("svm-grid", "svm-easy"))) or not Path("/usr/bin/gnuplot").exists(),
    reason="LIBSVM's scripts are not on PATH, or no gnuplot",
)
@needs_libsvm
def test_libsvms_grid_finds_the_same_point_with_our_programs() -> None:
    done = run_bench("libsvm_scripts.py", "--quick")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "points of grid.py with another rate: 0 of 4" in done.stdout


@pytest.mark.skipif(os.name != "posix", reason="programs with a first line")
def test_commands_load_nothing_they_do_not_need() -> None:
    done = run_bench("startup.py", "--quick")
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.rstrip().endswith(": none")


@needs_data
def test_threads_give_the_serial_answers_and_print_nothing() -> None:
    done = run_bench("threads.py", str(SHARED), "--quick")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "bytes written to stdout by the fits: 0" in done.stdout
    assert "one thread and two give the same bits: yes" in done.stdout


@needs_data
@needs_compiler
def test_the_levels_this_processor_runs_give_the_same_bits() -> None:
    done = run_bench("avx512.py", str(SHARED), "--quick")
    assert done.returncode == 0, done.stdout + done.stderr
    row = r"heart_scale +c-svc +rbf +float64 +162 +-100.877288 +132 +agrees"
    assert re.search(row, done.stdout)


@needs_data
def test_both_readers_give_the_same_matrix() -> None:
    done = run_bench("reading.py", str(SHARED), "--quick")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "the same matrices: yes" in done.stdout


def test_float32_keeps_to_float64_and_no_bit_depends_on_who_shares_the_work() -> None:
    done = run_bench("float32.py", "--quick")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "objective within 1e-06: yes, 48 of 48" in done.stdout
    assert "decision values within 0.0001 of their range: yes, 48 of 48" in done.stdout
    assert "iterations at most 1.5 times: yes, 48 of 48" in done.stdout
    assert "threads, caches and batches change no bit: yes, 10 of 10" in done.stdout


@needs_compiler
def test_the_row_reader_survives_mutated_lines_under_sanitizers() -> None:
    done = run_bench("fuzz.py", "--quick", "--cpp-only")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "no crash, no hang, no uncaught exception: yes" in done.stdout


def test_mutated_files_are_accepted_or_refused_never_worse(tmp_path: Path) -> None:
    done = run_bench("fuzz_readers.py", "--folder", str(tmp_path), "--count", "400")
    assert done.returncode == 0, done.stderr
    for kind in ("data accepted", "data refused", "model accepted", "model refused"):
        assert f'"{kind}"' in done.stdout


def test_a_missing_data_folder_is_one_line_and_exit_code_2(tmp_path: Path) -> None:
    done = run_bench("exactness.py", str(tmp_path))
    assert done.returncode == 2
    assert done.stdout == ""
    assert done.stderr.count("\n") == 1
    assert f"no data/ in {tmp_path}" in done.stderr


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="no /proc")
def test_memory_holds_the_rows_once() -> None:
    done = run_bench("memory.py", "--quick")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "where none are: yes" in done.stdout
