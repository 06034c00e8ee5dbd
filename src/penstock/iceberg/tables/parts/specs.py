"""Partition specs: their shape, how they fit a schema, and when two are the same."""

from collections.abc import Hashable, Mapping
from typing import Any

import msgspec

from penstock.errors import InvalidTable
from penstock.iceberg import checks
from penstock.iceberg.checks import INT32, clip, join, show
from penstock.iceberg.metadata import Json
from penstock.iceberg.tables.document import FIRST_PARTITION_FIELD, without_nulls
from penstock.iceberg.tables.parts.schemas import Column, Columns
from penstock.iceberg.tables.parts.transforms import can_transform, check_transform, is_void

UNPARTITIONED: Json = {"spec-id": 0, "fields": []}
_MEND = "name a column of the table's current schema, and a transform that its type has"


def check_spec(value: object, path: str) -> Json:
    """Check the shape of a spec; returns it as sent."""
    spec = without_nulls(checks.check_object(value, path), ("spec-id",))
    if "spec-id" in spec:
        checks.get_integer(spec, "spec-id", path)
    return {**spec, "fields": check_fields(spec, "fields", path)}


def check_fields(parent: Json, key: str, path: str) -> list[Json]:
    """Check the fields of a spec, which version 1 has without a spec around them."""
    inner = join(path, key)
    fields = [
        _check_field(each, f"{inner}[{n}]")
        for n, each in enumerate(checks.get_objects(parent, key, path))
    ]
    _refuse_twice(inner, "name", [field["name"] for field in fields])
    _refuse_twice(inner, "field-id", [each["field-id"] for each in fields if "field-id" in each])
    return fields


def fingerprint(spec: Json) -> Hashable:
    """Equal for specs that differ only in their ids."""
    return tuple([(*_source(each), each["name"]) for each in spec["fields"]])


def content(spec: Json) -> bytes:
    return msgspec.json.encode(fingerprint(spec))


def last_field_id(spec: Json) -> int:
    return max((each["field-id"] for each in spec["fields"]), default=FIRST_PARTITION_FIELD - 1)


def list_field_ids(spec: Json) -> dict[tuple[int, str], int]:
    """The ids of the spec's fields, by what each is made of."""
    return {_source(field): field["field-id"] for field in spec["fields"]}


def with_field_ids(spec: Json, older: Mapping[tuple[int, str], int], last: int) -> Json:
    """The spec with an id for each field: as sent, or that of an older equal one, or a new one."""
    if all("field-id" in each for each in spec["fields"]):
        return spec
    taken = {each["field-id"] for each in spec["fields"] if "field-id" in each}
    last = max([last, *taken])
    fields = []
    for each in spec["fields"]:
        if "field-id" not in each:
            id = older.get(_source(each))
            if id is None or id in taken:
                id = last = last + 1
            taken.add(id)
            each = {**each, "field-id": id}
        fields.append(each)
    if last not in INT32:
        raise InvalidTable(f"no partition field id is left after {last}", detail="send field-id")
    return {**spec, "fields": fields}


def with_fresh_ids(spec: Json, columns: Mapping[int, int]) -> Json:
    """The spec of a new table: its sources as they were renumbered, its fields from 1000 on."""
    fields = [
        {**each, "source-id": _find_fresh(each, columns), "field-id": FIRST_PARTITION_FIELD + n}
        for n, each in enumerate(spec["fields"])
    ]
    return {**spec, "spec-id": 0, "fields": fields}


def check_fit(spec: Json, columns: Columns, *, names: bool = True) -> None:
    """Refuse a spec that can't partition a schema's rows, or whose names mean other columns."""
    for field in spec["fields"]:
        source = field["source-id"]
        if names and columns.ids.get(field["name"], source) != source:
            raise InvalidTable(
                "Cannot create identity partition sourced from different field in schema: "
                f"{clip(field['name'])}",
                detail="give the partition field a name that no other column has",
            )
        if not is_void(field["transform"]):
            _check_source(field, columns.by_id.get(source))


def check_sequence(spec: Json) -> None:
    """Refuse ids that version 1, which does not write them, could not read again."""
    for position, field in enumerate(spec["fields"]):
        if field["field-id"] != FIRST_PARTITION_FIELD + position:
            raise InvalidTable(
                f"Spec does not use sequential IDs that are required in v1: {_tell(field)}",
                detail="append fields to the spec, or upgrade the table to format version 2",
            )


def _check_field(value: Json, path: str) -> Json:
    field = without_nulls(value, ("field-id",))
    checks.get_integer(field, "source-id", path)
    if not checks.get_text(field, "name", path):
        raise InvalidTable(
            f"{join(path, 'name')} is empty", detail="give the partition field a name"
        )
    check_transform(checks.get_text(field, "transform", path), join(path, "transform"))
    if "field-id" in field and checks.get_integer(field, "field-id", path) < 0:
        raise InvalidTable(
            f"{join(path, 'field-id')} is {field['field-id']}",
            detail=f"leave it out, or send one from {FIRST_PARTITION_FIELD} on",
        )
    return field


def _check_source(field: Json, column: Column | None) -> None:
    if column is None:
        raise InvalidTable(
            f"Cannot find source column for partition field: {_tell(field)}", detail=_MEND
        )
    if not isinstance(column.type, str):
        raise InvalidTable(
            f"Cannot partition by non-primitive source field: {clip(column.name)}", detail=_MEND
        )
    if not can_transform(field["transform"], column.type):
        raise InvalidTable(
            f"Invalid source type {column.type} for transform: {field['transform']}", detail=_MEND
        )
    if column.inside is not None:
        raise InvalidTable(
            f"Invalid partition field parent: {clip(column.name)} is in a {column.inside}",
            detail=_MEND,
        )


def _find_fresh(field: Json, columns: Mapping[int, int]) -> int:
    if (found := columns.get(field["source-id"])) is None:
        raise InvalidTable(
            f"Cannot find source column for partition field: {_tell(field)}", detail=_MEND
        )
    return found


def _refuse_twice(path: str, key: str, values: list[Any]) -> None:
    seen: set[Any] = set()
    for value in values:
        if value in seen:
            raise InvalidTable(
                f"Cannot use partition {key} more than once: {show(value)} in {clip(path)}",
                detail=f"give each partition field a {key} of its own",
            )
        seen.add(value)


def _source(field: Json) -> tuple[int, str]:
    return field["source-id"], field["transform"].lower()


def _tell(field: Json) -> str:
    id = f"{field['field-id']}: " if "field-id" in field else ""
    return f"{id}{clip(field['name'])}: {field['transform']}({field['source-id']})"
