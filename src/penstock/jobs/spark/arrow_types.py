"""Arrow types for what Spark's queries give, as docs/guides/views/query.md lists them."""

from typing import Any

import pyarrow as pa

from penstock.errors import InvalidRequest

PLAIN = {
    "boolean": pa.bool_(),
    "tinyint": pa.int8(),
    "smallint": pa.int16(),
    "int": pa.int32(),
    "bigint": pa.int64(),
    "float": pa.float32(),
    "double": pa.float64(),
    "string": pa.string(),
    "binary": pa.binary(),
    "date": pa.date32(),
    "timestamp": pa.timestamp("us", "UTC"),
    "timestamp_ntz": pa.timestamp("us"),
}
# By the name of the type's class.
REMEDIES = {
    "NullType": "give NULL a type, as in CAST(NULL AS STRING)",
    "VariantType": "make text of it with to_json, or take a part out with variant_get",
    "DayTimeIntervalType": "make a number of it, as in extract(SECOND FROM …)",
    "YearMonthIntervalType": "make a number of it, as in extract(MONTH FROM …)",
}


def to_arrow_schema(schema: Any) -> pa.Schema:
    """The columns of a Spark frame; each may be null. Raises InvalidRequest for other types."""
    return pa.schema([(field.name, _to_arrow(field.dataType, field.name)) for field in schema])


def _to_arrow(kind: Any, column: str) -> pa.DataType:
    if (plain := PLAIN.get(kind.simpleString())) is not None:
        return plain
    match type(kind).__name__:
        case "StringType" | "CharType" | "VarcharType":
            # With a collation, or a length, neither of which is stored.
            return pa.string()
        case "TimeType":
            return pa.time64("us")
        case "DecimalType":
            return pa.decimal128(kind.precision, kind.scale)
        case "ArrayType":
            return pa.list_(_to_arrow(kind.elementType, column))
        case "MapType":
            return pa.map_(_to_arrow(kind.keyType, column), _to_arrow(kind.valueType, column))
        case "StructType":
            return pa.struct([(each.name, _to_arrow(each.dataType, column)) for each in kind])
        case name:
            raise InvalidRequest(
                f"column {column} is {kind.simpleString()}, which no table can hold",
                detail=REMEDIES.get(name, "cast it, as in CAST(… AS STRING)"),
            )
