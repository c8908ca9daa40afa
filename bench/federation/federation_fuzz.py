"""Damage messages of every kind, and see that nothing but a message or a refusal comes of it.

    python bench/federation/federation_fuzz.py [--mutations N] [--seed S]

Valid messages, made up and recorded from runs of every algorithm, are mutated: bits, cuts,
insertions, lengths, edits of the JSON header, shapes, nesting, numbers of the arrays. Most get a
new digest, or the parser behind it would never be reached. Of each of them

- ``Message.decode`` must make a message that can be encoded again, or raise a MessageError; on a
  sample the memory that it takes is measured, too;
- ``Party.handle_bytes`` must give a refusal, or an answer to what was asked.

Writes results/federation_fuzz.json and .md. Exit code 1 if anything else happens.
"""

from __future__ import annotations

import hashlib
import json
import struct
import sys
import tempfile
import tracemalloc
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

sys.path.append(str(Path(__file__).resolve().parents[2]))

import numpy as np

from bench.common import Table, arguments, note, run, write_results
from bench.federation.sites import PROBLEMS, make_problem
from dpsvm.federation import FIELDS, Coordinator, InProcessRunner, MemoryStore, Message, Party
from dpsvm.federation.custody import MOST_REHEARSALS
from dpsvm.federation.frames import MAGIC
from dpsvm.federation.messages import FROM_PARTY, MessageError, Numbers
from dpsvm.privacy.accountant import Charge

Random = np.random.Generator

SEED = 0
SAMPLE = 100  # every so-manieth decoding is measured
START = len(MAGIC) + 4
DIGEST = 16
FRAME_SHARE, HEADER_SHARE, SLACK = 3, 40, 1 << 16  # of memory, in bytes per byte
ODD_NUMBERS = (np.nan, np.inf, -np.inf, 1e308, -1e308, 5e-324, -0.0, 2.0**62)
ODD_VALUES: tuple[Any, ...] = (
    *(None, True, False, 0, 1, -1, -2, 2**31, 2**62, 2**63, -(2**63) - 1, 10**400, 0.5, 1e308),
    *("", "a", "x" * 5000, "\ud800", "\x00\x1b[2J", "price", [], {}, [[]], {"a": 1}, [1, 2]),
)
RAW_VALUES = (
    "NaN",
    "Infinity",
    "-Infinity",
    "1e999",
    "-1e999",
    "1" * 5000,
    "1.0",
    "01",
    '"\\ud800"',
)
SHAPES: tuple[Any, ...] = (
    *([], [0], [-1], [2**30], [2**30, 2**30], [2**62], [10**30], [1, 1, 1], [True], [1.0]),
    *(["1"], None, "3", [0, 2**30], [2**31]),
)
DTYPES = ("f8", "i8", "f4", "O", ">f8", "", None, 8, "V8", [])


def made_up(kind: str, random: Random) -> Message:
    """A valid message of a kind, with everything that it may hold."""
    arrays: dict[str, Any] = {}
    scalars: dict[str, Any] = {}
    for name, wanted in FIELDS[kind].items():
        if isinstance(wanted, Numbers):
            shape = tuple(random.integers(0, 6, wanted.axes))
            arrays[name] = (10 * random.standard_normal(shape)).astype(wanted.dtype)
        else:
            values = {bool: True, int: 3, float: 0.5, str: "some text"}
            scalars[name] = values[wanted.kind]
    return Message("trial", int(random.integers(-1, 9)), kind, arrays, scalars)


@dataclass(frozen=True)
class Scene:
    """A party in the middle of a run, what it may be asked there, and what it answers."""

    make: Callable[[], Party]
    questions: tuple[bytes, ...]  # the next one of the run is the first
    answer: bytes  # to that one


def scenes() -> list[Scene]:
    """Every round of a party, of every algorithm."""
    found = []
    for algorithm in PROBLEMS:
        with tempfile.TemporaryDirectory() as folder:
            problem = make_problem(Path(folder, "sites"), algorithm)
            parties, coordinator = problem.make()
            found += _recorded(parties[0], parties, coordinator)
    return found


def _recorded(party: Party, parties: list[Party], coordinator: Coordinator) -> list[Scene]:
    """The scenes of a run; it has no ledger any more, so that a scene can be played again."""
    asked: list[Message] = []
    answers: list[bytes] = []
    stores: list[tuple[bytes | None, str | None]] = []  # the snapshot, and what was charged

    class Recorder(InProcessRunner):
        def deliver(self, messages: Mapping[str, Message]) -> dict[str, Message | None]:
            kept = party.store.path / "snapshot"  # type: ignore[attr-defined]
            snapshot = kept.read_bytes() if kept.exists() else None
            stores.append((snapshot, party.store.read("charged")))
            found = super().deliver(messages)
            asked.append(messages[party.site.name])
            answers.append(found[party.site.name].encode())  # type: ignore[union-attr]
            return found

    turn = Recorder(parties).run(coordinator)
    if turn.ended != "done":
        raise RuntimeError(f"the run to record ended as {turn.ended}: {turn.reason}")
    key = party.store.key(begun=True)
    charges = party.site.ledger.charges  # type: ignore[union-attr]
    for one in (*parties, coordinator):
        one.store.close()

    def maker(kept: bytes | None, charged: str | None) -> Callable[[], Party]:
        def make() -> Party:
            store = MemoryStore(key, kept)
            if charged is not None:
                store.write("charged", charged)
            ledger: Any = _Endless(charges, charged is not None)
            site = replace(party.site, ledger=ledger, state=None, consent=None)
            return Party(party.job, site, store)

        return make

    greet, begin = asked[:2]
    others = [greet, begin, Message(begin.run, -1, "rehearse", begin.arrays, begin.scalars)]
    found = []
    for at, kept in list(enumerate(stores))[1:]:
        questions = [asked[at], asked[at - 1], *others]
        frames = tuple(message.encode() for message in questions)
        found.append(Scene(maker(*kept), frames, answers[at]))
    return found


class _Endless:
    """A ledger of a run that was charged, or was not yet: charges are forgotten."""

    reservations, count = (), 0

    def __init__(self, charges: tuple[Charge, ...], paid: bool) -> None:
        self._charges, self._paid = charges, paid

    @property
    def charges(self) -> tuple[Charge, ...]:
        return self._charges if self._paid else ()

    def check(self, *_: Any, **__: Any) -> None:
        """It fits."""

    def reserve(self, *_: Any, **__: Any) -> str:
        return "reserved"

    def commit(self, _: str) -> None:
        self._paid = True

    def head(self, _: int | None = None) -> str:
        return ""

    def remaining(self) -> float:
        return 1.0


def sealed(body: bytes) -> bytes:
    """With the digest that fits."""
    return body + hashlib.blake2b(body, digest_size=DIGEST).digest()


def flip(data: bytes, random: Random) -> bytes:
    """Some bits."""
    changed = bytearray(data)
    for _ in range(random.integers(1, 9)):
        changed[random.integers(len(data))] ^= 1 << int(random.integers(8))
    return bytes(changed)


def cut(data: bytes, random: Random) -> bytes:
    """A piece taken out."""
    first, last = sorted(random.integers(0, len(data) + 1, 2))
    return data[:first] + data[last:]


def insert(data: bytes, random: Random) -> bytes:
    """A piece put in: random bytes, or some of its own."""
    at, size = random.integers(len(data) + 1), int(random.integers(1, 64))
    piece = random.bytes(size) if random.random() < 0.5 else data[at : at + size]
    return data[:at] + piece + data[at:]


def change_length(data: bytes, random: Random) -> bytes:
    """The length of the header."""
    length = int.from_bytes(data[START - 4 : START], "little")
    odd = (0, length - 1, length + 1, length + 8, 2**20, 2**31, 2**32 - 1, len(data))
    new = max(0, odd[random.integers(len(odd))])
    return data[: START - 4] + new.to_bytes(4, "little") + data[START:]


def change_numbers(data: bytes, random: Random) -> bytes:
    """A number of an array."""
    _, first = _header(data)
    places = (len(data) - first) // 8
    if places == 0:
        return flip(data, random)
    at = first + 8 * int(random.integers(places))
    odd = struct.pack("<d", ODD_NUMBERS[random.integers(len(ODD_NUMBERS))])
    return data[:at] + odd + data[at + 8 :]


def change_value(data: bytes, random: Random) -> bytes:
    """A value of the header, of another type or size."""
    header, first = _header(data)
    _replace(header, ODD_VALUES[random.integers(len(ODD_VALUES))], random)
    return _joined(json.dumps(header), data[first:])


def change_raw(data: bytes, random: Random) -> bytes:
    """A value of the header that JSON does not have, or that Python reads in its own way."""
    header, first = _header(data)
    _replace(header, "@@", random)
    raw = RAW_VALUES[random.integers(len(RAW_VALUES))]
    return _joined(json.dumps(header).replace('"@@"', raw), data[first:])


def change_names(data: bytes, random: Random) -> bytes:
    """A name that is there twice, missing, or foreign."""
    header, first = _header(data)
    text = json.dumps(header)
    choice = int(random.integers(5))
    scalars, names = header["content"][4], header["content"][5]
    if choice == 0:
        text = text[:-1] + ', "content": [], "arrays": []}'
    elif choice == 1:
        text = text.replace("{", '{"reason": "", "reason": 1, ', 1 + int(random.integers(2)))
    elif choice == 2 and scalars:
        del scalars[sorted(scalars)[random.integers(len(scalars))]]
        text = json.dumps(header)
    elif choice == 3:
        names += names[:1] or ["price"]
        text = json.dumps(header)
    else:
        scalars["labels"] = 1
        text = json.dumps(header)
    return _joined(text, data[first:])


def change_shape(data: bytes, random: Random) -> bytes:
    """The shape or the type of an array, or one more of them."""
    header, first = _header(data)
    shape = SHAPES[random.integers(len(SHAPES))]
    dtype = DTYPES[random.integers(len(DTYPES) if random.random() < 0.3 else 2)]
    described = header["arrays"]
    if described and random.random() < 0.8:
        described[random.integers(len(described))] = [dtype, shape]
    else:
        described += [[dtype, shape]] * int(random.choice([1, 2, 5000]))
    return _joined(json.dumps(header), data[first:])


def nest(data: bytes, random: Random) -> bytes:
    """A value nested deeper than Python's stack, or just not."""
    header, first = _header(data)
    _replace(header, "@@", random)
    depth = int(random.choice([10, 100, *range(900, 1000, 7), 5000, 100_000]))
    left, right = ("[", "]") if random.random() < 0.5 else ('{"a":', "}")
    middle = "1" if random.random() < 0.9 else ""
    text = json.dumps(header).replace('"@@"', left * depth + middle + right * depth)
    return _joined(text, data[first:])


def widen(data: bytes, random: Random) -> bytes:
    """Many small values, which take more memory than their text."""
    header, first = _header(data)
    _replace(header, "@@", random)
    one = str(random.choice(["[]", "{}", "0.5", '"a"', '{"a":[]}']))
    text = json.dumps(header).replace('"@@"', "[" + ",".join([one] * 2000) + "]")
    return _joined(text, data[first:])


MUTATIONS: tuple[Callable[[bytes, Random], bytes], ...] = (
    *(flip, cut, insert, change_length, change_numbers, change_value, change_raw, change_names),
    *(change_shape, nest, widen),
)


def mutated(data: bytes, random: Random) -> tuple[str, bytes]:
    """Damaged bytes, and how: most often with a digest that fits."""
    mutation = MUTATIONS[random.integers(len(MUTATIONS))]
    body = mutation(data[:-DIGEST], random)
    if random.random() < 0.1:
        return f"{mutation.__name__}, old digest", body + data[-DIGEST:]
    return mutation.__name__, sealed(body)


def _header(data: bytes) -> tuple[dict[str, Any], int]:
    length = int.from_bytes(data[START - 4 : START], "little")
    return json.loads(data[START : START + length]), START + length


def _joined(header: str, rest: bytes) -> bytes:
    text = header.encode()
    return MAGIC + len(text).to_bytes(4, "little") + text + rest


def _replace(header: dict[str, Any], value: Any, random: Random) -> None:
    """Put a value in the place of any other."""
    places: list[tuple[Any, Any]] = []

    def walk(node: Any) -> None:
        keys = node if isinstance(node, dict) else range(len(node))
        for key in keys:
            places.append((node, key))
            if isinstance(node[key], (dict, list)):
                walk(node[key])

    walk(header)
    node, key = places[random.integers(len(places))]
    node[key] = value


@dataclass
class Findings:
    """What came of the mutations."""

    decoded: Counter[str] = field(default_factory=Counter)
    refused: Counter[str] = field(default_factory=Counter)
    answered: int = 0
    declined: int = 0
    gone_on: int = 0
    measured: int = 0
    most: float = 0.0  # memory taken, over what is allowed
    faults: list[str] = field(default_factory=list)

    @property
    def total(self) -> int:
        return sum(self.decoded.values()) + sum(self.refused.values())

    def fault(self, what: str, how: str, error: BaseException | str, data: bytes) -> None:
        self.faults.append(f"{what} after {how}: {error!r:.200} ({len(data)} bytes)")

    def decode(self, how: str, data: bytes) -> None:
        """A message that is one, or a MessageError."""
        try:
            found = Message.decode(data)
            again = Message.decode(found.encode())
            if again.encode() != found.encode():
                self.fault("another message", how, found.kind, data)
            for text in (found.run, *found.scalars.values()):
                str(text).encode()
            self.decoded[how] += 1
        except MessageError:
            self.refused[how] += 1
        except BaseException as error:
            self.refused[how] += 1
            self.fault("decode", how, error, data)

    def measure(self, how: str, data: bytes) -> None:
        """Memory taken to decode: some times the frame, and more of the header's values."""
        header = min(int.from_bytes(data[START - 4 : START], "little"), len(data))
        allowed = FRAME_SHARE * len(data) + HEADER_SHARE * header + SLACK
        tracemalloc.start()
        try:
            Message.decode(data)
        except ValueError:
            pass
        except BaseException as error:
            self.fault("decode", how, error, data)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        self.measured += 1
        self.most = max(self.most, peak / allowed)
        if peak > allowed:
            self.fault("memory", how, f"{peak} bytes", data)

    def handle(self, how: str, data: bytes, party: Party) -> None:
        """A refusal, or an answer to what was asked."""
        try:
            reply = Message.decode(party.handle_bytes(data))
        except BaseException as error:
            self.fault("handle", how, error, data)
            return
        if reply.kind == "refusal":
            self.declined += 1
            if not reply.text("reason") or party.refused is None:
                self.fault("a refusal without a reason", how, reply.kind, data)
            return
        self.answered += 1
        asked = Message.decode(data)
        if (reply.run, reply.round) != (asked.run, asked.round) or reply.kind not in FROM_PARTY:
            self.fault("a wrong answer", how, reply.kind, data)
        if not all(np.isfinite(array).all() for array in reply.arrays.values()):
            self.fault("an answer that is not finite", how, reply.kind, data)

    def go_on(self, scene: Scene, party: Party) -> None:
        """The run's own question, after all of that: it must get the run's own answer."""
        self.gone_on += 1
        answer = party.handle_bytes(scene.questions[0])
        if answer != scene.answer:
            self.fault(
                "another answer", "all that came before", answer[:200].decode("latin"), answer
            )


def fuzz(count: int, seed: int, progress: Callable[[int], None] = lambda done: None) -> Findings:
    """Mutate so many times; every other time a question to a party, which is given it."""
    random, findings = np.random.default_rng(seed), Findings()
    kinds, played = list(FIELDS), scenes()
    parties: dict[int, Party] = {}
    for number in range(count):
        if number % 2:
            at = int(random.integers(len(played)))
            scene = played[at]
            data = scene.questions[random.integers(len(scene.questions))]
            how, data = mutated(data, random) if random.random() < 0.98 else ("nothing", data)
            if at not in parties:
                parties[at] = scene.make()
            held = parties[at].held
            findings.handle(how, data, parties[at])
            rehearsed = int(parties[at].store.read("rehearsals") or 0)
            if parties[at].held != held or parties[at].closed is not None:
                del parties[at]  # a node that missed a certificate is closed for good
            elif rehearsed >= MOST_REHEARSALS:
                del parties[at]  # it does not again, whoever asks
            elif random.random() < 0.02:
                findings.go_on(scene, parties[at])
        else:
            message = made_up(kinds[random.integers(len(kinds))], random)
            how, data = mutated(message.encode(), random)
        findings.decode(how, data)
        if number % SAMPLE == 0:
            findings.measure(how, data)
        if number % 10_000 == 0:
            progress(number)
    return findings


def main() -> int:
    parser = arguments(__doc__)
    parser.add_argument("--mutations", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=SEED)
    options = parser.parse_args()
    count = 2_000 if options.quick else options.mutations
    found = fuzz(count, options.seed, lambda done: note(f"{done} of {count}"))
    table = Table("mutations", ("mutation", "a message", "refused"))
    for how in sorted(set(found.decoded) | set(found.refused)):
        table.rows.append((how, found.decoded[how], found.refused[how]))
    verdicts = [
        f"anything but a message or a MessageError, a refusal or a right answer: "
        f"{len(found.faults)} of {found.total}",
        f"given to parties: {found.answered + found.declined}, of which {found.answered} were "
        "still what is asked in a run, and were answered",
        f"the run's own question, asked in between: {found.gone_on} times",
        f"memory: {found.measured} decodings measured, at most {found.most:.2f} of what is allowed "
        f"({FRAME_SHARE} x frame + {HEADER_SHARE} x header + {SLACK} bytes)",
    ]
    print(table.text())
    print("\n".join(verdicts))
    for fault in found.faults[:20]:
        note(fault)
    if not options.quick:
        config = {"mutations": count, "seed": options.seed, "sample": SAMPLE}
        write_results(options.results, "federation_fuzz", [table], config=config, verdicts=verdicts)
    return int(bool(found.faults))


if __name__ == "__main__":
    run(main)
