"""Who uses a name that is gone is told what it is called now: in Python, in files, in flags."""

from __future__ import annotations

import doctest
import inspect
from pathlib import Path
from typing import Any

import pytest
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV

import dpsvm._renamed
from dpsvm.admm import MADMM, NetworkADMM, SharingADMMClassifier, SharingADMMRegressor
from dpsvm.cli import main
from dpsvm.federation import Job
from dpsvm.federation.config import SiteConfig
from dpsvm.federation.members import Shape, make_lead
from dpsvm.federation.site import Site
from dpsvm.frank_wolfe import FrankWolfeLasso
from dpsvm.privacy.noise import Noise

GONE = [
    (SharingADMMClassifier, "weight", "C"),
    (SharingADMMRegressor, "row_norm", "data_norm"),
    (NetworkADMM, "eta", "rho"),
    (MADMM, "iterations", "rounds"),
    (FrankWolfeLasso, "eta", "radius"),
]


def test_the_examples_run() -> None:
    assert doctest.testmod(dpsvm._renamed).failed == 0


@pytest.mark.parametrize(("kind", "old", "new"), GONE)
def test_a_keyword_that_is_gone_names_the_one_that_it_is_called_now(
    kind: Any, old: str, new: str
) -> None:
    with pytest.raises(ValueError, match=f"{old!r} is called {new!r} now"):
        kind(**{old: 1})


@pytest.mark.parametrize(("kind", "old", "new"), GONE)
def test_a_parameter_that_is_gone_cannot_be_set(kind: Any, old: str, new: str) -> None:
    with pytest.raises(ValueError, match=f"{old!r} is called {new!r} now"):
        kind().set_params(**{old: 1})
    search = GridSearchCV(kind(), {old: [1]}, error_score="raise", cv=2)
    with pytest.raises(ValueError, match=f"{old!r} is called {new!r} now"):
        search.fit([[0.0], [1.0]] * 4, [0, 1] * 4)
    assert kind().set_params(**{new: 1}).get_params()[new] == 1


@pytest.mark.parametrize("kind", [SharingADMMClassifier, NetworkADMM])
def test_a_loss_that_is_gone(kind: Any) -> None:
    with pytest.raises(ValueError, match="'smooth-hinge' is called 'huber' now"):
        kind(loss="smooth-hinge").fit([[0.0], [1.0]] * 4, [0, 1] * 4)


@pytest.mark.parametrize(
    "kind", [SharingADMMClassifier, SharingADMMRegressor, NetworkADMM, FrankWolfeLasso]
)
def test_the_signature_that_scikit_learn_inspects_is_the_constructors_own(kind: type) -> None:
    assert "settings" not in inspect.signature(kind).parameters
    assert clone(kind()).get_params() == kind().get_params()


@pytest.mark.parametrize(
    ("algorithm", "old", "new"),
    [
        ("sharing", "weight", "C"),
        ("sharing", "row_norm", "data_norm"),
        ("network", "iterations", "rounds"),
        ("network", "eta", "rho"),
        ("frank-wolfe", "eta", "radius"),
    ],
)
def test_a_setting_of_a_job_that_is_gone(algorithm: str, old: str, new: str) -> None:
    settings = {old: 1, "radius": 1.0, "rounds": 1} if algorithm == "frank-wolfe" else {old: 1}
    owner = None if algorithm == "network" else "lab"
    job = Job("r", algorithm, ("lab", "clinic"), owner, settings, ids=False)
    with pytest.raises(ValueError, match=f"settings: {old!r} is called {new!r} now"):
        make_lead(job, Site("lab", labels=[0, 1]), Shape(2, (1, 1), 1), Noise(0))


def test_a_bound_of_a_site_that_is_gone(tmp_path: Path) -> None:
    path = tmp_path / "lab.toml"
    path.write_text("name = 'lab'\nstate = 's'\n[bounds]\nrow_norm = 1.0\n")
    with pytest.raises(ValueError, match=r"\[bounds\] 'row_norm' is called 'data_norm' now"):
        SiteConfig.load(path)


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["vertical", "--split", "4,5", "train"], "--split is called --parties now"),
        (["vertical", "--weight=2", "train"], "--weight is called --C now"),
        (["vertical", "--row-norm", "1", "train"], "--row-norm is called --data-norm now"),
        (["network", "--cost", "1", "train"], "--cost is called --C now"),
        (["network", "--eta", "1", "train"], "--eta is called --rho now"),
        (["network", "--iterations", "9", "train"], "--iterations is called --rounds now"),
        (["lasso", "--eta", "1", "train"], "--eta is called --radius now"),
        (["vertical", "--loss", "smooth-hinge", "train"], "'smooth-hinge' is called 'huber' now"),
        (["network", "--loss=smooth-hinge", "train"], "'smooth-hinge' is called 'huber' now"),
    ],
)
def test_a_flag_that_is_gone(
    words: list[str], told: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(words) == 2
    assert told in capsys.readouterr().err
