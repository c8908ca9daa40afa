"""``dpsvm federation align``: the samples that all sites have, found with all sites here."""

from __future__ import annotations

import sys
from contextlib import ExitStack

from dpsvm.cli.federating.cast import Cast
from dpsvm.cli.federating.check import rehearse
from dpsvm.cli.federating.command import RESUME, Command
from dpsvm.cli.layout import line
from dpsvm.cli.options import Flag, UsageError
from dpsvm.federation.align import REVEALED
from dpsvm.federation.alignments import FOLDER
from dpsvm.federation.in_process import InProcessRunner
from dpsvm.federation.models import load_model

_USAGE = "usage: dpsvm federation align JOB SITE... [flags]"


def _align(*words: str, resume: bool, quiet: bool) -> None:
    cast = Cast.load(words, _USAGE)
    if cast.job.algorithm != "align":
        raise UsageError(
            f"{cast.job_path}: the algorithm must be 'align', got {cast.job.algorithm!r}"
        )
    again = f"{cast.resume_command('align')} --resume"
    cast.check_begun(resume=resume, again=again)
    try:
        lines = _run(cast, again)
    except KeyboardInterrupt:
        print(f"dpsvm federation: {again} goes on with it", file=sys.stderr)
        raise
    if not quiet:
        print("\n".join(lines))


def _run(cast: Cast, again: str) -> list[str]:
    with ExitStack() as stack:
        coordinator = cast.coordinator.coordinator(cast.job)
        stack.callback(coordinator.store.close)
        parties = []
        for site in cast.parties:
            parties.append(site.party(cast.job))
            stack.callback(parties[-1].store.close)
        if coordinator.round < 0:
            rehearse(cast, coordinator.site, parties)
        runner = InProcessRunner(parties)
        turn = runner.run(coordinator)
        if turn.ended != "done":
            begun = f"; once that is mended, {again} goes on with it"
            raise ValueError(f"the run stopped: {runner.why(turn)}{begun if cast.kept() else ''}")
        result = load_model(coordinator.store.read("result.json") or "", "result.json")
    owner, run = cast.coordinator, cast.job.run
    sizes = {owner.name: result["owned"]}
    sizes |= dict(zip(cast.job.parties, result["sizes"], strict=True))
    return [
        line("run", f"{run}, align, of {', '.join(sizes)}"),
        *(line(f"ids of {name}", size) for name, size in sizes.items()),
        line("common", f"{result['samples']}, in {FOLDER}/{run} of the state folder of each site"),
        line("revealed", REVEALED),
    ]


COMMANDS = {
    "align": Command(
        _USAGE,
        "Finds the samples that all sites have, by private set intersection. The algorithm of JOB "
        'is "align"; every SITE names the column of its sample ids. The label owner is aligned '
        "with the parties of the job, whether or not it is one of them. Each site keeps the ids "
        f"that are common in {FOLDER}/RUN of its state folder, and a job with alignment = RUN "
        "trains on those rows, in the order of the ids.\n\n"
        f"{REVEALED[0].upper()}{REVEALED[1:]}. So whose samples they are is known, and a run on "
        "them may guarantee replace, row or column, not add-remove. Sites must follow the "
        "protocol; what one learns by guessing is limited by the number of ids that it has told. "
        'With [settings] of = "predict" it is the samples of the [predict] files that are '
        "aligned; least = N refuses to go on with fewer than N. Here all sites are on this "
        "machine; dpsvm federation nvflare run and run-mpi take the same JOB.",
        _align,
        (RESUME, Flag("-q", "print nothing", default=False, name="quiet")),
    )
}
