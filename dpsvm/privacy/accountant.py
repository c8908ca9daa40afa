"""A budget for privacy: charged before anything is released, kept in memory or in a ledger file."""

from __future__ import annotations

import json
import math
import os
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from numbers import Integral
from pathlib import Path
from typing import Any

from dpsvm._locks import lock
from dpsvm._streams import atomic_write
from dpsvm.names import NEIGHBOURING
from dpsvm.privacy.accounting import (
    Approximate,
    Event,
    Folded,
    Gaussian,
    Pure,
    Rdp,
    ZCdp,
    epsilon_at_order,
    epsilon_of,
    filter_order,
)
from dpsvm.privacy.guarantee import (
    Guarantee,
    check_delta,
    check_epsilon,
    check_neighbouring,
)

FORMAT = "dpsvm privacy ledger, version 1"
_KINDS: dict[str, Callable[..., Event]] = {
    kind.__name__: kind for kind in (Pure, Approximate, Gaussian, ZCdp, Folded, Rdp)
}
_ROUNDING = 1e-12  # three charges of 0.1 fit into 0.3
_ELSEWHERE = (
    "an accountant without a file takes no charge in another process or from a pickle: give path="
)


class BudgetError(ValueError):
    """A charge that the budget does not cover; nothing was charged, nothing may be released."""


@dataclass(frozen=True)
class Charge:
    """One line of a ledger."""

    event: Event
    label: str = ""


@dataclass(frozen=True)
class Ledger:
    """A budget and what has been charged to it."""

    epsilon: float
    delta: float
    neighbouring: str
    adaptive: bool = False
    charges: tuple[Charge, ...] = ()

    @classmethod
    def of(
        cls,
        epsilon: Any,
        delta: Any = None,
        neighbouring: Any = None,
        adaptive: Any = None,
        charges: tuple[Charge, ...] = (),
    ) -> Ledger:
        """One whose budget is checked."""
        if epsilon is None:
            raise ValueError("epsilon must be given: a budget has no default")
        limit = math.inf if epsilon == math.inf else check_epsilon(epsilon)
        number = 0.0 if delta is None or delta == 0 else check_delta(delta)
        relation = check_neighbouring(NEIGHBOURING[0] if neighbouring is None else neighbouring)
        if adaptive is not None and not isinstance(adaptive, bool):
            raise ValueError(f"adaptive must be True or False, got {adaptive!r}")
        return cls(limit, number, relation, bool(adaptive), charges)

    def spent(self, more: Sequence[Event] = ()) -> float:
        """The epsilon, at the budget's delta, of all charges and of some more."""
        events = [*(charge.event for charge in self.charges), *more]
        if self.adaptive and self.delta > 0:
            return epsilon_at_order(events, self.delta, filter_order(self.epsilon, self.delta))
        return epsilon_of(events, self.delta)

    def to_json(self) -> str:
        """The text of a ledger file."""
        charges = [
            {"label": charge.label, "kind": type(charge.event).__name__, **asdict(charge.event)}
            for charge in self.charges
        ]
        epsilon = self.epsilon if math.isfinite(self.epsilon) else "inf"  # JSON has no infinity
        budget = {"epsilon": epsilon, "delta": self.delta, "neighbouring": self.neighbouring}
        budget["adaptive"] = self.adaptive
        return json.dumps({"format": FORMAT, **budget, "charges": charges}, indent=1) + "\n"

    @classmethod
    def from_json(cls, text: str, path: str) -> Ledger:
        """Read a ledger file; what is no ledger is a ValueError that names it."""
        try:
            content = json.loads(text)
            if content["format"] != FORMAT:
                raise ValueError(f"its format is {content['format']!r}, not {FORMAT!r}")
            if not isinstance(content["charges"], list):
                raise ValueError(f"charges must be a list, got {content['charges']!r}")
            charges = tuple(_charge(line) for line in content["charges"])
            names = ("epsilon", "delta", "neighbouring", "adaptive")
            budget = {name: content[name] for name in names}
            for name, value in budget.items():
                if (
                    value is None or value == math.inf
                ):  # JSON has no infinity: a budget writes "inf"
                    raise ValueError(f"{name} must not be {value!r}")
            if budget["epsilon"] == "inf":
                budget["epsilon"] = math.inf
            return cls.of(**budget, charges=charges)
        except RecursionError:
            raise ValueError(f"{path}: not a privacy ledger: it is nested too deeply") from None
        except (ValueError, KeyError, TypeError) as error:
            reason = f"{error.args[0]!r} is missing" if isinstance(error, KeyError) else error
            raise ValueError(f"{path}: not a privacy ledger: {reason}") from error


class BudgetAccountant:
    """Keeps the releases from one data set within (epsilon, delta).

    epsilon, delta : float
        The budget. Without delta only pure releases fit. Left out when a ledger file is opened,
        which holds them.
    neighbouring : "add-remove", "replace", "column", "row" or "features"
        The relation all charges must be proved under.
    path : path, optional
        A ledger file, shared by threads and processes: every charge is checked and written, whole,
        under a lock. Opening a ledger never resets it.
    create : bool
        Begin a new ledger file. It must not exist; without ``create`` it must.
    adaptive : bool
        Whether the size of a charge may be chosen in the light of what earlier charges paid for.
        If not, what is asked of the data may depend on that, but not what it costs; then the
        tightest composition holds. With ``adaptive`` one rule is fixed from the start
        (:func:`~dpsvm.privacy.accounting.epsilon_at_order`), which asks for a little more.

    A charge is made before what it pays for is computed. If that then fails, the charge stands.
    ``copy.deepcopy`` and ``sklearn.base.clone`` give the accountant itself: a copy would double the
    budget. For the same reason an accountant without a file takes no charge in another process
    than its own, and arrives from a pickle closed.

    >>> accountant = BudgetAccountant(1.0)
    >>> accountant.spend(Pure(0.25), label="count")
    >>> accountant.spend(0.5)
    >>> print(accountant.total())
    epsilon = 0.75 (add-remove)
    >>> accountant.remaining()
    0.25
    >>> accountant.spend(0.5)
    Traceback (most recent call last):
    ...
    dpsvm.privacy.accountant.BudgetError: epsilon = 0.5 does not fit: 0.75 of 1 is spent (delta = 0)

    As a context manager it is closed at the end, and takes no more charges:

    >>> with BudgetAccountant(1.0) as accountant:
    ...     accountant.spend(0.5)
    >>> accountant.spend(0.1)
    Traceback (most recent call last):
    ...
    dpsvm.privacy.accountant.BudgetError: this accountant is closed
    """

    def __init__(
        self,
        epsilon: float | None = None,
        delta: float | None = None,
        *,
        neighbouring: str | None = None,
        path: str | os.PathLike[str] | None = None,
        create: bool = False,
        adaptive: bool | None = None,
    ) -> None:
        self._closed: str | None = None  # why no charge is taken
        asked: dict[str, Any] = {"epsilon": epsilon, "delta": delta}
        asked |= {"neighbouring": neighbouring, "adaptive": adaptive}
        if path is None:
            if create:
                raise ValueError("create=True begins a ledger file: path must be given, got None")
            self._store: _Memory | _File = _Memory(Ledger.of(**asked))
            return
        self._store = _File(Path(os.path.realpath(path)))
        if create:
            self._store.begin(Ledger.of(**asked))
        ledger = self._store.read()
        for name, value in asked.items():
            if value is not None and value != (found := getattr(ledger, name)):
                raise ValueError(
                    f"{os.fspath(path)}: the ledger's {name} is {found!r}, not {value!r}"
                )

    @property
    def charges(self) -> tuple[Charge, ...]:
        """What has been charged so far, in order.

        >>> accountant = BudgetAccountant(1.0)
        >>> accountant.spend(0.5, label="first")
        >>> accountant.charges
        (Charge(event=Pure(epsilon=0.5), label='first'),)
        """
        return self._store.read().charges

    def check(
        self,
        event: Event | float,
        delta: float = 0.0,
        *,
        times: int = 1,
        neighbouring: str | None = None,
    ) -> None:
        """Raise BudgetError unless the release, made so many times, would fit.

        >>> BudgetAccountant(1.0).check(0.3, times=3)
        >>> try:
        ...     BudgetAccountant(1.0).check(0.3, times=4)
        ... except BudgetError as refusal:
        ...     print(refusal)
        4 x epsilon = 0.3 does not fit: 0 of 1 is spent (delta = 0)
        """
        self._require_open()
        if not isinstance(times, Integral) or times < 1:
            raise ValueError(f"times must be a whole number from 1 on, got {times!r}")
        self._check(self._store.read(), [_event(event, delta)] * int(times), neighbouring)

    def spend(
        self,
        event: Event | float,
        delta: float = 0.0,
        *,
        label: str = "",
        neighbouring: str | None = None,
    ) -> None:
        """Charge a release that is about to be made, or raise BudgetError and charge nothing.

        event : event or float
            What is known of the release (see :mod:`dpsvm.privacy.accounting`); a number is its
            epsilon.
        delta : float
            Its delta, with an epsilon.
        label : str
            What the release is, for whoever reads the ledger.
        neighbouring : str, optional
            The relation the event is proved under; must be the budget's.

        >>> accountant = BudgetAccountant(1.0)
        >>> accountant.spend(0.25, label="histogram")
        >>> accountant.remaining()
        0.75
        """
        self._require_open()
        charge = Charge(_event(event, delta), str(label))

        def add(ledger: Ledger) -> Ledger:
            self._check(ledger, [charge.event], neighbouring)
            return replace(ledger, charges=(*ledger.charges, charge))

        self._store.update(add)

    def total(self) -> Guarantee:
        """What all the charges together guarantee, at the budget's delta.

        >>> print(BudgetAccountant(1.0).total())
        epsilon = 0 (add-remove)
        """
        ledger = self._store.read()
        return Guarantee(ledger.spent(), ledger.delta, ledger.neighbouring)

    def remaining(self) -> float:
        """An epsilon that one more pure release may have.

        Tight composition may leave room for a little more: ``check`` knows.

        >>> BudgetAccountant(2.0).remaining()
        2.0
        """
        ledger = self._store.read()
        return max(ledger.epsilon - ledger.spent(), 0.0)

    def close(self) -> None:
        """Take no more charges. A ledger file can be opened again."""
        self._closed = "this accountant is closed"

    def __enter__(self) -> BudgetAccountant:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __copy__(self) -> BudgetAccountant:
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> BudgetAccountant:
        return self

    def __reduce__(self) -> tuple[Callable[..., BudgetAccountant], tuple[Any, ...]]:
        if isinstance(self._store, _File):
            return _unpickled, (self._store.path, self._closed)
        return _unpickled, (self._store.read(), _ELSEWHERE)

    def __repr__(self) -> str:
        if isinstance(self._store, _File):
            return f"BudgetAccountant(path={str(self._store.path)!r})"
        ledger = self._store.read()
        budget = f"{ledger.epsilon!r}, {ledger.delta!r}, neighbouring={ledger.neighbouring!r}"
        return f"BudgetAccountant({budget}{', adaptive=True' if ledger.adaptive else ''})"

    def _require_open(self) -> None:
        if self._closed is not None:
            raise BudgetError(self._closed)

    def _check(self, ledger: Ledger, events: Sequence[Event], neighbouring: str | None) -> None:
        if neighbouring is not None and neighbouring != ledger.neighbouring:
            raise BudgetError(
                f"a release proved private under {neighbouring!r} cannot be charged to a budget "
                f"for {ledger.neighbouring!r}"
            )
        spent = ledger.spent(events)
        if spent <= ledger.epsilon * (1 + _ROUNDING):
            return
        if math.isinf(spent) and not ledger.delta:
            raise BudgetError(
                "this release has a delta, and the budget has none: only pure releases fit, of an "
                "epsilon alone"
            )
        what = _describe(events[0], ledger.delta)
        what = what if len(events) == 1 else f"{len(events)} x {what}"
        raise BudgetError(
            f"{what} does not fit: {ledger.spent():g} of {ledger.epsilon:g} is spent "
            f"(delta = {ledger.delta:g})"
        )


class _Memory:
    """A ledger that lives as long as its accountant."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        self._lock = threading.Lock()
        self._process = os.getpid()

    def read(self) -> Ledger:
        return self._ledger

    def update(self, change: Callable[[Ledger], Ledger]) -> None:
        if os.getpid() != self._process:  # a fork would double the budget
            raise BudgetError(_ELSEWHERE)
        with self._lock:
            self._ledger = change(self._ledger)


class _File:
    """A ledger file, replaced whole at every charge while a lock file beside it is held."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def begin(self, ledger: Ledger) -> None:
        with self._locked():
            if self.path.exists():
                raise FileExistsError(
                    f"{self.path}: there is a ledger already; open it without create"
                )
            self._write(ledger)

    def read(self) -> Ledger:
        if os.name != "nt" or not self.path.exists():
            return self._load()
        with self._locked():  # Windows replaces no file that is being read
            return self._load()

    def _load(self) -> Ledger:
        try:
            text = self.path.read_text(encoding="utf-8")
        except FileNotFoundError:
            raise FileNotFoundError(
                f"{self.path}: no such ledger; create=True begins a new one"
            ) from None
        except UnicodeDecodeError as error:
            raise ValueError(f"{self.path}: not a privacy ledger: {error}") from error
        return Ledger.from_json(text, str(self.path))

    def update(self, change: Callable[[Ledger], Ledger]) -> None:
        with self._locked():
            ledger = self._load()
            if os.stat(self.path).st_nlink > 1:  # replacing one of its names would fork the budget
                raise BudgetError(f"{self.path}: a ledger file must have one name, not hard links")
            self._write(change(ledger))

    def _write(self, ledger: Ledger) -> None:
        with atomic_write(self.path) as file:
            file.write(ledger.to_json())

    @contextmanager
    def _locked(self) -> Iterator[None]:
        held = lock(f"{self.path}.lock")
        try:
            yield
        finally:
            held.release()


def _charge(line: dict[str, Any]) -> Charge:
    fields = dict(line)
    label, kind = fields.pop("label"), fields.pop("kind")
    if kind not in _KINDS:
        raise ValueError(f"{kind!r} is no kind of charge")
    return Charge(_KINDS[kind](**fields), str(label))


def _event(event: Event | float, delta: float) -> Event:
    if isinstance(event, Event):
        if delta:
            raise ValueError(f"delta = {delta!r} belongs to an epsilon, not to {event!r}")
        return event
    return Approximate(event, delta) if delta else Pure(event)


def _describe(event: Event, delta: float) -> str:
    if isinstance(event, Pure):
        return f"epsilon = {event.epsilon:g}"
    if isinstance(event, Approximate):
        return f"epsilon = {event.epsilon:g}, delta = {event.delta:g}"
    return f"epsilon = {epsilon_of([event], delta):g} ({type(event).__name__})"


def _unpickled(kept: Path | Ledger, closed: str | None) -> BudgetAccountant:
    """The accountant of a ledger, or of a file; without the file, as elsewhere, a closed one."""
    accountant = BudgetAccountant.__new__(BudgetAccountant)
    accountant._store = _Memory(kept) if isinstance(kept, Ledger) else _File(kept)
    if isinstance(kept, Path) and not kept.exists():
        closed = f"{kept}: no such ledger here"
    accountant._closed = closed
    return accountant
