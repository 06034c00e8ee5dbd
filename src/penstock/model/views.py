"""Materialized views: what one is once its query is understood, and what a refresh is asked and
leaves behind."""

from typing import Any, Literal, NewType

from msgspec import Struct

from penstock.model.functions import Function

Kind = Literal["query", "udtf", "chunker"]
# Whose SQL it is, and so whose semantics it has.
Language = Literal["spark", "lance"]
# How a refresh can follow the sources: row by row, group by group, or only as a whole.
Shape = Literal["rows", "groups", "whole"]
Mode = Literal["auto", "incremental", "full"]
# A text in Spark's SQL that was written by `sql.spark.text.door`, and by nobody else.
CheckedSql = NewType("CheckedSql", str)
NO_SQL = CheckedSql("")

SOURCE_ROW_ID, CHILD_INDEX, PARTITION = "__source_row_id", "__child_index", "__partition"
# What another client has among its columns; it is never made here.
IS_SET = "__is_set"
SYSTEM_COLUMNS = (SOURCE_ROW_ID, CHILD_INDEX, PARTITION, IS_SET)


class Source(Struct, frozen=True, kw_only=True):
    """A table that a view reads: known by its id, because names may change."""

    id: str
    table: tuple[str, ...]
    # What it is called in `Definition.sql`.
    name: str
    # Paths of all columns that the query reads there: nothing else can change the view.
    reads: tuple[str, ...]
    # Base64 of an Arrow IPC schema: what these were, by path; "" when that is not known.
    types: str = ""
    # In Lance's SQL: rows that it does not take are of no matter to the query.
    filter: str | None = None


class Column(Struct, frozen=True, kw_only=True):
    """An output of a query over rows, before functions."""

    name: str
    expression: str
    # The source's column that it simply is.
    path: str | None = None
    # Paths that the expression reads; empty when that is not known.
    reads: tuple[str, ...] = ()


class Rows(Struct, frozen=True, kw_only=True):
    """Filter, projection and limit over the rows of one source."""

    # Who evaluates the expressions, which are written in its SQL. A query in Spark's dialect whose
    # expressions mean the same to Lance has "lance" here: then no JVM touches the rows.
    engine: Language
    filter: str | None = None
    columns: tuple[Column, ...]
    # The rows with the smallest row ids are kept.
    limit: int | None = None


class Groups(Struct, frozen=True, kw_only=True):
    """One source, grouped by plain columns that are outputs, too."""

    # Output name and the source's column.
    keys: tuple[Column, ...]
    # In Lance's SQL when it means the same there, else None although there may be one.
    lance_filter: str | None = None
    has_filter: bool = False


class Definition(Struct, frozen=True, kw_only=True):
    """A view whose query was read against the sources as they are now."""

    kind: Kind
    shape: Shape
    language: Language
    sources: tuple[Source, ...]
    # The whole query in Spark's dialect, its tables called by `Source.name`; "" when it is in
    # Lance's, which is always of shape "rows".
    sql: CheckedSql = NO_SQL
    rows: Rows | None = None
    groups: Groups | None = None
    # Functions that fill outputs of a query, after filter and projection; their inputs are names
    # of `rows.columns`, some of which may be there for them only (not in the schema).
    column_functions: tuple[Function, ...] = ()
    # The udtf or chunker; its inputs are names of `rows.columns`.
    function: Function | None = None
    # Outputs of a chunker view that come from the query, not from the function.
    inherited: tuple[str, ...] = ()
    partition_by: str | None = None
    partition_by_indexed_column: str | None = None
    # Base64 of the Arrow IPC schema of the view's table, system columns first.
    schema: str
    # Why it is not followed row by row or group by group, for people; "" when it is.
    obstacle: str = ""
    # Equal for definitions that give the same rows.
    digest: str


class Watermark(Struct, frozen=True, kw_only=True):
    """What a view is: its definition at these versions of its sources."""

    # By the sources' ids.
    versions: dict[str, int]
    # The unique ids of the transactions that made them: numbers may come twice.
    transactions: dict[str, str] = {}
    digest: str
    # The version of the view that the refresh committed or found.
    view_version: int
    # A file beside the view with the ids of source rows (or the partitions) that failed.
    failed: str | None = None
    failed_rows: int = 0
    # The cap that was asked for, and the last row that it let in: (source row id, child index).
    output_limit: int | None = None
    cut: tuple[int, int] | None = None
    # What the catalog adds: versions of tables, by their ids, that views among the sources had.
    bases: dict[str, int] = {}


class RefreshSpec(Struct, frozen=True, kw_only=True):
    """A refresh as a runner is given it."""

    table: tuple[str, ...]
    table_id: str
    definition: Definition
    src_version: int | None = None
    max_rows_per_fragment: int | None = None
    concurrency: int | None = None
    intra_applier_concurrency: int | None = None
    source_task_size: int | None = None
    # How many rows a function is given at once, and how long values may be in memory only.
    checkpoint_size: int | None = None
    min_checkpoint_size: int | None = None
    max_checkpoint_size: int | None = None
    batch_checkpoint_flush_interval_seconds: float | None = None
    output_limit: int | None = None
    mode: Mode = "auto"
    # Recompute and compare after the refresh: all of it, or so many rows.
    verify: bool = False
    verify_rows: int | None = None
    watermark: Watermark | None = None
    # Views that this one reads and that are refreshed with it, what is read before what reads it.
    upstream: tuple["RefreshSpec", ...] = ()


class RefreshResult(Struct, frozen=True, kw_only=True):
    """What a refresh did."""

    # Of the view: the one that was committed, or the one that was found up to date.
    version: int
    mode: str
    reason: str
    rows_inserted: int = 0
    rows_updated: int = 0
    rows_deleted: int = 0
    function_calls: int = 0
    rows_failed: int = 0
    # By the sources' names now, as "ns$table".
    source_versions: dict[str, int] = {}
    watermark: Watermark
    rate: float | None = None
    certificate: dict[str, Any] | None = None
    # Its name, as "ns$view".
    view: str = ""
    # Of views that were refreshed with it, by their ids.
    upstream: dict[str, "RefreshResult"] = {}
