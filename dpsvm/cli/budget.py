"""``dpsvm budget``: begin a privacy ledger, take over an old one, see what was charged to it."""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from textwrap import fill
from time import time
from typing import Any

from dpsvm.cli.files import require_folder
from dpsvm.cli.interrupt import prompt_interrupt
from dpsvm.cli.layout import WIDTH
from dpsvm.cli.options import (
    Flag,
    UsageError,
    help_page,
    meant,
    one_of,
    one_operand,
    parse,
    positive,
    reader,
)
from dpsvm.cli.wording import in_flags
from dpsvm.names import NEIGHBOURING
from dpsvm.privacy.accountant import BudgetAccountant, BudgetError
from dpsvm.privacy.accounting import epsilon_of
from dpsvm.privacy.guarantee import Guarantee
from dpsvm.privacy.ledger import Charge, Ledger, Reservation
from dpsvm.privacy.ledger_file import LedgerFile
from dpsvm.privacy.minimiser import CertificateError

_ACTIONS = ("create", "show", "adopt")
_USAGE = "usage: dpsvm budget create [flags] FILE | dpsvm budget show|adopt FILE"
CREATE_FLAGS = (
    Flag("--epsilon", "the budget; required", "x", positive),
    Flag(
        "--delta",
        "the budget's delta; without it only pure releases fit",
        "x",
        reader(float, "a number"),
        default_text="0",
    ),
    Flag(
        "--neighbouring",
        " or ".join(NEIGHBOURING),
        "relation",
        one_of(NEIGHBOURING),
        default_text=NEIGHBOURING[0],
    ),
    Flag(
        "--adaptive",
        "the size of a charge may be chosen in the light of earlier releases, for a little more",
        default=False,
    ),
)


def help_text() -> str:
    """The help of the command."""
    return help_page(
        _USAGE,
        "A ledger keeps all releases from one data set within (epsilon, delta): every fit of "
        "dpsvm train --private, dpsvm vertical or network --privacy, or dpsvm lasso --epsilon "
        "with --ledger FILE is charged to it first, and refused if it does not fit. One that "
        "exists is never begun anew. show prints the budget, what is left of it, every charge "
        "and open reservation, and the head: the last link of the chain of MACs by which a change "
        "of the ledger is seen. FILE.key is the key of that chain, for its owner alone; a ledger "
        "cannot be opened without it. adopt takes over a ledger of version 1, which had no key.",
        ("Flags of create", CREATE_FLAGS),
        ending="The exit code is 0, or 2 for an error.",
    )


def run(arguments: list[str]) -> None:
    """Carry out the command."""
    action, *rest = arguments or [""]
    if action not in _ACTIONS:
        got = repr(action) if arguments else "nothing"
        hint = meant(action, _ACTIONS)
        raise UsageError(f"expected create, show or adopt, got {got}{hint} ({_USAGE})")
    values, operands = parse(rest, CREATE_FLAGS if action == "create" else ())
    path = one_operand(operands, "FILE", _USAGE)
    if action == "create":
        if values["epsilon"] is None:
            raise UsageError("create needs --epsilon: a budget has no default")
        require_folder(path)
        if os.path.exists(path):
            raise FileExistsError(errno.EEXIST, "there is a file already, left as it is", path)
        with in_flags(CREATE_FLAGS):
            BudgetAccountant(**values, path=path, create=True)
    else:
        _require_ledger(path)
    file = LedgerFile(Path(os.path.realpath(path)))
    if action == "adopt":
        file.adopt()
    for line in _lines(file.read(), file.links(), time()):
        print(line)


class ChargedLedger(BudgetAccountant):
    """A ledger file that remembers whether this command has charged it.

    >>> ChargedLedger(epsilon=1.0).charged
    False
    """

    charged = False
    busy = False  # with writing the charge

    def spend(self, *arguments: Any, **options: Any) -> None:
        """Charge the ledger."""
        self.busy = True
        before = len(self.charges)
        try:
            super().spend(*arguments, **options)
            self.charged = True
        except KeyboardInterrupt:  # it may come once the charge is written
            self.charged = len(self.charges) > before
            raise
        finally:
            self.busy = False


def open_ledger(path: str) -> ChargedLedger:
    """An accountant on a ledger file, which must exist.

    >>> open_ledger("no such file")
    Traceback (most recent call last):
    ...
    FileNotFoundError: [Errno 2] no such ledger; dpsvm budget create begins one: 'no such file'
    """
    _require_ledger(path)
    return ChargedLedger(path=path)


@contextmanager
def charge_told(name: str, path: str | None, ledger: ChargedLedger | None) -> Iterator[None]:
    """If what is done here fails after its charge, tell standard error that the charge stands.

    name : of the command, which begins every line

    >>> with charge_told("dpsvm train", None, None):
    ...     print("done")
    done
    """
    try:
        yield
    except BaseException:
        for line in _stands(path, ledger):
            print(f"{name}: {line}", file=sys.stderr)
        raise


@contextmanager
def charged_fit(name: str, path: str | None, ledger: ChargedLedger | None) -> Iterator[None]:
    """A fit that may be charged: Ctrl-C is heard while numpy computes, refusals are ValueErrors.

    >>> with charged_fit("dpsvm train", None, None):
    ...     print("fitted")
    fitted
    """

    def last_words() -> str:
        lines = [*_stands(path, ledger), "interrupted"]
        return "\n".join(f"{name}: {line}" for line in lines)

    try:
        with prompt_interrupt(last_words, busy=lambda: ledger is not None and ledger.busy):
            yield
    except BudgetError as error:
        raise ValueError(f"{path}: {error}; nothing was released") from error
    except CertificateError as error:
        raise ValueError(str(error)) from error


def _stands(path: str | None, ledger: ChargedLedger | None) -> list[str]:
    if ledger is None or not ledger.charged:
        return []
    return [f"warning: {path}: the charge for this fit stands"]


def _require_ledger(path: str) -> None:
    if not os.path.exists(path):
        reason = "no such ledger; dpsvm budget create begins one"
        raise FileNotFoundError(errno.ENOENT, reason, path)


def _lines(ledger: Ledger, links: Sequence[str], now: float) -> Iterator[str]:
    """The budget, what is left and the charges: all of it public, none of it from the data."""
    reserved = ledger.open(now)
    left = max(ledger.epsilon - ledger.used(now), 0.0)
    yield _fact("budget", str(Guarantee(ledger.epsilon, ledger.delta, ledger.neighbouring)))
    yield _fact("spent", f"epsilon = {ledger.spent():g}")
    yield _fact("remaining", f"epsilon = {left:g}")
    if ledger.adaptive:
        yield _fact("adaptive", "the size of a charge may depend on earlier releases")
    yield _fact("charges", str(len(ledger.charges)))
    for number, charge in enumerate(ledger.charges, start=1):
        yield _entry(str(number), charge.time or "(no time)", charge, ledger.delta)
    if reserved:
        yield _fact("reserved", str(len(reserved)))
    for one in reserved:
        yield _entry("", f"until {one.expires}", one, ledger.delta)
    yield _fact("head", links[len(ledger.charges)])


def _fact(label: str, value: str) -> str:
    return _laid_out(f"{label:<11}", value)


def _entry(number: str, when: str, entry: Charge | Reservation, delta: float) -> str:
    """A charge or reservation: what it is for, and what it would cost alone."""
    alone = epsilon_of([entry.event], delta)
    label = entry.label or "(no label)"
    label = label if label.isprintable() else ascii(label)
    text = f"{when}  {label}: {type(entry.event).__name__}, epsilon = {alone:g} alone"
    if entry.job:
        job = entry.job if entry.job.isprintable() else ascii(entry.job)
        text += f", {entry.rounds} rounds of job {job}"
    return _laid_out(f"{number:>9}  ", text)


def _laid_out(lead: str, text: str) -> str:
    """A text behind its lead, in as many lines as it takes."""
    behind = " " * len(lead)
    return fill(text, WIDTH, initial_indent=lead, subsequent_indent=behind, break_on_hyphens=False)
