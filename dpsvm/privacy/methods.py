"""The mechanisms: how much noise an (epsilon, delta) asks for, and the release of noisy weights.

A mechanism sees rows of norm at most 1, signs +1 or -1 and weights between 0 and 1, which a
record's class decides; every loss has a slope between -1 and 0. So one record adds at most L = 1 to
the gradient of the sum of losses. Each machine of several (one class against the rest) is the same
mechanism, run on its own signs: a record takes part in all of them, and what is stated is their
composition.

    output              |w - w'| is bounded; noise is added to w
    output-laplace      the same with a Laplace number for each weight: a baseline
    objective           a random linear term is added to the objective; pure
    objective-gaussian  the same with a Gaussian term
    gradient            noisy gradient steps

:func:`calibrate` decides all the numbers of a release from public facts; ``release`` then looks at
the data. Nothing is returned but the noisy weights, rounded to a public grid. Proofs are for real
numbers.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from dpsvm.losses import Hinge, Loss
from dpsvm.privacy import accounting
from dpsvm.privacy.accounting import Approximate, Event, Folded, Gaussian, Pure, gaussian_mu
from dpsvm.privacy.dual import solve_hinge
from dpsvm.privacy.guarantee import Guarantee, check_delta, check_epsilon, check_neighbouring
from dpsvm.privacy.minimiser import Objective, minimise
from dpsvm.privacy.noise import Noise, to_grid

Array = NDArray[np.float64]

METHODS = ("objective-gaussian", "objective", "output", "gradient", "output-laplace")
"""The mechanisms, the default first."""

_UP = 1.0 + 2.0**-40  # a product of a few roundings, taken upwards
_GAP_SHARE = 0.01  # sqrt(2 g) / C for the hinge: its inexact minimiser adds twice that to C L
_OUTPUT_SHARE = 1e-3  # of epsilon or mu, for the noise that hides an inexact minimiser
_COUNT_SHARE = 0.01  # of the gradient method's mu^2, for the number of rows
_GRID = 2.0**-20  # grid of the released weights, in units of their noise


@dataclass(frozen=True, kw_only=True)
class Setup:
    """The public facts a mechanism is calibrated to.

    >>> from dpsvm.losses import HuberHinge
    >>> Setup(loss=HuberHinge(0.5), C=0.1, dimension=14).difference
    1.0
    """

    loss: Loss
    C: float  # 1/2 |w|^2 + C sum_i c_i loss_i
    dimension: int  # weights of one machine, that of the constant feature included
    neighbouring: str = "add-remove"
    machines: int = 1
    tol: float = 1e-6  # certified norm of the gradient of sum_i c_i loss_i + lam/2 |w|^2 + ..
    steps: int = 50  # of the gradient method
    rate: float = 1.0  # share of the rows a gradient step draws

    def __post_init__(self) -> None:
        check_neighbouring(self.neighbouring, ("add-remove", "replace"))

    @property
    def lam(self) -> float:
        """The regularisation of the sum of losses: sum_i c_i loss_i + lam/2 |w|^2."""
        return 1.0 / self.C

    @property
    def difference(self) -> float:
        """How much the sum of gradients differs between neighbouring data: L, or 2 L for replace.

        A record more or less changes the sum by its gradient, at most L = 1. A record replaced
        changes it by the difference of two.
        """
        return self.loss.lipschitz * (2.0 if self.neighbouring == "replace" else 1.0)


class Mechanism(ABC):
    """A calibrated release."""

    method: ClassVar[str]
    setup: Setup
    event: Event  # what the release of all machines is charged as
    guarantee: Guarantee
    noise_scale: float
    noise_law: str  # what noise_scale is the scale of

    @abstractmethod
    def release(self, rows: Any, signs: Array, weights: Array, noise: Noise) -> Array:
        """Noisy weights of every machine.

        rows : dense or CSR, of shape (n, d), every norm at most 1
        signs : of shape (machines, n), +1 or -1
        weights : of shape (n,), from 0 to 1
        """

    @property
    @abstractmethod
    def weight_noise(self) -> float:
        """An upper bound on the root mean square of the noise in one weight."""

    def facts(self) -> dict[str, Any]:
        """Public numbers of the calibration, for the report."""
        return {}

    def _on_grid(self, weights: Array) -> Array:
        return to_grid(weights, 2.0 ** math.floor(math.log2(_GRID * self.weight_noise)))


def calibrate(method: str, setup: Setup, epsilon: float, delta: float | None) -> Mechanism:
    """The mechanism of a name with the noise that (epsilon, delta) asks for.

    >>> from dpsvm.losses import HuberHinge
    >>> setup = Setup(loss=HuberHinge(0.5), C=0.1, dimension=14)
    >>> mechanism = calibrate("output", setup, 1.0, None)
    >>> round(mechanism.noise_scale, 6), mechanism.event
    (0.1, Pure(epsilon=1.0))
    """
    check_epsilon(epsilon)
    if delta is not None:
        check_delta(delta)
    if method not in METHODS:
        known = ", ".join(map(repr, METHODS))
        raise ValueError(f"method must be one of {known}, got {method!r}")
    if method in ("objective-gaussian", "gradient") and delta is None:
        raise ValueError(f"method={method!r} needs a delta between 0 and 1, got None")
    if method == "output" and delta is not None:
        return calibrate_output_gaussian(setup, epsilon, delta)
    if method == "output":
        return calibrate_output_pure(setup, epsilon)
    if method == "output-laplace":
        return calibrate_output_laplace(setup, epsilon)
    if method == "objective":
        return calibrate_objective(setup, epsilon)
    assert delta is not None
    if method == "gradient":
        return calibrate_gradient(setup, epsilon, delta)
    return calibrate_objective_gaussian(setup, epsilon, delta)


# ------------------------------------------------------------------ output


def output_sensitivity(setup: Setup) -> tuple[float, float]:
    """The sensitivity of the weights a certified solver returns, and the gap g it must certify.

    Claim: |w - w'| <= C L (add-remove) or 2 C L (replace) for the minimisers w, w' of
    1/2 |w|^2 + C sum_i c_i loss_i on neighbouring data, and 2 sqrt(2 g) more for points within g of
    the minimum. Proof: the objective F is 1-strongly convex, so for neighbours F and F' = F + h
    |w - w'|^2 <= (grad F(w') - grad F(w)) . (w' - w) = -grad h(w') . (w' - w) <= |grad h| |w - w'|,
    h being C times one record's loss, or the difference of two. F(v) - F(w) <= g implies
    |v - w| <= sqrt(2 g), at either end. (Chaudhuri, Monteleoni and Sarwate 2011, lemma 7, with the
    constant feature regularised.) g is fixed beforehand: the hinge is solved in the dual to
    sqrt(2 g) = C / 100, the other losses to a gradient norm of tol, sqrt(2 g) = C tol.
    Neighbouring: either. Rounding: up.

    >>> from dpsvm.losses import Hinge
    >>> bound, gap = output_sensitivity(Setup(loss=Hinge(), C=2.0, dimension=3))
    >>> round(bound, 9), gap
    (2.04, 0.0002)
    """
    share = _GAP_SHARE if isinstance(setup.loss, Hinge) else setup.tol
    gap = (share * setup.C) ** 2 / 2.0
    return (setup.C * setup.difference + 2.0 * math.sqrt(2.0 * gap)) * _UP, gap


@dataclass(frozen=True)
class Output(Mechanism):
    """Noise added to the minimiser."""

    method: ClassVar[str] = "output"
    setup: Setup
    event: Event
    guarantee: Guarantee
    noise_scale: float
    noise_law: str
    sensitivity: float
    gap: float

    def release(self, rows: Any, signs: Array, weights: Array, noise: Noise) -> Array:
        """The minimiser of each machine, certified, plus noise."""
        found = [self._minimiser(rows, sign, weights) + self._draw(noise) for sign in signs]
        return self._on_grid(np.array(found))

    def _minimiser(self, rows: Any, signs: Array, weights: Array) -> Array:
        setup = self.setup
        if isinstance(setup.loss, Hinge):
            return solve_hinge(rows, signs, weights, setup.C, self.gap)
        linear = np.zeros(setup.dimension)
        objective = Objective(rows, signs, weights, setup.loss, setup.lam, linear)
        # In units of sum loss + lam/2 |w|^2, a gradient of lam sqrt(2 g) leaves w within sqrt(2 g).
        return minimise(objective, setup.lam * math.sqrt(2.0 * self.gap))

    def _draw(self, noise: Noise) -> Array:
        d = self.setup.dimension
        if self.noise_law == "gaussian":
            return noise.gaussian(self.noise_scale, d)
        if self.noise_law == "laplace":
            return noise.laplace(self.noise_scale, d)
        return noise.spherical(d, self.noise_scale)

    @property
    def weight_noise(self) -> float:
        """Exact: the noise is in the weights themselves."""
        if self.noise_law == "gaussian":
            return self.noise_scale
        if self.noise_law == "laplace":
            return self.noise_scale * math.sqrt(2.0)
        return self.noise_scale * math.sqrt(self.setup.dimension + 1.0)

    def facts(self) -> dict[str, Any]:
        """Sensitivity and certified gap."""
        return {"sensitivity": self.sensitivity, "certified_gap": self.gap}


def calibrate_output_pure(setup: Setup, epsilon: float) -> Output:
    """Output perturbation with noise of density proportional to exp(-epsilon |b| / sensitivity).

    Claim: epsilon-differential privacy; each machine has epsilon / machines, and pure epsilons add
    up. Proof: the density at any point changes by at most exp(epsilon |w - w'| / sensitivity).
    The noise has a uniform direction and a Gamma(dimension, scale) norm. Neighbouring: either.
    Rounding: scale up.

    >>> from dpsvm.losses import Hinge
    >>> calibrate_output_pure(Setup(loss=Hinge(), C=1.0, dimension=3, machines=2), 1.0).event
    Pure(epsilon=1.0)
    """
    sensitivity, gap = output_sensitivity(setup)
    return Output(
        setup=setup,
        event=Pure(epsilon),
        guarantee=Guarantee(epsilon, 0.0, setup.neighbouring),
        noise_scale=sensitivity * setup.machines / epsilon * _UP,
        noise_law="spherical",
        sensitivity=sensitivity,
        gap=gap,
    )


def calibrate_output_gaussian(setup: Setup, epsilon: float, delta: float) -> Output:
    """Output perturbation with Gaussian noise.

    Claim: (epsilon, delta)-differential privacy, exactly: k machines, each with mu / sqrt(k),
    compose to one Gaussian mechanism with mu = the largest that (epsilon, delta) allows (Balle and
    Wang 2018; Dong, Roth and Su 2022). Neighbouring: either. Rounding: mu down, scale up.

    >>> from dpsvm.losses import Hinge
    >>> release = calibrate_output_gaussian(Setup(loss=Hinge(), C=1.0, dimension=3), 1.0, 1e-5)
    >>> round(release.noise_scale, 3)
    3.805
    """
    sensitivity, gap = output_sensitivity(setup)
    mu = gaussian_mu(epsilon, delta)
    return Output(
        setup=setup,
        event=Gaussian(mu),
        guarantee=Guarantee(epsilon, delta, setup.neighbouring),
        noise_scale=sensitivity * math.sqrt(setup.machines) / mu * _UP,
        noise_law="gaussian",
        sensitivity=sensitivity,
        gap=gap,
    )


def calibrate_output_laplace(setup: Setup, epsilon: float) -> Output:
    """A baseline: Laplace noise for each weight (Rubinstein, Bartlett, Huang and Taft 2012).

    Claim: epsilon-differential privacy. Proof: the weights' l1 sensitivity is at most
    sqrt(dimension) times the l2 bound above, and independent Laplace numbers of scale l1 / epsilon
    change their density by at most exp(epsilon). It needs about sqrt(2 dimension) times the noise
    that the norm of the weights calls for, which is why ``output`` is preferred. The paper's own
    constant, 4 C L, is replaced by 2 C L (replace) or C L (add-remove). Neighbouring: either.
    Rounding: scale up.

    >>> from dpsvm.losses import Hinge
    >>> round(calibrate_output_laplace(Setup(loss=Hinge(), C=1.0, dimension=4), 1.0).noise_scale, 6)
    2.04
    """
    sensitivity, gap = output_sensitivity(setup)
    l1 = sensitivity * math.sqrt(setup.dimension)
    return Output(
        setup=setup,
        event=Pure(epsilon),
        guarantee=Guarantee(epsilon, 0.0, setup.neighbouring),
        noise_scale=l1 * setup.machines / epsilon * _UP,
        noise_law="laplace",
        sensitivity=sensitivity,
        gap=gap,
    )


# ------------------------------------------------------------------ objective, pure


@dataclass(frozen=True)
class ObjectivePure(Mechanism):
    """A random linear term of Gamma-distributed norm in the objective, and a little noise on its
    approximate minimiser.
    """

    method: ClassVar[str] = "objective"
    setup: Setup
    event: Event
    guarantee: Guarantee
    noise_scale: float
    noise_law: str
    epsilon_noise: float  # eps' of one machine
    extra: float  # n Delta, added to lam
    output_scale: float

    def release(self, rows: Any, signs: Array, weights: Array, noise: Noise) -> Array:
        """The minimiser of each machine's perturbed objective, its gradient certified."""
        setup = self.setup
        found = []
        for sign in signs:
            term = noise.spherical(setup.dimension, self.noise_scale)
            objective = Objective(rows, sign, weights, setup.loss, setup.lam + self.extra, term)
            w = minimise(objective, setup.tol)
            found.append(w + noise.spherical(setup.dimension, self.output_scale))
        return self._on_grid(np.array(found))

    @property
    def weight_noise(self) -> float:
        """The linear term moves the minimiser by at most its norm over the strong convexity."""
        root = math.sqrt(self.setup.dimension + 1.0)
        moved = self.noise_scale / (self.setup.lam + self.extra)
        return root * math.hypot(moved, self.output_scale)

    def facts(self) -> dict[str, Any]:
        """How epsilon was spent, the regularisation used, and what covers the inexact minimiser."""
        return {
            "output_noise_scale": self.output_scale,
            "certified_gradient_norm": self.setup.tol,
            "epsilon_noise": self.epsilon_noise,
            "extra_regularisation": self.extra,
            "regularisation": self.setup.lam + self.extra,
        }


def calibrate_objective(setup: Setup, epsilon: float) -> ObjectivePure:
    """Objective perturbation (Chaudhuri, Monteleoni and Sarwate 2011, algorithm 2, theorem 9).

    As printed: minimise mean loss + Lambda/2 |w|^2 + Delta/2 |w|^2 + b . w / n, b of uniform
    direction and norm Gamma(dimension, 2 / eps'), where eps' = eps - log(1 + 2c/(n Lambda) + c^2/(n
    Lambda)^2) and Delta = 0; if that eps' is not positive, Delta = c / (n (e^(eps/4) - 1)) - Lambda
    and eps' = eps/2. Here the objective is multiplied by n, so n Lambda = 1/C and n Delta appear,
    and n itself does not.

    Claim: epsilon-differential privacy when one record is replaced, n being public; each of k
    machines has epsilon / k. Proof in the paper: b is a function of the minimiser; between
    neighbours it moves by at most 2, which costs eps', and its Jacobian, A + a rank-2 matrix with A
    >= n (Lambda + Delta), changes its determinant by at most (1 + c / (n (Lambda + Delta)))^2,
    which costs the rest. For the huber hinge, whose slope has corners, the map from minimiser to b
    and its inverse are Lipschitz, so the change of variables holds almost everywhere, which is
    enough. Weights of at most 1 keep the bounds on slope and curvature.

    The paper releases exact minimisers. What is found here is within tau / (n Lambda + n Delta) of
    one: as if the exact one had been released at all but a thousandth of epsilon, and then the
    difference, of twice that sensitivity, under noise at that thousandth.
    Neighbouring: replace only. Rounding: eps' down, extra and scales up.

    >>> from dpsvm.losses import Logistic
    >>> setup = Setup(loss=Logistic(), C=0.4, dimension=3, neighbouring="replace")
    >>> release = calibrate_objective(setup, 1.0)
    >>> round(release.epsilon_noise, 6), release.extra  # 0.999 - 2 log(1.1)
    (0.80838, 0.0)
    """
    if setup.neighbouring != "replace":
        raise ValueError(
            "method='objective' is private under neighbouring='replace' only, "
            f"got {setup.neighbouring!r}"
        )
    curvature = _smoothness(setup, "objective")
    covering = _OUTPUT_SHARE * epsilon / setup.machines
    share = epsilon / setup.machines - covering
    left = (share - 2.0 * math.log1p(curvature * setup.C)) / _UP
    extra = 0.0
    if left <= 0.0:
        extra = (curvature / math.expm1(share / 4.0)) * _UP - setup.lam
        left = share / 2.0 / _UP
    return ObjectivePure(
        setup=setup,
        event=Pure(epsilon),
        guarantee=Guarantee(epsilon, 0.0, setup.neighbouring),
        noise_scale=2.0 * setup.loss.lipschitz / left * _UP,
        noise_law="spherical",
        epsilon_noise=left,
        extra=extra,
        output_scale=2.0 * setup.tol / (setup.lam + extra) / covering * _UP,
    )


# ------------------------------------------------------------------ objective, Gaussian


@dataclass(frozen=True)
class ObjectiveGaussian(Mechanism):
    """A Gaussian linear term in the objective, and a little noise on its approximate minimiser."""

    method: ClassVar[str] = "objective-gaussian"
    setup: Setup
    event: Event
    guarantee: Guarantee
    noise_scale: float
    noise_law: str
    output_scale: float

    def release(self, rows: Any, signs: Array, weights: Array, noise: Noise) -> Array:
        """The minimiser of each machine's perturbed objective, its gradient certified."""
        setup = self.setup
        found = []
        for sign in signs:
            term = noise.gaussian(self.noise_scale, setup.dimension)
            objective = Objective(rows, sign, weights, setup.loss, setup.lam, term)
            w = minimise(objective, setup.tol)
            found.append(w + noise.gaussian(self.output_scale, setup.dimension))
        return self._on_grid(np.array(found))

    @property
    def weight_noise(self) -> float:
        """The linear term moves the minimiser by at most its norm over the strong convexity."""
        return math.hypot(self.noise_scale * self.setup.C, self.output_scale)

    def facts(self) -> dict[str, Any]:
        """The noise on the minimiser and the gradient norm it covers."""
        return {"output_noise_scale": self.output_scale, "certified_gradient_norm": self.setup.tol}


def objective_gaussian_event(setup: Setup, noise_scale: float, output_scale: float) -> Folded:
    """What the release of all machines by objective perturbation with a Gaussian term costs.

    Released is the minimiser of sum_i c_i loss_i + lam/2 |w|^2 + b . w, b ~ N(0, s^2 I), found to a
    certified gradient norm tau, with noise N(0, s_out^2 I).

    Claim: the privacy loss of a machine is as :class:`~dpsvm.privacy.accounting.Folded` says, with
    offset = log(1 + beta/lam), beta being the smoothness, mu = sqrt((D/s)^2 + (2 tau / (lam
    s_out))^2), D = L and 2 choices for add-remove, D = 2 L and 4 choices for replace.

    Proof. The exact minimiser w determines b(w) = -grad(sum loss)(w) - lam w, one to one, so its
    density is that of b times |det Db(w)|. (The huber hinge's slope has corners: b and its inverse
    are Lipschitz, and the change of variables holds almost everywhere, which is enough.)

    Determinants: a record adds a matrix c loss'' x x^T to one that is at least lam I, which
    multiplies the determinant by 1 + c loss'' x^T H^-1 x, between 1 and 1 + beta/lam. So the ratio
    of two determinants is at most 1 + beta/lam, whether a record is added, removed or replaced.

    Densities of b, a record more or less: at the same w they are taken at points that differ by
    v = a u, where u = y x has a norm of at most 1 and 0 <= a <= L, because a slope lies between -L
    and 0. The logarithm of their ratio is (b . v + |v|^2 / 2) / s^2 up to the sign of u, a convex
    function of a, so at most the larger of its values at a = 0, which is 0, and at a = L, which is
    the loss of Gaussian noise with mu = L |u| / s: two choices. Both are at most mu^2 / 2 + mu |Z|
    for the standard normal Z along u.

    A record replaced: v = a u - a' u' is convex in (a, a') likewise, with the corners 0, L u,
    -L u' and L (u - u'): four choices, with mu = 2 L / s at most. And b . v <= L (|b . u| +
    |b . u'|), whose exponential moments are by Cauchy-Schwarz at most those of 2 L |b . u| for a
    unit u.

    The minimiser found is within tau / lam of the exact one. Taken as releasing the exact one, and
    then their difference, of sensitivity 2 tau / lam, under Gaussian noise: that adds its mu to
    every choice.

    Redberg, Koskela and Wang (2023) have mu |Z| from any Lipschitz loss and the larger offset
    -log(1 - beta/lam), for which lam must exceed beta; here it need not.
    Neighbouring: either. Rounding: mu and offset up.

    >>> from dpsvm.losses import Logistic
    >>> event = objective_gaussian_event(Setup(loss=Logistic(), C=1.0, dimension=3), 5.0, 1.0)
    >>> round(event.mu, 6), round(event.offset, 6), event.choices  # 1/5, log(5/4)
    (0.2, 0.223144, 2)
    """
    approximate = 2.0 * setup.tol * setup.C / output_scale
    return Folded(
        mu=math.hypot(setup.difference / noise_scale, approximate) * _UP,
        offset=math.log1p(_smoothness(setup, "objective-gaussian") * setup.C) * _UP,
        choices=4 if setup.neighbouring == "replace" else 2,
        parts=setup.machines,
    )


def calibrate_objective_gaussian(setup: Setup, epsilon: float, delta: float) -> ObjectiveGaussian:
    """Objective perturbation with the least Gaussian term that (epsilon, delta) allows.

    Claim: (epsilon, delta)-differential privacy of all machines together, by
    :func:`objective_gaussian_event`. The offset is paid out of epsilon before any noise, which
    limits C. Neighbouring: either. Rounding: the search ends on the side of more noise.

    >>> from dpsvm.losses import HuberHinge
    >>> setup = Setup(loss=HuberHinge(0.5), C=0.05, dimension=14)
    >>> release = calibrate_objective_gaussian(setup, 1.0, 1e-5)
    >>> from dpsvm.privacy.accounting import epsilon_of
    >>> epsilon_of([release.event], 1e-5) <= 1.0
    True
    >>> calibrate_objective_gaussian(Setup(loss=HuberHinge(0.5), C=0.9, dimension=14), 1.0, 1e-5)
    Traceback (most recent call last):
    ...
    ValueError: C must be below 0.859 for epsilon = 1 and a smoothness of 2, got 0.9
    """
    beta = _smoothness(setup, "objective-gaussian")
    machines = f", {setup.machines} machines" if setup.machines > 1 else ""
    limit = math.expm1(min(epsilon / setup.machines, 700.0)) / beta
    if not limit > setup.C * _UP:
        raise ValueError(
            f"C must be below {limit:.3g} for epsilon = {epsilon:g}{machines} and a smoothness of "
            f"{beta:g}, got {setup.C:g}"
        )

    def output_scale(noise_scale: float) -> float:
        return 2.0 * setup.tol * setup.C * noise_scale / (setup.difference * _OUTPUT_SHARE)

    def events(noise_scale: float) -> list[Event]:
        return [objective_gaussian_event(setup, noise_scale, output_scale(noise_scale))]

    scale = accounting.calibrate(events, epsilon, delta)
    return ObjectiveGaussian(
        setup=setup,
        event=events(scale)[0],
        guarantee=Guarantee(epsilon, delta, setup.neighbouring),
        noise_scale=scale,
        noise_law="gaussian",
        output_scale=output_scale(scale),
    )


# ------------------------------------------------------------------ gradient


@dataclass(frozen=True)
class Gradient(Mechanism):
    """Noisy gradient steps from 0 with Nesterov's momentum, and the mean of the later half.

    Momentum reaches in tens of steps what plain steps need hundreds for, each of which would want
    its share of the budget.
    """

    method: ClassVar[str] = "gradient"
    setup: Setup
    event: Event
    guarantee: Guarantee
    noise_scale: float  # of the gradient of the sum of losses
    noise_law: str
    count_scale: float  # of the number of rows; 0 where it is public
    composed: str = field(default="exact Gaussian composition")

    def release(self, rows: Any, signs: Array, weights: Array, noise: Noise) -> Array:
        """Every number that is used after a step is noisy: what follows is post-processing."""
        n = float(rows.shape[0])
        if self.count_scale > 0:
            n = max(n + float(noise.gaussian(self.count_scale, 1)[0]), self.count_scale, 1.0)
        step = 1.0 / (self.setup.lam + n * min(self.setup.loss.smoothness, 1.0))
        found = [self._descend(rows, sign, weights, noise, step) for sign in signs]
        return self._on_grid(np.array(found))

    def _descend(self, rows: Any, signs: Array, weights: Array, noise: Noise, step: float) -> Array:
        setup = self.setup
        w = before = total = np.zeros(setup.dimension)
        kept = 0
        for t in range(setup.steps):
            ahead = w + (t / (t + 3.0)) * (w - before)
            pull = weights * signs * setup.loss.slope(signs * np.asarray(rows @ ahead))
            if setup.rate < 1.0:
                pull = pull * (noise.uniform(len(pull)) < setup.rate)
            noisy = np.asarray(rows.T @ pull) + noise.gaussian(self.noise_scale, setup.dimension)
            before, w = w, ahead - step * (noisy / setup.rate + setup.lam * ahead)
            if 2 * t + 1 >= setup.steps:
                total, kept = total + w, kept + 1
        return total / kept

    @property
    def weight_noise(self) -> float:
        """Steps of 1 / lam would carry the noise of one gradient into the weights whole."""
        return self.noise_scale * self.setup.C

    def facts(self) -> dict[str, Any]:
        """The steps, and how they were composed."""
        facts = {"steps": self.setup.steps, "composition": self.composed}
        if self.setup.rate < 1.0:
            facts["sampling_rate"] = self.setup.rate
        if self.count_scale > 0:
            facts["row_count_noise_scale"] = self.count_scale
        return facts


def calibrate_gradient(setup: Setup, epsilon: float, delta: float) -> Gradient:
    """Gradient descent with Gaussian noise on the sum of the rows' gradients.

    Rows of norm at most 1 and slopes of at most L clip every row's gradient to L. The step length
    needs the number of rows: it is public under replace; under add-remove it is released with noise
    too, for 1% of mu^2.

    Claim: (epsilon, delta)-differential privacy. T steps of each machine have sensitivity D = L
    (add-remove) or 2 L (replace), the count 1: adaptive Gaussian releases compose exactly to one
    with mu^2 = sum of (sensitivity / scale)^2 (Dong, Roth and Su 2022). With ``rate`` below 1 each
    step draws every row with that probability; the composition is then dp-accounting's (privacy
    loss distributions, rounded pessimistically), for add-remove. Neighbouring: either; add-remove
    with sampling. Rounding: mu down, scale up.

    >>> from dpsvm.losses import Hinge
    >>> release = calibrate_gradient(Setup(loss=Hinge(), C=1.0, dimension=3, steps=25), 1.0, 1e-5)
    >>> round(release.noise_scale, 1), round(1 / release.event.mu, 2)
    (18.7, 3.73)
    """
    if setup.rate < 1.0:
        return _calibrate_sampled(setup, epsilon, delta)
    mu = gaussian_mu(epsilon, delta)
    counted = setup.neighbouring == "add-remove"
    left = mu * math.sqrt(1.0 - _COUNT_SHARE) if counted else mu
    releases = setup.steps * setup.machines
    return Gradient(
        setup=setup,
        event=Gaussian(mu),
        guarantee=Guarantee(epsilon, delta, setup.neighbouring),
        noise_scale=setup.difference * math.sqrt(releases) / left * _UP,
        noise_law="gaussian",
        count_scale=_UP / (mu * math.sqrt(_COUNT_SHARE)) if counted else 0.0,
    )


def _calibrate_sampled(setup: Setup, epsilon: float, delta: float) -> Gradient:
    if setup.neighbouring != "add-remove":
        raise ValueError(
            "sampled gradient steps are accounted for under neighbouring='add-remove' only, "
            f"got {setup.neighbouring!r}"
        )
    try:
        from dp_accounting import dp_event
        from dp_accounting.pld import PLDAccountant
    except ImportError:
        raise ValueError(
            f"rate = {setup.rate:g}: sampled gradient steps are accounted for by the package "
            "dp-accounting, which is not installed (pip install dpsvm[privacy]); rate = 1 needs "
            "none"
        ) from None
    count_scale = _UP / (gaussian_mu(epsilon, delta) * math.sqrt(_COUNT_SHARE))
    releases = setup.steps * setup.machines

    def cost(multiplier: float) -> float:
        accountant = PLDAccountant()
        accountant.compose(dp_event.GaussianDpEvent(count_scale))
        sampled = dp_event.PoissonSampledDpEvent(setup.rate, dp_event.GaussianDpEvent(multiplier))
        accountant.compose(sampled, releases)
        return float(accountant.get_epsilon(delta))

    enough = 1.0
    while cost(enough) > epsilon:
        enough *= 2.0
    too_little = enough / 2.0 if enough > 1.0 else 0.05
    while enough - too_little > 1e-4 * enough:
        middle = (enough + too_little) / 2.0
        too_little, enough = (too_little, middle) if cost(middle) <= epsilon else (middle, enough)
    return Gradient(
        setup=setup,
        event=Approximate(epsilon, delta),
        guarantee=Guarantee(epsilon, delta, setup.neighbouring),
        noise_scale=enough * setup.loss.lipschitz,
        noise_law="gaussian",
        count_scale=count_scale,
        composed="dp-accounting, privacy loss distributions",
    )


def _smoothness(setup: Setup, method: str) -> float:
    smoothness = setup.loss.smoothness
    if not math.isfinite(smoothness):
        raise ValueError(
            f"method={method!r} needs a loss of bounded curvature ('huber', 'smooth', "
            f"'logistic'), got {setup.loss.name!r}"
        )
    return smoothness
