"""Materialized views: what one is once its query is understood, and what a refresh leaves."""

from typing import Any, Literal, NewType

from msgspec import Struct

from penstock.model.functions import Function

Kind = Literal["query", "udtf", "chunker"]
# Whose SQL it is, and so whose semantics it has.
Language = Literal["spark", "lance"]
# How a refresh can follow the sources: row by row, key by key, or only as a whole.
Shape = Literal["rows", "keys", "whole"]
# How a table is joined to an earlier one: its rows are needed, may be missing, or only decide which
# rows of the other are kept (semi and anti joins, EXISTS and IN).
JoinKind = Literal["inner", "left", "filter"]
Mode = Literal["auto", "incremental", "full"]
# Spark SQL that was written by `sql.spark.text.checked_sql`, and by nothing else.
CheckedSql = NewType("CheckedSql", str)
NO_SQL = CheckedSql("")

SOURCE_ROW_ID, CHILD_INDEX, PARTITION = "__source_row_id", "__child_index", "__partition"
# The row ids of the tables that a view joins, or reads by turns in a UNION ALL.
SOURCE_ROW_IDS = (SOURCE_ROW_ID, *(f"{SOURCE_ROW_ID}_{number}" for number in range(2, 9)))
# How the columns with row ids are called while Spark computes a join.
OCCURRENCE_ROW_ID = "__penstock_row_id_"
# A column that another client adds; it is never made here.
IS_SET = "__is_set"
SYSTEM_COLUMNS = (*SOURCE_ROW_IDS, CHILD_INDEX, PARTITION, IS_SET)


class Source(Struct, frozen=True, kw_only=True):
    """A table that a view reads, identified by id, because names may change."""

    id: str
    table: tuple[str, ...]
    # Its name in `Definition.sql`.
    name: str
    # The paths of all columns that the query reads: nothing else can change the view.
    reads: tuple[str, ...]
    # Base64 of an Arrow IPC schema with the types of these, by path; "" when unknown.
    types: str = ""
    # Columns that it names and does not need: nothing depends on them, and without them it can't be
    # read.
    named: tuple[str, ...] = ()
    # The ids of these columns' fields when the definition was made; empty when unknown.
    fields: dict[str, int] = {}
    # In Lance's SQL: rows that do not match cannot affect the query.
    filter: str | None = None
    is_iceberg: bool = False


class IcebergState(Struct, frozen=True):
    """An Iceberg table at a moment: one metadata file, which never changes."""

    uuid: str
    # The last snapshot that changed its rows; 0 for none, -1 when unknown.
    snapshot: int
    file: str
    # Where its files may be; whatever its metadata names elsewhere is not read.
    folders: tuple[str, ...] = ()


class Appends(Struct, frozen=True):
    """How new rows of a view's only table, an Iceberg table, are new rows of the view."""

    # Whether the query leaves some of them out.
    is_filtered: bool


class Column(Struct, frozen=True, kw_only=True):
    """An output of a query over rows, before functions."""

    name: str
    expression: str
    # The source column, if the output is just that.
    path: str | None = None
    # The paths that the expression reads; empty when unknown.
    reads: tuple[str, ...] = ()
    # Whether its value is another one at each refresh.
    reads_clock: bool = False


class Rows(Struct, frozen=True, kw_only=True):
    """Filter, projection and limit over the rows of one source."""

    # Who evaluates the expressions, which are in its SQL. A query in Spark's dialect whose
    # expressions mean the same to Lance has "lance" here: then no JVM touches the rows.
    engine: Language
    filter: str | None = None
    columns: tuple[Column, ...]
    # Keeps the rows with the smallest row ids.
    limit: int | None = None
    # The filter in Lance's SQL, if it means the same there while Spark evaluates an output.
    lance_filter: str | None = None

    @property
    def filter_for_lance(self) -> str | None:
        """The filter as Lance can evaluate it; None where it cannot, or there is none."""
        return self.filter if self.engine == "lance" else self.lance_filter

    @property
    def has_sparks_filter(self) -> bool:
        """Whether only Spark can tell which rows match."""
        return self.filter is not None and self.filter_for_lance is None


class Occurrence(Struct, frozen=True, kw_only=True):
    """One place in a query where a table is read."""

    # In `Keys.sql`.
    name: str
    # `Source.name` of the table.
    source: str
    # The place among the branch's occurrences of the one that it is joined to; None for the first.
    parent: int | None = None
    join: JoinKind = "inner"
    # Its columns and those of the parent that are equal in joined rows.
    pairs: tuple[tuple[str, str], ...] = ()
    # Whether the join asks for nothing else.
    is_exact: bool = True

    @property
    def row_id(self) -> str:
        """The column with its row ids, in `Keys.sql` and in Spark's tables."""
        return f"{OCCURRENCE_ROW_ID}{self.name}"


class KeyPart(Struct, frozen=True):
    """Where a branch takes a column of the key from."""

    occurrence: int
    # None for the row id.
    path: str | None = None


class Branch(Struct, frozen=True):
    """A SELECT of the query: a tree of joined tables, parents before their children."""

    occurrences: tuple[Occurrence, ...]
    # One for each column of the key; None where the branch gives null.
    keys: tuple[KeyPart | None, ...]


class Keys(Struct, frozen=True, kw_only=True):
    """A query whose rows with one key depend only on source rows that are found by the key."""

    # Columns of the view: outputs, or row ids of sources.
    columns: tuple[str, ...]
    # The query with a name for each occurrence and, if these are columns of the key, their row ids.
    sql: CheckedSql
    branches: tuple[Branch, ...]

    @property
    def row_ids(self) -> tuple[str, ...]:
        """The columns of the key that are row ids of sources; all of them or none."""
        return tuple(name for name in self.columns if name in SOURCE_ROW_IDS)


class Clock(Struct, frozen=True, kw_only=True):
    """How a query reads the clock; texts have marks in its place (`model/moments.py`)."""

    # Conditions in Lance's SQL, all of which a row must meet: rows for which none of them changes
    # neither enter nor leave the query as time passes. None when Lance can't evaluate them.
    conditions: tuple[str, ...] | None = None
    # Whether it is read anywhere else than in the filter.
    beyond_filter: bool = False


class Definition(Struct, frozen=True, kw_only=True):
    """A view whose query was read against the current sources."""

    kind: Kind
    shape: Shape
    language: Language
    sources: tuple[Source, ...]
    # The whole query in Spark's dialect, with tables named by `Source.name`; "" when it is in
    # Lance's, which is always of shape "rows".
    sql: CheckedSql = NO_SQL
    rows: Rows | None = None
    keys: Keys | None = None
    # Functions that fill outputs of a query, after filter and projection; their inputs are names of
    # `rows.columns`, some of which may only exist for them (not in the schema).
    column_functions: tuple[Function, ...] = ()
    # The udtf or chunker; its inputs are names of `rows.columns`.
    function: Function | None = None
    # Outputs of a chunker view that come from the query, not from the function.
    inherited: tuple[str, ...] = ()
    partition_by: str | None = None
    partition_by_indexed_column: str | None = None
    # Base64 of the Arrow IPC schema of the view's table, system columns first.
    schema: str
    # None when it does not read the clock.
    clock: Clock | None = None
    # Why it is not followed row by row or key by key, for people; "" when it is.
    obstacle: str = ""
    # Equal for definitions that give the same rows.
    digest: str
    # What it was before each of the last renames of columns that it reads.
    followed: tuple["FollowedRename", ...] = ()
    # None when new rows of an Iceberg table can change other rows of the view.
    appends: Appends | None = None

    @property
    def tables(self) -> tuple[Source, ...]:
        """The sources that are Lance tables."""
        return tuple(each for each in self.sources if not each.is_iceberg)

    @property
    def iceberg_tables(self) -> tuple[Source, ...]:
        return tuple(each for each in self.sources if each.is_iceberg)

    def find_followed(self, digest: str) -> "FollowedRename | None":
        """What has become of the definition with this digest, which is not this one."""
        if digest == self.digest:
            return None
        return next((each for each in self.followed if each.before.digest == digest), None)


class FollowedRename(Struct, frozen=True, kw_only=True):
    """A definition that gave the same rows, when columns of its sources had other names."""

    before: Definition
    # By the sources' ids: the columns' names then, by their names now.
    names: dict[str, dict[str, str]]


class Watermark(Struct, frozen=True, kw_only=True):
    """What a view contains: its definition at these versions of its sources."""

    # By the sources' ids; of Iceberg tables, the last snapshot that changed rows (0: none).
    versions: dict[str, int]
    # The unique ids of the transactions that made them: version numbers can repeat. Of Iceberg
    # tables, their uuid.
    transactions: dict[str, str] = {}
    digest: str
    # The version of the view that the refresh committed or found.
    view_version: int
    # A file beside the view with the ids of source rows (or partitions) that failed.
    failed: str | None = None
    failed_rows: int = 0
    # A file beside the view with digests of its partitions' rows, for a udtf over a query that
    # Spark computes.
    partitions: str | None = None
    # The requested limit, and the last row within it: (source row id, child index).
    output_limit: int | None = None
    cut: tuple[int, int] | None = None
    # The current time of a query that reads the clock, in microseconds since 1970.
    moment: int | None = None
    # Added by the catalog: table versions, by id, that source views had.
    bases: dict[str, int] = {}


class RefreshResult(Struct, frozen=True, kw_only=True):
    """What a refresh did."""

    # Of the view: the version that was committed, or found up to date.
    version: int
    mode: str
    reason: str
    rows_inserted: int = 0
    rows_updated: int = 0
    rows_deleted: int = 0
    function_calls: int = 0
    # Calls that computing all of it would have taken beyond these; None when nobody counted.
    calls_saved: int | None = None
    rows_failed: int = 0
    # By the sources' current names, as "ns$table".
    source_versions: dict[str, int] = {}
    watermark: Watermark
    rate: float | None = None
    # The current time of its query, if that reads the clock, as "2026-01-31T23:59:59.000000Z".
    moment: str | None = None
    certificate: dict[str, Any] | None = None
    # Its name, as "ns$view".
    view: str = ""
    # Results of views that were refreshed with it, by id.
    upstream: dict[str, "RefreshResult"] = {}
