"""Comparisons: LIBSVM's own counts, the paper's measures, and runs that survive an interruption."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from shared_data import SHARED, needs_data
from sklearn.datasets import make_classification
from sklearn.metrics import f1_score, matthews_corrcoef, roc_auc_score

from dpsvm import compare
from dpsvm.comparison import Comparison, Dataset, Journal, Plan, Scores, Setting, Task, grid
from dpsvm.comparison.boundary import boundary
from dpsvm.comparison.charts import curves
from dpsvm.comparison.scores import auc, auc_stable
from dpsvm.comparison.words import undrawn
from dpsvm.data import load_libsvm


@pytest.fixture(scope="module")
def blobs():
    return make_classification(120, 6, n_informative=4, flip_y=0.2, random_state=0)


@pytest.fixture(scope="module")
def found(blobs):
    return compare(*blobs, sigma=[0.1, 0.7], shrinking=[True, False], runs=3, name="blobs")


@needs_data
class TestThePaper:
    @pytest.mark.parametrize(
        ("name", "shrinking", "iterations", "precision", "recall", "stable_auc"),
        [
            ("heart_scale", False, 1010, 0.8376, 0.8167, None),
            ("sonar_scale", True, 1492, 0.8641, 0.9175, 0.9495),
            ("ionosphere_scale", False, 770, 0.9283, 0.9778, 0.9677),
        ],
    )
    def test_wss2_has_the_published_numbers(
        self,
        name: str,
        shrinking: bool,
        iterations: int,
        precision: float,
        recall: float,
        stable_auc: float | None,
    ) -> None:
        X, y = load_libsvm(SHARED / "data" / f"{name}.xz")
        found = compare(X, y, selectors=["wss2"], shrinking=[shrinking])
        [run] = found.summaries[0].runs
        assert run.iterations == iterations
        assert round(run.train.precision, 4) == precision
        assert round(run.train.recall, 4) == recall
        if stable_auc is not None:
            assert run.train.auc_stable == pytest.approx(stable_auc, abs=3e-4)

    def test_dpwss_ends_exhausted_in_fewer_iterations_and_far_from_optimal(self) -> None:
        X, y = load_libsvm(SHARED / "data" / "heart_scale.xz")
        line = compare(X, y, selectors=["dpwss"], sigma=[0.7], runs=20).summaries[1]
        assert line.stops == {"exhausted": 20}
        assert 0.25 < line.iteration_ratio < 0.5
        assert line.gap.low > 0.03


class TestScores:
    def test_agree_with_scikit_learn(self) -> None:
        random = np.random.default_rng(3)
        score = random.normal(size=200).round(1)
        positive = random.random(200) < 0.3 + 0.1 * score
        predicted = score > 0
        ours = Scores.of(score, predicted, positive)
        assert ours.auc == pytest.approx(roc_auc_score(positive, score))
        assert ours.f1 == pytest.approx(f1_score(positive, predicted))
        assert ours.mcc == pytest.approx(matthews_corrcoef(positive, predicted))

    def test_the_two_aucs_differ_by_ties_alone(self) -> None:
        tied = np.zeros(4)
        first = np.array([True, True, False, False])
        assert auc(tied, first) == 0.5
        assert auc_stable(tied, first) == 1.0
        assert auc_stable(tied, first[::-1]) == 0.0

    def test_what_is_not_defined_is_nan(self) -> None:
        none = np.array([False, False])
        scores = Scores.of(np.array([1.0, 2.0]), none, none)
        assert math.isnan(scores.precision)
        assert math.isnan(scores.auc)


class TestDataset:
    def test_the_class_order_is_libsvms(self) -> None:
        X = np.arange(4.0)[:, None]
        assert Dataset.of(X, [-1, 1, -1, 1]).labels == (1, -1)
        assert Dataset.of(X, [2, 1, 2, 1]).labels == (2, 1)
        assert Dataset.of(X, ["no", "yes", "no", "no"]).labels == ("no", "yes")

    def test_the_larger_label_is_positive(self) -> None:
        data = Dataset.of(np.arange(3.0)[:, None], [0, 1, 1])
        assert data.positive.tolist() == [False, True, True]

    def test_sparse_rows_count_their_zeros_in_the_range(self) -> None:
        facts = Dataset.of(sp.csr_array([[0.0, 2.0], [3.0, 0.0], [2.0, 5.0]]), [1, 1, -1]).facts
        assert (facts.low, facts.high, facts.imbalance) == (0.0, 5.0, 2.0)

    @pytest.mark.parametrize("y", [[1, 1, 1], [1, 2, 3], [1.0, np.nan, 0.0], [1, 2]])
    def test_anything_but_two_classes_is_refused(self, y: list[float]) -> None:
        with pytest.raises(ValueError, match=r"classes|NaN|one label per row"):
            Dataset.of(np.zeros((3, 1)), y)

    def test_a_held_out_label_never_seen_is_refused(self) -> None:
        data = Dataset.of(np.zeros((2, 1)), [1, -1])
        with pytest.raises(ValueError, match="label 3"):
            data.coded(np.zeros((1, 1)), [3])

    def test_the_fingerprint_follows_the_data(self) -> None:
        data = Dataset.of(np.eye(2), [1, -1])
        assert data.fingerprint == Dataset.of(np.eye(2), [1, -1], "other").fingerprint
        assert data.fingerprint != Dataset.of(np.eye(2), [-1, 1]).fingerprint


class TestComparison:
    def test_every_setting_has_its_runs(self, found: Any) -> None:
        counts = {line.setting: len(line.runs) for line in found.summaries}
        assert counts[Setting("wss1")] == 1
        assert counts[Setting("dpwss", False, selection_epsilon=1.0, sigma=0.7)] == 3
        assert len(counts) == 18

    def test_wss2_is_its_own_measure(self, found: Any) -> None:
        for line in found.summaries:
            if line.setting.is_reference:
                assert line.iteration_ratio == 1.0
                assert line.objective_error.high == 0.0

    def test_the_same_seed_gives_the_same_runs(self, blobs: Any, found: Any) -> None:
        again = compare(*blobs, sigma=[0.1, 0.7], shrinking=[True, False], runs=3, n_jobs=2)
        for first, second in zip(found.summaries, again.summaries, strict=True):
            assert [run.iterations for run in first.runs] == [run.iterations for run in second.runs]
            assert first.objective == second.objective

    def test_cross_validation_and_held_out_rows_are_scored(self, blobs: Any) -> None:
        X, y = blobs
        found = compare(X[:80], y[:80], selectors=["wss1"], cv=4, test=(X[80:], y[80:]))
        for line in found.summaries:
            cv, test = line.scores("cv"), line.scores("test")
            assert 0.5 < cv.accuracy < 1.0
            assert 0.5 < test.accuracy < 1.0
            assert cv != test

    def test_the_trace_ends_with_the_run(self, found: Any) -> None:
        for line in found.summaries:
            trace = found.traces[line.setting]
            assert trace["iteration"][-1] == line.runs[0].iterations
            assert trace["objective"][-1] == pytest.approx(line.runs[0].objective, rel=1e-6)

    def test_the_frame_has_a_line_per_setting(self, found: Any) -> None:
        pytest.importorskip("pandas")
        frame = found.to_frame()
        assert len(frame) == 18
        assert frame.loc[0, "iteration_ratio"] == 1.0
        assert {"train_auc", "train_auc_stable", "stopped_exhausted"} <= set(frame.columns)

    def test_the_figure_has_four_charts(self, found: Any) -> None:
        pytest.importorskip("matplotlib")
        assert len(found.plot().axes) == 4

    @pytest.mark.parametrize("shrinking", [True, False])
    def test_every_curve_goes_on_to_the_last_step_and_its_gap(
        self, found: Any, shrinking: bool
    ) -> None:
        drawn = {curve.setting: curve for curve in curves(found, shrinking)}
        lines = [line for line in found.summaries if line.setting.shrinking == shrinking]
        assert list(drawn) == [line.setting for line in lines]
        for line in lines:
            curve, run = drawn[line.setting], line.runs[0]
            assert (curve.steps[0], curve.steps[-1]) == (0, run.iterations)
            assert curve.gap[-1] == run.gap
            assert curve.objective[-1] == pytest.approx(run.objective, rel=1e-6)

    def test_a_setting_without_a_boundary_is_named(self, blobs: Any) -> None:
        found = compare(*blobs, selectors=["wss1", "dpwss"], sigma=(0.1, 0.3, 0.5, 0.7, 0.9))
        drawn = boundary(found).drawn
        assert len(drawn) == 4
        assert undrawn(found, drawn) == "Not drawn: wss1, dpwss eps=1 sigma=0.5."

    def test_the_notes_count_exhausted_runs_and_deny_a_guarantee(self, found: Any) -> None:
        first, *_, last = found.notes(shrinking=True)
        assert first.startswith("6 of 6 dpwss runs ended exhausted")
        assert "No privacy guarantee" in last

    def test_without_dpwss_there_is_nothing_to_note(self, blobs: Any) -> None:
        assert compare(*blobs, selectors=["wss1"]).notes(shrinking=True) == []

    def test_a_sigma_of_nine_tenths_is_shown_to_stop_early(self, blobs: Any) -> None:
        found = compare(*blobs, selectors=["dpwss"], sigma=[0.9], runs=4)
        assert any("a run stopped after" in note for note in found.notes(shrinking=True))

    @pytest.mark.parametrize(
        ("change", "words"),
        [
            ({"selectors": ["wss9"]}, "selector must be"),
            ({"sigma": [1.5]}, "sigma must be"),
            ({"selection_epsilon": [0]}, "selection_epsilon must be"),
            ({"sigma": []}, "no sigma"),
            ({"shrinking": []}, "no shrinking"),
            ({"runs": 0}, "runs must be"),
            ({"cv": 1}, "cv must be"),
            ({"cv": 100}, "100 folds"),
            ({"seed": -1}, "seed must be"),
            ({"C": -1.0}, "C must be"),
            ({"kernel": "precomputed"}, "precomputed"),
        ],
    )
    def test_a_bad_value_is_named(self, blobs: Any, change: dict[str, Any], words: str) -> None:
        with pytest.raises(ValueError, match=words):
            compare(*blobs, **change)

    def test_one_iteration_too_few_is_counted_as_such(self, blobs: Any) -> None:
        line = compare(*blobs, selectors=["wss1"], max_iter=5).summaries[0]
        assert line.stops == {"max_iter": 1}


class TestResuming:
    def test_runs_in_the_journal_are_not_made_again(
        self, blobs: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        path = tmp_path / "runs"
        first = compare(*blobs, selectors=["dpwss"], runs=3, resume=path)
        monkeypatch.setattr(Task, "run", lambda *_: pytest.fail("a run was made"))
        second = compare(*blobs, selectors=["dpwss"], runs=3, resume=path)
        assert first.to_dict() == second.to_dict()

    def test_an_interrupted_comparison_keeps_what_it_has(self, blobs: Any, tmp_path: Path) -> None:
        plan, journal = Plan(settings=grid(["dpwss"]), runs=4), Journal(tmp_path / "runs")
        runs, left = {}, iter(range(3))

        def tick():
            if next(left) == 2:
                raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            Comparison.of(plan, Dataset.of(*blobs), journal=journal, tick=tick, into=runs)
        assert len((tmp_path / "runs").read_text().splitlines()) == 3
        assert sum(map(len, runs.values())) == 2

    def test_a_line_cut_short_is_dropped_and_made_again(self, blobs: Any, tmp_path: Path) -> None:
        path = tmp_path / "runs"
        compare(*blobs, selectors=["wss1"], resume=path)
        whole = path.read_text()
        path.write_text(whole[:-10])
        compare(*blobs, selectors=["wss1"], resume=path)
        lines = [json.loads(line) for line in path.read_text().splitlines()]
        assert sorted(line["key"]["selector"] for line in lines) == ["wss1", "wss2"]

    def test_other_data_or_settings_are_other_runs(self, blobs: Any, tmp_path: Path) -> None:
        X, y = blobs
        path = tmp_path / "runs"
        compare(X, y, selectors=["wss2"], resume=path)
        compare(X, y, selectors=["wss2"], C=2.0, resume=path)
        compare(X + 1, y, selectors=["wss2"], resume=path)
        assert len(path.read_text().splitlines()) == 3

    @pytest.mark.parametrize("text", ["{}\n", "my notes", '{"key": 1, "run": 2}\n'])
    def test_a_file_that_is_no_journal_is_refused_and_left_alone(
        self, text: str, blobs: Any, tmp_path: Path
    ) -> None:
        path = tmp_path / "notes"
        path.write_text(text)
        with pytest.raises(ValueError, match="notes:1: not a line of a comparison"):
            compare(*blobs, resume=path)
        assert path.read_text() == text
