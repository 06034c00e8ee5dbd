"""The operations on columns and on the metadata of fields and schema."""

from typing import Annotated, Any

import msgspec

from penstock.catalog.columns import computed_columns as bound
from penstock.catalog.data import datasets
from penstock.catalog.functions import binding
from penstock.catalog.impact import column_changes
from penstock.catalog.materialized_views import materialized_views
from penstock.catalog.names import tables
from penstock.catalog.versions import refs
from penstock.errors import InvalidRequest
from penstock.lance.columns import bindings
from penstock.lance.columns import fields as columns
from penstock.lance.columns.bindings import Changed
from penstock.lance.columns.empty_columns import add_empty, read_schema
from penstock.lance.columns.fields import Alteration, MetadataUpdate
from penstock.model.branches import check_branch
from penstock.server.lance.call import Body, Call
from penstock.server.lance.handlers.functions.virtual_columns import (
    AddVirtualColumn,
    AlterVirtualColumn,
    UseFunction,
    read_altered,
    read_new,
    read_use,
)
from penstock.server.lance.lancedb.function_columns import (
    FunctionBinding,
    check_binding,
    read_binding,
)
from penstock.server.transport.http import Reply

Name = Annotated[str, msgspec.Meta(min_length=1)]


class NewColumn(msgspec.Struct):
    name: Name
    expression: str | None = None
    computed: str | None = None
    virtual_column: AddVirtualColumn | None = None
    function: UseFunction | None = None
    # lancedb's, of a column that its own `function` fills.
    all_null: bool | None = None
    # Of a computed column; a virtual one has its own.
    auto_backfill: bool | None = None


class AddColumns(Body):
    new_columns: list[NewColumn]
    branch: str | None = None
    # lancedb's binding of a function to the new columns.
    function: FunctionBinding | None = None


class AlteredColumn(msgspec.Struct):
    path: Name
    rename: Name | None = None
    nullable: bool | None = None
    data_type: Any = None
    virtual_column: AlterVirtualColumn | None = None
    function: UseFunction | None = None


class AlterColumns(Body):
    alterations: list[AlteredColumn]
    branch: str | None = None


class DropColumns(Body):
    columns: list[Name]
    branch: str | None = None


class FieldMetadata(msgspec.Struct):
    path: Name
    metadata: dict[str, str | None]
    replace: bool | None = None


class UpdateFields(Body):
    updates: list[FieldMetadata]
    branch: str | None = None


class ChangedColumns(msgspec.Struct):
    version: int


class DroppedColumns(msgspec.Struct, omit_defaults=True):
    version: int
    transaction_id: str | None = None


class UpdatedFields(msgspec.Struct):
    version: int
    fields: dict[str, dict[str, str]]


_add = msgspec.json.Decoder(AddColumns)
_alter = msgspec.json.Decoder(AlterColumns)
_drop = msgspec.json.Decoder(DropColumns)
_fields = msgspec.json.Decoder(UpdateFields)
_map = msgspec.json.Decoder(dict[str, str])


async def add(call: Call) -> ChangedColumns:
    if call.has_arrow_body:
        return await _add_empty(call)
    body = call.decode(_add)
    _check_given("new_columns", body.new_columns)
    if body.function is not None:
        return await _add_bound(call, body, body.function)
    for column in body.new_columns:
        _check_definition(column, ("expression", "computed", "virtual_column", "function"))
    plain = {c.name: c.expression for c in body.new_columns if c.expression is not None}
    sql = {c.name: c.computed for c in body.new_columns if c.computed is not None}
    auto = {c.name for c in body.new_columns if c.computed is not None and c.auto_backfill}
    declared = [
        read_new(c.name, c.virtual_column) for c in body.new_columns if c.virtual_column is not None
    ]
    for c in body.new_columns:
        if c.function is not None:
            used = read_use(c.function)
            declared.append(await binding.bind_new(call.catalog, c.name, used, call.origin))
    filled = [output.column for new, _ in declared for output in new.outputs]
    names = [c.name for c in body.new_columns if c.virtual_column is None and c.function is None]
    names += filled
    if len(set(names)) < len(names):
        raise InvalidRequest("new_columns names a column twice", detail="name each column once")
    catalog, branch = call.catalog, check_branch(body.branch)
    table = await tables.get(catalog.database, call.id)
    version = 0
    if declared or (plain and sql):
        # Check everything before anything is stored. Plain columns and bound ones take two
        # versions.
        await bound.check_new(catalog, table, branch, sql, declared)
    if plain:
        version = await datasets.change(
            catalog,
            table,
            branch,
            lambda dataset: columns.add_columns(dataset, plain),
            call.origin,
        )
    if sql or declared:
        version = await bound.add(catalog, table, branch, sql, declared, call.origin, auto)
    return ChangedColumns(version)


async def _add_bound(call: Call, body: AddColumns, bound_to: FunctionBinding) -> ChangedColumns:
    """Add columns that a registered function fills, as lancedb asks for it."""
    catalog, branch = call.catalog, check_branch(body.branch)
    names = [column.name for column in body.new_columns]
    used = read_binding(bound_to, names)
    declared = [await binding.bind_new(catalog, names[0], used, call.origin)]
    await check_binding(catalog, bound_to)
    table = await tables.get(catalog.database, call.id)
    await bound.check_new(catalog, table, branch, {}, declared)
    return ChangedColumns(await bound.add(catalog, table, branch, {}, declared, call.origin))


async def _add_empty(call: Call) -> ChangedColumns:
    """Add the columns of an Arrow schema without values, as lancedb asks for it."""
    catalog, branch = call.catalog, check_branch(call.text("branch"))
    fields = await catalog.workers.run(read_schema, call.body, catalog.max_batch_bytes)
    table = await tables.get(catalog.database, call.id)
    version = await datasets.change(
        catalog, table, branch, lambda dataset: add_empty(dataset, fields), call.origin
    )
    return ChangedColumns(version)


async def alter(call: Call) -> ChangedColumns:
    body = call.decode(_alter)
    _check_given("alterations", body.alterations)
    functions: list[Changed] = []
    for a in body.alterations:
        if a.virtual_column is not None and a.function is not None:
            _check_definition(a, ("virtual_column", "function"))
        if a.virtual_column is not None:
            functions.append((a.path, *read_altered(a.virtual_column)))
        if a.function is not None:
            used = read_use(a.function)
            changed = await binding.bind_changed(call.catalog, used, call.origin)
            functions.append((a.path, *changed))
    wanted = [
        Alteration(a.path, a.rename, a.nullable, a.data_type)
        for a in body.alterations
        if (a.virtual_column is None and a.function is None)
        or (a.rename, a.nullable, a.data_type) != (None, None, None)
    ]
    catalog, branch = call.catalog, check_branch(body.branch)
    table = await tables.get(catalog.database, call.id)
    paths = [a.path for a in body.alterations]
    await materialized_views.check_columns(catalog.database, table, branch, paths)
    version, allowed = 0, call.allowance()
    if functions:
        await bound.check_altered(catalog, table, branch, functions, wanted, force=allowed.force)
        version = await bound.redeclare(catalog, table, branch, functions, call.origin)
    if wanted:
        version = await column_changes.alter(catalog, table, branch, wanted, call.origin, allowed)
    return ChangedColumns(version)


async def drop(call: Call) -> DroppedColumns:
    body = call.decode(_drop)
    _check_given("columns", body.columns)
    catalog, branch = call.catalog, check_branch(body.branch)
    table = await tables.get(catalog.database, call.id)
    await materialized_views.check_columns(catalog.database, table, branch, body.columns)
    version = await column_changes.drop(
        catalog, table, branch, body.columns, call.origin, call.allowance()
    )
    transaction = await refs.find_transaction(catalog, table, branch, version)
    return DroppedColumns(version, transaction)


async def update_fields(call: Call) -> UpdatedFields:
    body = call.decode(_fields)
    _check_given("updates", body.updates)
    updates = [MetadataUpdate(u.path, u.metadata, bool(u.replace)) for u in body.updates]
    table, branch = await tables.get(call.catalog.database, call.id), check_branch(body.branch)
    version, fields = await datasets.change(
        call.catalog,
        table,
        branch,
        lambda dataset: bindings.update_field_metadata(dataset, updates),
        call.origin,
    )
    return UpdatedFields(version, fields)


async def update_schema_metadata(call: Call) -> Reply:
    """Replace the schema's metadata by the map in the body; answers with the result."""
    try:
        values = _map.decode(call.body)
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise InvalidRequest(
            f"the body is not a map of strings: {error}", detail='send {"key": "value"}'
        ) from error
    branch = check_branch(call.text("branch"))
    table = await tables.get(call.catalog.database, call.id)
    found = await datasets.change(
        call.catalog,
        table,
        branch,
        lambda dataset: bindings.replace_schema_metadata(dataset, values),
        call.origin,
    )
    return Reply(200, msgspec.json.encode(found))


def _check_given(name: str, items: list[Any]) -> None:
    if not items:
        raise InvalidRequest(f"{name} is empty", detail="name at least one column")


def _check_definition(column: NewColumn | AlteredColumn, kinds: tuple[str, ...]) -> None:
    name = column.name if isinstance(column, NewColumn) else column.path
    given = [kind for kind in kinds if getattr(column, kind) is not None]
    if len(given) != 1:
        raise InvalidRequest(
            f"column {name!r} has {' and '.join(given) or 'no definition'}",
            detail="send exactly one of " + ", ".join(kinds),
        )
