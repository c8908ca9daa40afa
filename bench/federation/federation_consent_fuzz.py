"""Damage consents and lists of revocations, and see that nothing but a refusal comes of it.

    python bench/federation/federation_consent_fuzz.py [--mutations N] [--seed S]

Files that the approver has signed are mutated: bits, cuts, pieces of themselves and of each other,
signatures of each other, and edits of their JSON, from keys given twice to numbers that are none.
Some of the edits are signed anew by the approver's key, as the parser behind the signature would
never be reached otherwise. Each is put in its place, and ``Consent.load`` must

- refuse, or give the very consent that was signed, of a file whose signature was not made anew;
- refuse, or give a consent that is written again as the same bytes, of one that was signed anew;

and raise nothing else, ever. Writes results/federation_consent_fuzz.json and .md. Exit code 1 if
anything else happens.
"""

from __future__ import annotations

import json
import sys
import tempfile
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

sys.path.append(str(Path(__file__).resolve().parents[2]))

import numpy as np

from bench.common import Table, arguments, note, run, write_results
from bench.federation.federation_fuzz import ODD_VALUES, RAW_VALUES, cut, flip, insert
from bench.federation.sites import APPROVING, key_of
from dpsvm.federation import Job, Refusal
from dpsvm.federation.consent import Consent, consent_path
from dpsvm.federation.revocations import FILE, Revocations
from dpsvm.federation.signed import LARGEST, canonical, signed

Random = np.random.Generator
Change = Callable[[bytes, Random], bytes]

SEED = 0
NOW = datetime(2030, 1, 1, tzinfo=UTC)
ISSUED, EXPIRES = datetime(2029, 12, 1, tzinfo=UTC), datetime(2030, 2, 1, tzinfo=UTC)
PURPOSES = {"consent": "dpsvm consent", "list": "dpsvm revocations"}
JOB = Job("heart-1", "sharing", ("lab", "ward"), "office", {"rounds": 5, "epsilon": 1.0})
OTHER = Job("heart-2", "sharing", ("lab", "ward"), "office", {"rounds": 6, "epsilon": 1.0})


def consent_to(job: Job, **changes: Any) -> Consent:
    """What a site has agreed to."""
    known = {name: key_of(name).public for name in ("office", "ward")}
    given = {"issued": ISSUED, "expires": EXPIRES, "epsilon": 1.0, "total": 3.0} | changes
    return Consent.of(job, "lab", known, **given)


def swap(data: bytes, others: list[bytes], random: Random) -> bytes:
    """The text of one file and the signature of another, or halves of both."""
    other = others[random.integers(len(others))]
    if random.random() < 0.5:
        return data.split(b"\n")[0] + b"\n" + other.split(b"\n")[1] + b"\n"
    at = int(random.integers(len(data)))
    return data[:at] + other[at:]


def grow(data: bytes, random: Random) -> bytes:
    """Deep, long or doubled."""
    ways = (b"[" * 30_000, b" " * (LARGEST + 1), data, b"9" * 5_000, b'{"a":' * 9_000)
    return data + ways[random.integers(len(ways))]


def edit(text: bytes, random: Random) -> bytes:
    """The same JSON with something else in it."""
    content = json.loads(text)
    names = list(content)
    name = names[random.integers(len(names))]
    way = int(random.integers(7))
    if way == 0:
        content[name] = ODD_VALUES[random.integers(len(ODD_VALUES))]
    elif way == 1:
        del content[name]
    elif way == 2:
        content["more"] = ODD_VALUES[random.integers(len(ODD_VALUES))]
    elif way == 3:
        raw = RAW_VALUES[random.integers(len(RAW_VALUES))]
        content[name] = "in its place"
        return canonical(content).replace(b'"in its place"', raw.encode())
    elif way == 4:
        twice = json.dumps({name: content[name]}).encode()
        return text[:-1] + b"," + twice[1:]
    elif way == 5:
        return json.dumps(content, indent=1).replace("\n", " ").encode()
    else:
        whole = text.decode()
        at = int(random.integers(len(whole)))
        digit = str(random.integers(10))
        return (whole[:at] + digit + whole[at + 1 :]).encode()
    return json.dumps(content, sort_keys=True, separators=(",", ":")).encode()


@dataclass
class Findings:
    """What came of the mutations."""

    accepted: Counter[str] = field(default_factory=Counter)
    refused: Counter[str] = field(default_factory=Counter)
    faults: list[str] = field(default_factory=list)

    @property
    def total(self) -> int:
        """Of all."""
        return sum(self.accepted.values()) + sum(self.refused.values()) + len(self.faults)

    def load(self, how: str, folder: Path, file: str, data: bytes, anew: bool) -> None:
        """What a site makes of a file in its place."""
        try:
            found = Consent.load(folder, JOB, "lab", APPROVING.public, NOW)
        except Refusal as error:
            self.refused[how] += 1
            if "\n" in str(error) or not str(error) or str(folder) in str(error):
                self.faults.append(f"{how}: {str(error)!r:.200}")
            return
        except BaseException as error:
            self.faults.append(f"{how}: {type(error).__name__} {error!r:.200}: {data!r:.300}")
            return
        self.accepted[how] += 1
        same = found == consent_to(JOB)
        if anew and file == "consent":
            same = found.signed(APPROVING) == data
        if not same:
            self.faults.append(f"{how}: another consent: {data!r:.300}")


def fuzz(count: int, seed: int, progress: Callable[[int], None] = lambda done: None) -> Findings:
    """Mutate so many times."""
    random, findings = np.random.default_rng(seed), Findings()
    plain: dict[str, Change] = {"flip": flip, "cut": cut, "insert": insert, "grow": grow}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        listed = Revocations(folder, "lab", APPROVING.public)
        for digest in (OTHER.digest, "0" * 64):
            listed.add(digest, APPROVING)
        places = {"consent": consent_path(folder, JOB), "list": folder / FILE}
        good = {"consent": consent_to(JOB).signed(APPROVING), "list": places["list"].read_bytes()}
        others = [consent_to(OTHER).signed(APPROVING), consent_to(JOB, total=9.0).signed(APPROVING)]
        others += [good["list"], consent_to(JOB).signed(key_of("lab"))]
        for number in range(count):
            file = ("consent", "consent", "list")[number % 3]
            data, anew = good[file], False
            for place, path in places.items():
                path.write_bytes(good[place])
            way = (*plain, "swap", "edit", "signed anew")[random.integers(len(plain) + 3)]
            if way in plain:
                data = plain[way](data, random)
            elif way == "swap":
                data = swap(data, others[2:] if file == "consent" else others, random)
            else:
                first, _, rest = data.partition(b"\n")
                text, anew = edit(first, random), way == "signed anew"
                data = text + b"\n" + rest
                if anew:
                    sign = APPROVING.sign(PURPOSES[file], text).hex().encode()
                    data = text + b"\n" + sign + b"\n"
            places[file].write_bytes(data)
            findings.load(f"{file}, {way}", folder, file, data, anew)
            if number % 5_000 == 0:
                progress(number)
    return findings


def main() -> int:
    parser = arguments(__doc__)
    parser.add_argument("--mutations", type=int, default=20_000)
    parser.add_argument("--seed", type=int, default=SEED)
    options = parser.parse_args()
    count = 1_000 if options.quick else options.mutations
    assert signed({}, APPROVING, PURPOSES["consent"])  # the package is there
    found = fuzz(count, options.seed, lambda done: note(f"{done} of {count}"))
    table = Table("mutations", ("mutation", "accepted", "refused"))
    for how in sorted(set(found.accepted) | set(found.refused)):
        table.rows.append((how, found.accepted[how], found.refused[how]))
    verdicts = [
        "anything but a refusal in one line or the consent that was signed: "
        f"{len(found.faults)} of {found.total}"
    ]
    print(table.text())
    print("\n".join(verdicts))
    for fault in found.faults[:20]:
        note(fault)
    if not options.quick:
        config = {"mutations": count, "seed": options.seed}
        name = "federation_consent_fuzz"
        write_results(options.results, name, [table], config=config, verdicts=verdicts)
    return int(bool(found.faults))


if __name__ == "__main__":
    run(main)
