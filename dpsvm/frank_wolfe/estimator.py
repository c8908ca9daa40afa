"""The lasso over an l1 ball as a scikit-learn estimator, with or without parties and privacy."""

from __future__ import annotations

from collections.abc import Sequence
from numbers import Integral
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils._param_validation import Interval

from dpsvm._arrays import Array
from dpsvm._constructors import keeps_parameters
from dpsvm._renamed import FRANK_WOLFE
from dpsvm._sklearn import with_callbacks
from dpsvm.constraints import check_positive
from dpsvm.distributed.agreement import check_goes_with
from dpsvm.distributed.callbacks import Rounds, Tick
from dpsvm.distributed.estimator import DistributedEstimator, LinearRegressor
from dpsvm.distributed.labels import checked_numbers
from dpsvm.distributed.split import SplitColumns, is_blocks
from dpsvm.frank_wolfe.core import minimize
from dpsvm.frank_wolfe.distributed import DistributedFrankWolfe, DistributedResult
from dpsvm.frank_wolfe.messages import Traffic
from dpsvm.frank_wolfe.objectives import LeastSquares
from dpsvm.frank_wolfe.private import PrivateDistributedFrankWolfe, PrivateFrankWolfe
from dpsvm.frank_wolfe.sets import L1Ball
from dpsvm.frank_wolfe.steps import LINE_SEARCH, PAIRWISE
from dpsvm.privacy.accountant import BudgetAccountant
from dpsvm.privacy.release import keep_guarantee
from dpsvm.warnings import warn_caller

_OF_PARTIES = ("problem", "sketch", "sketch_seed", "tau", "cache", "send")
_OF_PRIVACY = ("delta", "entry_bound", "label_bound", "public_labels", "accountant")
_TOL, _STEPS = 1e-4, 1000


class FrankWolfeLasso(SplitColumns, LinearRegressor, DistributedEstimator):
    """Least squares under |coef|_1 <= radius, by Frank-Wolfe.

    Minimises |X w - y|^2 / (2 n). scikit-learn's ``Lasso(alpha, fit_intercept=False)`` has the same
    solutions, the radius being the norm of its own. There is no intercept: centre the data, for a
    private fit by public constants, as means of the data are released with the model and no noise
    hides them.

    Parameters
    ----------
    radius : float, default=1.0
        Of the l1 ball; of each party's own in problem "product", where it may also be a
        list with one radius for each.
    step : {"pairwise", "line-search", "diminishing"} or callable, default=None
        From the worst vertex in use to the best, or towards the best with the exact minimum on the
        way, or with 2/(t+2). None is the first that there is: with parties there is no "pairwise",
        in a private fit "diminishing". A central private fit takes no line search, which would
        read the data.
    max_iter : int, default=None
        Steps at most, 1000 if None. Without parties and privacy only.
    rounds : int, default=None
        With parties or privacy, how many there are. None is 1000, in a private fit what theory
        proposes from public numbers (:mod:`~dpsvm.frank_wolfe.theory`).
    tol : float, default=None
        Stop when the gap, which is at least the distance to the optimum, is at most this share of
        |y|^2 / (2 n), the objective of w = 0. None is 1e-4. Without parties and privacy only.
    problem : {"l1", "product"}, default=None
        With parties: |w|_1 <= radius, which is None, or |w_(k)|_1 <= radius for each party k.
    sketch, sketch_seed : int, default=None
        With parties: the numbers sent for a column, and the public seed of the sketch, None being
        0. None sends whole columns; in a private fit it is what theory proposes.
    tau : int, default=None
        With parties: how many columns a party looks at in a round; None is all of them.
    cache : bool, default=None
        With parties: whether the sketch of a column is sent only once; None is True.
    send : {"all", "winner"}, default=None
        With parties: a proposal of each of them, which is None, or bids first and then the column
        of the winner. A bid tells a score, so "winner" is not for private fits.
    epsilon, delta : float, default=None
        Of a private fit. Without parties delta may be left out; then the guarantee is pure.
    entry_bound, label_bound : float, default=None
        Public bounds on the entries of X and of y, which a private fit needs; it refuses larger
        ones.
    public_labels : bool, default=None
        In a private fit with parties True takes the place of a ``label_bound``: labels may then be
        known, and are not protected.
    accountant : BudgetAccountant, default=None
        Charged by a private fit before anything is released.
    random_state : int, Generator or None, default=None
        Of the noise and of the columns looked at. A seed warns in a private fit.

    Attributes
    ----------
    coef_ : ndarray of shape (n_features,)
    intercept_ : float
        0.
    n_iter_ : int
        Steps, or rounds.
    stop_reason_ : str
        Why there were no more: "gap" (small enough), "iterations" or "rounds" (all of them were
        made), "stopped" (by a callback).
    objective_, dual_gap_ : float
        At ``coef_``; None where they are not known, or would not be private.
    history_ : History, list of Round, or None
        What happened in every step, or round.
    traffic_, predicted_traffic_ : Traffic or None
        What the parties sent, and what they send by proposals without a cache.
    privacy_guarantee_ : Guarantee or None
        Also as ``epsilon_``, ``delta_`` and ``neighbouring_``.
    privacy_report_ : dict or None
        The figures behind it.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_normal((50, 4))
    >>> model = FrankWolfeLasso(radius=2.0).fit(X, 3.0 * X[:, 1])
    >>> model.coef_
    array([0., 2., 0., 0.])
    >>> split = FrankWolfeLasso(radius=2.0, rounds=20).fit(X, 3.0 * X[:, 1], parties=[2, 2])
    >>> split.coef_, split.traffic_.up_integers
    (array([0., 2., 0., 0.]), 40)
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "max_iter": [Interval(Integral, 1, None, closed="left"), None],
        "rounds": [Interval(Integral, 1, None, closed="left"), None],
        "accountant": [BudgetAccountant, None],
        "cache": ["boolean", None],
        "public_labels": ["boolean", None],
    }

    _gone = FRANK_WOLFE

    @keeps_parameters
    def __init__(
        self,
        radius: float = 1.0,
        *,
        step: Any = None,
        max_iter: int | None = None,
        rounds: int | None = None,
        tol: float | None = None,
        problem: str | None = None,
        sketch: int | None = None,
        sketch_seed: int | None = None,
        tau: int | None = None,
        cache: bool | None = None,
        send: str | None = None,
        epsilon: float | None = None,
        delta: float | None = None,
        entry_bound: float | None = None,
        label_bound: float | None = None,
        public_labels: bool | None = None,
        accountant: BudgetAccountant | None = None,
        random_state: Any = None,
    ) -> None: ...

    def fit(self, X: Any, y: Any, parties: Sequence[Any] | None = None) -> Self:
        """Fit the coefficients.

        Parameters
        ----------
        X : table of shape (n_samples, n_features), or a list of tables, one for each party
            Dense or sparse; rows of the tables belong to the same samples.
        y : array-like of shape (n_samples,)
            Numbers, held by the coordinator.
        parties : sequence, optional
            How one table is split: the numbers of columns of the parties, or the columns of each.
            Without it, and with one table, there are no parties.

        Returns
        -------
        self : object
            The fitted estimator.
        """
        self._fit(X, y, parties)
        return self

    @with_callbacks  # type: ignore[untyped-decorator]
    def _fit(self, X: Any, y: Any, parties: Sequence[Any] | None, tick: Tick | None = None) -> None:
        """Fit; ``tick`` is called after every step. What can be refused is, before a charge."""
        self._forget()
        self._validate_params()
        distributed = parties is not None or is_blocks(X)
        self._check_effects(distributed)
        blocks, target = self._split(X, parties), checked_numbers(y)
        if len(target) != blocks[0].shape[0]:
            raise ValueError(f"X has {blocks[0].shape[0]} rows and y {len(target)}")
        most = self.most_steps(distributed=distributed)
        last = 0 if distributed or self.epsilon is not None else 1  # the point that is left at last
        tasks = Rounds(self, None if most is None else most + last, {"X": X, "y": y}, tick)

        def done(*_: Any) -> bool:
            tasks.begin()
            return tasks.end()

        self.intercept_ = 0.0
        self.history_: Any = None
        self.traffic_: Traffic | None = None
        self.predicted_traffic_: Traffic | None = None
        self.objective_: float | None = None
        self.dual_gap_: float | None = None
        if distributed:
            self._fit_parties(blocks, target, done)
        elif self.epsilon is not None:
            self._fit_private(blocks[0], target, done)
        else:
            self._fit_central(blocks[0], target, done)
        tasks.close()

    def _check_effects(self, distributed: bool) -> None:
        """Refuse settings that would have no effect."""
        private = self.epsilon is not None
        rows = (_OF_PARTIES, distributed, "parties"), (_OF_PRIVACY, private, "an epsilon")
        check_goes_with(self, rows, "got {name}={value!r} without")
        sketched = self.sketch is not None or private
        check_goes_with(self, [(["sketch_seed"], sketched, "a sketch")], "got {value!r} without")
        several = distributed or private
        wanted = "parties or an epsilon; max_iter is for a fit without"
        check_goes_with(self, [(["rounds"], several, wanted)], "got {value!r}")
        for name, instead in (("tol", ""), ("max_iter", "; rounds is for those")):
            if several and (value := getattr(self, name)) is not None:
                raise ValueError(
                    f"{name} is for a fit without parties and privacy{instead}, got {value!r}"
                )
        if private and distributed and self.send is not None:
            raise ValueError(f"send is for a fit without privacy, got send={self.send!r}")
        if private:
            for name in ("entry_bound", "delta" if distributed else "label_bound"):
                if getattr(self, name) is None:
                    raise ValueError(f"a private fit like this needs {name}, got None")
        if private and not distributed:
            if self.public_labels is not None:
                raise ValueError("a private fit without parties takes no public_labels")
            if self.step not in (None, "diminishing"):
                raise ValueError(
                    f"a central private fit takes step='diminishing' alone, got {self.step!r}"
                )

    def _fit_central(self, table: Any, target: Array, tick: Any) -> None:
        f = LeastSquares(table, target)
        ball = L1Ball(table.shape[1], check_positive(self.radius, "radius"))
        share = check_positive(_TOL if self.tol is None else self.tol, "tol", zero=True)
        found = minimize(
            f,
            ball,
            step=PAIRWISE if self.step is None else self.step,
            max_iter=int(self.max_iter or _STEPS),
            tol=share * f.value(ball.start()),
            callback=tick,
        )
        self.coef_, self.n_iter_, self.history_ = found.x, found.n_iter, found.history
        self.objective_, self.dual_gap_ = found.value, found.gap
        self.stop_reason_ = found.stop_reason
        keep_guarantee(self, None, None)
        if found.stop_reason == "iterations":
            warn_caller(
                f"the gap is {found.gap:.3g} after max_iter = {found.n_iter} steps; a larger "
                "max_iter or tol, or a smaller radius, ends the fit",
                ConvergenceWarning,
            )

    def _fit_private(self, table: Any, target: Array, tick: Any) -> None:
        names = ("radius", "rounds", "epsilon", "random_state", *_OF_PRIVACY)
        settings = {name: getattr(self, name) for name in names if name != "public_labels"}
        found = PrivateFrankWolfe(**settings).solve(table, target, tick)
        self.coef_, self.n_iter_, self.stop_reason_ = found.x, len(found.choices), "rounds"
        keep_guarantee(self, found.guarantee, found.report)

    def _fit_parties(self, blocks: list[Any], target: Array, tick: Any) -> None:
        private = self.epsilon is not None
        kind = PrivateDistributedFrankWolfe if private else DistributedFrankWolfe
        names = ("radius", "rounds", "step", "epsilon", "random_state", *_OF_PARTIES, *_OF_PRIVACY)
        settings: dict[str, Any] = {} if private else {"rounds": _STEPS, "step": LINE_SEARCH}
        settings |= {name: own for name in names if (own := getattr(self, name)) is not None}
        if private:
            settings["public_labels"] = bool(self.public_labels)
        found: DistributedResult = kind(**settings).solve(blocks, target, tick)
        coef = np.zeros(self.n_features_in_)
        coef[np.concatenate(self._layout)] = found.x
        self.coef_, self.n_iter_, self.objective_ = coef, found.n_rounds, found.value
        early = not private and found.n_rounds < settings["rounds"]
        self.stop_reason_ = "stopped" if early else "rounds"
        self.history_, self.traffic_ = found.rounds, found.traffic
        self.predicted_traffic_ = found.predicted
        keep_guarantee(self, found.guarantee, found.report)

    def most_steps(self, *, distributed: bool) -> int | None:
        """How many steps or rounds a fit can have; None where theory is yet to propose them."""
        given = self.rounds if distributed or self.epsilon is not None else self.max_iter
        if given is not None:
            return int(given)
        return _STEPS if self.epsilon is None else None
