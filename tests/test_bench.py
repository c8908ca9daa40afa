"""Each benchmark runs to the end on a small subset, and agrees. No time is ever judged here."""

from __future__ import annotations

import doctest
import os
import re
import shutil
from importlib.util import find_spec
from pathlib import Path

import pytest
from benches import report_of, run_bench
from shared_data import SHARED, needs_data

from bench.speed import phases, speed_bars, turns

needs_libsvm = pytest.mark.skipif(
    shutil.which("svm-train") is None or shutil.which("svm-predict") is None,
    reason="LIBSVM's programs are not on PATH",
)
needs_perf = pytest.mark.skipif(shutil.which("perf") is None, reason="no perf")
needs_compiler = pytest.mark.skipif(shutil.which("g++") is None, reason="no g++")


@needs_data
def test_exactness_agrees_on_the_quick_sets() -> None:
    report = report_of("core/exactness.py", str(SHARED), "--quick")
    assert "LIBSVM 3.24 as printed (truth/libsvm.csv): 8 of 8" in report


@needs_data
def test_speed_finds_the_optimum_of_every_library() -> None:
    report = report_of(
        "speed/speed.py", str(SHARED), "--quick", "--libraries", "dpsvm", "scikit-learn"
    )
    assert "another optimum than scikit-learn on: none of 1" in report


@needs_data
def test_roofline_counts_the_kernel_values_of_both_precisions() -> None:
    report = report_of("speed/roofline.py", str(SHARED), "--quick")
    for workload, layout in (("a1a", "bits"), ("heart", "dense")):
        for dtype in ("float32", "float64"):
            assert re.search(rf"{workload} +{dtype} +{layout} ", report)


@needs_data
@needs_perf
def test_profiles_sort_every_sample_into_a_phase() -> None:
    done = run_bench("speed/profiles.py", str(SHARED), "--quick")
    if "perf cannot record" in done.stderr:
        pytest.skip(done.stderr.strip())
    assert done.returncode == 0, done.stdout + done.stderr
    shares = re.findall(
        r"^  a5a float32 +[a-zA-Z ]+?  +(?:[\d.]+%|-) +([\d.]+)%", done.stdout, re.M
    )
    assert sum(map(float, shares)) == pytest.approx(100, abs=1)


@pytest.mark.skipif(find_spec("clarabel") is None, reason="no clarabel")
def test_core_fuzz_finds_nothing() -> None:
    report = report_of("fuzz/core_fuzz.py", "--quick", "--count", "300")
    assert "300 cases of seed 1, 0 failed" in report


@pytest.mark.parametrize("case", [41, 1012, 3429, 3542, 4361])  # each of them failed once
def test_cases_that_the_core_fuzz_found_stay_mended(case: int) -> None:
    pytest.importorskip("clarabel")
    report_of("fuzz/core_fuzz.py", "--case", str(case))


def test_symbols_belong_to_phases() -> None:
    tried = doctest.testmod(phases)
    assert tried.attempted > 0
    assert tried.failed == 0


@needs_data
def test_speed_tells_every_bar_in_both_precisions() -> None:
    words = ("--all", "--quick", "--libraries", "dpsvm", "scikit-learn")
    report = report_of("speed/speed.py", str(SHARED), *words)
    for dtype, goal in (("float64", 2), ("float32", 3)):
        for title in ("Fit", "Predict", "The fastest other's time over dpsvm's"):
            assert f"{title}, {dtype}" in report
        for work in ("fit", "predict", "decision_function"):
            assert f"{dtype}: {work}, no workload below 1: " in report
            bar = f"{dtype}: {work}, geometric mean of the fastest other's time over dpsvm's"
            assert f"{bar} at least {goal}: " in report
        for which in ("smallest", "largest"):
            bar = f"{dtype}: memory of the fit no more than the {which} other's: "
            assert bar in report
        assert f"{dtype}: objective within 1e-06 of LIBSVM's: yes" in report


@needs_data
def test_speed_goes_on_from_the_runs_it_kept(tmp_path: Path) -> None:
    words = ["--quick", "--libraries", "dpsvm", "--keep", str(tmp_path / "runs.json")]
    first = run_bench("speed/speed.py", str(SHARED), *words)
    again = run_bench("speed/speed.py", str(SHARED), *words)
    assert "1/1 dpsvm" in first.stderr
    assert again.stderr == ""
    assert again.stdout == first.stdout
    other = run_bench("speed/speed.py", str(SHARED), *words, "--threads", "1")
    assert other.returncode == 1
    assert "take another file" in other.stderr


@needs_data
def test_speed_puts_liblinear_beside_a_linear_kernel() -> None:
    words = ("--workloads", "svmguide1-linear", "heart", "--libraries", "dpsvm", "liblinear")
    report = report_of("speed/speed.py", str(SHARED), "--quick", *words)
    lines = [line.split() for line in report.splitlines()]
    assert sum(words[:2] == ["svmguide1-linear", "liblinear"] for words in lines) == 2
    assert not any(words[:2] == ["heart", "liblinear"] for words in lines)


def test_speed_fails_on_an_optimum_that_is_not_libsvms() -> None:
    def judged(objective: float) -> dict[str, bool]:
        own = {"seconds": 1.0, "predict_seconds": 1.0, "fit_mb": 9.0, "taken": 0.0}
        other = own | {"seconds": 4.0, "fit_mb": 8.0, "objective": -100.0}
        runs = {
            "dpsvm": turns.Runs([own | {"objective": objective}]),
            "LIBSVM": turns.Runs([other]),
            "scikit-learn": turns.Runs([{"absent": "not installed"}]),
        }
        return {v.line: v.failed for v in speed_bars.judge({"heart": runs}, "float64")}

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
    seconds = {"dpsvm": 2.0, "slow": 600.0, "failed": None}

    def fit_once(library: str, *_: object, **__: object) -> dict[str, object]:
        took = seconds[library]
        return {"absent": "failed"} if took is None else {"seconds": took}

    monkeypatch.setattr(turns, "fit_once", fit_once)
    runs = turns.take_turns("heart", list(seconds), tmp_path, turns.Plan(repeats=5, threads=1))
    counts = {name: len(known.answers) for name, known in runs.items()}
    assert counts == {"dpsvm": 5, "slow": 5, "failed": 1}


def test_growth_tells_seconds_and_exponents() -> None:
    report = report_of("speed/growth.py", "--quick", "--libraries", "dpsvm", "scikit-learn")
    assert "dpsvm gave no answer at: none" in report
    assert "scikit-learn: exponent " in report


def test_accounting_lies_between_dp_accountings_bounds() -> None:
    pytest.importorskip("dp_accounting")
    report = report_of("privacy/accounting.py", "--quick")
    assert "optimistic and pessimistic estimates: 4 of 4" in report


def test_no_sensitivity_bound_is_exceeded_by_a_short_attack() -> None:
    report = report_of("privacy/sensitivity_attack.py", "--quick")
    assert re.search(r"^bounds exceeded: 0 of \d+$", report, re.M)
    assert "output: norm of w - w': the tightest ratio found is " in report


def test_no_mutated_ledger_is_read() -> None:
    report = report_of("privacy/ledger_fuzz.py", "--quick")
    assert "read with another content, or any exception but a refusal: 0 of 1000" in report
    assert "read at all: 0 of 1000" in report


@needs_data
def test_the_audit_refutes_what_is_wrong_and_not_what_is_right() -> None:
    report = report_of("privacy/audit.py", str(SHARED), "--quick", "--jobs", "1")
    assert "unique feature: not private for any epsilon: yes" in report
    assert "what has the right noise is not refuted: yes, 3 of 3" in report
    assert "a quarter of the noise is caught: yes, 2 of 2" in report


@needs_data
def test_dpwss_behaves_as_published_on_a_few_seeds() -> None:
    report = report_of("comparison/dpwss.py", str(SHARED), "--quick")
    assert report.count("within 6%") == 5
    assert "an iteration of dpwss at most 1.3 times wss2's: " in report


@needs_data
@needs_libsvm
def test_models_are_exchanged_with_libsvm() -> None:
    report_of("interop/interop.py", str(SHARED), "--quick")


@pytest.mark.skipif(
    not all(map(shutil.which, ("svm-grid", "svm-easy"))) or not Path("/usr/bin/gnuplot").exists(),
    reason="LIBSVM's scripts are not on PATH, or no gnuplot",
)
@needs_libsvm
def test_libsvms_grid_finds_the_same_point_with_our_programs() -> None:
    report = report_of("interop/libsvm_scripts.py", "--quick")
    assert "points of grid.py with another rate: 0 of 4" in report


@pytest.mark.skipif(os.name != "posix", reason="programs with a first line")
def test_commands_load_nothing_they_do_not_need() -> None:
    report = report_of("speed/startup.py", "--quick")
    assert report.rstrip().endswith(": none")


@needs_data
def test_threads_give_the_serial_answers_and_print_nothing() -> None:
    report = report_of("core/threads.py", str(SHARED), "--quick")
    assert "bytes written to stdout by the fits: 0" in report
    assert "one thread and two give the same bits: yes" in report


@needs_data
@needs_compiler
def test_the_levels_this_processor_runs_give_the_same_bits() -> None:
    report = report_of("platforms/avx512.py", str(SHARED), "--quick")
    row = r"heart_scale +c-svc +rbf +float64 +162 +-100.877288 +132 +agrees"
    assert re.search(row, report)


@needs_data
def test_both_readers_give_the_same_matrix() -> None:
    report = report_of("speed/reading.py", str(SHARED), "--quick")
    assert "the same matrices: yes" in report


def test_float32_keeps_to_float64_and_no_bit_depends_on_who_shares_the_work() -> None:
    report = report_of("core/float32.py", "--quick")
    assert "objective within 1e-06: yes, 48 of 48" in report
    assert "decision values within 0.0001 of their range: yes, 48 of 48" in report
    assert "iterations at most 1.5 times: yes, 48 of 48" in report
    assert "threads, caches and batches change no bit: yes, 10 of 10" in report


@needs_compiler
def test_the_row_reader_survives_mutated_lines_under_sanitizers() -> None:
    report = report_of("fuzz/fuzz.py", "--quick", "--cpp-only")
    assert "no crash, no hang, no uncaught exception: yes" in report


def test_mutated_files_are_accepted_or_refused_never_worse(tmp_path: Path) -> None:
    done = run_bench("fuzz/fuzz_readers.py", "--folder", str(tmp_path), "--count", "400")
    assert done.returncode == 0, done.stderr
    for kind in ("data accepted", "data refused", "model accepted", "model refused"):
        assert f'"{kind}"' in done.stdout


def test_a_missing_data_folder_is_one_line_and_exit_code_2(tmp_path: Path) -> None:
    done = run_bench("core/exactness.py", str(tmp_path))
    assert done.returncode == 2
    assert done.stdout == ""
    assert done.stderr.count("\n") == 1
    assert f"no data/ in {tmp_path}" in done.stderr


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="no /proc")
def test_memory_holds_the_rows_once() -> None:
    report = report_of("speed/memory.py", "--quick")
    assert "where none are: yes" in report


@needs_data
def test_sharing_tells_convergence_privacy_and_speed() -> None:
    report = report_of("admm/sharing.py", str(SHARED), "--quick")
    for method in ("sharing, kappa = M", "Jacobi, kappa = 1", "Gauss-Seidel", "distributed SGD"):
        assert report.count(f"  {method}") == 2
    assert report.count("first party") >= 2
    assert re.search(r"corollary 1 +55\.17 +4e-05", report)
    assert "the weights of both differ by" in report


@needs_data
def test_network_tells_all_figures_time_and_memory() -> None:
    report = report_of("admm/network.py", str(SHARED), "--quick")
    for number in range(1, 6):
        assert re.search(rf"^Figure {number}: .* of 2 runs$", report, re.M)
    for panel in ("5 nodes", "20 nodes"):
        reads = re.findall(rf"^  \(a\) {panel} .* (\d+)$", report, re.M)
        assert [int(n) for n in reads] == [3 * int(panel.split()[0]), 5 * int(panel.split()[0])]
    tight = re.findall(r"ADMM .*  4\.695  +(\d\.\d+)  +2 c1 = 0\.5 < ", report)
    assert len(tight) == 4
    assert all(float(paper) > 4.695 for paper in tight)
    assert report.count("(paired t test, one sided, 2 runs)") == 3
    assert "times one scikit-learn fit of its rows" in report
    assert "at the peak, at most the data and N d^2 doubles" in report


@needs_data
def test_frank_wolfe_tells_theory_speed_uplink_and_privacy() -> None:
    pytest.importorskip("copt")
    report = report_of("frank_wolfe/frank_wolfe.py", str(SHARED), "--quick")
    assert len(re.findall(r"^Theorem 1 on the .*; all at most 1: yes$", report, re.M)) == 3
    assert "iterates of both differ by 0, at most 0: yes" in report
    for method in ("dpsvm, 2/(t+2)", "copt, sublinear", "scikit-learn's Lasso"):
        assert report.count(f"  {method} ") == 2
    assert re.search(r"reuters is not made dense: .*: yes$", report, re.M)
    assert "K T integers and m K T floats in 8 of 8 settings: yes" in report
    for method in ("winner sends (dFW)", "product problem, whole columns", "all features once"):
        assert method in report
    assert "F/F0 by n and epsilon" in report


def test_attacks_on_a_federation_get_what_nobody_claims_to_hide() -> None:
    report = report_of("federation/federation_attacks.py", "--quick")
    found = re.findall(r"^  (\S.*?)  +(\S.*?)  +\S+  +(\S+)  +([\d.]+|-)  +", report, re.M)
    now = {(attack, figure): float(value) for attack, figure, value, _ in found}
    for attack in ("passive, 60 rounds", "chosen prices, 40 rounds"):
        key = f"sums alone, {attack}"
        assert now[key, "dimensions of 31 of the joint column space"] == 31
        assert now[key, "largest sine of the true one to it"] < 1e-4
    assert now["200 sketches, a job that was approved", "rows of 569 of a column of 26 ones"] == 569
    claimed = re.search(r"^claims that hold: \d+ of (\d+)$", report, re.M)
    assert claimed is not None
    assert int(claimed[1]) == sum(bar != "-" for *_, bar in found)
