"""A site: its table, the matching of its rows with those of others, and its privacy ledger."""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import numpy as np
from scipy import sparse
from sklearn.utils import check_array

from dpsvm.privacy.accountant import BudgetAccountant
from dpsvm.privacy.release import Price
from dpsvm.rows import core_rows


class Refusal(ValueError):
    """A request that a site does not answer; the text may be told to the others."""


class Data(NamedTuple):
    """The values that a site has."""

    table: Any
    labels: Any


@dataclass(frozen=True, eq=False)
class Unread:
    """A table whose values are read when they are needed, and not before.

    read : gives its columns and its labels
    """

    rows: int
    columns: int
    labelled: bool
    read: Callable[[], Data]


class Known(Protocol):
    """A public key (:class:`~dpsvm.federation.keys.PublicKey`)."""

    @property
    def name(self) -> str:
        """Whose."""

    @property
    def key(self) -> bytes:
        """Its bytes."""

    def verifies(self, signature: bytes, *parts: str | bytes) -> bool:
        """Whether it was this key that signed."""


class Signer(Protocol):
    """What signs in a site's name (:class:`~dpsvm.federation.keys.SigningKey`)."""

    @property
    def public(self) -> Known:
        """By which others know it."""

    def sign(self, *parts: str | bytes) -> bytes:
        """A signature."""


class Approval(Protocol):
    """What a site has agreed to (:class:`~dpsvm.federation.consent.Consent`)."""

    def require(self, now: datetime) -> None:
        """Refuse what it does not hold for any more."""

    def require_price(self, price: Price | None, total: float | None) -> None:
        """Refuse what it does not cover."""


@dataclass(frozen=True, eq=False)
class Site:
    """What a site brings to a run.

    Its values are looked at by :meth:`open` alone, which a run calls once it is paid for.

    >>> import numpy as np
    >>> site = Site("lab", np.eye(2), ids=("p1", "p2"), salt="pepper")
    >>> site.digest() == Site("clinic", np.ones((2, 3)), ids=("p1", "p2"), salt="pepper").digest()
    True
    """

    name: str
    table: Any = None  # rows of its columns, dense or CSR, or Unread; None without columns
    labels: Any = None  # of the label owner, or of a node
    ids: tuple[str, ...] | None = None  # of the samples, in the order of the rows
    salt: str = ""  # shared by all sites, and by nobody else
    ledger: BudgetAccountant | None = None
    features: tuple[str, ...] | None = None  # the names of its columns
    model: dict[str, Any] | None = None  # its part of a finished run, for a joint prediction
    private: bool = False  # whether it takes part in nothing without a guarantee
    identity: Signer | None = None  # by which others know it
    known: Mapping[str, Known] = field(default_factory=dict)  # the others, by name
    consent: Approval | None = None  # to the run; None where the caller's own data are at hand
    state: Path | None = None  # the folder of all its runs; None keeps nothing between them
    _opened: list[Data | None] = field(default_factory=list, init=False, repr=False)

    def __post_init__(self) -> None:
        if self.table is not None and not isinstance(self.table, Unread):
            object.__setattr__(self, "table", _checked(self.table))
        for name in ("labels", "ids"):
            value = getattr(self, name)
            if value is not None and self.table is not None and len(value) != self.rows:
                raise ValueError(f"{self.name} has {self.rows} rows and {len(value)} {name}")

    @property
    def rows(self) -> int:
        """How many samples it has."""
        if isinstance(self.table, Unread):
            return self.table.rows
        if self.table is not None:
            return int(self.table.shape[0])
        return len(self.ids or ()) if self.labels is None else len(self.labels)

    @property
    def columns(self) -> int:
        """How many columns it has."""
        if isinstance(self.table, Unread):
            return self.table.columns
        return 0 if self.table is None else int(self.table.shape[1])

    @property
    def labelled(self) -> bool:
        """Whether it has labels."""
        return self.table.labelled if isinstance(self.table, Unread) else self.labels is not None

    @property
    def opened(self) -> bool:
        """Whether a run has looked at its values, or has tried to."""
        return bool(self._opened)

    def open(self) -> Data:
        """Its values; whatever is wrong with them is found here.

        >>> site = Site("lab", np.eye(2))
        >>> site.opened, len(site.open().table), site.opened
        (False, 2, True)
        """
        if not self._opened:
            self._opened.append(None)
        found = self._opened[0]
        if found is None:
            found = self._opened[0] = self._values()
        return found

    def _values(self) -> Data:
        if not isinstance(self.table, Unread):
            return Data(self.table, self.labels)
        table, labels = self.table.read()
        return Data(None if table is None else _checked(table), labels)

    def fingerprint(self, key: bytes) -> str:
        """Of its table, labels and ids, under a secret key: whether they are still the same."""
        mac = hmac.new(key, digestmod=hashlib.sha256)
        mac.update(b"" if self.ids is None else digest_of(self.ids, "").encode())
        for array in _arrays(*self.open()):
            mac.update(f"{array.dtype.str} {array.shape}".encode())
            mac.update(np.ascontiguousarray(array).view(np.uint8).data if array.size else b"")
        return mac.hexdigest()

    def digest(self) -> str:
        """Of its ordered sample ids, salted; "" without ids."""
        return "" if self.ids is None else digest_of(self.ids, self.salt)


def digest_of(ids: Sequence[str], salt: str) -> str:
    """HMAC-SHA-256 of ordered ids under a salt.

    Two sites that compare it learn whether they have the same samples in the same order. It is not
    private set intersection: whoever knows the salt can test whether a guessed list of ids is the
    one, and the same list has the same digest in every run with that salt.

    >>> digest_of(["a", "b"], "salt") == digest_of(["ab", ""], "salt")
    False
    """
    mac = hmac.new(salt.encode(), digestmod=hashlib.sha256)
    for one in ids:
        text = one.encode()
        mac.update(len(text).to_bytes(8, "little"))
        mac.update(text)
    return mac.hexdigest()


def _checked(table: Any) -> Any:
    """Finite numbers, of which a sparse table has every entry once."""
    checked = check_array(table, accept_sparse="csr", dtype=np.float64, ensure_min_features=0)
    return core_rows(checked) if sparse.issparse(checked) else checked


def _arrays(table: Any, labels: Any) -> list[Any]:
    """All that a table and labels consist of."""
    found = []
    if sparse.issparse(table):
        found += [table.data, table.indices, table.indptr]
    elif table is not None:
        found.append(table)
    if labels is not None:
        own = np.asarray(labels)
        found.append(np.asarray(own, dtype="U") if own.dtype.kind == "O" else own)
    return found
