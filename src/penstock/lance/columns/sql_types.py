"""A table's columns for SQL analysis: names, and types in sqlglot's words."""

import pyarrow as pa
import pyarrow.types as kinds

PLAIN = {
    "bool": "BOOLEAN",
    "int8": "TINYINT",
    "int16": "SMALLINT",
    "int32": "INT",
    "int64": "BIGINT",
    "uint8": "UTINYINT",
    "uint16": "USMALLINT",
    "uint32": "UINT",
    "uint64": "UBIGINT",
    "halffloat": "FLOAT",
    "float": "FLOAT",
    "double": "DOUBLE",
    "string": "TEXT",
    "large_string": "TEXT",
    "binary": "VARBINARY",
    "large_binary": "VARBINARY",
    "date32[day]": "DATE",
    "date64[ms]": "DATE",
}


def list_columns(schema: pa.Schema) -> dict[str, str]:
    """The type of each column; UNKNOWN where SQL has no word for it."""
    return {field.name: to_sql_type(field.type) for field in schema}


def to_sql_type(given: pa.DataType) -> str:
    if (plain := PLAIN.get(str(given))) is not None:
        return plain
    if kinds.is_timestamp(given):
        return "TIMESTAMPTZ" if given.tz else "TIMESTAMP"
    if kinds.is_decimal(given):
        return f"DECIMAL({given.precision}, {given.scale})"
    if kinds.is_time(given):
        return "TIME"
    if kinds.is_dictionary(given):
        return to_sql_type(given.value_type)
    if kinds.is_list(given) or kinds.is_large_list(given) or kinds.is_fixed_size_list(given):
        return f"ARRAY<{to_sql_type(given.value_type)}>"
    if kinds.is_map(given):
        return f"MAP<{to_sql_type(given.key_type)}, {to_sql_type(given.item_type)}>"
    if kinds.is_struct(given) and given.num_fields:
        fields = (f"{_quote(field.name)}: {to_sql_type(field.type)}" for field in given)
        return f"STRUCT<{', '.join(fields)}>"
    return "UNKNOWN"


def _quote(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
