"""What an attacker gets of a federation, before consents, masked sums and reservations, and now.

    python bench/federation/federation_attacks.py [--only NAME...]

Sites are those of the tutorial. An attacker is the author of a job, the coordinator, which follows
the protocol and looks or asks what it likes, who carries messages, a user of the machine, or
somebody who puts files back. Every attack is a function with figures; those of dpsvm as it was
before are in attacks_before.json, measured by the same functions. A figure that must not be above
a bar says so: what has none is not claimed, and shown so that nobody takes it for claimed.

Writes results/federation_attacks.json and .md. Exit code 1 if a figure is above its bar.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[2]))

from bench.common import Absent, Table, arguments, note, run, write_results
from bench.federation import attacks_on_columns as columns
from bench.federation import attacks_on_consents as consents
from bench.federation import attacks_on_keys as keys
from bench.federation import attacks_on_ledgers as ledgers
from bench.federation import attacks_on_sums as sums
from bench.federation.attack_sites import Figure
from dpsvm._version import __version__

BEFORE = Path(__file__).with_name("attacks_before.json")

Attack = Callable[[], list[Figure]]

ATTACKS: Mapping[str, Attack] = {
    "raw-columns": columns.raw_columns,
    "passive": columns.passive,
    "from-sums": columns.from_sums,
    "sketched": columns.sketched,
    "open-keys": keys.open_keys,
    "idle-jobs": ledgers.idle_jobs,
    "two-runs": ledgers.two_runs,
    "rehearsals": ledgers.rehearsals,
    "replaced-ledger": ledgers.replaced_ledger,
    "flipped-bits": ledgers.flipped_bits,
    "restored-folder": ledgers.restored_folder,
    "rolled-back": ledgers.rolled_back,
    "consents": consents.consents,
    "ended-consents": consents.ended_consents,
    "rosters": sums.rosters,
    "different-prices": sums.different_prices,
    "second-questions": sums.second_questions,
    "replayed": sums.replayed,
    "out-of-range": sums.out_of_range,
    "liars": sums.liars,
    "alone": sums.alone,
    "without-one": sums.without_one,
}
"""By name."""

QUICK: Mapping[str, Attack] = {
    **ATTACKS,
    "raw-columns": partial(columns.raw_columns, network=False),
    "from-sums": partial(columns.from_sums, 60, 40, starts=0),
    "sketched": partial(columns.sketched, 12),
    "idle-jobs": partial(ledgers.idle_jobs, 3),
    "rehearsals": partial(ledgers.rehearsals, 8),
    "flipped-bits": partial(ledgers.flipped_bits, 40),
    "restored-folder": partial(ledgers.restored_folder, 3),
}
"""The same, of seconds."""


def main() -> int:
    parser = arguments(__doc__)
    parser.add_argument("--only", nargs="+", choices=list(ATTACKS), default=list(ATTACKS))
    options = parser.parse_args()
    figures: list[Figure] = []
    absent = []
    for name in options.only:
        note(name)
        try:
            figures += (QUICK if options.quick else ATTACKS)[name]()
        except Absent as reason:
            absent.append(f"{name} was not tried: {reason}")
    earlier = json.loads(BEFORE.read_text())
    table = Table(
        "what attacks get",
        ("attack", "figure", f"before ({earlier['version']})", "now", "at most", "stopped by"),
    )
    for one in figures:
        was = earlier["figures"].get(one.key)
        row = (one.attack, one.what, was, one.value, one.most, one.stopped or None)
        table.rows.append(row)
    claimed = [one for one in figures if one.most is not None]
    held = sum(one.holds for one in claimed)
    verdicts = [f"claims that hold: {held} of {len(claimed)}", *absent]
    print(table.text())
    print("\n".join(verdicts))
    if not options.quick and options.only == list(ATTACKS):
        config = {"dpsvm": __version__, "attacks": len(ATTACKS)}
        write_results(
            options.results, "federation_attacks", [table], config=config, verdicts=verdicts
        )
    return int(held < len(claimed))


if __name__ == "__main__":
    run(main)
