"""``dpsvm federation check``: a job and its sites, validated before any of it is run."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from dpsvm.cli.federating.cast import Cast
from dpsvm.cli.federating.command import Command
from dpsvm.cli.layout import line
from dpsvm.cli.options import UsageError
from dpsvm.federation.align import REVEALED
from dpsvm.federation.config import SiteConfig
from dpsvm.federation.consent import consent_path, utc_now
from dpsvm.federation.coordinator import Coordinator
from dpsvm.federation.custody import Custody
from dpsvm.federation.in_process import InProcessRunner
from dpsvm.federation.job import Job
from dpsvm.federation.keys import introduce
from dpsvm.federation.members import Shape, make_lead, make_member
from dpsvm.federation.noise_told import agreed_quietly, noise_told
from dpsvm.federation.party import Party
from dpsvm.federation.site import Refusal, Site
from dpsvm.federation.store import FolderCopy, MemoryStore
from dpsvm.privacy.ledger_file import LedgerFile
from dpsvm.privacy.noise import Noise
from dpsvm.privacy.release import Price
from dpsvm.privacy.stream import KEY_BYTES, SecretStream

_USAGE = "usage: dpsvm federation check JOB SITE..."
_BOUNDS = (
    *("data_norm", "radius", "target_bound", "column_norm", "target_norm"),
    *("entry_bound", "label_bound"),
)
_ROUNDING = 1e-12  # as a ledger allows


def _check(*words: str) -> None:
    if len(words) == 2:
        job, site = Job.load(words[0]), SiteConfig.load(words[1])
        if job.parties != (site.name,):
            print("\n".join(_own_side(job, words[0], site)))
            return
    print("\n".join(_all_sides(Cast.load(words, _USAGE))))


COMMANDS = {
    "check": Command(
        _USAGE,
        "Reads the files of a job and of all its sites, the coordinator's first, and goes "
        "through everything that a run checks: terms, tables, rows, sample ids, public bounds, "
        "settings, budgets. Nothing is trained, charged or written. In a run itself a site's "
        "values are looked at once it has paid, so check them here. With one SITE only that "
        "site's own side is checked, which each site can do at home.\n\n"
        "Rows are matched by sample ids: each site sorts its rows by id, and sites compare a "
        "digest of all the ids under a salt that they share (new-salt makes one). This tells "
        "whether they have the same samples. It is NOT private set intersection: it finds no "
        "common subset (align does), and whoever has the salt can test a guessed list of ids.",
        _check,
    )
}


class _Cost(NamedTuple):
    """What a run costs a site in one role."""

    config: SiteConfig
    custody: Custody
    price: Price | None


def _all_sides(cast: Cast) -> list[str]:
    """Greet and rehearse with copies of what the sites keep; the lines that tell of it."""
    job, owner = cast.job, cast.coordinator.owner(cast.job)
    kept = FolderCopy(cast.coordinator.state / "coordinator", job.run)
    own, *members = introduce(
        [_named(cast.coordinator, owner)]
        + [_named(config, config.member(job)) for config in cast.parties]
    )
    Coordinator(job, own, kept)  # refuses what it could not go on with
    parties = [
        Party(job, site, FolderCopy(config.state / "party", job.run))
        for config, site in zip(cast.parties, members, strict=True)
    ]
    told = rehearse(cast, own, parties)
    look(cast)
    return [
        *_terms_lines(job, cast.job_path),
        *_shape_lines(job, owner, [party.site for party in parties]),
        *_ids_lines(job, owner, "the same at all sites"),
        *_bounds_lines(job, cast.sites),
        *_noise_lines(job, _shape_of(job, owner, members)),
        *told,
        _consent_line(job, cast.sites),
        line("run", "; ".join(cast.kept()) or "has not begun"),
        line("checked", "nothing was trained, charged or written"),
    ]


def _shape_lines(job: Job, owner: Site, sites: Sequence[Site]) -> list[str]:
    rows = ", ".join(f"{one.name} {one.rows}" for one in sites)
    if job.algorithm == "align":
        return [line("ids", f"{owner.name} {owner.rows} as the label owner; {rows}")]
    if job.algorithm == "network":
        return [line("rows", rows), line("columns", sites[0].columns)]
    columns = ", ".join(f"{one.name} {one.columns}" for one in sites)
    return [line("rows", owner.rows), line("columns", columns)]


def rehearse(cast: Cast, owner: Site, parties: Sequence[Party]) -> list[str]:
    """Go through all that can be refused before a run; what it guarantees and costs, in lines."""
    job, coordinator = cast.job, Coordinator(cast.job, owner, MemoryStore(), dry=True)
    runner = InProcessRunner(list(parties))
    turn = runner.run(coordinator)
    if turn.ended != "checked":
        raise ValueError(runner.why(turn))
    costs = [
        _Cost(config, party.custody, party.price)
        for config, party in zip(cast.parties, parties, strict=True)
    ]
    costs.append(_Cost(cast.coordinator, coordinator.custody, coordinator.price))
    return _cost_lines(job, costs)


def look(cast: Cast) -> None:
    """Make everybody's part, for whoever has all the tables: what is wrong in them is found.

    In a run that is for each site to find, once it has paid.
    """
    job, owner = cast.job, cast.coordinator.owner(cast.job)
    sites = [config.member(job) for config in cast.parties]
    shape = _shape_of(job, owner, sites)
    for place, site in enumerate(sites):
        make_member(job, place, site, shape, _unused_noise())
    make_lead(job, owner, shape, _unused_noise())


def _shape_of(job: Job, owner: Site, sites: Sequence[Site]) -> Shape:
    if job.algorithm == "network":
        return Shape(0, tuple(site.rows for site in sites), sites[0].columns)
    return Shape(owner.rows, tuple(site.columns for site in sites))


def _unused_noise() -> Noise:
    stream = SecretStream(bytes(KEY_BYTES))
    stream.seek("rehearsal")
    return Noise(stream)


def _own_side(job: Job, path: str, config: SiteConfig) -> list[str]:
    """What a site can check by itself: as if the other parties had tables like its own."""
    is_party, is_owner = config.name in job.parties, config.name == job.label_owner
    if not is_party and not is_owner and job.label_owner is not None:
        raise UsageError(f"{config.name} is neither a party of run {job.run} nor its label owner")
    noise = _unused_noise()
    lines, costs, site, shape = _terms_lines(job, path), [], None, None
    count = len(job.parties)
    if is_party:
        site = config.member(job)
        network = job.algorithm == "network"
        shape = Shape(site.rows, (site.columns,) * count)
        if network or job.algorithm == "align":
            shape = Shape(0 if network else site.rows, (site.rows,) * count, site.columns)
        member = make_member(job, job.place(config.name), site, shape, noise)
        party = Party(job, site, FolderCopy(config.state / "party", job.run))
        costs.append(_Cost(config, party.custody, member.price))
        lines.append(line("ids" if job.algorithm == "align" else "rows", site.rows))
        lines += [line("columns", ", ".join(site.features))] if site.features else []
    if is_owner:
        site = config.owner(job)
        width = max(1, costs[0].custody.site.columns if costs else 1)
        width = site.rows if job.algorithm == "align" else width
        whole = Shape(site.rows, (width,) * count)
        shape = shape or whole
        lead = make_lead(job, site, whole, noise)
        kept = FolderCopy(config.state / "coordinator", job.run)
        costs.append(_Cost(config, Coordinator(job, site, kept).custody, lead.price))
        lines += [line("labels", f"of {site.rows} rows")] if site.labelled else []
    if site is not None:
        lines += _ids_lines(job, site, f"digest {site.digest()[:16]}" if site.ids else "")
    lines += _bounds_lines(job, [config])
    lines += [] if shape is None else _noise_lines(job, shape)
    lines += [*_cost_lines(job, costs), _consent_line(job, [config])]
    return [*lines, line("checked", f"the side of {config.name} only; all SITEs check the rest")]


def _named(config: SiteConfig, site: Site) -> Site:
    """A site with its own key, if it has one already."""
    return replace(site, identity=config.identity()) if config.key_file.exists() else site


def _consent_line(job: Job, sites: Sequence[SiteConfig]) -> str:
    """Which sites have agreed; nothing is noted."""
    now, told = utc_now(), []
    for site in sites:
        try:
            told.append(f"{site.name} yes, until {site.consent_to(job, now, notes=False).until}")
        except Refusal as error:
            there = consent_path(site.consent_folder, job).exists()
            told.append(f"{site.name} {f'no: {error}' if there else 'none'}")
        except OSError as error:
            told.append(f"{site.name} no: its approver's key: {error.strerror}")
    return line("consent", "; ".join(told))


def _terms_lines(job: Job, path: str) -> list[str]:
    return [
        line("job", f"{path}: run {job.run}, {job.algorithm}"),
        f"terms {job.digest}",
        line("parties", ", ".join(job.parties)),
        *([] if job.label_owner is None else [line("label owner", job.label_owner)]),
    ]


def _ids_lines(job: Job, site: Site, remark: str) -> list[str]:
    if job.algorithm == "network":
        return []
    if job.algorithm == "align":
        return [line("will be revealed", REVEALED)]
    if not job.ids or site.ids is None:
        return [line("sample ids", "not matched: rows are taken as they lie (ids = false)")]
    salted = "salted digest" if site.salt else "digest WITHOUT a salt, which can be guessed"
    text = f"{len(site.ids)}, {remark}, by a {salted}; this is not private set intersection"
    if job.alignment is not None:
        text = f"{len(site.ids)} of alignment {job.alignment}, {remark}, by a {salted}"
    return [line("sample ids", text)]


def _bounds_lines(job: Job, sites: Sequence[SiteConfig]) -> list[str]:
    """The public bounds of the job, and who has agreed to each; what disagrees was refused."""
    lines: list[str] = []
    for name in (*_BOUNDS, *sorted({one for site in sites for one in site.bounds})):
        if name in job.settings and not any(name in one.split() for one in lines):
            agreed = ", ".join(site.name for site in sites if name in site.bounds)
            remark = f"agreed to by {agreed}" if agreed else "no site has it in its [bounds]"
            label = "" if lines else "public bounds"
            lines.append(line(label, f"{name} = {job.settings[name]} ({remark})"))
    return lines or [line("public bounds", "none")]


def _noise_lines(job: Job, shape: Shape) -> list[str]:
    """The noise that a private run will have."""
    return [line(*one) for one in noise_told(job, agreed_quietly(job, shape))]


def _cost_lines(job: Job, costs: Sequence[_Cost]) -> list[str]:
    """The guarantee, and every ledger before the run and after it."""
    prices = [one.price for one in costs if one.price is not None]
    told = "none: this run is not private"
    if prices:
        told = str(prices[0].guarantee)
        if prices[0].guarantee.neighbouring in ("row", "column"):
            told += " for each party"
    elif "epsilon" in job.settings or "privacy" in job.settings:
        told = "for the data of the parties; this side is not charged"
    elif job.algorithm == "align":
        told = "none: what is revealed is who is in the data, and no value of theirs"
    lines = [line("guarantee", told)]
    for path in dict.fromkeys(os.path.realpath(one.config.ledger or "") for one in costs):
        shared = [one for one in costs if os.path.realpath(one.config.ledger or "") == path]
        names = ", ".join(dict.fromkeys(one.config.name for one in shared))
        for one in shared:
            one.custody.check(one.price)
        if shared[0].config.ledger is None:
            lines.append(line(f"budget of {names}", "no ledger"))
            continue
        ledger, now = LedgerFile(Path(path)).read(), time.time()
        due = [event for one in shared for event in one.custody.due(one.price)]
        spent = ledger.used(now, due)
        if spent > ledger.epsilon * (1 + _ROUNDING):
            raise ValueError(
                f"{path}: run {job.run} charges this ledger {len(shared)} times, and it does not "
                f"cover all of it: epsilon = {spent:g} of {ledger.epsilon:g} would be spent"
            )
        before = max(ledger.epsilon - ledger.used(now), 0.0)
        after = max(ledger.epsilon - spent, 0.0)
        text = f"epsilon = {before:g} is left, {after:g} after the run"
        lines.append(line(f"budget of {names}", text))
    return lines
