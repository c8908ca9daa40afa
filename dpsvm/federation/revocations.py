"""The list of what an approver has taken back, which a site reads before every answer."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from pathlib import Path

from dpsvm._locks import lock
from dpsvm._streams import atomic_write
from dpsvm.federation.keys import PublicKey, SigningKey
from dpsvm.federation.signed import opened, read_signed, signed
from dpsvm.federation.site import Refusal
from dpsvm.federation.store import make_folder

FILE = "revoked"
"""The name of the list in the folder of the consents."""

_PURPOSE = "dpsvm revocations"
_VERSION = 1
_DIGEST = re.compile(r"[0-9a-f]{64}")
_COUNT = re.compile(r"[0-9]{1,9}\n?")


@dataclass(frozen=True)
class Revocations:
    """The signed list of a site: digests of consents, or of the terms of jobs.

    A list that is broken, of another site or not signed by the approver refuses everything. It
    only grows, and how long it was is kept in the site's state: a shorter one, or one that is gone,
    is seen. What cannot be seen: a list that was removed before the site has read it once, or
    together with the count of it.

    folder : of the consents
    seen : the file of the count; None keeps none
    notes : whether a longer list is noted there

    >>> import tempfile
    >>> key = SigningKey("approver", bytes(32))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     listed = Revocations(Path(folder), "lab", key.public)
    ...     listed.add("0" * 64, key)
    ...     listed.require("0" * 64)
    Traceback (most recent call last):
    ...
    dpsvm.federation.site.Refusal: lab has taken back its consent
    """

    folder: Path
    site: str
    approver: PublicKey
    seen: Path | None = None
    notes: bool = True

    def require(self, *digests: str) -> None:
        """Refuse if one of these is on the list, or the list cannot be trusted."""
        found = self.read()
        if any(digest in found for digest in digests):
            raise Refusal(f"{self.site} has taken back its consent")

    def read(self) -> tuple[str, ...]:
        """All that is on it."""
        what = f"the list of what {self.site} has taken back"
        data = read_signed(self.folder / FILE, what)
        found: tuple[str, ...] = ()
        if data is not None:
            found = self._listed(opened(data, self.approver, _PURPOSE, what), what)
        self._compare(len(found), what)
        return found

    def add(self, digest: str, key: SigningKey) -> bool:
        """Write it anew with one more, in the approver's name; whether that changed it.

        One writer at a time: of two that had read the same list, one would be lost.
        """
        make_folder(self.folder)
        held = lock(self.folder / f".{FILE}.lock")
        try:
            kept = replace(self, notes=False).read()
            if digest in kept:
                return False
            content = {"version": _VERSION, "site": self.site, "revoked": [*kept, digest]}
            whole = signed(content, key, _PURPOSE)
            with atomic_write(self.folder / FILE, "wb", permissions=0o644) as file:
                file.write(whole)
            return True
        finally:
            held.release()

    def _listed(self, content: dict[str, object], what: str) -> tuple[str, ...]:
        revoked = content.get("revoked")
        whole = set(content) == {"version", "site", "revoked"} and isinstance(revoked, list)
        if not whole or type(content["version"]) is not int or content["version"] != _VERSION:
            raise Refusal(f"{what} is broken: it is no list of this version")
        if content["site"] != self.site:
            raise Refusal(f"{what} is that of another site")
        assert isinstance(revoked, list)
        if not all(isinstance(one, str) and _DIGEST.fullmatch(one) for one in revoked):
            raise Refusal(f"{what} is broken: it holds what is no digest")
        return tuple(revoked)

    def _compare(self, count: int, what: str) -> None:
        """Refuse a list that is shorter than one that was read before."""
        if self.seen is None:
            return
        try:
            text = self.seen.read_text(encoding="ascii") if self.seen.exists() else "0"
            if not _COUNT.fullmatch(text):
                raise Refusal(f"{self.site} has lost count of what it has taken back")
            if count < int(text):
                raise Refusal(f"{what} is gone, or shorter than it was")
            if count > int(text) and self.notes:
                with atomic_write(self.seen, permissions=0o600) as file:
                    file.write(f"{count}\n")
        except (OSError, UnicodeDecodeError):
            raise Refusal(f"{self.site} has lost count of what it has taken back") from None
