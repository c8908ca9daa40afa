"""A linear classifier over samples that nodes of a network hold, as a scikit-learn estimator."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from numbers import Integral, Real
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils._param_validation import Interval
from sklearn.utils.validation import check_is_fitted, validate_data

from dpsvm._renamed import NETWORK, renamed
from dpsvm._sklearn import one_of, with_callbacks
from dpsvm.admm.network.graph import make_graph
from dpsvm.admm.network.hinge import HINGE_TOL
from dpsvm.admm.network.history import History, Recorder, objective
from dpsvm.admm.network.node import TOL, Node, Samples
from dpsvm.admm.network.penalties import FORMS, Penalties, schedule
from dpsvm.admm.network.privacy import BOUNDS, MODES, Calibration, calibrate
from dpsvm.admm.network.run import run
from dpsvm.admm.network.shares import assigned, checked_tables, cut, deal, names_of
from dpsvm.admm.network.terms import Terms, updates_in
from dpsvm.admm.network.theory import conditions
from dpsvm.distributed.callbacks import Rounds, Tick
from dpsvm.distributed.estimator import BinaryClassifier, DistributedEstimator
from dpsvm.distributed.labels import (
    checked_labels,
    joined,
    known_signs,
    signs_of,
    two_classes,
)
from dpsvm.distributed.split import is_blocks
from dpsvm.losses import LOSSES, make_loss
from dpsvm.privacy.accountant import BudgetAccountant
from dpsvm.privacy.noise import Noise
from dpsvm.privacy.preparation import Preparation
from dpsvm.privacy.release import Release, tell
from dpsvm.rows import core_rows
from dpsvm.warnings import warn_caller

Array = NDArray[np.float64]

_GROWN = 100.0  # times over: penalties that leave the mean hardly any way to go
_N_NODES = 5
_GAMMA = 0.5
_WIDTH = 0.5
_FORM = {"accept_sparse": "csr", "dtype": np.float64, "order": "C"}


class NetworkADMM(BinaryClassifier, DistributedEstimator):
    """A binary linear classifier over samples that the nodes of a network hold.

    Minimises sum_i O_i(f), O_i(f) = (C/B_i) sum_n l(y_n f . x_n) + (lam/N) |f|^2 / 2, B_i being the
    number of samples of node i of N, by ADMM between neighbours: each round, every node sends
    its weights along its edges, and nothing else leaves it. With recycling every second round
    reads no data, and costs no privacy (Zhang, Khalili and Liu, Recycled ADMM). The names of the
    paper are presets: :func:`ADMM`, :func:`MADMM` (growing penalties), :func:`RADMM` (recycling)
    and :func:`MRADMM` (both).

    Parameters
    ----------
    graph : str, matrix, list of edges or networkx graph, default="complete"
        Who talks to whom: "complete", "ring", "star" (node 0 in the centre), "path", "random", or
        the graph itself, connected and undirected.
    recycle : bool, default=True
        Whether every second round recycles what was heard.
    rho : float or array-like, default=0.5
        The step, the eta of the paper: one number, one for each node, or a table of shape
        (updates, N) that does not decrease.
    growth : float or array-like of shape (N,), default=1.0
        q of rho q^k at update k; at least 1. Above 1 the nodes agree sooner, at a point that is not
        quite the minimiser, and farther from it the faster penalties grow.
    penalty : {"edge", "per-node"}, default="edge"
        The mean of both ends' penalties, or the paper's form, which leads to another point unless
        all nodes have the same: a warning says which.
    gamma : float or None, default=None
        Of the recycling step, from 0 on; None is 0.5. It damps the swing of odd and even iterates.
    loss : {"logistic", "huber", "smooth", "hinge"}, default="logistic"
        "huber" and "smooth" are the hinge with its corner rounded. The plain one is refused in a
        private mode, and solved to a ``tol`` of 1e-6 at best.
    width : float or None, default=None
        Of the rounded corner of "huber" and "smooth"; None is 0.5.
    C : float, default=1.0
        Of the losses; at most the number of samples of every node.
    lam : float, default=1.0
        Of the regularisation; the rho of the paper.
    rounds : int, default=50
        Of both kinds. The model is that of the last update.
    n_nodes : int or None, default=None
        How many nodes one table without ``nodes`` is dealt to; None is 5, or those of the graph.
    graph_seed, density : int, float or None, default=None
        Of graph="random", a spanning tree and each other edge with the probability ``density``:
        None is the seed 0 and a density of 2 / N.
    start_seed : int or None, default=None
        Of random first weights, which then are public; None starts at 0.
    data_norm : float or None, default=None
        A public bound: longer rows are shortened to it, and all are divided by it. None takes the
        rows as they are; a private mode then refuses rows of a norm above 1.
    constant : float, default=0.0
        A constant feature appended to every row, its weight regularised like the others: the
        intercept. 0 is none; it needs ``data_norm``, and the rows are divided by
        sqrt(1 + constant^2) more.
    classes : array-like of shape (2,) or None, default=None
        The labels. A private mode needs them: finding them in the data would reveal a rare one.
    privacy : {"objective", "primal", "gaussian"} or None, default=None
        A random linear term in every update's problem, or noise on every update's minimiser,
        spherical or Gaussian.
    epsilon, delta : float or None, default=None
        The budget of the run; delta with "gaussian" alone.
    alpha : float, array-like or None, default=None
        With "objective", the rate of the noise's norm instead of epsilon: one number, one for each
        node, or a table of shape (updates, N).
    bound : {"tight", "paper"} or None, default=None
        With "objective", the bound that epsilon is; None is "tight". "paper" needs its condition.
    accountant : BudgetAccountant or None, default=None
        Charged before a private run begins.
    tol : float, default=1e-9
        The gradient norm to which every node's minimiser is certified.
    track : bool, default=True
        Whether ``history_`` is kept; it costs two products with every node's rows a round.
    random_state : None, int or Generator, default=None
        Of the noise; None draws it from the operating system, a seed is for experiments and warns.

    Attributes
    ----------
    classes_ : ndarray of shape (2,)
        The labels; the second one is +1.
    coef_, intercept_ : ndarray of shape (1, n_features), ndarray of shape (1,)
        The mean of the nodes' weights.
    coefs_, intercepts_ : ndarray of shape (N, n_features), ndarray of shape (N,)
        The weights of each node.
    history_ : History
        Loss, objective, consensus, multipliers, privacy and test error of every round.
    n_iter_, n_updates_, data_accesses_ : int
        The rounds, fewer than asked for if a callback ended the run; how many of them read the
        data; and how often any node did.
    stop_reason_ : str
        "rounds" (all of them were made) or "stopped" (by a callback).
    objective_ : float or None
        sum_i O_i of the mean; None in a private mode, where it would be outside the guarantee.
    graph_, n_nodes_, node_sizes_ : Graph, int, list of int
        The network, and B_i.
    conditions_ : list of Assumption
        What convergence proofs rest on, checked; a diagnosis.
    epsilon_, delta_, neighbouring_, privacy_guarantee_ : float, float, str, Guarantee, or None
        The guarantee of all the messages; None without one.
    privacy_report_ : dict or None
        The guarantee, the paper's bound beside the tight one, the noise, and what is not covered.

    Examples
    --------
    >>> import numpy as np
    >>> from dpsvm.admm import NetworkADMM
    >>> X = np.array([[-1.0, 0.0], [-0.5, -1.0], [0.5, 1.0], [1.0, 0.5]])
    >>> y = ["no", "no", "yes", "yes"]
    >>> model = NetworkADMM("path", rounds=9).fit(X, y, nodes=[0, 1, 0, 1])
    >>> model.predict(X)
    array(['no', 'no', 'yes', 'yes'], dtype='<U3')
    >>> model.n_updates_, model.data_accesses_
    (5, 10)
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "recycle": ["boolean"],
        "penalty": [one_of(*FORMS)],
        "gamma": [Interval(Real, 0, None, closed="left"), None],
        "loss": [one_of(*LOSSES)],
        "width": [Interval(Real, 0, None, closed="neither"), None],
        "C": [Interval(Real, 1e-100, 1e100, closed="both")],
        "lam": [Interval(Real, 1e-100, 1e100, closed="both")],
        "rounds": [Interval(Integral, 1, None, closed="left")],
        "n_nodes": [Interval(Integral, 2, None, closed="left"), None],
        "graph_seed": [Interval(Integral, 0, None, closed="left"), None],
        "density": [Interval(Real, 0, 1, closed="both"), None],
        "start_seed": [Interval(Integral, 0, None, closed="left"), None],
        "data_norm": [Interval(Real, 1e-150, 1e150, closed="both"), None],
        "constant": [Interval(Real, 0, 1e100, closed="both")],
        "privacy": [one_of(*MODES), None],
        "bound": [one_of(*BOUNDS), None],
        "accountant": [BudgetAccountant, None],
        "tol": [Interval(Real, 1e-15, 1, closed="both")],
        "track": ["boolean"],
    }

    @renamed(NETWORK)
    def __init__(
        self,
        graph: Any = "complete",
        *,
        recycle: bool = True,
        rho: Any = 0.5,
        growth: Any = 1.0,
        penalty: str = "edge",
        gamma: float | None = None,
        loss: str = "logistic",
        width: float | None = None,
        C: float = 1.0,
        lam: float = 1.0,
        rounds: int = 50,
        n_nodes: int | None = None,
        graph_seed: int | None = None,
        density: float | None = None,
        start_seed: int | None = None,
        data_norm: float | None = None,
        constant: float = 0.0,
        classes: Any = None,
        privacy: str | None = None,
        epsilon: float | None = None,
        delta: float | None = None,
        alpha: Any = None,
        bound: str | None = None,
        accountant: BudgetAccountant | None = None,
        tol: float = TOL,
        track: bool = True,
        random_state: Any = None,
    ) -> None:
        self.graph = graph
        self.recycle = recycle
        self.rho = rho
        self.growth = growth
        self.penalty = penalty
        self.gamma = gamma
        self.loss = loss
        self.width = width
        self.C = C
        self.lam = lam
        self.rounds = rounds
        self.n_nodes = n_nodes
        self.graph_seed = graph_seed
        self.density = density
        self.start_seed = start_seed
        self.data_norm = data_norm
        self.constant = constant
        self.classes = classes
        self.privacy = privacy
        self.epsilon = epsilon
        self.delta = delta
        self.alpha = alpha
        self.bound = bound
        self.accountant = accountant
        self.tol = tol
        self.track = track
        self.random_state = random_state

    def fit(
        self,
        X: Any,
        y: Any,
        nodes: Any = None,
        *,
        evaluate_on: tuple[Any, Any] | None = None,
        measured: bool = False,
    ) -> Self:
        """Run the nodes in this process.

        Parameters
        ----------
        X : table of shape (n_samples, n_features), or a list of tables, one for each node
            Dense or sparse.
        y : array-like of shape (n_samples,), or a list of them, one for each node
            Labels of two classes.
        nodes : array-like of shape (n_samples,), optional
            The number of the node that holds each sample of one table. Without it the samples are
            dealt to the nodes one after the other.
        evaluate_on : (X, y), optional
            Data whose error and mean loss are noted in every round.
        measured : bool, default=False
            Whether a private fit also notes in ``history_`` what no guarantee covers.

        Returns
        -------
        self : object
            The fitted estimator.
        """
        self._fit(X, y, nodes, evaluate_on, measured=measured)
        return self

    @with_callbacks  # type: ignore[untyped-decorator]
    def _fit(
        self,
        X: Any,
        y: Any,
        nodes: Any,
        evaluate_on: tuple[Any, Any] | None,
        tick: Tick | None = None,
        *,
        measured: bool = False,
    ) -> None:
        """Fit, and call ``tick`` after every round. What can be refused is, before a charge."""
        self._forget()
        self._check_settings()
        tables, labels = self._shares(X, y, nodes)
        self.classes_ = two_classes(joined(labels), self.classes)
        terms = self._terms([len(own) for own in labels])
        preparation = self._preparation()
        samples = []
        for own in labels:
            rows = tables.pop(0)  # so that one node's rows at most are there twice
            made = rows if preparation is None else preparation(rows)
            samples.append(Samples(made, signs_of(own, self.classes_)))
        evaluation = self._evaluation(evaluate_on, preparation)
        sizes = [own.size for own in samples]
        calibration = self._calibration(terms, sizes)
        release = None if calibration is None else Release.of(self, calibration, self.privacy or "")
        noise = Noise(self.random_state) if release is None else release.noise
        members = self._members(samples, terms, calibration, noise)
        history = History(private=self._private, measured=measured or not self._private)
        spent = None if calibration is None else calibration.spent
        recorder = Recorder(history, spent, evaluation) if self.track else None
        tasks = Rounds(self, terms.rounds, {"X": X, "y": y}, tick)
        if release is not None:
            release.charge()
        self.n_iter_ = self._run(members, recorder, tasks)
        self.stop_reason_ = "rounds" if self.n_iter_ == terms.rounds else "stopped"
        self._keep(members, history, preparation)
        tell(self, release)
        tasks.close()

    def _run(self, members: list[Node], recorder: Recorder | None, tasks: Rounds) -> int:
        """The run. A callback may end it, unless it is private: what it goes by may be, too."""

        def watch(round: int, nodes: Sequence[Node]) -> bool:
            if recorder is not None:
                recorder(round, nodes)
            stop = tasks.end() and self.privacy is None
            if round < nodes[0].terms.rounds and not stop:
                tasks.begin()
            return stop

        tasks.begin()
        return run(members, watch)

    def _check_settings(self) -> None:
        """Refuse what is wrong, and what would have no effect, by name and value."""
        self._validate_params()
        rounded = self.loss in ("huber", "smooth")
        _refuse_idle(self, "gamma", self.recycle, "recycle=True")
        _refuse_idle(self, "width", rounded, "loss='huber' or 'smooth'")
        for name in ("graph_seed", "density"):
            used = isinstance(self.graph, str) and self.graph == "random"
            _refuse_idle(self, name, used, "graph='random'")
        private = self.privacy is not None
        _refuse_idle(self, "epsilon", private, "a private mode")
        _refuse_idle(self, "accountant", private, "a private mode")
        _refuse_idle(self, "delta", self.privacy == "gaussian", "privacy='gaussian'")
        for name in ("alpha", "bound"):
            _refuse_idle(self, name, self.privacy == "objective", "privacy='objective'")
        if self.constant > 0 and self.data_norm is None:
            raise ValueError(f"constant goes with data_norm, got {self.constant!r} without it")
        if private:
            self._check_private()

    def _check_private(self) -> None:
        if self.loss == "hinge":
            raise ValueError(
                "loss='hinge' has no bound on its curvature, which every private mode needs: take "
                "'huber', 'smooth' or 'logistic'"
            )
        if self.alpha is not None and (self.epsilon is not None or self.bound is not None):
            raise ValueError(
                "alpha sets the noise and epsilon follows: give it without epsilon and bound"
            )
        if self.alpha is None and self.epsilon is None:
            raise ValueError(f"privacy={self.privacy!r} needs an epsilon, got None")
        if self.privacy == "gaussian" and self.delta is None:
            raise ValueError("privacy='gaussian' needs a delta, got None")
        if self.classes is None:
            raise ValueError(
                "classes must be given with a private mode: the set of labels is a public input, "
                "since finding it in the data would reveal a rare one"
            )

    def _shares(self, X: Any, y: Any, nodes: Any) -> tuple[list[Any], list[NDArray[Any]]]:
        """The rows and the labels of every node."""
        if is_blocks(X):
            if nodes is not None or self.n_nodes not in (None, len(X)):
                raise ValueError("nodes and n_nodes are for one table; a list is already split")
            tables = checked_tables(X)
            given = len(y) if hasattr(y, "__len__") else 0
            if given != len(tables):
                raise ValueError(f"X holds {len(tables)} nodes, and y the labels of {given}")
            if (names := names_of(X)) is not None:
                self.feature_names_in_ = names
            labels = [checked_labels(own, f"y of node {node}") for node, own in enumerate(y)]
            for node, (rows, own) in enumerate(zip(tables, labels, strict=True)):
                if rows.shape[0] != len(own):
                    raise ValueError(f"node {node} has {rows.shape[0]} rows and {len(own)} labels")
            self.n_features_in_ = int(tables[0].shape[1])
            return tables, labels
        table, every = validate_data(self, X, y, **_FORM)
        every = checked_labels(every)
        table = core_rows(table)
        if nodes is not None:
            if self.n_nodes is not None:
                raise ValueError("n_nodes has no effect where nodes is given")
            places = assigned(nodes, len(every))
        else:
            two_classes(every, self.classes)  # before too few samples are
            places = deal(len(every), self._dealt_to(len(every)))
        return [cut(table, own) for own in places], [every[own] for own in places]

    def _dealt_to(self, n_samples: int) -> int:
        if self.n_nodes is not None:
            return int(self.n_nodes)
        if isinstance(self.graph, str):
            return min(_N_NODES, n_samples)
        return make_graph(self.graph, None).n_nodes

    def _terms(self, sizes: list[int]) -> Terms:
        graph = make_graph(
            self.graph,
            len(sizes),
            seed=0 if self.graph_seed is None else int(self.graph_seed),
            density=None if self.density is None else float(self.density),
        )
        for node, size in enumerate(sizes):
            if size < self.C:
                raise ValueError(
                    f"C must be at most the number of samples of every node, got {self.C!r} for "
                    f"the {size} of node {node}"
                )
        updates = updates_in(int(self.rounds), recycle=bool(self.recycle))
        table = schedule(self.rho, self.growth, updates, graph.n_nodes)
        penalties = Penalties(graph, table, self.penalty)
        elsewhere = penalties.wrong_limit()
        if elsewhere is not None:
            warn_caller(elsewhere, ConvergenceWarning)
        if penalties.grown > _GROWN:
            warn_caller(
                f"the penalties grow {penalties.grown:.3g} times over in this run: the nodes come "
                "to agree before they reach the minimiser. A smaller growth, or fewer rounds, "
                "ends closer to it",
                ConvergenceWarning,
            )
        gamma = _GAMMA if self.gamma is None else float(self.gamma)
        return Terms(
            penalties=penalties,
            loss=make_loss(self.loss, _WIDTH if self.width is None else float(self.width)),
            C=float(self.C),
            lam=float(self.lam),
            gamma=gamma if self.recycle else None,
            rounds=int(self.rounds),
        )

    def _preparation(self) -> Preparation | None:
        if self.data_norm is None:
            return None
        return Preparation(float(self.data_norm), float(self.constant))

    def _evaluation(
        self, data: tuple[Any, Any] | None, preparation: Preparation | None
    ) -> tuple[Callable[[Array], Array], Array] | None:
        """The decisions on held-out samples as a function of the weights, and their signs."""
        pair = self._evaluated(data)
        if pair is None:
            return None
        rows = core_rows(validate_data(self, pair[0], reset=False, **_FORM))
        signs = known_signs(pair[1], self.classes_)
        if len(signs) != rows.shape[0]:
            raise ValueError(f"evaluate_on has {rows.shape[0]} rows and {len(signs)} labels")

        def decide(weights: Array) -> Array:
            coefs, intercepts = _in_given_units(weights[None, :], preparation)
            return np.asarray(rows @ coefs[0] + intercepts[0])

        return decide, signs

    def _calibration(self, terms: Terms, sizes: list[int]) -> Calibration | None:
        """The noise of a private mode."""
        if self.privacy is None:
            return None
        return calibrate(
            self.privacy,
            terms,
            sizes,
            tol=float(self.tol),
            epsilon=self.epsilon,
            delta=self.delta,
            alpha=self.alpha,
            bound=self.bound or "tight",
        )

    def _members(
        self, samples: list[Samples], terms: Terms, calibration: Calibration | None, noise: Noise
    ) -> list[Node]:
        return [
            self._member(index, own, terms, calibration, noise) for index, own in enumerate(samples)
        ]

    def _member(
        self,
        index: int,
        samples: Samples,
        terms: Terms,
        calibration: Calibration | None,
        noise: Noise,
    ) -> Node:
        d = int(samples.rows.shape[1])
        start = np.zeros(d)
        if self.start_seed is not None:
            shape = terms.graph.n_nodes, d
            starts = np.random.default_rng(int(self.start_seed)).standard_normal(shape)
            start = starts[index] / np.sqrt(d)
        return Node(
            index,
            samples,
            terms,
            tol=float(self.tol),
            start=start,
            perturbation=None if calibration is None else calibration.noise_of(index, d, noise),
        )

    def _keep(self, members: list[Node], history: History, preparation: Preparation | None) -> None:
        terms = members[0].terms
        weights = np.array([node.state.updated for node in members])
        mean = weights.mean(axis=0)
        self.graph_, self.n_nodes_ = terms.graph, terms.graph.n_nodes
        self.node_sizes_ = [node.samples.size for node in members]
        self.n_updates_ = terms.update_of(self.n_iter_)
        self.data_accesses_ = sum(node.state.data_accesses for node in members)
        self.history_ = history
        self.conditions_ = conditions(terms)
        self.objective_ = None if self.privacy else objective(members, mean)
        coefs, intercepts = _in_given_units(np.vstack([weights, mean]), preparation)
        self.coefs_, self.intercepts_ = coefs[:-1], intercepts[:-1]
        self.coef_, self.intercept_ = coefs[-1:], intercepts[-1:]
        worst = max(node.state.worst for node in members)
        least = max(self.tol, HINGE_TOL) if self.loss == "hinge" else self.tol
        if not self.privacy and not worst <= least:
            warn_caller(
                f"a node's minimiser is certified to a gradient norm of {worst:.3g}, not to tol = "
                f"{least:g}: raise tol, scale the rows, or lower C",
                ConvergenceWarning,
            )

    def decision_function(self, X: Any) -> Array:
        """Return X @ coef_ + intercept_, positive for ``classes_[1]``.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            The samples.

        Returns
        -------
        decisions : ndarray of shape (n_samples,)
            One number per sample.
        """
        check_is_fitted(self)
        rows = validate_data(self, X, reset=False, **_FORM)
        return np.asarray(rows @ self.coef_[0] + self.intercept_)


def _in_given_units(weights: Array, preparation: Preparation | None) -> tuple[Array, Array]:
    """Coefficients of the features as given, and intercepts, from weights of prepared rows."""
    if preparation is None:
        return weights, np.zeros(len(weights))
    return preparation.unprepare(weights)


def _refuse_idle(model: NetworkADMM, name: str, used: bool, goes_with: str) -> None:
    value = getattr(model, name)
    if value is not None and not used:
        raise ValueError(f"{name} goes with {goes_with}, got {value!r} without it")
