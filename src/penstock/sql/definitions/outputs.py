"""The columns of a view: those of its query and function, checked against the declared ones."""

from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import pyarrow.types as kinds

from penstock.errors import InvalidRequest, SchemaMismatch, TypesUnknown
from penstock.lance.columns.fields import check_column_name
from penstock.model.views import CHILD_INDEX, PARTITION, SOURCE_ROW_IDS, SYSTEM_COLUMNS
from penstock.sql.definitions.refusals import find_near


def make_schema(
    system: Sequence[str],
    given: Sequence[tuple[str, pa.DataType | None]],
    declared: pa.Schema | None,
    created: pa.Schema | None,
) -> pa.Schema:
    """The schema of the view's table: system columns first, then the user's as declared.

    `declared` is what the client says, `created` the schema since the view's creation.
    """
    for name, _ in given:
        _check_name(name)
    wanted = declared if created is None else created
    fields = given if wanted is None else _fit(given, _list_own(wanted), created is not None)
    for name, kind in fields:
        if kind is None:
            raise TypesUnknown(
                f"the type of column {name} is only known to Spark",
                detail="send output_schema, or cast it, as in CAST(… AS BIGINT)",
            )
    if created is not None:
        _check_system(system, created)
    return pa.schema([*_list_system(system), *(pa.field(name, kind) for name, kind in fields)])


def keep_types(
    given: Sequence[tuple[str, pa.DataType | None]], before: pa.Schema | None
) -> list[tuple[str, pa.DataType | None]]:
    """The columns of an altered view, with the types that they had where values fit these."""
    had = {} if before is None else dict(_list_own(before))

    def keep(name: str, kind: pa.DataType | None) -> pa.DataType | None:
        before = had.get(name)
        return before if None not in (before, kind) and is_alike(kind, before) else kind

    return [(name, keep(name, kind)) for name, kind in given]


def list_own_names(schema: pa.Schema | None) -> list[str] | None:
    """The user's columns of a view."""
    return None if schema is None else [name for name, _ in _list_own(schema)]


def is_alike(one: pa.DataType, other: pa.DataType) -> bool:
    """Whether values of one type can be stored as the other without loss or failure."""
    return bool(_plain(one) == _plain(other))


def _list_own(schema: pa.Schema) -> list[tuple[str, pa.DataType]]:
    return [(field.name, field.type) for field in schema if field.name not in SYSTEM_COLUMNS]


def _fit(
    given: Sequence[tuple[str, pa.DataType | None]],
    wanted: Sequence[tuple[str, pa.DataType]],
    is_created: bool,
) -> list[tuple[str, pa.DataType | None]]:
    """The columns as wanted, if the query gives exactly these."""
    whose = "the view" if is_created else "output_schema"
    kinds = dict(given)
    for name, kind in wanted:
        if name not in kinds:
            near = find_near(name, kinds)
            hint = f"; near names: {', '.join(near)}" if near else ""
            raise SchemaMismatch(
                f"{whose} has column {name}, and the query does not give it{hint}",
                detail=_remedy(is_created, "leave it out of output_schema, or select it"),
            )
        found = kinds.pop(name)
        if found is not None and not is_alike(found, kind):
            raise SchemaMismatch(
                f"column {name} of {whose} is {kind}, and the query gives {found}",
                detail=_remedy(is_created, f"declare it as {found}, or cast it in the query"),
            )
    if kinds:
        raise SchemaMismatch(
            f"the query gives column {next(iter(kinds))}, and {whose} does not have it",
            detail=_remedy(is_created, "add it to output_schema, or select less"),
        )
    return list(wanted)


def _remedy(is_created: bool, otherwise: str) -> str:
    return "drop the view and create it anew" if is_created else otherwise


def _check_name(name: str) -> None:
    if name in SYSTEM_COLUMNS:
        raise InvalidRequest(
            f"column {name} is the view's own", detail="give the output another name with AS"
        )
    if "." in name or not name:
        raise InvalidRequest(
            f"column {name!r} can't be a column of a Lance table",
            detail="give the output a name without a dot",
        )
    check_column_name(name)


def _list_system(names: Sequence[str]) -> "list[pa.Field[Any]]":
    kinds = {CHILD_INDEX: pa.int32(), PARTITION: pa.string()}
    kinds |= dict.fromkeys(SOURCE_ROW_IDS, pa.int64())
    return [pa.field(name, kinds[name]) for name in names]


def _check_system(system: Sequence[str], created: pa.Schema) -> None:
    had = [name for name in created.names if name in SYSTEM_COLUMNS]
    if had != list(system):
        raise SchemaMismatch(
            "the view was created over the rows of one table, or of partitions, and its query is "
            "of another kind now",
            detail="drop the view and create it anew",
        )


def _plain(kind: pa.DataType) -> object:
    """A type without details of storage, and of whether parts may be null."""
    if kinds.is_dictionary(kind):
        return _plain(kind.value_type)
    if kinds.is_large_string(kind):
        return "string"
    if kinds.is_large_binary(kind):
        return "binary"
    if kinds.is_list(kind) or kinds.is_large_list(kind) or kinds.is_fixed_size_list(kind):
        return ("list", _plain(kind.value_type))
    if kinds.is_struct(kind):
        return ("struct", tuple((field.name, _plain(field.type)) for field in kind))
    if kinds.is_map(kind):
        return ("map", _plain(kind.key_type), _plain(kind.item_type))
    return str(kind)
