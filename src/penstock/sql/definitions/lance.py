"""Queries in Lance's own SQL: statements, and dumps of other clients. Lance types them."""

from collections.abc import Sequence

import pyarrow as pa
from lance import LanceDataset
from msgspec import structs

from penstock.errors import InvalidRequest, PenstockError, Unavailable
from penstock.lance.columns.fields import check_column_name, parse_path, show_path
from penstock.lance.columns.inference import infer
from penstock.lance.errors import translated
from penstock.lance.expressions.check import check_expression
from penstock.model.views import SYSTEM_COLUMNS
from penstock.sql.definitions.parsed_query import ParsedQuery, QueryOutput
from penstock.sql.definitions.refusals import find_near, refuse
from penstock.sql.definitions.requests import Query, SourceTable
from penstock.sql.definitions.tables import KnownNames, get_table
from penstock.sql.lance.query import LanceQuery, read_lance_query


def read_lance(query: Query, known: KnownNames, kept: Sequence[str] | None) -> ParsedQuery:
    """Read the query against its table; a star gives only the `kept` columns."""
    # Without those of an Iceberg view that it names, which is no table.
    named = structs.replace(query, views=()).references
    if len(named) != 1:
        raise InvalidRequest(
            "a query in Lance's SQL reads one table", detail='use {"dialect": "spark"} for joins'
        )
    table = get_table(known, named[0])
    hidden = [name for name in table.schema.names if name in SYSTEM_COLUMNS]
    if query.dump is not None:
        texts, where = _read_dump(query, table, hidden, kept)
        limit = query.dump.limit
    else:
        texts, where, limit = _read_statement(query, table, hidden, kept)
    dataset = table.open_dataset()
    outputs = tuple(_infer(dataset, table, *each) for each in texts)
    filter_reads: list[str] = []
    if where is not None:
        kind, filter_reads = _ask(dataset, table, "the filter", where)
        if str(kind) != "bool":
            raise InvalidRequest(
                f"the filter of source_query is {kind}, not a boolean",
                detail="write a condition, as in price > 10",
            )
    return ParsedQuery(
        language="lance",
        shape="rows",
        tables=((table, "source_1", ()),),
        outputs=outputs,
        # From here on this text goes to Lance, wherever the rows are read.
        filters=None if where is None else {"lance": check_expression("the filter", where)},
        filter_reads=tuple(filter_reads),
        limit=limit,
    )


Text = tuple[str, str, tuple[str, ...] | None]


def _read_statement(
    query: Query, table: SourceTable, hidden: Sequence[str], kept: Sequence[str] | None
) -> tuple[list[Text], str | None, int | None]:
    assert query.statement is not None
    found = read_lance_query(query.statement.sql, table.schema.names, hidden, kept)
    if not isinstance(found, LanceQuery):
        raise refuse(found)
    return [(each.name, each.text, each.path) for each in found.outputs], found.filter, found.limit


def _read_dump(
    query: Query, table: SourceTable, hidden: Sequence[str], kept: Sequence[str] | None
) -> tuple[list[Text], str | None]:
    dump = query.dump
    assert dump is not None
    made = {function.output for function in dump.functions}
    if dump.columns is None:
        names = [
            name
            for name in table.schema.names
            if name not in hidden and name not in made and (kept is None or name in kept)
        ]
        return [(name, quote(name), (name,)) for name in names], dump.filter
    texts: list[Text] = []
    for name, text in dump.columns:
        if name in made:
            # Other clients list a function's output among the columns, too.
            continue
        if dump.plain:
            path = (name,) if name in table.schema.names else parse_path(name)
            texts.append((name, ".".join(map(quote, path)), path))
        else:
            texts.append((name, text, None))
    return texts, dump.filter


def _infer(
    dataset: LanceDataset, table: SourceTable, name: str, text: str, path: tuple[str, ...] | None
) -> QueryOutput:
    if path is not None and len(path) == 1 and path[0] in table.schema.names:
        shown = show_path(path)
        return QueryOutput(name, table.schema.field(path[0]).type, {"lance": text}, shown, (shown,))
    kind, reads = _ask(dataset, table, f"column {name}", text)
    # A bare name reads nothing else.
    bare = show_path(path) if path is not None else text.strip().strip("`")
    checked = text if path is not None else check_expression(f"column {name}", text)
    return QueryOutput(
        name, kind, {"lance": checked}, bare if tuple(reads) == (bare,) else None, tuple(reads)
    )


def _ask(
    dataset: LanceDataset, table: SourceTable, what: str, text: str
) -> tuple[pa.DataType, list[str]]:
    try:
        with translated():
            return infer(dataset, what, text)
    except Unavailable:
        raise
    except PenstockError as error:
        names = [name for name in table.schema.names if name.isprintable()]
        near = [
            match
            for word in dict.fromkeys(text.replace("`", " ").replace(".", " ").split())
            for match in find_near(word, names)[:1]
            if match != word
        ]
        hint = f"near names: {', '.join(near[:3])}" if near else error.detail
        raise InvalidRequest(
            f"source_query: {what} ({text[:100]}): {error.message}", detail=hint
        ) from error


def quote(name: str) -> str:
    """A name quoted for Lance's SQL."""
    if "`" in name:
        raise InvalidRequest(
            f"Lance's SQL can't name the column {name!r}", detail="rename the column"
        )
    return f"`{check_column_name(name)}`"
