"""Complete a document of format version 1 with the lists that later versions have."""

from penstock.iceberg import checks
from penstock.iceberg.metadata import Json
from penstock.iceberg.tables.document import FIRST_PARTITION_FIELD
from penstock.iceberg.tables.parts.orders import UNSORTED
from penstock.iceberg.tables.parts.specs import check_fields


def complete(document: Json, uuid: str) -> Json:
    """The document with what its first writers did not know; what it has is kept."""
    found = dict(document)
    if found.get("table-uuid") is None:
        found["table-uuid"] = uuid
    if found.get("schemas") is None:
        schema = checks.get_object(found, "schema", "")
        found["schemas"] = [{**schema, "schema-id": schema.get("schema-id") or 0}]
        found["current-schema-id"] = found["schemas"][0]["schema-id"]
    if found.get("partition-specs") is None:
        found["partition-specs"] = [{"spec-id": 0, "fields": _number_fields(found)}]
        found["default-spec-id"] = 0
    if found.get("last-partition-id") is None:
        found["last-partition-id"] = _last_field_id(found)
    if found.get("sort-orders") is None:
        found["sort-orders"] = [UNSORTED]
        found["default-sort-order-id"] = UNSORTED["order-id"]
    return found


def _number_fields(document: Json) -> list[Json]:
    """The fields of the only spec, numbered in their order unless they say otherwise."""
    fields = check_fields(document, "partition-spec", "")
    return [{"field-id": FIRST_PARTITION_FIELD + n, **each} for n, each in enumerate(fields)]


def _last_field_id(document: Json) -> int:
    last = FIRST_PARTITION_FIELD - 1
    for n, spec in enumerate(checks.get_objects(document, "partition-specs", "")):
        path = f"partition-specs[{n}]"
        for field in check_fields(spec, "fields", path):
            last = max(last, checks.get_integer(field, "field-id", f"{path}.fields"))
    return last
