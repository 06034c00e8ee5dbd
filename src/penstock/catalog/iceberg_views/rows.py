"""Queries of the rows that an Iceberg view has no file of.

Where the view only filters and projects one table, so does the query, and Lance answers it from
that table at once, searches included. Everything else is a statement for Spark.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from msgspec import structs

from penstock.catalog.catalog import Catalog
from penstock.catalog.statements import statements
from penstock.catalog.statements.statements import StatementRequest
from penstock.errors import InvalidRequest, Unsupported
from penstock.lance.columns.fields import parse_path, show_path
from penstock.lance.columns.schemas import find_type
from penstock.lance.doors import pa
from penstock.lance.expressions.check import check_expression, check_expressions
from penstock.lance.read import fulltext, query
from penstock.lance.read.fulltext import TextSearch
from penstock.lance.read.query import Query, VectorSearch
from penstock.model.identifiers import Identifier, show
from penstock.sql.doors import over_rows
from penstock.sql.doors import statements as statements_door
from penstock.sql.results import Refusal

if TYPE_CHECKING:
    from penstock.sql.definitions.requests import SourceTable
    from penstock.sql.definitions.statements import LanceStatement

MAX_ROWS = 2**63 - 1
# The largest number of rows in Spark's SQL.
MOST = 2**31 - 1
SEARCHED = "make a materialized view of it, and search that"


async def find_table_query(
    catalog: Catalog, id: Identifier, asked: Query, grantees: tuple[str, ...]
) -> "tuple[SourceTable, Query] | None":
    """A query of the view's one table that gives what is asked of the view; None if there is none.

    What the caller may not read counts as missing.
    """
    read = await statements.read(catalog, make_request(catalog, view=id), grantees)
    found = read.found
    if isinstance(found, statements_door.LanceStatement):
        made = await catalog.workers.run(_put_over_table, found, asked)
        if made is not None:
            return found.table, made
    if asked.sample is not None:
        raise Unsupported(
            f"{show(id)} is a view of more than the rows of one table, and can't be sampled",
            detail="make a materialized view of it, and sample that",
        )
    if asked.vector is not None or asked.text is not None or asked.with_row_id:
        what = "searched" if asked.vector or asked.text else "asked for row ids"
        raise Unsupported(
            f"{show(id)} is a view of more than the rows of one table, and can't be {what}",
            detail=SEARCHED,
        )
    return None


def make_request(
    catalog: Catalog, sql: str = "", view: Identifier | None = None
) -> StatementRequest:
    """A statement of full names in Spark's dialect, which may give what any statement may."""
    return StatementRequest(
        sql=sql,
        namespace=(),
        seconds=catalog.sql_seconds,
        max_rows=catalog.sql_max_rows,
        max_bytes=catalog.sql_max_bytes,
        view=view,
    )


def to_sql(id: Identifier, asked: Query) -> str:
    """What is asked of a view as a statement in Spark's dialect; blocks."""
    text = _check(over_rows.to_spark(over_rows.select(asked.columns, asked.filter), id))
    if asked.order_by:
        text += " ORDER BY " + ", ".join(
            f"{_quote_path(column)} {'ASC' if ascending else 'DESC'} NULLS "
            f"{'FIRST' if nulls_first else 'LAST'}"
            for column, ascending, nulls_first in asked.order_by
        )
    # More rows than Spark can be asked for are all rows.
    text += f" LIMIT {asked.k}" if asked.k is not None and asked.k < MOST else ""
    return text + (f" OFFSET {min(asked.offset, MOST)}" if asked.offset else "")


def to_count_sql(id: Identifier, filter: str | None) -> str:
    """A statement that counts a view's rows; blocks."""
    text = _check(over_rows.to_spark(over_rows.select(None, filter), id))
    return f"SELECT count(*) AS n FROM ({text}) AS counted"


def _put_over_table(found: "LanceStatement", asked: Query) -> Query | None:
    rows = found.rows
    ranks = asked.vector is not None or asked.text is not None
    if all(column.path is None and not column.reads for column in rows.columns):
        return None  # Lance does not scan for constants alone
    moves = ranks or asked.order_by or asked.sample is not None
    if rows.limit is not None and (moves or asked.filter is not None):
        return None
    made = over_rows.put_over_table(over_rows.select(asked.columns, asked.filter), rows)
    if isinstance(made, Refusal):
        return None
    paths = {column.name: column.path for column in rows.columns if column.path is not None}
    order = [
        (path, ascending, nulls_first)
        for column, ascending, nulls_first in asked.order_by
        if (path := _find_path(paths, column)) is not None
    ]
    if len(order) < len(asked.order_by):
        return None
    if made.own is not None and made.asked is not None and ranks and not asked.prefilter:
        raise InvalidRequest(
            "the view has a filter, which comes before a search, and prefilter is false",
            detail="send prefilter as true",
        )
    filters = [f"({each})" for each in (made.own, made.asked) if each is not None]
    return replace(
        asked,
        columns=check_expressions("columns", made.columns),
        filter=check_expression("filter", " AND ".join(filters)) if filters else None,
        prefilter=asked.prefilter or made.own is not None,
        k=_limit(asked, rows.limit),
        order_by=order,
        vector=asked.vector and _put_vector(asked.vector, paths, found.table),
        text=asked.text and _put_text(asked.text, paths, found.table),
    )


def _limit(asked: Query, limit: int | None) -> int | None:
    if limit is None:
        return asked.k
    return min(MAX_ROWS if asked.k is None else asked.k, max(limit - asked.offset, 0))


def _put_vector(
    asked: VectorSearch, paths: Mapping[str, str], table: "SourceTable"
) -> VectorSearch:
    """The search on the table's column; a view has the columns that are just selected."""
    if asked.column is not None and (path := _find_path(paths, asked.column)) is not None:
        return replace(asked, column=path)
    kinds = {name: find_type(table.schema, parse_path(path)) for name, path in paths.items()}
    schema = pa.schema([(name, kind) for name, kind in kinds.items() if kind is not None])
    name, _ = query.find_vector_column(schema, asked.column)
    return replace(asked, column=paths[name])


def _put_text(asked: TextSearch, paths: Mapping[str, str], table: "SourceTable") -> TextSearch:
    words = asked.string_query
    if words is None:
        raise Unsupported("views are searched for words only", detail=SEARCHED)
    indexed = fulltext.list_indexed_columns(table.open_dataset())
    named = words.columns or [name for name, path in paths.items() if path in indexed]
    columns = [_find_path(paths, name) for name in named]
    if not columns or None in columns:
        raise InvalidRequest(
            "the view has no such column with a full-text index", detail="make one on its table"
        )
    return TextSearch(string_query=structs.replace(words, columns=columns))


def _find_path(paths: Mapping[str, str], column: str) -> str | None:
    """The path in the table of a view's column, or of a field of one."""
    if column in paths:
        return paths[column]
    first, *fields = parse_path(column)
    return None if first not in paths else show_path((*parse_path(paths[first]), *fields))


def _quote_path(column: str) -> str:
    return ".".join("`" + part.replace("`", "``") + "`" for part in parse_path(column))


def _check(made: Any) -> str:
    if isinstance(made, Refusal):
        raise InvalidRequest(
            f"the view can't be asked that: {made.reason}", detail="correct columns and filter"
        )
    return str(made)
