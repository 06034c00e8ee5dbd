"""Columns without values: added from an Arrow schema, null in every row. Blocks."""

from penstock.errors import InvalidRequest, SchemaMismatch
from penstock.lance.columns.function_columns import check_storable
from penstock.lance.doors import lance, pa
from penstock.lance.write.reserved_metadata import check_brought
from penstock.lance.write.uploads import RowStream


def read_schema(content: bytes, max_bytes: int) -> "pa.Schema":
    """The columns that a stream without rows describes."""
    stream = RowStream(content, max_bytes)
    if stream.count_rows():
        raise InvalidRequest(
            "the stream of new columns has rows", detail="send a schema without batches"
        )
    names = stream.schema.names
    if not names or len(set(names)) < len(names):
        raise InvalidRequest(
            "the stream has no column, or one of them twice", detail="name each new column once"
        )
    check_brought(stream.schema)
    for field in stream.schema:
        if not field.nullable:
            raise InvalidRequest(
                f"column {field.name!r} cannot be null, and the table's rows have no value for it",
                detail="make the field nullable",
            )
    return stream.schema


def add_empty(dataset: "lance.LanceDataset", fields: "pa.Schema") -> int:
    """Add the columns; returns the version."""
    for name in fields.names:
        if name in dataset.schema.names:
            raise SchemaMismatch(
                f"column {name!r} exists already", detail="choose another name, or drop it first"
            )
    for field in fields:
        check_storable(dataset, field)
    dataset.add_columns(fields)
    return dataset.version
