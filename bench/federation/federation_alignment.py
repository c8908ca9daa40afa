"""Alignment of three sites by private set intersection: seconds, and bytes between sites.

    python bench/federation/federation_alignment.py [--ids N]

The label owner and two parties have 20,000 ids each, 18,000 of them in common. All sites are in one
process, one after the other; across organisations the two parties work at the same time. Seconds
are those of the processor, of one core, so that what else the machine does counts less. Every
site's file must hold the common ids.

Writes results/federation_alignment.json and .md. Exit code 1 if a file is not as it must be.
"""

from __future__ import annotations

import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Any

sys.path.append(str(Path(__file__).resolve().parents[2]))

from bench.common import Absent, Table, arguments, run, version_of, write_results
from dpsvm.federation import Coordinator, InProcessRunner, Job, Message, Party, RunFolder, Site
from dpsvm.federation.alignments import Alignment

OWNER, PARTIES = "clinic", ("lab", "home")
JOB = Job("ids-1", "align", PARTIES, OWNER)


class Timed(InProcessRunner):
    """Takes the seconds of every party, and the bytes to it and from it."""

    def __init__(self, parties: list[Party]) -> None:
        super().__init__(parties, wire=True)
        self.seconds: Counter[str] = Counter()
        self.bytes: Counter[str] = Counter()

    def deliver(self, messages: Any) -> dict[str, Message | None]:
        found: dict[str, Message | None] = {}
        for name, message in messages.items():
            began = time.process_time()
            found |= super().deliver({name: message})
            self.seconds[name] += time.process_time() - began
            answer = found[name]
            assert answer is not None
            self.bytes[name] += len(message.encode()) + len(answer.encode())
        return found


def ids_of(count: int) -> dict[str, tuple[str, ...]]:
    """The ids of each site: the first nine tenths are common, the others its own."""
    common = count * 9 // 10
    return {
        site: tuple(
            f"patient-{number:07}-{'' if number < common else site}" for number in range(count)
        )
        for site in (OWNER, *PARTIES)
    }


def main() -> int:
    parser = arguments(__doc__)
    parser.add_argument("--ids", type=int, default=20_000)
    options = parser.parse_args()
    if version_of("openmined-psi") is None:
        raise Absent("openmined-psi is not installed")
    count = 100 if options.quick else options.ids
    ids = ids_of(count)
    with tempfile.TemporaryDirectory() as place:
        folders = {name: Path(place, name) for name in ids}
        sites = {name: Site(name, ids=own, state=folders[name]) for name, own in ids.items()}
        began = time.process_time()
        runner = Timed(
            [Party(JOB, sites[name], RunFolder(folders[name], JOB.run)) for name in PARTIES]
        )
        coordinator = Coordinator(JOB, sites[OWNER], RunFolder(folders[OWNER], JOB.run))
        turn = runner.run(coordinator)
        whole = time.process_time() - began
        if turn.ended != "done":
            raise RuntimeError(f"the run: {turn.reason}")
        found = {
            name: Alignment.load(folder / "alignments", JOB.run, name).ids
            for name, folder in folders.items()
        }
    common = tuple(sorted(set.intersection(*map(set, ids.values()))))
    fine = all(one == common for one in found.values())
    table = Table(
        f"alignment of 3 sites x {count} ids, {len(common)} in common",
        ("site", "processor seconds", "megabytes to and from it"),
    )
    for name in PARTIES:
        table.rows.append(
            (name, round(runner.seconds[name], 2), round(runner.bytes[name] / 1e6, 2))
        )
    own = whole - runner.seconds.total()
    table.rows.append((f"{OWNER}, the label owner", round(own, 2), "-"))
    table.rows.append(("all, one after the other", round(whole, 2), "-"))
    verdicts = [f"every site has the common ids: {'yes' if fine else 'NO'}"]
    print(table.text())
    print("\n".join(verdicts))
    if not options.quick:
        config = {"ids": count, "openmined-psi": version_of("openmined-psi")}
        write_results(
            options.results, "federation_alignment", [table], config=config, verdicts=verdicts
        )
    return int(not fine)


if __name__ == "__main__":
    run(main)
