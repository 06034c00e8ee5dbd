"""A schema's columns for SQL analysis: names, and types in sqlglot's words."""

from penstock.iceberg.metadata import Json

PLAIN = {
    "boolean": "BOOLEAN",
    "int": "INT",
    "long": "BIGINT",
    "float": "FLOAT",
    "double": "DOUBLE",
    "date": "DATE",
    "time": "TIME",
    "timestamp": "TIMESTAMP",
    "timestamp_ns": "TIMESTAMP",
    "timestamptz": "TIMESTAMPTZ",
    "timestamptz_ns": "TIMESTAMPTZ",
    "string": "TEXT",
    "uuid": "UUID",
    "binary": "VARBINARY",
}


def list_columns(schema: Json) -> dict[str, str]:
    """The type of each column; UNKNOWN where SQL has no word for it."""
    return {field["name"]: to_sql_type(field["type"]) for field in schema["fields"]}


def to_sql_type(given: object) -> str:
    match given:
        case str() if given in PLAIN:
            return PLAIN[given]
        case str() if given.startswith("decimal"):
            return given.upper()
        case {"type": "list", "element": element}:
            return f"ARRAY<{to_sql_type(element)}>"
        case {"type": "map", "key": key, "value": value}:
            return f"MAP<{to_sql_type(key)}, {to_sql_type(value)}>"
        case _:
            return "UNKNOWN"
