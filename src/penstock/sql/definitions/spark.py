"""Queries in Spark's dialect, and in others that are translated to it."""

import functools
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pyarrow.types as kinds

from penstock.errors import InvalidRequest
from penstock.lance.columns.fields import parse_path, show_path
from penstock.lance.columns.inference import check_alike
from penstock.lance.columns.sql_types import list_columns
from penstock.model.identifiers import Identifier, show
from penstock.model.moments import SAMPLE, at_moment, count_marks
from penstock.model.views import SYSTEM_COLUMNS, Clock
from penstock.sql.definitions.parsed_query import ExpressionTexts, ParsedQuery, QueryOutput, quote
from penstock.sql.definitions.refusals import refuse
from penstock.sql.definitions.requests import Query, SourceTable, Statement
from penstock.sql.definitions.tables import KnownNames, missing
from penstock.sql.definitions.types import to_arrow
from penstock.sql.parsing.inlining import inline
from penstock.sql.parsing.statements import write_plain
from penstock.sql.resolving.resolve import resolve
from penstock.sql.results import Columns, Refusal
from penstock.sql.spark.merged import read_merged_query
from penstock.sql.spark.query import SparkOutput as SparkOutput
from penstock.sql.spark.query import SparkQuery, list_outputs, read_spark_query
from penstock.sql.spark.text.plain import PlainStatement, relocate
from penstock.sql.translating.translate import translate

MAX_CHARACTERS = 200_000
PLAIN = {"bool", "int8", "int16", "int32", "int64", "float", "double", "string", "large_string",
         "date32[day]", "timestamp[us]", "timestamp[us, tz=UTC]"}  # fmt: skip


def read_spark(query: Query, known: KnownNames, kept: Sequence[str] | None) -> ParsedQuery:
    """Read the query against the current tables; a star gives only the `kept` columns."""
    inliner = _Inliner(query, known)
    sql = inliner.inline(_get_statement(query, known), ())
    read = read_spark_query(sql, inliner.columns, kept, query.use)
    if isinstance(read, Refusal):
        raise refuse(_without_place(read))
    return _to_parsed(read, inliner)


def read_merged(
    query: Query, known: KnownNames, kept: Sequence[str] | None
) -> tuple[ParsedQuery, ParsedQuery | None]:
    """Read a view's query as it was written and, where that is followed better, with its
    subqueries merged."""
    inliner = _Inliner(query, known)
    sql = inliner.inline(_get_statement(query, known), ())
    read = read_merged_query(sql, inliner.columns, kept)
    if isinstance(read, Refusal):
        raise refuse(_without_place(read))
    written = _to_parsed(read.written, inliner)
    if read.flat is None:
        return written, None
    named = {name: reads for _, name, reads in written.tables}
    return written, replace(_to_parsed(read.flat, inliner), named=named)


def _to_parsed(read: SparkQuery, inliner: "_Inliner") -> ParsedQuery:
    tables = {name: table for name, table in inliner.tables.items() if name in read.reads}
    alone = _LanceCheck(next(iter(tables.values())))
    outputs = tuple(_to_output(each, tables) for each in read.outputs)
    filters: ExpressionTexts | None = None
    if read.shape.kind == "rows":
        outputs = tuple(alone.check_output(each) for each in outputs)
    if read.filter is not None:
        filters = {"spark": read.filter}
        if read.lance_filter and alone.check_filter(_show(read.filter_reads), read.lance_filter):
            filters["lance"] = read.lance_filter
    return ParsedQuery(
        language="spark",
        shape=read.shape.kind,
        tables=tuple((table, name, _show(read.reads[name])) for name, table in tables.items()),
        outputs=outputs,
        sql=read.sql,
        obstacle=read.shape.obstacle,
        filters=filters,
        filter_reads=_show(read.filter_reads),
        limit=read.shape.limit,
        pushed={
            name: " AND ".join(conditions)
            for name, table in tables.items()
            if (conditions := _check_pushed(table, read.pushed.get(name, ())))
        },
        keys=read.keys,
        clock=_make_clock(read, alone),
    )


def _make_clock(read: SparkQuery, alone: "_LanceCheck") -> Clock | None:
    """How the query reads the clock, if it does."""
    marks = count_marks(read.sql)
    if not marks:
        return None
    in_filter = count_marks(read.filter or "")
    given = read.clock_conditions if read.shape.kind != "whole" else None
    conditions: tuple[str, ...] | None = None
    # Each mark of the filter must be in one of the conditions.
    is_all = given is not None and sum(count_marks(text) for text, _ in given) == in_filter
    if is_all and all(alone.check_filter(_show(reads), text) for text, reads in given or ()):
        conditions = tuple(text for text, _ in given or ())
    return Clock(
        conditions=conditions,
        beyond_filter=marks > in_filter,
    )


def _check_pushed(
    table: SourceTable, conditions: Sequence[tuple[str, tuple[str, ...]]]
) -> list[str]:
    """The conditions that Lance really accepts."""
    asked = _LanceCheck(table)
    return [lance for lance, reads in conditions if asked.check_filter(_show(reads), lance)]


def _get_statement(query: Query, known: KnownNames) -> Statement:
    if query.statement is not None:
        return query.statement
    assert query.view is not None
    found = known.find(query.view)
    if found is None or found not in known.views:
        raise InvalidRequest(
            f"iceberg_view {show(query.view.name)} is not an Iceberg view of this catalog",
            detail="to read a table, send SQL",
        )
    return known.views[found]


class _Inliner:
    """Puts the SQL of Iceberg views into a statement, and gives each table a plain name."""

    def __init__(self, query: Query, known: KnownNames) -> None:
        self._known = known
        texts = [each.sql for each in (query.statement, *dict(query.views).values()) if each]
        # Upper and lower: Spark compares names in capitals, too.
        self._text = "\n".join(texts).upper().lower()
        self._prefix = "source_"
        while self._prefix in self._text:
            self._prefix = f"_{self._prefix}"
        self.tables: dict[str, SourceTable] = {}
        self.columns: dict[str, Columns] = {}

    def inline(self, statement: Statement, outer: tuple[Identifier, ...]) -> str:
        """The statement in Spark's dialect, over `tables`."""
        texts: dict[Identifier, str] = {}
        seen: dict[Identifier, Columns | None] = {}
        for reference in statement.references:
            found = self._known.find(reference)
            first = reference.candidates[0]
            if found is None:
                continue
            if found in self._known.tables:
                name = self._name(self._known.tables[found])
                texts[first], seen[first] = quote(name), self.columns[name]
                continue
            if found in outer:
                raise InvalidRequest(
                    f"Iceberg view {show(found)} reads itself", detail="correct the Iceberg view"
                )
            inner = self.inline(self._known.views[found], (*outer, found))
            outputs = list_outputs(inner, self.columns)
            if isinstance(outputs, Refusal):
                raise _of_view(found, outputs)
            texts[first], seen[first] = f"({inner})", outputs
        plain = self._to_spark(statement, seen)
        sql = plain.text
        where = (statement.namespace, statement.catalog)
        resolved = resolve(sql, "spark", seen, *where)
        if isinstance(resolved, Refusal):
            resolved = relocate(resolved, plain)
            if lost := next((r for r in statement.references if self._known.find(r) is None), None):
                error = missing(lost)
                raise InvalidRequest(refuse(resolved).message, detail=error.detail)
            raise _of_view(outer[-1], resolved) if outer else refuse(resolved)
        made = inline(sql, texts, *where)
        if isinstance(made, Refusal):
            made = relocate(made, plain)
            raise _of_view(outer[-1], made) if outer else refuse(made)
        if len(made) > MAX_CHARACTERS:
            raise InvalidRequest(
                "the query is too long once its Iceberg views are written out",
                detail="make a materialized view of one of them",
            )
        return made

    def _to_spark(
        self, statement: Statement, seen: dict[Identifier, Columns | None]
    ) -> PlainStatement:
        """The statement in a form that Spark may be given, whatever its dialect was."""
        if statement.dialect == "spark":
            plain = write_plain(statement.sql)
            if isinstance(plain, Refusal):
                raise refuse(plain)
            return plain
        if statement.dialect == "lance":
            raise InvalidRequest(
                "an Iceberg view in Lance's SQL can't be read", detail="use dialect spark in it"
            )
        made = translate(
            statement.sql, statement.dialect, "spark", seen, statement.namespace, statement.catalog
        )
        if isinstance(made, Refusal):
            raise refuse(made)
        plain = write_plain(made.sql)
        if isinstance(plain, Refusal):
            raise refuse(_without_place(plain))
        return plain

    def _name(self, table: SourceTable) -> str:
        for name, each in self.tables.items():
            if each.id == table.id:
                return name
        name = f"{self._prefix}{len(self.tables) + 1}"
        self.tables[name] = table
        # Another view's system columns are only given when asked for by name.
        self.columns[name] = {
            column: kind
            for column, kind in list_columns(table.schema).items()
            if column not in SYSTEM_COLUMNS or column in self._text
        }
        return name


def _to_output(read: SparkOutput, tables: Mapping[str, SourceTable]) -> QueryOutput:
    texts: ExpressionTexts = {"spark": read.text}
    if read.lance is not None:
        texts["lance"] = read.lance
    kind, path = to_arrow(read.type), None
    if read.table is not None and read.path is not None:
        kind = _get_type(tables[read.table].schema, read.path)
        path = show_path(read.path)
    return QueryOutput(read.name, kind, texts, path, _show(read.reads))


class _LanceCheck:
    """Asks Lance about the one table of a query, as little as possible."""

    def __init__(self, table: SourceTable) -> None:
        self._table = table
        self._open = functools.cache(table.open_dataset)

    def check_output(self, output: QueryOutput) -> QueryOutput:
        """The output without Lance's text, unless Lance gives it the same type as Spark."""
        lance = output.texts.get("lance")
        if lance is None or output.path is not None:
            return output
        # Lance takes an expression that is also a name, such as `true`, for that column.
        is_name = lance.lower() in (name.lower() for name in self._table.schema.names)
        alike = output.type is not None and self._is_alike(output.reads, lance, output.type)
        if alike and not is_name:
            return output
        texts: ExpressionTexts = {"spark": output.texts["spark"]}
        return QueryOutput(output.name, output.type, texts, None, output.reads)

    def check_filter(self, reads: Sequence[str], lance: str) -> bool:
        """Whether Lance accepts the filter."""
        return self._is_alike(reads, lance, pa.bool_())

    def _is_alike(self, reads: Sequence[str], lance: str, kind: pa.DataType) -> bool:
        read = (self._table.schema.field(parse_path(path)[0]).type for path in reads)
        return all(map(_is_plain, read)) and check_alike(
            self._open(), at_moment(lance, SAMPLE), kind
        )


def _is_plain(kind: pa.DataType) -> bool:
    """Whether we vouch for expressions on values of this type."""
    if kinds.is_struct(kind):
        return all(_is_plain(field.type) for field in kind)
    return kinds.is_list(kind) or str(kind) in PLAIN


def _get_type(schema: pa.Schema, path: Sequence[str]) -> pa.DataType:
    field: Any = schema.field(path[0])
    for part in path[1:]:
        field = field.type.field(part)
    return field.type


def _of_view(view: Identifier, refusal: Refusal) -> InvalidRequest:
    error = refuse(_without_place(refusal))
    return InvalidRequest(f"Iceberg view {show(view)}: {error.message}", detail=error.detail)


def _without_place(refusal: Refusal) -> Refusal:
    """Remove the place in a text that its author never saw."""
    return Refusal(refusal.reason)


def _show(columns: Sequence[str]) -> tuple[str, ...]:
    return tuple(show_path((column,)) for column in columns)
