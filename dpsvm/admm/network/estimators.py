"""A linear classifier over samples that nodes of a network hold, as a scikit-learn estimator."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted, validate_data

from dpsvm._arrays import Array
from dpsvm._constructors import keeps_parameters
from dpsvm._renamed import NETWORK
from dpsvm.admm.network.agreement import Agreement, check_settings
from dpsvm.admm.network.graph import make_graph
from dpsvm.admm.network.hinge import HINGE_TOL
from dpsvm.admm.network.history import History, Recorder, Test, conditions, objective
from dpsvm.admm.network.node import TOL, Node
from dpsvm.admm.network.run import run
from dpsvm.admm.network.shares import Samples, assigned, checked_tables, cut, deal, names_of
from dpsvm.distributed.estimator import AgreedEstimator, BinaryClassifier
from dpsvm.distributed.labels import checked_labels, joined, known_signs, two_classes
from dpsvm.distributed.split import is_blocks
from dpsvm.privacy.accountant import BudgetAccountant
from dpsvm.rows import core_rows
from dpsvm.warnings import warn_caller

_N_NODES = 5
_FORM = {"accept_sparse": "csr", "dtype": np.float64, "order": "C"}


class NetworkADMM(BinaryClassifier, AgreedEstimator):
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

    _gone = NETWORK

    @keeps_parameters
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
    ) -> None: ...

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

    def _agree(self, X: Any, y: Any, nodes: Any) -> tuple[Agreement, None, list[Samples]]:
        check_settings(self)
        tables, labels = self._shares(X, y, nodes)
        self.classes_ = two_classes(joined(labels), self.classes)
        agreed = Agreement.of(self, [len(own) for own in labels])
        for remark in agreed.remarks:
            warn_caller(remark, ConvergenceWarning)
        samples = [  # popped, so that one node's rows at most are there twice
            agreed.samples(tables.pop(0), own, self.classes_) for own in labels
        ]
        return agreed, None, samples

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

    def _held_out(self, X: Any, y: Any, agreed: Agreement) -> Test:
        rows = core_rows(validate_data(self, X, reset=False, **_FORM))
        signs = known_signs(y, self.classes_)
        if len(signs) != rows.shape[0]:
            raise ValueError(f"evaluate_on has {rows.shape[0]} rows and {len(signs)} labels")

        def decide(weights: Array) -> Array:
            coefs, intercepts = agreed.in_given_units(weights[None, :])
            return np.asarray(rows @ coefs[0] + intercepts[0])

        return decide, signs

    def _recorder(self, agreed: Agreement, test: Any, **kind: Any) -> Recorder:
        spent = None if agreed.calibration is None else agreed.calibration.spent
        return Recorder(History(**kind), spent, test)

    def _run(self, lead: None, members: Sequence[Node], watch: Any) -> int:
        last = members[0].terms.rounds
        return run(members, lambda round, nodes: watch(round == last, round, nodes))

    def _keep(
        self, agreed: Agreement, lead: None, members: Sequence[Node], rounds: int, release: Any
    ) -> None:
        terms = agreed.terms
        self.n_iter_, self.stop_reason_ = rounds, "rounds" if rounds == terms.rounds else "stopped"
        weights = np.array([node.state.updated for node in members])
        mean = weights.mean(axis=0)
        self.graph_, self.n_nodes_ = terms.graph, terms.graph.n_nodes
        self.node_sizes_ = [node.samples.size for node in members]
        self.n_updates_ = terms.update_of(self.n_iter_)
        self.data_accesses_ = sum(node.state.data_accesses for node in members)
        self.conditions_ = conditions(terms)
        self.objective_ = None if self.privacy else objective(members, mean)
        coefs, intercepts = agreed.in_given_units(np.vstack([weights, mean]))
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

    def _decisions(self, X: Any) -> Array:
        check_is_fitted(self)
        rows = validate_data(self, X, reset=False, **_FORM)
        return np.asarray(rows @ self.coef_[0] + self.intercept_)
