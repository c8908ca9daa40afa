"""The files of a site's samples, and what was read of them: each once."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from dpsvm.federation.alignments import FOLDER, aligned
from dpsvm.federation.approving import Approving
from dpsvm.federation.job import Job, check_keys, check_name, told_where
from dpsvm.federation.models import load_model
from dpsvm.federation.site import Refusal
from dpsvm.federation.tables import Counted, Source, Table


@dataclass(frozen=True, kw_only=True)
class Reading(Approving):
    """A site that has samples in files.

    >>> from pathlib import Path
    >>> job = Job("heart-1", "sharing", ("lab",), "lab")
    >>> Reading(name="lab", state=Path("state")).source_of(job)
    Traceback (most recent call last):
    ...
    dpsvm.federation.site.Refusal: lab has no [data], which run heart-1 needs
    """

    source: Source | None = None
    predict: Source | None = None

    def table(
        self, job: Job, *, labels: bool, columns: bool = True, like: dict[str, Any] | None = None
    ) -> Table:
        """Its samples, or those to predict; in the columns of a model, if one is given."""
        source = self.source_of(job, like)
        table = self.read(source, job, labels=labels, columns=columns)
        require_columns(source, table.names, like)
        return aligned(table, job, self.state / FOLDER, self.name)

    def source_of(self, job: Job, like: dict[str, Any] | None = None) -> Source:
        """Where the samples of a job come from."""
        predicts = job.algorithm == "predict" or (
            job.algorithm == "align" and job.settings.get("of") == "predict"
        )
        source = self.predict if predicts else self.source
        if source is None:
            part = "[predict]" if predicts else "[data]"
            raise Refusal(f"{self.name} has no {part}, which run {job.run} needs")
        names = None if like is None else like.get("features")
        if names is not None and source.is_csv:
            source = replace(source, columns=tuple(names))
        return source

    def count(self, source: Source) -> Counted:
        """What is known of a file, whose lines are counted once."""
        key = source.file, source.id, source.rows
        if key not in self._counts:
            self._counts[key] = source.count()
        return self._counts[key]

    def read(self, source: Source, job: Job, *, labels: bool, columns: bool) -> Table:
        """A table of a file; what the site's roles in a job need together is read together.

        Not of a private job, whose columns are nobody's before they are paid for.
        """
        for kept, table in self._kept:
            if kept == source and table.holds(labels=labels, columns=columns):
                return table.only(labels=labels, columns=columns)
        owns = job.algorithm != "predict" and job.label_owner in (None, self.name)
        both = not (job.private or self.private)
        found = source.read(
            labels=labels or (owns and both),
            columns=columns or (both and self.name in job.parties),
            counted=self._counts.get((source.file, source.id, source.rows)),
        )
        self._kept.append((source, found))
        return found.only(labels=labels, columns=columns)

    @cached_property
    def _kept(self) -> list[tuple[Source, Table]]:
        return []

    @cached_property
    def _counts(self) -> dict[tuple[Any, ...], Counted]:
        return {}

    def read_whole(self, job: Job) -> None:
        """Read labels and columns together, of a label owner that will be asked for both."""
        if job.algorithm != "network" and self.source is not None and not job.private:
            with suppress(ValueError):  # a coordinator may have columns that are no numbers
                self.table(job, labels=True)

    def model(
        self, job: Job, role: str = "party", name: str = "model.json"
    ) -> dict[str, Any] | None:
        """What it keeps of the run that predicts, None in a job of another kind."""
        if job.algorithm != "predict":
            return None
        with told_where("settings"):
            check_keys(job.settings, {"model"}, {"model"})
        found = self.model_if_finished(job, role, name)
        if found is None:
            run = job.settings["model"]
            raise Refusal(f"{self.name} has no model of run {run}: it did not finish there")
        return found

    def model_if_finished(
        self, job: Job, role: str = "party", name: str = "model.json"
    ) -> dict[str, Any] | None:
        """The same, None of a run that did not finish here."""
        run = check_name(job.settings.get("model"), "settings: model, the run that predicts,")
        path = self.state / role / run / name
        return load_model(path.read_text(encoding="utf-8"), str(path)) if path.is_file() else None


def require_columns(source: Source, names: tuple[str, ...], like: dict[str, Any] | None) -> None:
    """Refuse columns that are not those of a model."""
    wanted = None if like is None else like.get("features")
    if wanted is not None and list(names) != wanted:
        raise Refusal(
            f"{source.file}: the columns are not those of the model; n_features and columns "
            "of [data] say which"
        )
