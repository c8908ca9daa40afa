"""The baselines reach what they should: the same optimum, or a worse one for a reason."""

from __future__ import annotations

import numpy as np
import pytest
from sharing_problems import make_problem, members, solve, weights
from sklearn.linear_model import LogisticRegression

from dpsvm.admm.sharing import Columns, Coordinator, Terms
from dpsvm.admm.sharing.baselines import SGDSettings, central, distributed_sgd, gauss_seidel
from dpsvm.admm.sharing.history import History, Recorder
from dpsvm.losses import make_prediction_loss

LOGISTIC = make_prediction_loss("logistic")


def _objective(blocks, y, x, lam):
    return np.logaddexp(0, -y * (np.hstack(blocks) @ x)).sum() + lam / 2 * x @ x


def _reference(blocks, y, lam):
    model = LogisticRegression(C=1 / lam, fit_intercept=False, solver="newton-cholesky", tol=1e-12)
    return model.fit(np.hstack(blocks), y).coef_.ravel()


def test_the_central_model_is_scikit_learns() -> None:
    blocks, y = make_problem()
    x = central([*map(Columns, blocks)], y, LOGISTIC, Terms.of(parties=3, rho=1.0, lam=0.5))
    assert np.abs(x - _reference(blocks, y, 0.5)).max() <= 1e-6


@pytest.mark.parametrize("loss", ["hinge", "squared"])
def test_the_central_model_of_a_kinked_problem_is_that_of_a_long_run(loss: str) -> None:
    blocks, y = make_problem(1)
    settings = {"lam": 0.5, "penalty": "l1" if loss == "squared" else "l2"}
    terms = Terms.of(parties=3, rho=1.0, **settings)
    x = central([*map(Columns, blocks)], y, make_prediction_loss(loss), terms)
    _, parties = solve(blocks, y, loss, rounds=5000, tol=1e-11, relaxation=1.8, **settings)
    assert np.abs(x - weights(parties)).max() <= 1e-5


def test_gauss_seidel_reaches_the_optimum_and_needs_fewer_rounds() -> None:
    blocks, y = make_problem(2)
    wanted = _reference(blocks, y, 0.5)
    terms = Terms.of(parties=3, rho=0.3, lam=0.5, kappa=1.0)
    parties, history, parallel = members(blocks, terms), History(), History()
    gauss_seidel(Coordinator(y, LOGISTIC, terms, rounds=300), parties, Recorder(history))
    assert np.abs(weights(parties) - wanted).max() <= 1e-8
    solve(blocks, y, lam=0.5, rounds=300, watch=Recorder(parallel))
    assert history.rounds_to(1e-6) < parallel.rounds_to(1e-6)


def test_gauss_seidel_minimises_the_augmented_lagrangian_party_by_party() -> None:
    blocks, y = make_problem(3, regression=True)
    rho, lam = 0.2, 0.5
    terms = Terms.of(parties=3, rho=rho, lam=lam, kappa=1.0)
    parties = members(blocks, terms)
    gauss_seidel(Coordinator(y, make_prediction_loss("squared"), terms, rounds=5), parties)
    x, dual = [np.zeros(D.shape[1]) for D in blocks], np.zeros(len(y))
    for _ in range(5):
        total = sum(D @ xm for D, xm in zip(blocks, x, strict=True))
        z = (y + dual + rho * total) / (1 + rho)
        dual = dual + rho * (total - z)
        for m, D in enumerate(blocks):
            others = sum(blocks[k] @ x[k] for k in range(3) if k != m)
            right = D.T @ (rho * (z - others) - dual)
            x[m] = np.linalg.solve(lam * np.eye(D.shape[1]) + rho * D.T @ D, right)
    assert np.abs(weights(parties) - np.concatenate(x)).max() <= 1e-12


def test_gauss_seidel_with_another_kappa_is_refused() -> None:
    blocks, y = make_problem(4)
    terms = Terms.of(parties=3, rho=0.3)
    with pytest.raises(ValueError, match="Gauss-Seidel needs kappa = 1, got 3"):
        gauss_seidel(Coordinator(y, LOGISTIC, terms, rounds=1), members(blocks, terms))


def test_distributed_sgd_comes_near_the_optimum_and_noise_keeps_it_away() -> None:
    blocks, y = make_problem(5, n=300)
    terms, columns = Terms.of(parties=3, rho=1.0), [*map(Columns, blocks)]
    lowest = _objective(blocks, y, _reference(blocks, y, 1.0), 1.0)

    def last(**settings):
        how = SGDSettings(rate=2.0, batch=30, **settings)
        *_, x = distributed_sgd(columns, y, LOGISTIC, terms, 200, settings=how)
        return _objective(blocks, y, np.concatenate(x), 1.0)

    assert lowest < last() < 1.01 * lowest
    assert last(clip=0.05, noise=5.0) > last()


def test_noisy_sgd_says_that_it_has_no_guarantee() -> None:
    assert SGDSettings.GUARANTEE is None
    assert "no privacy guarantee" in SGDSettings.LABEL
