"""The loop, in one process."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from dpsvm.admm.sharing.coordinator import Coordinator
from dpsvm.admm.sharing.messages import Broadcast, Contribution, Ending
from dpsvm.admm.sharing.party import Party

Watch = Callable[[Coordinator, Sequence[Party]], bool]
"""Called after every round; looks, changes nothing, and says whether to stop there."""

Answers = Callable[[Sequence[Party], Broadcast], list[Contribution]]
"""How the parties answer a broadcast."""


def all_at_once(parties: Sequence[Party], broadcast: Broadcast) -> list[Contribution]:
    """Every party answers what was broadcast, and hears of the others in the next round."""
    return [party.answer(broadcast) for party in parties]


def run(
    coordinator: Coordinator,
    parties: Sequence[Party],
    watch: Watch | None = None,
    answers: Answers = all_at_once,
) -> Ending:
    """Broadcast, answer, gather, until the coordinator ends it.

    >>> import numpy as np
    >>> from dpsvm.admm.sharing import Columns, Terms
    >>> from dpsvm.losses import Squared
    >>> terms = Terms.of(parties=2, rho=1.0, lam=0.5)
    >>> parties = [Party(m, Columns(np.eye(2)[:, [m]]), terms) for m in range(2)]
    >>> coordinator = Coordinator(np.array([3.0, 6.0]), Squared(), terms, rounds=200, tol=1e-12)
    >>> run(coordinator, parties).reason
    'converged'
    >>> [float(round(party.weights[0], 9)) for party in parties]
    [2.0, 4.0]
    """
    broadcast = coordinator.open()
    while coordinator.ending is None:
        broadcast = coordinator.gather(answers(parties, broadcast))
        if watch is not None and watch(coordinator, parties):
            coordinator.stop()
    for party in parties:
        party.close(coordinator.ending)
    return coordinator.ending
