"""The operations on columns and on the metadata of fields and schema."""

from typing import Annotated, Any

import msgspec

from penstock.catalog import columns as bound_columns
from penstock.catalog import data, refs, tables
from penstock.datasets import bindings, columns, computed
from penstock.datasets.columns import Alteration, MetadataUpdate
from penstock.errors import InvalidRequest, Unsupported
from penstock.model.branches import check_branch
from penstock.server.http import Reply
from penstock.server.lance.call import Body, Call

Name = Annotated[str, msgspec.Meta(min_length=1)]

LATER = "it comes with a later release; docs/operations.md lists what is served"


class NewColumn(msgspec.Struct):
    name: Name
    expression: str | None = None
    computed: str | None = None
    virtual_column: dict[str, Any] | None = None


class AddColumns(Body):
    new_columns: list[NewColumn]
    branch: str | None = None


class AlteredColumn(msgspec.Struct):
    path: Name
    rename: Name | None = None
    nullable: bool | None = None
    data_type: Any = None
    virtual_column: dict[str, Any] | None = None


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
    body = call.decode(_add)
    _check_given("new_columns", body.new_columns)
    definitions = {column.name: _read_definition(column) for column in body.new_columns}
    if len(definitions) < len(body.new_columns):
        raise InvalidRequest("new_columns names a column twice", detail="name each column once")
    plain = {name: sql for name, (kind, sql) in definitions.items() if kind == "expression"}
    bound = {name: sql for name, (kind, sql) in definitions.items() if kind == "computed"}
    catalog, branch = call.catalog, check_branch(body.branch)
    table = await tables.get(catalog.database, call.id)
    version = 0
    if plain and bound:
        # They take two versions: what the second one would refuse is refused before the first.
        await data.read(
            catalog, table, branch, None, lambda dataset: computed.check_new(dataset, bound)
        )
    if plain:
        version = await data.change(
            catalog,
            table,
            branch,
            lambda dataset: columns.add_columns(dataset, plain),
            call.origin,
        )
    if bound:
        version = await bound_columns.add(catalog, table, branch, bound, call.origin)
    return ChangedColumns(version)


async def alter(call: Call) -> ChangedColumns:
    body = call.decode(_alter)
    _check_given("alterations", body.alterations)
    if any(each.virtual_column is not None for each in body.alterations):
        raise Unsupported("altering a virtual_column is not served by this release", detail=LATER)
    wanted = [Alteration(a.path, a.rename, a.nullable, a.data_type) for a in body.alterations]
    catalog, branch = call.catalog, check_branch(body.branch)
    table = await tables.get(catalog.database, call.id)
    version, names = await data.change(
        catalog,
        table,
        branch,
        lambda dataset: bindings.alter_columns(dataset, wanted),
        call.origin,
    )
    await bound_columns.rename(catalog, table, branch, names)
    return ChangedColumns(version)


async def drop(call: Call) -> DroppedColumns:
    body = call.decode(_drop)
    _check_given("columns", body.columns)
    catalog, branch = call.catalog, check_branch(body.branch)
    table = await tables.get(catalog.database, call.id)
    version, names = await data.change(
        catalog,
        table,
        branch,
        lambda dataset: bindings.drop_columns(dataset, body.columns),
        call.origin,
    )
    await bound_columns.forget(catalog, table, branch, names)
    transaction = await refs.find_transaction(catalog, table, branch, version)
    return DroppedColumns(version, transaction)


async def update_fields(call: Call) -> UpdatedFields:
    body = call.decode(_fields)
    _check_given("updates", body.updates)
    updates = [MetadataUpdate(u.path, u.metadata, bool(u.replace)) for u in body.updates]
    table, branch = await tables.get(call.catalog.database, call.id), check_branch(body.branch)
    version, fields = await data.change(
        call.catalog,
        table,
        branch,
        lambda dataset: bindings.update_field_metadata(dataset, updates),
        call.origin,
    )
    return UpdatedFields(version, fields)


async def update_schema_metadata(call: Call) -> Reply:
    """The map in the body becomes the schema's metadata, and is answered as it is now."""
    try:
        values = _map.decode(call.body)
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise InvalidRequest(
            f"the body is not a map of strings: {error}", detail='send {"key": "value"}'
        ) from error
    branch = check_branch(call.text("branch"))
    table = await tables.get(call.catalog.database, call.id)
    found = await data.change(
        call.catalog,
        table,
        branch,
        lambda dataset: columns.replace_schema_metadata(dataset, values),
        call.origin,
    )
    return Reply(200, msgspec.json.encode(found))


def _check_given(name: str, items: list[Any]) -> None:
    if not items:
        raise InvalidRequest(f"{name} is empty", detail="name at least one column")


def _read_definition(column: NewColumn) -> tuple[str, str]:
    """Which kind of definition a new column has, and its SQL."""
    kinds = ("expression", "computed", "virtual_column")
    given = [kind for kind in kinds if getattr(column, kind) is not None]
    if len(given) != 1:
        raise InvalidRequest(
            f"column {column.name!r} has {' and '.join(given) or 'no definition'}",
            detail="send exactly one of " + ", ".join(kinds),
        )
    if column.computed is not None:
        return "computed", column.computed
    if column.expression is None:
        raise Unsupported(
            f"column {column.name!r}: {given[0]} is not served by this release", detail=LATER
        )
    return "expression", column.expression
