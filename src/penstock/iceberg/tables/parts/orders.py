"""Sort orders: their shape, how they fit a schema, and when two are the same."""

from collections.abc import Hashable, Mapping

import msgspec

from penstock.errors import InvalidTable
from penstock.iceberg import checks
from penstock.iceberg.checks import clip, join, show
from penstock.iceberg.metadata import Json
from penstock.iceberg.tables.document import without_nulls
from penstock.iceberg.tables.parts.schemas import Columns
from penstock.iceberg.tables.parts.transforms import can_transform, check_transform

UNSORTED_ID = 0
FIRST_ID = 1
UNSORTED: Json = {"order-id": UNSORTED_ID, "fields": []}
_CHOICES = {"direction": ("asc", "desc"), "null-order": ("nulls-first", "nulls-last")}
_MEND = "name a column of the table's current schema, and a transform that its type has"


def check_order(value: object, path: str) -> Json:
    """Check the shape of a sort order; returns it as sent."""
    order = without_nulls(checks.check_object(value, path), ("order-id",))
    if "order-id" in order:
        checks.get_integer(order, "order-id", path)
    inner = join(path, "fields")
    for position, field in enumerate(checks.get_objects(order, "fields", path)):
        _check_field(field, f"{inner}[{position}]")
    return order


def fingerprint(order: Json) -> Hashable:
    """Equal for orders that differ only in their id."""
    return tuple(
        [
            (each["source-id"], each["transform"].lower(), each["direction"], each["null-order"])
            for each in order["fields"]
        ]
    )


def content(order: Json) -> bytes:
    return msgspec.json.encode(fingerprint(order))


def with_fresh_ids(order: Json, columns: Mapping[int, int]) -> Json:
    """The order of a new table, its sources as they were renumbered."""
    fields = []
    for each in order["fields"]:
        if (source := columns.get(each["source-id"])) is None:
            raise _without_source(each)
        fields.append({**each, "source-id": source})
    return {**order, "order-id": FIRST_ID if fields else UNSORTED_ID, "fields": fields}


def check_fit(order: Json, columns: Columns) -> None:
    """Refuse an order that can't sort a schema's rows."""
    for field in order["fields"]:
        if (column := columns.by_id.get(field["source-id"])) is None:
            raise _without_source(field)
        if not isinstance(column.type, str):
            raise InvalidTable(
                f"Cannot sort by non-primitive source field: {clip(column.name)}", detail=_MEND
            )
        if not can_transform(field["transform"], column.type):
            raise InvalidTable(
                f"Invalid source type {column.type} for transform: {field['transform']}",
                detail=_MEND,
            )


def _check_field(field: Json, path: str) -> None:
    checks.get_integer(field, "source-id", path)
    check_transform(checks.get_text(field, "transform", path), join(path, "transform"))
    for key, choices in _CHOICES.items():
        if checks.get_text(field, key, path) not in choices:
            raise InvalidTable(
                f"{clip(join(path, key))} is {show(field[key])}",
                detail=f"send {' or '.join(choices)}",
            )


def _without_source(field: Json) -> InvalidTable:
    told = f"{field['transform']}({field['source-id']}) {field['direction']} {field['null-order']}"
    return InvalidTable(f"Cannot find source column for sort field: {told}", detail=_MEND)
