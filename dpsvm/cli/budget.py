"""``dpsvm budget``: begin a privacy ledger, and see what has been charged to it."""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from dpsvm.cli.files import require_folder
from dpsvm.cli.interrupt import prompt_interrupt
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
from dpsvm.privacy.accountant import BudgetAccountant, BudgetError, Ledger
from dpsvm.privacy.accounting import epsilon_of
from dpsvm.privacy.guarantee import Guarantee
from dpsvm.privacy.minimiser import CertificateError

_USAGE = "usage: dpsvm budget create [flags] FILE | dpsvm budget show FILE"
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
        "exists is never begun anew. show prints the budget, what is left of it and every "
        "charge.",
        ("Flags of create", CREATE_FLAGS),
        ending="The exit code is 0, or 2 for an error.",
    )


def run(arguments: list[str]) -> None:
    """Carry out the command."""
    action, *rest = arguments or [""]
    if action not in ("create", "show"):
        got = repr(action) if arguments else "nothing"
        hint = meant(action, ("create", "show"))
        raise UsageError(f"expected create or show, got {got}{hint} ({_USAGE})")
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
    for line in _lines(_read(path)):
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


def _read(path: str) -> Ledger:
    _require_ledger(path)
    return Ledger.from_json(Path(path).read_text(encoding="utf-8"), path)


def _require_ledger(path: str) -> None:
    if not os.path.exists(path):
        reason = "no such ledger; dpsvm budget create begins one"
        raise FileNotFoundError(errno.ENOENT, reason, path)


def _lines(ledger: Ledger) -> Iterator[str]:
    """The budget, what is left and the charges: all of it public, none of it from the data."""
    spent = ledger.spent()
    yield f"budget     {Guarantee(ledger.epsilon, ledger.delta, ledger.neighbouring)}"
    yield f"spent      epsilon = {spent:g}"
    yield f"remaining  epsilon = {max(ledger.epsilon - spent, 0.0):g}"
    if ledger.adaptive:
        yield "adaptive   the size of a charge may depend on earlier releases"
    yield f"charges    {len(ledger.charges)}"
    for number, charge in enumerate(ledger.charges, start=1):
        alone = epsilon_of([charge.event], ledger.delta)
        kind = type(charge.event).__name__
        yield f"{number:>9}  {charge.label or '(no label)'}: {kind}, epsilon = {alone:g} alone"
