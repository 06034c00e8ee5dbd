"""Create materialized views: empty table, record and first refresh, all or nothing."""

from collections.abc import Sequence
from dataclasses import dataclass

from penstock.catalog.access import grants
from penstock.catalog.catalog import Catalog
from penstock.catalog.data import datasets
from penstock.catalog.functions import function_code, functions
from penstock.catalog.materialized_views import definitions, materialized_views, refreshes
from penstock.catalog.materialized_views.cron import Schedule
from penstock.catalog.materialized_views.definitions import ResolvedView
from penstock.catalog.materialized_views.materialized_views import NewView, SentDefinition
from penstock.catalog.materialized_views.refreshes import RefreshRequest, list_functions
from penstock.catalog.materialized_views.source_columns import ColumnsChanged, SourceColumns
from penstock.catalog.names import tables
from penstock.catalog.names.meaning import reading_as
from penstock.catalog.names.tables import NewTable
from penstock.catalog.versions.commits import Declare
from penstock.database.interface import Transaction
from penstock.lance.columns import function_code as code_files
from penstock.lance.write import first_version, view_tables
from penstock.lance.write.uploads import WrittenFragments
from penstock.model.identifiers import Identifier
from penstock.model.origins import NOBODY, Origin
from penstock.model.rights import FUNCTIONS, NAMESPACE, Need
from penstock.model.tables import Table

FIRST_REFRESH = RefreshRequest()
# How often the query is read anew because its tables' columns changed meanwhile.
ROUNDS = 5


@dataclass(frozen=True, slots=True)
class ViewCreation:
    """A request to create a view."""

    asked: SentDefinition
    with_data: bool = False
    auto_refresh: bool = False
    target_lag_seconds: int | None = None
    schedule: Schedule | None = None
    cluster: str | None = None


@dataclass(frozen=True, slots=True)
class CreatedView:
    table: Table
    version: int
    job_id: str | None


async def create(
    catalog: Catalog, id: Identifier, wanted: ViewCreation, origin: Origin = NOBODY
) -> CreatedView:
    """Create a view without rows, and request a refresh if wanted."""
    for _ in range(ROUNDS - 1):
        try:
            return await _create(catalog, id, wanted, origin)
        except ColumnsChanged:
            # The query may fit the new columns as well; if not, its definition says why.
            continue
    return await _create(catalog, id, wanted, origin)


async def _create(
    catalog: Catalog, id: Identifier, wanted: ViewCreation, origin: Origin
) -> CreatedView:
    cluster = catalog.queue.check_cluster(wanted.cluster)
    new = tables.plan_table(catalog, id, None, {}, managed=True)
    await tables.check_new(catalog.database, new)
    may_read = reading_as(catalog.database, origin.grantees)
    defined = await definitions.define(
        catalog, new.table.namespace, wanted.asked, may_read=may_read, cluster=cluster
    )
    if brings_code(defined):
        need = Need(FUNCTIONS, NAMESPACE, new.table.namespace)
        await grants.check_in(catalog.database, origin, need)
    columns = SourceColumns(catalog, defined)
    queued: list[str] = []

    async def record(tx: Transaction) -> None:
        queued.clear()
        await _record(tx, new.table, wanted, defined, origin.grantees)
        await columns.check_in(tx)
        if wanted.with_data:
            job = refreshes.new_job(new.table, defined, FIRST_REFRESH, cluster)
            attempts = catalog.queue.max_attempts
            queued.append(await refreshes.enqueue_in(tx, job, FIRST_REFRESH, attempts))

    version = await _write(catalog, new, defined, wanted.asked, Declare(new, record), origin)
    catalog.queue.ring()
    return CreatedView(new.table, version, queued[0] if queued else None)


async def _write(
    catalog: Catalog,
    new: NewTable,
    defined: ResolvedView,
    asked: SentDefinition,
    declare: Declare,
    origin: Origin,
) -> int:
    """Write the view's files into its new folder, then commit everything at once."""
    place = catalog.lake.place(new.table.location)
    bridge = datasets.make_bridge(catalog, new.table, origin, before=[declare])

    def write() -> WrittenFragments:
        for content in list_codes(defined):
            code_files.store(place, content)
        return view_tables.plan_first(defined.definition, asked.source_query)

    id, options = list(new.table.identifier), catalog.lake.options
    return await catalog.workers.run(
        lambda: first_version.commit(place, write, bridge, id, options, is_alone=True)
    )


async def _record(
    tx: Transaction,
    table: Table,
    wanted: ViewCreation,
    defined: ResolvedView,
    owner: tuple[str, ...],
) -> None:
    await materialized_views.check_sources(tx, owner, defined.ids)
    await check_functions_in(tx, defined)
    view = NewView(
        asked=wanted.asked,
        definition=defined.definition,
        sources=defined.reading.to_record(),
        owner=owner,
        auto_refresh=wanted.auto_refresh,
        target_lag_seconds=wanted.target_lag_seconds,
        schedule=wanted.schedule,
    )
    await materialized_views.insert_in(tx, table, view)
    await record_functions(tx, defined)


async def record_functions(tx: Transaction, defined: ResolvedView) -> None:
    """Record the code of a view's functions, which came with its definition."""
    by_hash = {code_files.hash_of(content): content for content in list_codes(defined)}
    for function in list_functions(defined.definition):
        if (content := by_hash.get(function.sha256)) is not None:
            await function_code.record_in(tx, function, content)


async def check_functions_in(tx: Transaction, defined: ResolvedView) -> None:
    """Refuse a view whose registered functions are disabled or gone; they stay meanwhile."""
    used = [each.registered for each in list_functions(defined.definition)]
    await functions.check_enabled_in(tx, [each for each in used if each is not None])


def brings_code(defined: ResolvedView) -> bool:
    """Whether functions came with a definition that have no name in the catalog."""
    own = [] if defined.udtf is None else [defined.udtf.registered]
    used = [*own, *(function.code.registered for function in defined.query.functions)]
    return any(each is None for each in used)


def list_codes(defined: ResolvedView) -> Sequence[bytes]:
    """The code that came with a definition."""
    own = [] if defined.udtf is None else [defined.udtf.content]
    return [*own, *(function.code.content for function in defined.query.functions)]
