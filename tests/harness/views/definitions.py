"""Definitions of views without a server: requests over a few tables that exist nowhere."""

import base64
import hashlib
import json
from collections.abc import Mapping
from typing import Any

import pyarrow as pa

from penstock.errors import PenstockError
from penstock.model.identifiers import Identifier
from penstock.model.udtfs import read_udtf
from penstock.model.views import Definition, Kind
from penstock.sql.definitions.define import define
from penstock.sql.definitions.queries import add_view, find_references
from penstock.sql.definitions.requests import SourceTable, ViewRequest
from penstock.sql.definitions.schemas import read_schema

DOCS = pa.schema(
    [
        ("id", pa.int64()),
        ("Name", pa.string()),
        ("a b", pa.int32()),
        ("price", pa.float64()),
        ("amount", pa.decimal128(10, 2)),
        ("at", pa.timestamp("us", "UTC")),
        ("place", pa.struct([("x", pa.int32()), ("y z", pa.struct([("w", pa.string())]))])),
        ("words", pa.list_(pa.string())),
        ("vector", pa.list_(pa.float32(), 4)),
        ("u", pa.uint64()),
    ]
)
OTHER = pa.schema([("id", pa.int64()), ("label", pa.large_string())])
# A table that is a view itself.
VIEW = pa.schema([("__source_row_id", pa.int64()), ("id", pa.int64()), ("text", pa.string())])
TABLES = {
    ("shop", "docs"): DOCS,
    ("other",): OTHER,
    ("deep", "er", "docs"): OTHER,
    ("shop", "made"): VIEW,
}
# Iceberg views: SQL, dialect, namespace.
Views = Mapping[Any, tuple[str, str, Identifier]]


def make_tables(schemas: Mapping[Any, pa.Schema]) -> dict[Identifier, SourceTable]:
    return {
        name: SourceTable(id="-".join(name), identifier=name, schema=schema)
        for name, schema in schemas.items()
    }


def make(
    query: object,
    kind: Kind = "query",
    *,
    schema: pa.Schema | None = None,
    spec: object = None,
    created: pa.Schema | None = None,
    views: Views | None = None,
    schemas: Mapping[Any, pa.Schema] = TABLES,
    namespace: Identifier = ("shop",),
) -> Definition:
    """Define a view of namespace `shop`, as the catalog does."""
    read = find_references(query if isinstance(query, str) else json.dumps(query), namespace)
    for view, (sql, dialect, where) in (views or {}).items():
        read = add_view(read, view, sql, dialect, where)
    udtf = read_udtf(kind, spec)
    request = ViewRequest(kind=kind, query=read, output_schema=schema, udtf=udtf, created=created)
    return define(request, make_tables(schemas))


def refusal(query: object, **options: Any) -> str:
    """What the error says: its class, message and remedy."""
    try:
        made = make(query, **options)
    except PenstockError as error:
        return f"{type(error).__name__}: {error.message} | {error.detail}"
    raise AssertionError(f"it was taken: {made}")


def fields(made: Definition) -> list[tuple[str, str]]:
    """The columns of the view's table."""
    return [(field.name, str(field.type)) for field in read_schema(made.schema)]


def columns(made: Definition) -> dict[str, str]:
    """The expressions of a view over rows."""
    assert made.rows is not None
    return {column.name: column.expression for column in made.rows.columns}


def encode_schema(schema: pa.Schema) -> str:
    return base64.b64encode(schema.serialize().to_pybytes()).decode()


def make_spec(kind: str, makes: pa.Schema | None, /, **more: Any) -> dict[str, Any]:
    """A `udtf_spec` whose pickle is none."""
    envelope = {
        "name": "split",
        "version": "1",
        f"{kind}_payload": base64.b64encode(b"pickle").decode(),
        "output_schema_bytes": None if makes is None else encode_schema(makes),
    }
    text = base64.b64encode(json.dumps(envelope).encode()).decode()
    sha = hashlib.sha256(text.encode()).hexdigest()
    return {"udtf": text, "udtf_sha": sha, "udtf_name": "split", "udtf_version": "1", **more}


def make_column_udf(output: str, *inputs: str, **more: Any) -> dict[str, Any]:
    payload = base64.b64encode(b"pickle").decode()
    envelope = {
        "format": "penstock/1",
        "kind": "scalar",
        "payload": payload,
        "sha256": hashlib.sha256(b"pickle").hexdigest(),
    }
    udf = {"name": "measure", "backend": "penstock/1", "udf_payload": json.dumps(envelope)}
    return {"output_name": output, "udf": udf, "input_columns": list(inputs), **more}
