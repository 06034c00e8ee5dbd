"""Schemas of tables: checked like those of views, and given the ids that a new table has."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from penstock.errors import InvalidTable
from penstock.iceberg import schemas
from penstock.iceberg.checks import clip, show
from penstock.iceberg.metadata import Json
from penstock.iceberg.tables.document import ROW_LINEAGE
from penstock.iceberg.tables.wording import of_tables

# Java keeps the 200 highest ids for columns that it makes itself.
_RESERVED = 2**31 - 1 - 200
_NEWER = ("timestamp_ns", "timestamptz_ns", "unknown", "variant", "geometry", "geography")


@dataclass(frozen=True, slots=True)
class Column:
    id: int
    # With the names of what it is in: address.street, tags.element.
    name: str
    type: Any
    field: Json
    # What it is in, if that is a list or a map at any level.
    inside: str | None


class Columns:
    """All columns of a schema, also nested ones, elements, keys and values, by id and by name."""

    def __init__(self, schema: Json) -> None:
        self.by_id = {column.id: column for column in list_columns(schema)}
        self.ids = {column.name: column.id for column in self.by_id.values()}


def check_schema(value: object, path: str) -> Json:
    """Check a schema that every reader must understand; returns it as sent."""
    with of_tables("mend the schema as the message says"):
        return schemas.check_schema(value, path)


def list_columns(schema: Json) -> list[Column]:
    return list(_walk(schema, "", None))


def highest_id(schema: Json) -> int:
    return max((column.id for column in list_columns(schema)), default=0)


def check_ids(schema: Json, path: str) -> None:
    """Refuse ids that no column can have."""
    for column in list_columns(schema):
        if not 0 <= column.id < _RESERVED:
            raise InvalidTable(
                f"Invalid schema: {path} gives the column {show(column.name)} the id {column.id}",
                detail=f"ids of columns are from 0 to {_RESERVED - 1}",
            )


def check_format(schema: Json, format_version: int) -> None:
    """Refuse types and defaults that a format version does not have."""
    if format_version >= ROW_LINEAGE:
        return
    problems = []
    for column in list_columns(schema):
        since = f"is not supported until v{ROW_LINEAGE}"
        if isinstance(column.type, str) and column.type.partition("(")[0].strip() in _NEWER:
            problems.append(f"Invalid type for {clip(column.name)}: {clip(column.type)} {since}")
        if column.field.get("initial-default") is not None:
            problems.append(
                f"Invalid initial default for {clip(column.name)}: non-null default "
                f"({show(column.field['initial-default'])}) {since}"
            )
    if problems:
        listed = "\n- ".join(problems[:10])
        raise InvalidTable(
            f"Invalid schema for v{format_version}:\n- {listed}",
            detail=f"upgrade the table to format version {ROW_LINEAGE}, or leave them out",
        )


def with_fresh_ids(schema: Json, schema_id: int) -> tuple[Json, dict[int, int]]:
    """The schema with ids from 1 on, and the new id of each old one.

    All columns of a struct are numbered before what is in them, as every client expects.
    """
    ids: dict[int, int] = {}

    def number(old: int) -> int:
        return ids.setdefault(old, len(ids) + 1)

    fresh = {**schema, "schema-id": schema_id, "fields": _renumber(schema["fields"], number)}
    if "identifier-field-ids" in fresh:
        fresh["identifier-field-ids"] = [ids[each] for each in fresh["identifier-field-ids"]]
    return fresh, ids


def _renumber(fields: list[Json], number: Callable[[int], int]) -> list[Json]:
    numbered = [{**field, "id": number(field["id"])} for field in fields]
    return [{**field, "type": _renumber_type(field["type"], number)} for field in numbered]


def _renumber_type(type: Any, number: Callable[[int], int]) -> Any:
    if isinstance(type, str):
        return type
    if type["type"] == "struct":
        return {**type, "fields": _renumber(type["fields"], number)}
    inner = ("element",) if type["type"] == "list" else ("key", "value")
    numbers = {f"{name}-id": number(type[f"{name}-id"]) for name in inner}
    return {**type, **numbers, **{name: _renumber_type(type[name], number) for name in inner}}


def _walk(struct: Json, prefix: str, inside: str | None) -> Iterator[Column]:
    for field in struct["fields"]:
        yield from _enter(field["id"], f"{prefix}{field['name']}", field["type"], field, inside)


def _enter(id: int, name: str, type: Any, field: Json, inside: str | None) -> Iterator[Column]:
    yield Column(id, name, type, field, inside)
    if isinstance(type, str):
        return
    if type["type"] == "struct":
        yield from _walk(type, f"{name}.", inside)
        return
    for part in ("element",) if type["type"] == "list" else ("key", "value"):
        yield from _enter(type[f"{part}-id"], f"{name}.{part}", type[part], {}, type["type"])
