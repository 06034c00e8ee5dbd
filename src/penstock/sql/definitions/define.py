"""Make a view's definition from a request and the current tables."""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import msgspec
import pyarrow as pa

from penstock.errors import InvalidRequest, SchemaMismatch
from penstock.lance.columns.fields import parse_path
from penstock.lance.columns.schemas import encode_schema, find_type
from penstock.model.functions import Function
from penstock.model.identifiers import Identifier
from penstock.model.views import (
    CHILD_INDEX,
    PARTITION,
    SOURCE_ROW_ID,
    SYSTEM_COLUMNS,
    Definition,
    Keys,
    Source,
)
from penstock.sql.definitions.functions import Inputs, bind_rows_function, make_column_functions
from penstock.sql.definitions.iceberg_sources import check_readable, follow_iceberg
from penstock.sql.definitions.lance import read_lance
from penstock.sql.definitions.outputs import keep_types, list_own_names, make_schema
from penstock.sql.definitions.parsed_query import ParsedQuery, QueryOutput, make_rows, make_sources
from penstock.sql.definitions.requests import SourceTable, ViewRequest
from penstock.sql.definitions.spark import read_merged, read_spark
from penstock.sql.definitions.tables import get_known
from penstock.sql.definitions.untyped import take_types

TOO_OLD = (
    "the view was created by a release that kept no row ids of joined tables; drop it and create"
    " it anew"
)


def define(request: ViewRequest, tables: Mapping[Identifier, SourceTable]) -> Definition:
    """The view's definition; `tables` are those that its references mean, by identifier.

    Raises InvalidRequest, or SchemaMismatch when `output_schema` does not fit.
    """
    known = get_known(request.query, tables)
    kept = list_own_names(request.created) if request.kind == "query" else None
    # A udtf's calls are kept by what its query is: as it was written.
    if request.query.language != "lance" and request.kind != "udtf":
        return _define_best(request, *read_merged(request.query, known, kept))
    read = read_lance if request.query.language == "lance" else read_spark
    return _define(request, read(request.query, known, kept))


def _define_best(
    request: ViewRequest, written: ParsedQuery, flat: ParsedQuery | None
) -> Definition:
    """The view of a query whose subqueries could be merged, if it has columns for that."""
    if flat is not None:
        try:
            made = _define(request, flat)
        except SchemaMismatch:
            # It was created by a release that computed such a query as a whole.
            if request.created is None:
                raise
        else:
            if made.shape != "whole" or made.appends is not None:
                return made
            written = replace(written, obstacle=made.obstacle)
    return _define(request, written)


def _define(request: ViewRequest, found: ParsedQuery) -> Definition:
    found = take_types(found, request.typed)
    check_readable(request, found)
    if request.kind == "query":
        return _define_query(request, found)
    return _define_rows_function(request, found)


def _define_query(request: ViewRequest, found: ParsedQuery) -> Definition:
    declared = _find_declared(request)
    given = [(output.name, output.type) for output in found.outputs]
    found, appends = follow_iceberg(found)
    outputs = found.outputs
    functions: tuple[Function, ...] = ()
    if request.query.functions:
        inputs = Inputs(found)
        types = declared if declared is not None else request.before
        functions = make_column_functions(request.query, inputs, types)
        for sent in sorted(request.query.functions, key=lambda each: each.place):
            if sent.output in dict(given):
                raise InvalidRequest(
                    f"the query has two columns called {sent.output}", detail="rename one"
                )
            kind = types.field(sent.output).type if declared is None and types is not None else None
            given.insert(sent.place, (sent.output, kind))
        outputs = (*outputs, *inputs.hidden.values())
    if found.keys is not None and not _can_keep(found.keys, request.created):
        found = replace(found, shape="whole", keys=None, obstacle=TOO_OLD)
    system = [SOURCE_ROW_ID] if found.shape == "rows" else []
    if found.keys is not None:
        system = list(found.keys.row_ids)
    return _finish(
        request,
        found,
        outputs,
        make_schema(
            system, keep_types(given, request.before), request.output_schema, request.created
        ),
        column_functions=functions,
        keys=found.keys,
        appends=appends,
    )


def _can_keep(keys: Keys, created: pa.Schema | None) -> bool:
    """Whether the view has columns for the row ids; one of an older release may have none."""
    had = [] if created is None else [name for name in created.names if name in SYSTEM_COLUMNS]
    return created is None or bool(had) or not keys.row_ids


def _define_rows_function(request: ViewRequest, found: ParsedQuery) -> Definition:
    kind, udtf = request.kind, request.udtf
    if udtf is None:
        raise InvalidRequest(f"a view of kind {kind!r} has no udtf_spec", detail="send it")
    if found.shape != "rows" and kind != "udtf":
        why = found.obstacle or "it joins, groups or compares rows"
        raise InvalidRequest(
            f"the query of a {kind} view goes over the rows of one table: {why}",
            detail="make a view of kind 'query' of it, and read that view",
        )
    if found.limit is not None:
        raise InvalidRequest(
            f"LIMIT is not offered in the query of a {kind} view",
            detail="filter, or use output_limit of a chunker's refresh",
        )
    if request.query.functions:
        raise InvalidRequest(
            f"column_udfs are not offered in the query of a {kind} view",
            detail="make a view of kind 'query' of it, and read that view",
        )
    inputs = Inputs(found)
    declared = _find_declared(request)
    own = list_own_names(declared)
    if own is None and request.inherited is not None:
        own = _check_inherited(request.inherited, inputs)
    bound = bind_rows_function(udtf, inputs, declared, own)
    given = [
        *((name, inputs.outputs[name].type) for name in bound.inherited),
        *bound.fields,
    ]
    partitioned = bound.partition_by is not None or bound.indexed is not None
    system = [SOURCE_ROW_ID, CHILD_INDEX] if kind == "chunker" else [PARTITION] * partitioned
    needed = {*bound.function.inputs, *bound.inherited, bound.partition_by, bound.indexed}
    everything = [*inputs.outputs.values(), *inputs.hidden.values()]
    made = _finish(
        request,
        found,
        tuple(output for output in everything if output.name in needed),
        make_schema(
            system, keep_types(given, request.before), request.output_schema, request.created
        ),
        function=bound.function,
        inherited=bound.inherited,
        partition_by=bound.partition_by,
        partition_by_indexed_column=bound.indexed,
    )
    if bound.indexed is not None and (made.rows is None or made.rows.engine != "lance"):
        raise InvalidRequest(
            "partition_by_indexed_column is for a query over the rows of one table that Lance can "
            "evaluate, and only Spark can evaluate this one",
            detail="use partition_by, or leave expressions out that only Spark has",
        )
    return made


def _find_declared(request: ViewRequest) -> pa.Schema | None:
    return request.created if request.created is not None else request.output_schema


def _check_inherited(names: Sequence[str], inputs: Inputs) -> list[str]:
    for name in names:
        if name not in inputs.outputs:
            raise InvalidRequest(
                f"the view inherits column {name}, and the query does not give it",
                detail="select it in the query, or leave it out of inherited",
            )
    return list(names)


def _finish(
    request: ViewRequest,
    found: ParsedQuery,
    outputs: tuple[QueryOutput, ...],
    schema: pa.Schema,
    **parts: Any,
) -> Definition:
    sources = make_sources(found, outputs)
    unstable = [table for table, _, _ in found.tables if not table.has_stable_row_ids]
    obstacle = found.obstacle
    if unstable and not obstacle:
        obstacle = f"{'$'.join(unstable[0].identifier)} has no stable row ids"
    made = Definition(
        kind=request.kind,
        shape=found.shape,
        language=found.language,
        sources=sources,
        sql=found.sql,
        rows=make_rows(found, outputs) if found.shape == "rows" else None,
        schema=encode_schema(schema),
        clock=found.clock,
        obstacle=obstacle,
        digest="",
        **parts,
    )
    return msgspec.structs.replace(made, digest=_digest(made, found, outputs, schema))


def _digest(
    made: Definition, found: ParsedQuery, outputs: tuple[QueryOutput, ...], schema: pa.Schema
) -> str:
    """A hash of all that decides the view's rows: not of table names, nor of speed options."""
    tables = {table.id: table for table, _, _ in found.tables}
    language = found.language
    is_sparks = made.rows is None or made.rows.engine != "lance"
    content = [
        made.kind,
        language,
        # For shape "rows", hash each output; the text also has columns that only functions need.
        [[each.name, each.texts[language]] for each in outputs] if made.rows else made.sql,
        [found.filters[language] if found.filters else None, found.limit],
        [[each.id, each.name, *_list_types(each, tables[each.id])] for each in made.sources],
        [_describe(each) for each in (*made.column_functions, *filter(None, [made.function]))],
        [made.inherited, made.partition_by, made.partition_by_indexed_column],
        # Partitions that Spark computes are named and compared in another way.
        *(["spark"] if made.kind == "udtf" and is_sparks else []),
        [[field.name, str(field.type)] for field in schema],
    ]
    return hashlib.sha256(msgspec.json.encode(content)).hexdigest()


def _list_types(source: Source, table: SourceTable) -> Sequence[Sequence[Sequence[str]]]:
    kinds = [(path, str(find_type(table.schema, parse_path(path)))) for path in source.reads]
    if not table.is_iceberg:
        return [kinds]
    # A column that took the place of another of its name has other values, in the same snapshot.
    roots = sorted({parse_path(path)[0] for path in source.reads})
    return [kinds, [(name, table.shapes[name]) for name in roots]]


def _describe(function: Function) -> list[Any]:
    outputs = [[each.column, each.struct_field] for each in function.outputs]
    known = [function.identity, function.inputs, outputs]
    # Releases before had no other way: their definitions stay what they were.
    return known if function.on_null == "call" else [*known, function.on_null, function.may_be_null]
