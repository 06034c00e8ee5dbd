"""Declare, rename and drop bound columns, and keep the catalog's mirror of them.

A column is bound by the metadata of its field, because that travels with branches, restores and
files; a function counts only if it was declared here (`declarations`). The mirror lets the server
describe bound columns without opening the dataset.
"""

import logging
from collections.abc import Collection, Mapping, Sequence
from typing import Any

import msgspec

from penstock.catalog.catalog import Catalog
from penstock.catalog.columns import column_records, declarations
from penstock.catalog.columns.watermarks import find_counts, find_covered, show_states
from penstock.catalog.data import datasets
from penstock.catalog.functions import function_code, functions
from penstock.catalog.jobs import environments as manifests
from penstock.catalog.versions import versions
from penstock.catalog.versions.commits import Guard, Undo
from penstock.database.interface import Transaction
from penstock.errors import PenstockError
from penstock.jobs.doors import leftovers
from penstock.lance.columns import bindings
from penstock.lance.columns.bindings import Changed, New, RedeclaredColumn
from penstock.lance.columns.computed import ComputedColumn, get_computed, list_computed
from penstock.lance.columns.fields import Alteration
from penstock.lance.columns.following import Renaming
from penstock.lance.doors import lance
from penstock.lance.session.remote import Location
from penstock.model.envelopes import FunctionCode
from penstock.model.functions import Function
from penstock.model.origins import NOBODY, Origin
from penstock.model.tables import MAIN, Table

log = logging.getLogger(__name__)


async def check_new(
    catalog: Catalog,
    table: Table,
    branch: str,
    expressions: Mapping[str, str],
    declared: Sequence[New],
) -> None:
    """Refuse bound columns that cannot be added."""

    def work(dataset: "lance.LanceDataset") -> None:
        bindings.plan_bound(dataset, expressions, declared)

    await datasets.read(catalog, table, branch, None, work)


async def add(
    catalog: Catalog,
    table: Table,
    branch: str,
    expressions: Mapping[str, str],
    declared: Sequence[New] = (),
    origin: Origin = NOBODY,
    auto: Collection[str] = (),
) -> int:
    """Add bound columns, all null; returns the version."""
    codes = [code for _, code in declared]
    environments = [each.manifest for each, _ in declared if each.manifest is not None]
    # Before the columns, so that no column is ever without its code.
    await function_code.store(catalog, table, codes)
    version, added = await datasets.change(
        catalog,
        table,
        branch,
        lambda dataset: bindings.add_bound(dataset, expressions, declared, auto),
        origin,
        guard=_keep_functions(codes),
    )
    await catalog.database.write(_add, table, branch, added, codes, environments)
    return version


def _keep_functions(codes: Sequence[FunctionCode]) -> Guard | None:
    """Refuse a commit that binds columns to a registered function which is disabled or gone."""
    used = [code.registered for code in codes if code.registered is not None]
    if not used:
        return None

    async def check(tx: Transaction) -> None:
        await functions.check_enabled_in(tx, used)

    return check


async def check_altered(
    catalog: Catalog,
    table: Table,
    branch: str,
    changes: Sequence[Changed],
    alterations: Sequence[Alteration],
    *,
    force: bool = False,
) -> None:
    """Refuse alterations that cannot be made."""

    def work(dataset: "lance.LanceDataset") -> list[ComputedColumn]:
        bindings.plan_redeclarations(dataset, changes)
        bindings.check_alterations(dataset, alterations, force=force)
        return [get_computed(dataset, path) for path, _, code in changes if code is None]

    for column in await datasets.read(catalog, table, branch, None, work):
        await declarations.check(catalog.database, table, column)


async def redeclare(
    catalog: Catalog,
    table: Table,
    branch: str,
    changes: Sequence[Changed],
    origin: Origin = NOBODY,
) -> int:
    """Give columns new versions of their functions and keep the values; returns the version."""
    codes = [code for _, _, code in changes if code is not None]
    environments = [each.manifest for _, each, _ in changes if each.manifest is not None]
    await function_code.store(catalog, table, codes)
    version, changed = await datasets.change(
        catalog,
        table,
        branch,
        lambda dataset: bindings.redeclare(dataset, changes),
        origin,
        guard=_keep_functions(codes),
    )
    gone = await catalog.database.write(_replace, table, branch, changed, codes, environments)
    await sweep(catalog, table, gone)
    return version


async def alter(
    catalog: Catalog,
    table: Table,
    branch: str,
    alterations: Sequence[Alteration],
    origin: Origin = NOBODY,
    *,
    force: bool = False,
    follow: bool = False,
    guard: Guard | None = None,
) -> int:
    """Alter columns, and follow new names in bindings, if asked to, and in the mirror.

    Returns the version. The mirror changes in its transaction, after `guard` has allowed it.
    """
    planned: list[Renaming] = []

    def work(dataset: "lance.LanceDataset") -> int:
        found = bindings.plan_alterations(dataset, alterations, force=force, follow=follow)
        planned[:] = [found]
        return bindings.alter_columns(dataset, alterations, found)

    async def record(tx: Transaction) -> Undo:
        undo = None if guard is None else await guard(tx)
        back = await column_records.rename_in(tx, table, branch, planned[0])

        async def undo_all(tx: Transaction) -> None:
            await back(tx)
            if undo is not None:
                await undo(tx)

        return undo_all

    return await datasets.change(catalog, table, branch, work, origin, guard=record)


async def forget(catalog: Catalog, table: Table, branch: str, names: Sequence[str]) -> None:
    """Remove dropped columns from the mirror."""
    await sweep(catalog, table, await catalog.database.write(_drop, table, branch, names))


async def mirror(catalog: Catalog, table: Table, branch: str) -> None:
    """Update the mirror after the whole schema changed: new branch, restore, overwrite."""
    columns = await datasets.read(
        catalog, table, branch, None, lambda dataset: list_computed(dataset.schema)
    )
    gone = await catalog.database.write(_mirror, table, branch, columns)
    await sweep(catalog, table, gone)


async def describe(catalog: Catalog, table: Table, branch: str) -> dict[str, dict[str, Any]]:
    """What computes the bound columns of a branch, and how far they are filled.

    The dataset is not opened, so row states are null when anything came after the last backfill.
    """
    rows = await catalog.database.fetch(
        "SELECT name, function, inputs, auto_backfill, watermarks FROM columns "
        "WHERE table_id = $1 AND branch = $2 ORDER BY name",
        table.id,
        branch,
    )
    if not rows:
        return {}
    head = await versions.find_head(catalog.database, table.id, branch)
    found = {}
    for name, function, inputs, auto_backfill, watermarks in rows:
        known = None if function is None else msgspec.json.decode(function, type=Function)
        version = None if head is None else head.version
        found[name] = {
            "kind": "sql" if known is None else "function",
            "function": None if known is None else known.name,
            "version": None if known is None else known.version,
            "inputs": msgspec.json.decode(inputs),
            "auto_backfill": bool(auto_backfill),
            "watermark": find_covered(watermarks, branch),
            **show_states(find_counts(watermarks, branch, version, known)),
        }
        if (registered := await functions.find_name(catalog.database, known)) is not None:
            found[name]["registered"] = registered
    return found


async def _add(
    tx: Transaction,
    table: Table,
    branch: str,
    columns: Sequence[ComputedColumn],
    codes: Sequence[FunctionCode],
    environments: Sequence[str],
) -> None:
    await declarations.declare_in(tx, table, columns)
    await _record_all(tx, table, branch, columns, codes, environments)


async def _record_all(
    tx: Transaction,
    table: Table,
    branch: str,
    columns: Sequence[ComputedColumn],
    codes: Sequence[FunctionCode],
    environments: Sequence[str],
) -> None:
    by_hash = {code.sha256: code for code in codes}
    used = {c.function.sha256: c.function for c in columns if c.function is not None}
    for sha256 in by_hash.keys() & used.keys():
        await function_code.record_in(tx, used[sha256], by_hash[sha256].content)
    for text in environments:
        await manifests.record_in(tx, text)
    await column_records.record_in(tx, table, branch, columns)


async def sweep(catalog: Catalog, table: Table, gone: Collection[str]) -> None:
    """Remove files that backfills kept for columns that no branch has any more."""
    location = Location(catalog.lake.place(table.location).uri, MAIN, catalog.lake.options)
    for binding in gone:
        try:
            await catalog.lake.run(leftovers.forget_column, location, binding)
        except PenstockError as error:
            # The columns are gone anyway, and the leftovers do no harm.
            log.warning("what backfills kept in %s is not removed: %s", table, error.message)


async def list_bindings(tx: Transaction, table: Table) -> set[str]:
    """The bindings of all columns that functions fill, on all branches."""
    rows = await tx.fetch(
        "SELECT DISTINCT binding FROM columns WHERE table_id = $1 AND function IS NOT NULL",
        table.id,
    )
    return {row[0] for row in rows}


async def _replace(
    tx: Transaction,
    table: Table,
    branch: str,
    changed: Sequence[RedeclaredColumn],
    codes: Sequence[FunctionCode],
    environments: Sequence[str],
) -> set[str]:
    before = await list_bindings(tx, table)
    await declarations.declare_again_in(tx, table, changed)
    columns = await declarations.keep_declared(tx, table, [each.column for each in changed])
    await _record_all(tx, table, branch, columns, codes, environments)
    return before - await list_bindings(tx, table)


async def _drop(tx: Transaction, table: Table, branch: str, names: Sequence[str]) -> set[str]:
    before = await list_bindings(tx, table)
    await _forget(tx, table, branch, names)
    return before - await list_bindings(tx, table)


async def _mirror(
    tx: Transaction, table: Table, branch: str, columns: Sequence[ComputedColumn]
) -> set[str]:
    before = await list_bindings(tx, table)
    columns = await declarations.keep_declared(tx, table, columns)
    rows = await tx.fetch(
        "SELECT name FROM columns WHERE table_id = $1 AND branch = $2", table.id, branch
    )
    await _forget(tx, table, branch, [*{row[0] for row in rows} - {c.name for c in columns}])
    await column_records.record_in(tx, table, branch, columns)
    # A new branch was filled where it comes from; rows are compared, so any watermark is right.
    await tx.fetch(
        "UPDATE columns SET watermarks = (SELECT c.watermarks FROM columns c "
        "WHERE c.table_id = columns.table_id AND c.binding = columns.binding "
        "AND c.watermarks IS NOT NULL ORDER BY c.branch, c.name LIMIT 1) "
        "WHERE table_id = $1 AND branch = $2 AND watermarks IS NULL AND function IS NOT NULL",
        table.id,
        branch,
    )
    return before - await list_bindings(tx, table)


async def _forget(tx: Transaction, table: Table, branch: str, names: Sequence[str]) -> None:
    for name in names:
        await tx.fetch(
            "DELETE FROM columns WHERE table_id = $1 AND branch = $2 AND name = $3",
            table.id,
            branch,
            name,
        )
