"""What the distributed families share."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from sharing_problems import make_problem

from dpsvm import PrivacyLeakWarning
from dpsvm.admm import SharingADMMClassifier


def test_a_pickled_history_of_a_private_run_holds_nothing_outside_the_guarantee() -> None:
    blocks, y = make_problem(6)
    bounds = {"data_norm": 3.0, "radius": 2.0, "target_bound": 3.0}
    private = SharingADMMClassifier(privacy="row", epsilon=1.0, delta=1e-5, rounds=3, **bounds)
    with pytest.warns(PrivacyLeakWarning, match="repeatable"):
        history = private.set_params(random_state=0).fit(blocks, y).history_
    kept = pickle.loads(pickle.dumps(history))
    for name in history.OUTSIDE:
        assert np.all(np.isnan(kept[name]))
    assert np.array_equal(kept["released_loss"], history["released_loss"])
    assert kept.private
    plain = SharingADMMClassifier(rounds=3).fit(blocks, y).history_
    assert np.array_equal(pickle.loads(pickle.dumps(plain))["objective"], plain["objective"])
