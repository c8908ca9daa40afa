"""ADMM sharing the way the paper's prototype does it: a general optimiser for every step.

A party minimises its part by L-BFGS-B, the coordinator minimises one scalar function per sample.
The iteration is that of dpsvm, so the two can be compared weight by weight.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from scipy.optimize import minimize, minimize_scalar


@dataclass
class PaperRun:
    """Logistic loss, l2 penalty, the same kappa and rho as dpsvm's; seconds by step."""

    blocks: list[Any]
    y: np.ndarray
    rho: float
    lam: float = 1.0
    seconds: dict[str, float] = field(default_factory=lambda: {"x": 0.0, "z": 0.0})

    def run(self, rounds: int) -> np.ndarray:
        """The weights after some rounds."""
        count, n = len(self.blocks), len(self.y)
        x = [np.zeros(D.shape[1]) for D in self.blocks]
        sent = [np.zeros(n) for _ in self.blocks]
        total = dual = np.zeros(n)
        for _ in range(rounds):
            begun = time.perf_counter()
            z = np.array([self._sample(*one) for one in zip(self.y, total, dual, strict=True)])
            self.seconds["z"] += time.perf_counter() - begun
            dual = dual + self.rho * (total - z)
            price = dual + self.rho * (total - z)
            begun = time.perf_counter()
            for m, D in enumerate(self.blocks):
                x[m] = self._party(D, x[m], sent[m], price, count * self.rho)
                sent[m] = D @ x[m]
            self.seconds["x"] += time.perf_counter() - begun
            total = np.add.reduce(sent)
        return np.concatenate(x)

    def _party(
        self, D: Any, start: np.ndarray, sent: np.ndarray, price: np.ndarray, resistance: float
    ) -> np.ndarray:
        def value_and_slope(x: np.ndarray) -> tuple[float, np.ndarray]:
            fitted = D @ x
            away = fitted - sent
            value = self.lam * x @ x / 2 + price @ fitted + resistance * away @ away / 2
            return value, self.lam * x + D.T @ (price + resistance * away)

        return minimize(value_and_slope, start, jac=True, method="L-BFGS-B").x

    def _sample(self, y: float, total: float, dual: float) -> float:
        def value(z: float) -> float:
            loss = np.logaddexp(0.0, -y * z)
            return loss - dual * z + self.rho * (total - z) ** 2 / 2

        return minimize_scalar(value).x
