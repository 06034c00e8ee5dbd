"""Materialized views: tables whose rows a query or a function makes, and their refreshes."""

import contextlib
from dataclasses import dataclass
from typing import Any, Literal, Unpack

import msgspec

from penstock.errors import Forbidden, NotFound, Unsupported
from penstock.sdk.connection.names import show_id
from penstock.sdk.connection.wire import path_of
from penstock.sdk.jobs.job import Job, follow_job
from penstock.sdk.jobs.options import RefreshOptions, read_options
from penstock.sdk.jobs.plans import Plan
from penstock.sdk.pictures.markup import Markup, join, table
from penstock.sdk.tables.stored import Stored
from penstock.sdk.views.altering import Alterable
from penstock.sdk.views.certificate import Certificate, read_certificate
from penstock.sdk.views.freshness import (
    Freshness,
    Schedule,
    read_counts,
    read_freshness,
    read_schedule,
    show_names,
)
from penstock.sdk.views.lineage import Lineage

Mode = Literal["auto", "incremental", "full"]


@dataclass(frozen=True)
class Consent:
    """What was, or would be, consented to: the sources that are new, and a name for it all."""

    sources: list[str]
    state: str


class View(Alterable, Stored):
    """A materialized view: read, indexed and given columns like a table, written by refreshes."""

    def kind(self) -> str:
        """`query`, `chunker` or `udtf`."""
        return str(self._describe_view()["kind"])

    def query(self) -> str:
        """Its source query as it was sent."""
        return str(self._describe_view().get("source_query", ""))

    def refresh(
        self,
        *,
        mode: Mode | None = None,
        wait: bool = True,
        progress: bool | None = None,
        **options: Unpack[RefreshOptions],
    ) -> Job:
        """Make the view what its query gives now; waits for the job unless `wait=False`.

        `mode="incremental"` fails rather than compute everything, which `mode="full"` does.
        """
        body = {"mode": mode, **read_options(options, RefreshOptions)}
        told = self._wire.change(self._path("refresh"), body)
        return follow_job(self._wire, told["job_id"], wait=wait, progress=progress)

    def explain(self, *, mode: Mode | None = None, **options: Unpack[RefreshOptions]) -> Plan:
        """What a refresh would do, without doing it."""
        body = {"mode": mode, **read_options(options, RefreshOptions)}
        told = self._wire.read(self._path("explain"), body)
        return Plan(f"refresh of {self.name}", told)

    def verify(
        self,
        rows: int | None = None,
        *,
        mode: Mode | None = None,
        progress: bool | None = None,
        **options: Unpack[RefreshOptions],
    ) -> Certificate:
        """Refresh the view and compare it with its query computed anew: all of it, or some rows."""
        asked: RefreshOptions = {**options, "verify": True, "verify_rows": rows}
        job = self.refresh(mode=mode, progress=progress, **asked)
        told = job.properties.get("certificate")
        if not told:
            raise Unsupported(
                f"the refresh of {self.name} (job {job.id}) has no certificate",
                detail="views of this kind are not verified by this server",
            )
        return read_certificate(self.name, told)

    def freshness(self) -> Freshness:
        """How far it is behind the tables that it is made from, also through other views."""
        return read_freshness(self._properties())

    def schedule(self) -> Schedule | None:
        """When it refreshes itself by the clock; None when it does not."""
        return read_schedule(self._properties())

    def lineage(self) -> Lineage:
        """The tables and views that it is made of, down to tables."""
        return _trace(self)

    def needs_consent(self) -> list[str] | None:
        """What the view may not read before an owner consents, as far as you may see it.

        None when it needs no consent.
        """
        told = self._properties().get("penstock.needs_consent")
        return None if told is None else show_names(msgspec.json.decode(told, type=list[str]))

    def consent(self, state: str | None = None, *, dry_run: bool = False) -> Consent:
        """Let the view read what it is made from now, also what others brought into it.

        With the `state` that a dry run told, nothing is consented to that came later.
        """
        body = {"state": state, "dry_run": dry_run}
        told = self._wire.change(self._path("consent"), body)
        return Consent(show_names(told["sources"]), told["state"])

    def drop(self, *, cascade: bool = False, force: bool = False) -> None:
        """Drop the view; `cascade` takes views that read it along, `force` lets them break."""
        self._wire.change(self._path("drop"), None, cascade=cascade, force=force)

    def _repr_html_(self) -> str:
        told = self._describe_view()
        rows = [("kind", told["kind"]), ("query", told.get("source_query", ""))]
        freshness = Markup(self.freshness()._repr_html_())
        return join([Markup(super()._repr_html_()), table("", rows), freshness])

    def _path(self, operation: str) -> str:
        return path_of("materialized_view", self.id, operation)

    def describe(self) -> dict[str, Any]:
        """As of a table, with its definition as `view`."""
        return {**super().describe(), "view": self._describe_view()}

    def _describe_view(self) -> dict[str, Any]:
        found: dict[str, Any] = self._wire.read(self._path("describe"))
        return found

    def _properties(self) -> dict[str, str]:
        found: dict[str, str] = self._read("describe", None)["properties"]
        return found


def is_view(properties: dict[str, str]) -> bool:
    """Whether the description of a table is that of a view."""
    return "penstock.kind" in properties


def _trace(view: View) -> Lineage:
    told = view._describe_view()
    properties: dict[str, str] = told["properties"]
    known = read_counts(properties, "watermark")
    first = (*told.get("source_namespace", ()), told["source_table"])
    ids = {**known, **read_counts(properties, "pending")} or [first]
    upstream = {}
    for id in ids:
        source = View(view._wire, id)
        # One that this caller may not see is where the lineage ends.
        with contextlib.suppress(NotFound, Forbidden):
            if is_view(source._properties()):
                upstream[source.name] = _trace(source)
    return Lineage(
        name=view.name,
        kind=told["kind"],
        query=told.get("source_query", ""),
        sources={show_id(id): known.get(id) for id in ids},
        columns={each["output_column"]: each["expression"] for each in told["projections"]},
        upstream=upstream,
    )
