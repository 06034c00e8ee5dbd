"""Arrow types for Spark's types in a Lance table."""

from typing import Any

import pyarrow as pa

PLAIN = {
    "BOOLEAN": "bool_",
    "TINYINT": "int8",
    "SMALLINT": "int16",
    "INT": "int32",
    "BIGINT": "int64",
    "FLOAT": "float32",
    "DOUBLE": "float64",
    "TEXT": "string",
    "BINARY": "binary",
    "VARBINARY": "binary",
    "DATE": "date32",
}


def to_arrow(kind: tuple[Any, ...] | None) -> pa.DataType | None:
    """The Arrow type of Spark's values; None when the type is not known for sure."""
    if kind is None:
        return None
    name, parts = kind[0], kind[1:]
    if name in PLAIN:
        made: pa.DataType = getattr(pa, PLAIN[name])()
        return made
    match name:
        case "DECIMAL":
            return pa.decimal128(*parts) if 0 < parts[0] <= 38 else None
        # In a table's schema TIMESTAMP has no zone; in Spark's casts it has one, but these do not
        # come here.
        case "TIMESTAMPTZ":
            return pa.timestamp("us", tz="UTC")
        case "TIMESTAMP" | "TIMESTAMPNTZ":
            return pa.timestamp("us")
        case "ARRAY":
            inner = to_arrow(parts[0])
            return None if inner is None else pa.list_(inner)
        case "MAP":
            key, value = to_arrow(parts[0]), to_arrow(parts[1])
            return None if key is None or value is None else pa.map_(key, value)
        case "STRUCT":
            fields = [(field, to_arrow(inner)) for field, inner in parts]
            return None if any(inner is None for _, inner in fields) else pa.struct(fields)
    return None
