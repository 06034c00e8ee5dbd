"""View of the SDK, to be awaited; written by scripts/async_sdk.py."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from penstock.aio.generated.stored import AsyncStored
from penstock.sdk.views.altering import UNSET
from penstock.sdk.views.view import View

if TYPE_CHECKING:
    from typing import Unpack

    from penstock.aio.generated.job import AsyncJob
    from penstock.aio.generated.query import AsyncQuery
    from penstock.aio.generated.readable import AsyncReadable
    from penstock.aio.generated.registered_function import AsyncRegisteredFunction
    from penstock.sdk.jobs.options import RefreshOptions
    from penstock.sdk.jobs.plans import Plan
    from penstock.sdk.rows.types import Schema
    from penstock.sdk.views.altering import Unset, ViewDefinition
    from penstock.sdk.views.certificate import Certificate
    from penstock.sdk.views.create import RowsFunction, Source
    from penstock.sdk.views.freshness import Freshness, Schedule
    from penstock.sdk.views.lineage import Lineage
    from penstock.sdk.views.view import Consent, Mode


class AsyncView(AsyncStored, of=View):
    """A materialized view: read, indexed and given columns like a table, written by refreshes."""

    _wrapped: View

    async def kind(self) -> str:
        """`query`, `chunker` or `udtf`."""
        found: str = await self._run(self._wrapped.kind)
        return found

    async def query(self) -> str:
        """Its source query as it was sent."""
        found: str = await self._run(self._wrapped.query)
        return found

    async def refresh(
        self,
        *,
        mode: Mode | None = None,
        wait: bool = True,
        progress: bool | None = None,
        **options: Unpack[RefreshOptions],
    ) -> AsyncJob:
        """Make the view what its query gives now; waits for the job unless `wait=False`.

        `mode="incremental"` fails rather than compute everything, which `mode="full"` does.
        """
        found: AsyncJob = await self._run(
            self._wrapped.refresh, mode=mode, wait=wait, progress=progress, **options
        )
        return found

    async def explain(self, *, mode: Mode | None = None, **options: Unpack[RefreshOptions]) -> Plan:
        """What a refresh would do, without doing it."""
        found: Plan = await self._run(self._wrapped.explain, mode=mode, **options)
        return found

    async def verify(
        self,
        rows: int | None = None,
        *,
        mode: Mode | None = None,
        progress: bool | None = None,
        **options: Unpack[RefreshOptions],
    ) -> Certificate:
        """Refresh the view and compare it with its query computed anew: all of it, or some rows."""
        found: Certificate = await self._run(
            self._wrapped.verify, rows, mode=mode, progress=progress, **options
        )
        return found

    async def freshness(self) -> Freshness:
        """How far it is behind the tables that it is made from, also through other views."""
        found: Freshness = await self._run(self._wrapped.freshness)
        return found

    async def schedule(self) -> Schedule | None:
        """When it refreshes itself by the clock; None when it does not."""
        found: Schedule | None = await self._run(self._wrapped.schedule)
        return found

    async def lineage(self) -> Lineage:
        """The tables and views that it is made of, down to tables."""
        found: Lineage = await self._run(self._wrapped.lineage)
        return found

    async def needs_consent(self) -> list[str] | None:
        """What the view may not read before an owner consents, as far as you may see it.

        None when it needs no consent.
        """
        found: list[str] | None = await self._run(self._wrapped.needs_consent)
        return found

    async def consent(self, state: str | None = None, *, dry_run: bool = False) -> Consent:
        """Let the view read what it is made from now, also what others brought into it.

        With the `state` that a dry run told, nothing is consented to that came later.
        """
        found: Consent = await self._run(self._wrapped.consent, state, dry_run=dry_run)
        return found

    async def drop(self, *, cascade: bool = False, force: bool = False) -> None:
        """Drop the view; `cascade` takes views that read it along, `force` lets them break."""
        await self._run(self._wrapped.drop, cascade=cascade, force=force)

    async def describe(self) -> dict[str, Any]:
        """As of a table, with its definition as `view`."""
        found: dict[str, Any] = await self._run(self._wrapped.describe)
        return found

    async def alter(
        self,
        query: Source | AsyncReadable | AsyncQuery | None = None,
        *,
        function: RowsFunction
        | AsyncRegisteredFunction
        | AsyncRegisteredFunction
        | str
        | None = None,
        inherited: list[str] | str | None = None,
        output_schema: Schema = None,
        dialect: str = "spark",
        auto_refresh: bool | None = None,
        target_lag_seconds: int | Unset | None = UNSET,
        refresh_schedule: str | Unset | None = UNSET,
        refresh_schedule_timezone: str | None = None,
        properties: dict[str, str | None] | None = None,
        cluster: str | None = None,
        preview: bool = True,
        wait: bool = True,
        progress: bool | None = None,
    ) -> AsyncJob | None:
        """Change the view, and leave what is not given as it is; returns the job, if it takes one.

        query: a table, a selection, or SQL in `dialect`, as for `create_view`.
        function: another chunker or udtf, of the view's kind, or the name of a registered one.
        inherited: of a chunker's view, the query's columns that its rows have.
        auto_refresh: whether it refreshes itself after changes; False takes a target lag away, too.
        target_lag_seconds: within which it refreshes itself; None takes it away.
        refresh_schedule: a cron expression, in UTC or in the time zone that is named; None ends it.
        properties: properties of the table; None as a value removes one.
        preview: first have a runner give some rows to functions that are new; when they fail, the
            call does, and nothing changes. `job.not_previewed` says why no runner did.
        """
        found: AsyncJob | None = await self._run(
            self._wrapped.alter,
            query,
            function=function,
            inherited=inherited,
            output_schema=output_schema,
            dialect=dialect,
            auto_refresh=auto_refresh,
            target_lag_seconds=target_lag_seconds,
            refresh_schedule=refresh_schedule,
            refresh_schedule_timezone=refresh_schedule_timezone,
            properties=properties,
            cluster=cluster,
            preview=preview,
            wait=wait,
            progress=progress,
        )
        return found

    async def explain_alter(
        self,
        query: Source | AsyncReadable | AsyncQuery | None = None,
        *,
        function: RowsFunction
        | AsyncRegisteredFunction
        | AsyncRegisteredFunction
        | str
        | None = None,
        inherited: list[str] | str | None = None,
        output_schema: Schema = None,
        dialect: str = "spark",
    ) -> Plan:
        """What altering the view so would cost, without doing it."""
        found: Plan = await self._run(
            self._wrapped.explain_alter,
            query,
            function=function,
            inherited=inherited,
            output_schema=output_schema,
            dialect=dialect,
        )
        return found

    async def history(self) -> list[ViewDefinition]:
        """The definitions that the view has had, newest first."""
        found: list[ViewDefinition] = await self._run(self._wrapped.history)
        return found
