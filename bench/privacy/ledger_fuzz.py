"""Damage the files of privacy ledgers in every way, and see that none of them is read.

    python bench/privacy/ledger_fuzz.py [--mutations N] [--seed S]

All single bits of a small ledger and of its key are flipped. The rest of the mutations are drawn
for ledgers of several sizes: more bits, cuts, insertions, lines moved, left out and repeated,
values of the JSON, pieces of an older state or of another ledger, and edits of what is said,
written as dpsvm writes a ledger but without its key: a smaller charge, one less, a larger budget.

Opening a mutant must be refused with an error that names it. One that is read and says the same as
the ledger is no harm; one that is read and says anything else is a fault, and so is any other
exception. Beside it stands what became of the flips of a ledger of version 1, which had no key.

Writes results/ledger_fuzz.json and .md. Exit code 1 if there is a fault.
"""

from __future__ import annotations

import json
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

sys.path.append(str(Path(__file__).resolve().parents[2]))

import numpy as np

from bench.common import Table, arguments, note, run, write_results
from dpsvm.privacy import BudgetAccountant, Folded, Gaussian, Pure, Rdp
from dpsvm.privacy.ledger import Ledger
from dpsvm.privacy.ledger_text import BEFORE, KEY_BYTES, parsed, written

Random = np.random.Generator

SEED = 0
BUDGET = (2.0, 1e-5)
NOW = 1_800_000_000.0
ODD_VALUES: tuple[Any, ...] = (
    *(None, True, 0, -1, 0.5, 1e308, 10**400, float("nan"), float("inf")),
    *("", "inf", "1970-01-01T00:00:00Z", "9999-12-31T23:59:59Z", "\ud800", [], {}, [[]]),
)


@dataclass(frozen=True)
class Original:
    """A ledger's files, and states of it and of others that pieces can be taken from."""

    text: bytes
    key: bytes
    ledger: Ledger
    others: tuple[bytes, ...]


@dataclass
class Findings:
    """What came of the mutations."""

    refused: Counter[str] = field(default_factory=Counter)
    same: Counter[str] = field(default_factory=Counter)
    faults: list[str] = field(default_factory=list)

    @property
    def total(self) -> int:
        return sum(self.refused.values()) + sum(self.same.values()) + len(self.faults)


def original(folder: Path, charges: int) -> Original:
    """A ledger with so many charges and a reservation."""
    path = folder / f"ledger-{charges}"
    accountant = BudgetAccountant(*BUDGET, path=path, create=True, clock=lambda: NOW)
    events = [Pure(1e-3), Gaussian(1e-3), Folded(1e-3), Rdp((2.0, 32.0), (1e-5, 1e-4))]
    others = [path.read_bytes()]
    for number in range(charges):
        job = {"job": f"{number:064x}", "rounds": 20}
        identity = accountant.reserve(events[number % 4], label=f"run {number}", **job)
        others.append(path.read_bytes())
        accountant.commit(identity)
    accountant.reserve(0.25, label="the next run")
    text, key = path.read_bytes(), Path(f"{path}.key").read_bytes()
    ledger = parsed(text, str(path))
    return Original(text, key, ledger, (*others, written(ledger, bytes(KEY_BYTES))))


def flips(data: bytes, step: int = 1) -> Iterator[bytes]:
    """The data with one bit flipped, for every so-manieth bit."""
    for bit in range(0, 8 * len(data), step):
        changed = bytearray(data)
        changed[bit // 8] ^= 1 << bit % 8
        yield bytes(changed)


def flip(one: Original, random: Random) -> bytes:
    """Some bits."""
    changed = bytearray(one.text)
    for _ in range(random.integers(2, 9)):
        changed[random.integers(len(changed))] ^= 1 << int(random.integers(8))
    return bytes(changed)


def cut(one: Original, random: Random) -> bytes:
    """A piece taken out, often the end."""
    first, last = sorted(int(at) for at in random.integers(0, len(one.text) + 1, 2))
    return one.text[:first] + (b"" if random.random() < 0.5 else one.text[last:])


def insert(one: Original, random: Random) -> bytes:
    """A piece put in: white space, random bytes, or some of its own."""
    at, size = int(random.integers(len(one.text) + 1)), int(random.integers(1, 64))
    pieces = (b" ", b"\n", random.bytes(size), one.text[at : at + size])
    return one.text[:at] + pieces[random.integers(len(pieces))] + one.text[at:]


def move_lines(one: Original, random: Random) -> bytes:
    """A line left out, repeated, or exchanged with another."""
    lines = one.text.splitlines(keepends=True)
    first, second = (int(at) for at in random.integers(0, len(lines), 2))
    kind = random.integers(3)
    if kind == 0:
        del lines[first]
    elif kind == 1:
        lines.insert(second, lines[first])
    else:
        lines[first], lines[second] = lines[second], lines[first]
    return b"".join(lines)


def splice(one: Original, random: Random) -> bytes:
    """The beginning of one state and the end of another, or of another ledger."""
    other = one.others[random.integers(len(one.others))]
    if random.random() < 0.5:  # at the beginning of a line
        head, tail = one.text.splitlines(keepends=True), other.splitlines(keepends=True)
        first, second = random.integers(1, len(head) + 1), random.integers(1, len(tail) + 1)
        return b"".join(head[:first] + tail[second:])
    at = int(random.integers(1, min(len(one.text), len(other))))
    return one.text[:at] + other[at:]


def change_value(one: Original, random: Random) -> bytes:
    """A value of the JSON, of another type or size."""
    content = json.loads(one.text)
    places: list[tuple[Any, Any]] = []

    def walk(node: Any) -> None:
        for key in node if isinstance(node, dict) else range(len(node)):
            places.append((node, key))
            if isinstance(node[key], dict | list):
                walk(node[key])

    walk(content)
    node, key = places[random.integers(len(places))]
    node[key] = ODD_VALUES[random.integers(len(ODD_VALUES))]
    return json.dumps(content, indent=1 if random.random() < 0.5 else None).encode()


def nest(one: Original, random: Random) -> bytes:
    """A value nested deeper than Python's stack, or just not."""
    depth = int(random.choice([10, 900, 5000, 100_000]))
    return one.text.replace(b"[", b"[" * depth, 1).replace(b"]", b"]" * depth, 1)


def forge(one: Original, random: Random) -> bytes:
    """Something else said, written as dpsvm writes it, under another key or with the old MAC."""
    ledger, at = one.ledger, int(random.integers(max(len(one.ledger.charges), 1)))
    kept = ledger.charges[:at] + ledger.charges[at + 1 :]
    (reserved,) = ledger.reservations
    cheaper = tuple(replace(charge, event=Pure(1e-9)) for charge in ledger.charges)
    said = (
        replace(ledger, epsilon=9.0),
        replace(ledger, epsilon=float("inf")),
        replace(ledger, delta=0.1),
        replace(ledger, adaptive=True),
        replace(ledger, charges=kept),
        replace(ledger, charges=()),
        replace(ledger, charges=cheaper),
        replace(ledger, charges=ledger.charges[::-1]),
        replace(ledger, charges=(*ledger.charges, *ledger.charges[:1])),
        replace(ledger, reservations=()),
        replace(ledger, reservations=(replace(reserved, event=Pure(1e-9)),)),
        replace(ledger, reservations=(replace(reserved, expires="1970-01-01T00:00:00Z"),)),
    )
    chosen = said[random.integers(len(said))]
    if chosen == ledger:  # one charge, turned round
        chosen = said[0]
    text = written(chosen, random.bytes(KEY_BYTES))
    if random.random() < 0.5:
        return text[: text.index(b'"mac"')] + one.text[one.text.index(b'"mac"') :]
    return text


def go_back(one: Original, random: Random) -> bytes:
    """The same as a ledger of version 1, which had no key."""
    text = one.text.replace(b"version 2", b"version 1")
    return text if random.random() < 0.5 else version_1(one.ledger)


MUTATIONS: tuple[Callable[[Original, Random], bytes], ...] = (
    *(flip, cut, insert, move_lines, splice, change_value, nest, forge, go_back),
)


def version_1(ledger: Ledger) -> bytes:
    """The text of a ledger of version 1."""
    charges = [
        {"label": one.label, "kind": type(one.event).__name__, **vars(one.event)}
        for one in ledger.charges
    ]
    budget = {"epsilon": ledger.epsilon, "delta": ledger.delta}
    budget |= {"neighbouring": ledger.neighbouring, "adaptive": ledger.adaptive}
    return (json.dumps({"format": BEFORE, **budget, "charges": charges}, indent=1) + "\n").encode()


def before(step: int) -> tuple[int, int, int]:
    """Of a small ledger of version 1: the flips, those that were read, those that left more."""
    ledger = Ledger.of(*BUDGET)
    for epsilon in (0.75, 0.5):
        accountant = BudgetAccountant(*BUDGET)
        accountant.spend(epsilon, label="mean of the age")
        ledger = replace(ledger, charges=(*ledger.charges, *accountant.charges))
    left = ledger.epsilon - ledger.spent()
    count = read = more = 0
    for text in flips(version_1(ledger), step):
        count += 1
        try:
            found = parsed(text, "ledger", BEFORE)
        except ValueError:
            continue
        read += 1
        more += found.epsilon - found.spent() > left
    return count, read, more


def try_files(
    one: Original, how: str, text: bytes, key: bytes, path: Path, found: Findings
) -> None:
    """Open a ledger of these files."""
    path.write_bytes(text)
    secret = Path(f"{path}.key")
    secret.write_bytes(key)
    secret.chmod(0o600)
    try:
        accountant = BudgetAccountant(path=path, clock=lambda: NOW)
    except ValueError as error:
        found.refused[how] += 1
        if str(path) not in str(error):
            found.faults.append(f"{how}: not named: {error!r:.200}")
        return
    except BaseException as error:
        found.faults.append(f"{how}: {error!r:.200}")
        return
    again = parsed(path.read_bytes(), str(path))
    if again == one.ledger and accountant.charges == one.ledger.charges:
        found.same[how] += 1
    else:
        found.faults.append(f"{how}: it is read, and says something else")


def fuzz(
    count: int, seed: int, step: int, progress: Callable[[int], None] = lambda done: None
) -> Findings:
    """Every so-manieth flip of a small ledger, and as many more mutations as are wanted."""
    random, found = np.random.default_rng(seed), Findings()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        ledgers = [original(folder, charges) for charges in (1, 2, 4, 12)]
        small, path = ledgers[0], folder / "mutant"
        for text in flips(small.text, step):
            try_files(small, "each bit of the ledger", text, small.key, path, found)
        for key in flips(small.key, step):
            try_files(small, "each bit of the key", small.text, key, path, found)
        while found.total < count:
            one = ledgers[random.integers(len(ledgers))]
            mutation = MUTATIONS[random.integers(len(MUTATIONS))]
            text = mutation(one, random)
            if text == one.text or text in one.others[:-1]:
                continue  # an older state of the same ledger, whole, is no mutant: see the head
            try_files(one, mutation.__name__, text, one.key, path, found)
            if found.total % 2_000 == 0:
                progress(found.total)
    return found


def main() -> int:
    parser = arguments(__doc__)
    parser.add_argument("--mutations", type=int, default=20_000)
    parser.add_argument("--seed", type=int, default=SEED)
    options = parser.parse_args()
    count, step = (1_000, 29) if options.quick else (options.mutations, 1)
    found = fuzz(count, options.seed, step, lambda done: note(f"{done} of {count}"))
    flipped, read, more = before(step)
    table = Table("mutations", ("mutation", "refused", "read, and the same"))
    for how in sorted(set(found.refused) | set(found.same)):
        table.rows.append((how, found.refused[how], found.same[how]))
    verdicts = [
        f"read with another content, or any exception but a refusal: {len(found.faults)} of "
        f"{found.total}",
        f"read at all: {sum(found.same.values())} of {found.total}",
        f"before, single bits of a ledger of version 1: {read} of {flipped} read, {more} of them "
        "with more budget left",
    ]
    print(table.text())
    print("\n".join(verdicts))
    for fault in found.faults[:20]:
        note(fault)
    if not options.quick:
        config = {"mutations": found.total, "seed": options.seed}
        write_results(options.results, "ledger_fuzz", [table], config=config, verdicts=verdicts)
    return int(bool(found.faults))


if __name__ == "__main__":
    run(main)
