"""Request bodies for creating materialized views: query, function and columns."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

import msgspec

from penstock.errors import InvalidFunction, InvalidRequest
from penstock.model.identifiers import Identifier
from penstock.model.views import SYSTEM_COLUMNS
from penstock.sdk.connection.optional_libraries import load
from penstock.sdk.connection.wire import Wire
from penstock.sdk.functions.declared import Chunker, Udtf
from penstock.sdk.functions.packing import encode_schema, udtf_spec
from penstock.sdk.functions.registered import RegisteredFunction, read_function
from penstock.sdk.functions.types import to_arrow_schema
from penstock.sdk.rows.types import Schema, read_schema
from penstock.sdk.tables.query import Query
from penstock.sdk.tables.stored import Stored
from penstock.sdk.views.iceberg_views import IcebergView

if TYPE_CHECKING:
    import pyarrow as pa

Source: TypeAlias = Stored | IcebergView | Query | str
RowsFunction: TypeAlias = "Chunker[..., Any] | Udtf[..., Any]"


@dataclass(frozen=True)
class NamedFunction:
    """A registered function that makes the rows of a view."""

    kind: str
    function: RegisteredFunction


def view_body(
    source: Source,
    view: Identifier,
    function: "RowsFunction | NamedFunction | None",
    dialect: str,
    output_schema: Schema,
) -> dict[str, Any]:
    """The part of a request that defines the view."""
    if isinstance(source, IcebergView):
        source = source_query(source, view, dialect)
    query = source._query() if isinstance(source, Stored) else source
    schema = None if output_schema is None else read_schema(output_schema, "output_schema")
    body: dict[str, Any] = {"kind": "query", "source_query": source_query(query, view, dialect)}
    if isinstance(function, NamedFunction):
        body["kind"] = function.kind
        body["udtf_spec"] = named_spec(function.function)
        schema = schema or _schema_of(source, query, function)
    elif function is not None:
        body["kind"] = "chunker" if isinstance(function, Chunker) else "udtf"
        body["udtf_spec"] = udtf_spec(function)
        made = to_arrow_schema(function.outputs)
        is_udtf = isinstance(function, Udtf)
        schema = schema or _function_schema(source, query, made, function.inputs, is_udtf)
    if schema is not None:
        body["output_schema"] = encode_schema(schema)
    return body


def named_spec(function: RegisteredFunction) -> dict[str, Any]:
    """The `udtf_spec` that names a registered function."""
    return {"function": list(function.id), "function_version": function.version}


def _schema_of(source: Source, query: Query | str, named: NamedFunction) -> "pa.Schema":
    told = named.function.describe()
    made = to_arrow_schema({each["name"]: each["data_type"] for each in told["outputs"] or ()})
    inputs = [each["name"] for each in told["inputs"]]
    return _function_schema(source, query, made, inputs, named.kind == "udtf")


def choose_function(
    wire: Wire, chunker: object, udtf: object
) -> "RowsFunction | NamedFunction | None":
    """The function of a view, which has at most one."""
    for kind, given in (("chunker", chunker), ("udtf", udtf)):
        if isinstance(given, str | RegisteredFunction) and None in (chunker, udtf):
            return NamedFunction(kind, read_function(wire, given))
    if chunker is not None and udtf is not None:
        raise InvalidRequest("both chunker and udtf are given", detail="a view has one of them")
    if chunker is None and udtf is None:
        return None
    if isinstance(chunker, Chunker):
        return chunker
    if isinstance(udtf, Udtf):
        return udtf
    given, wanted = (udtf, "udtf") if chunker is None else (chunker, "chunker")
    raise InvalidFunction(
        f"{getattr(given, '__name__', given)!r} is no {wanted}",
        detail=f"decorate it with @penstock.{wanted}",
    )


def source_query(source: Source, view: Identifier, dialect: str) -> str:
    """A query as the server takes it."""
    if isinstance(source, IcebergView):
        return msgspec.json.encode({"iceberg_view": list(source.id)}).decode()
    query = source._query() if isinstance(source, Stored) else source
    if isinstance(query, Query):
        # Names of a selection are complete.
        told = {"sql": query.to_sql(), "dialect": "lance", "namespace": []}
        return msgspec.json.encode(told).decode()
    if not isinstance(query, str) or not query.strip():
        raise InvalidRequest(
            f"the source is {query!r}", detail="give a table, table.select(…), or SQL"
        )
    if query.lstrip().startswith("{") or dialect == "spark":
        return query
    told = {"sql": query, "dialect": dialect, "namespace": list(view[:-1])}
    return msgspec.json.encode(told).decode()


def _function_schema(
    source: Source,
    query: Query | str,
    made: "pa.Schema",
    inputs: Sequence[str] | None,
    is_udtf: bool,
) -> "pa.Schema":
    """The schema of a function's rows, after the columns that its view inherits."""
    if is_udtf or isinstance(query, str):
        return made
    hidden = set(made.names) | set(SYSTEM_COLUMNS)
    if isinstance(source, Stored) or query.columns is None:
        hidden |= set(inputs or ())
    inherited = [field for field in query.schema() if field.name not in hidden]
    pa = load("pyarrow", "a view")
    return pa.schema([*(pa.field(each.name, each.type) for each in inherited), *made])
