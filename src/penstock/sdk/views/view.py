"""Materialized views: tables whose rows a query or a function makes, and their refreshes."""

import contextlib
import time
from dataclasses import dataclass, field
from typing import Any, Literal, Unpack

import msgspec

from penstock.errors import Forbidden, NotFound, Unsupported
from penstock.model.identifiers import Identifier
from penstock.sdk.connection.names import show_id
from penstock.sdk.connection.wire import path_of
from penstock.sdk.jobs.job import Job
from penstock.sdk.jobs.options import RefreshOptions, to_body
from penstock.sdk.jobs.plans import Plan
from penstock.sdk.show import html_table, show_millis
from penstock.sdk.tables.table import Table
from penstock.sdk.views.altering import Alterable

Mode = Literal["auto", "incremental", "full"]


@dataclass(frozen=True)
class Freshness:
    """How far a view is behind what it reads."""

    stale: bool
    # Milliseconds; None before the first refresh.
    refreshed_at: int | None
    # The versions that it is made from, and how many each table has had since.
    watermark: dict[str, int]
    pending: dict[str, int]
    # Views that it reads and by way of which it is stale: how many versions the tables below have
    # had that it has not.
    through: dict[str, dict[str, int]] = field(default_factory=dict)
    # How long ago the first change of a table was that it does not have; None when there is none.
    lag_seconds: float | None = None
    # Whether that is more than its target lag; None without one.
    late: bool | None = None

    @property
    def seconds(self) -> float | None:
        """How long ago it was refreshed."""
        return None if self.refreshed_at is None else time.time() - self.refreshed_at / 1000

    def __str__(self) -> str:
        since = [f"{count} of {name}" for name, count in self.pending.items()]
        for view, below in self.through.items():
            counts = [f"{count} of {name}" for name, count in below.items()]
            since.append(f"{', '.join(counts) or 'some'} through {view}")
        # Without new versions, only time has passed, or the view was never filled.
        state = f"stale, new versions: {', '.join(since)}" if since else "stale"
        state = state if self.stale else "fresh"
        if self.lag_seconds is not None:
            state += f"; {self.lag_seconds:,.0f} s behind{', late' if self.late else ''}"
        return f"{state}; refreshed {show_millis(self.refreshed_at)}"


@dataclass(frozen=True)
class Lineage:
    """What a view is made of: its tables, its columns, and the lineage of those that are views."""

    name: str
    kind: str
    query: str
    # Versions by table; None for one that it was never refreshed from.
    sources: dict[str, int | None]
    # The expression of each column, where the query is one of projections.
    columns: dict[str, str]
    upstream: dict[str, "Lineage"] = field(default_factory=dict)

    def __str__(self) -> str:
        return "\n".join(self._lines(0))

    def _lines(self, depth: int) -> list[str]:
        indent = "  " * depth
        found = [f"{indent}{self.name} ({self.kind})"]
        for source, version in self.sources.items():
            if source in self.upstream:
                found += self.upstream[source]._lines(depth + 1)
            else:
                at = "" if version is None else f" at version {version}"
                found.append(f"{indent}  {source}{at}")
        return found


@dataclass(frozen=True)
class Schedule:
    """When a view refreshes itself by the clock."""

    # A cron expression, read in the time zone.
    expression: str
    timezone: str
    # Milliseconds; None when it never comes again.
    next_at: int | None

    def __str__(self) -> str:
        return f"{self.expression} ({self.timezone}), next {show_millis(self.next_at)}"


@dataclass(frozen=True)
class Consent:
    """What was, or would be, consented to: the sources that are new, and a name for it all."""

    sources: list[str]
    state: str


@dataclass(frozen=True)
class Certificate:
    """What came of comparing a view with its query computed anew."""

    is_equal: bool
    rows: int
    rows_expected: int
    rows_missing: int
    rows_extra: int
    # All that was told, such as `digest`, `columns` and `source_versions`.
    told: dict[str, Any] = field(repr=False)

    def __bool__(self) -> bool:
        return self.is_equal


class View(Alterable, Table):
    """A materialized view: read, indexed and given columns like a table, written by refreshes."""

    @property
    def kind(self) -> str:
        """`query`, `chunker` or `udtf`."""
        return str(self.describe_view()["kind"])

    @property
    def query(self) -> str:
        """Its source query as it was sent."""
        return str(self.describe_view().get("source_query", ""))

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
        body = {"mode": mode, **to_body(options, RefreshOptions)}
        told = self._wire.change(self._path("refresh"), body)
        job = Job(self._wire, told["job_id"])
        return job.wait(progress=progress) if wait else job

    def explain(self, *, mode: Mode | None = None, **options: Unpack[RefreshOptions]) -> Plan:
        """What a refresh would do, without doing it."""
        body = {"mode": mode, **to_body(options, RefreshOptions)}
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
        told = job.result.get("certificate")
        if not told:
            raise Unsupported(
                f"the refresh of {self.name} (job {job.id}) has no certificate",
                detail="views of this kind are not verified by this server",
            )
        keys = ("rows", "rows_expected", "rows_missing", "rows_extra")
        counts = {key: int(told.get(key) or 0) for key in keys}
        return Certificate(bool(told["is_equal"]), **counts, told=told)

    @property
    def freshness(self) -> Freshness:
        """How far it is behind the tables that it is made from, also through other views."""
        told = self._properties()
        at, lag = told.get("penstock.refreshed_at"), told.get("penstock.lag_seconds")
        has_target = "penstock.target_lag_seconds" in told
        return Freshness(
            stale=told["penstock.stale"] == "true",
            refreshed_at=None if at is None else int(at),
            watermark=_show_counts(_read_counts(told, "watermark")),
            pending=_show_counts(_read_counts(told, "pending")),
            through=_read_through(told),
            lag_seconds=None if lag is None else float(lag),
            late=told.get("penstock.late") == "true" if has_target else None,
        )

    def lineage(self) -> Lineage:
        """The tables and views that it is made of, down to tables."""
        return _trace(self)

    def set_schedule(self, expression: str | None, *, timezone: str | None = None) -> "View":
        """Let the view refresh itself by a cron expression, in UTC or a time zone; None ends it."""
        body = {"refresh_schedule": expression, "refresh_schedule_timezone": timezone}
        self._wire.change(self._path("alter"), body)
        return self

    @property
    def schedule(self) -> Schedule | None:
        """When it refreshes itself by the clock; None when it does not."""
        told = self._properties()
        if "penstock.refresh_schedule" not in told:
            return None
        tick = told.get("penstock.next_refresh_at")
        return Schedule(
            told["penstock.refresh_schedule"],
            told["penstock.refresh_schedule_timezone"],
            None if tick is None else int(tick),
        )

    @property
    def needs_consent(self) -> list[str] | None:
        """What the view may not read before an owner consents, as far as you may see it.

        None when it needs no consent.
        """
        told = self._properties().get("penstock.needs_consent")
        return None if told is None else _show_names(msgspec.json.decode(told, type=list[str]))

    def consent(self, state: str | None = None, *, dry_run: bool = False) -> Consent:
        """Let the view read what it is made from now, also what others brought into it.

        With the `state` that a dry run told, nothing is consented to that came later.
        """
        body = {"state": state, "dry_run": dry_run}
        told = self._wire.change(self._path("consent"), body)
        return Consent(_show_names(told["sources"]), told["state"])

    def drop(self, *, cascade: bool = False, force: bool = False) -> None:
        """Drop the view; `cascade` takes views that read it along, `force` lets them break."""
        self._wire.change(self._path("drop"), None, cascade=cascade, force=force)

    def _repr_html_(self) -> str:
        told = self.describe_view()
        rows = [
            ("kind", told["kind"]),
            ("query", told.get("source_query", "")),
            ("freshness", str(self.freshness)),
        ]
        return html_table(f"View {self.name}", rows) + super()._repr_html_()

    def _path(self, operation: str) -> str:
        return path_of("materialized_view", self.id, operation)

    def describe_view(self) -> dict[str, Any]:
        """Its definition, as the server tells it."""
        found: dict[str, Any] = self._wire.read(self._path("describe"))
        return found

    def _properties(self) -> dict[str, str]:
        found: dict[str, str] = self._read("describe", None)["properties"]
        return found


def is_view(properties: dict[str, str]) -> bool:
    """Whether the description of a table is that of a view."""
    return "penstock.kind" in properties


def _trace(view: View) -> Lineage:
    told = view.describe_view()
    properties: dict[str, str] = told["properties"]
    known = _read_counts(properties, "watermark")
    first = (*told.get("source_namespace", ()), told["source_table"])
    ids = {**known, **_read_counts(properties, "pending")} or [first]
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


def _read_counts(properties: dict[str, str], name: str) -> dict[Identifier, int]:
    """Numbers by table, whose names the catalog joins."""
    text = properties.get(f"penstock.{name}", "{}")
    found = msgspec.json.decode(text, type=dict[str, int])
    return {tuple(joined.split("$")): number for joined, number in found.items()}


def _read_through(properties: dict[str, str]) -> dict[str, dict[str, int]]:
    text = properties.get("penstock.through", "{}")
    found = msgspec.json.decode(text, type=dict[str, dict[str, int]])
    return {
        show_id(tuple(name.split("$"))): {
            show_id(tuple(table.split("$"))): count for table, count in below.items()
        }
        for name, below in found.items()
    }


def _show_names(names: list[str]) -> list[str]:
    return [show_id(tuple(name.split("$"))) for name in names]


def _show_counts(counts: dict[Identifier, int]) -> dict[str, int]:
    return {show_id(id): number for id, number in counts.items()}
