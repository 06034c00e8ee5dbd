"""Views that Spark SQL computes, and what plain Spark makes of the same rows."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa

from penstock.jobs.spark.sql_sessions import MEANING
from penstock.jobs.spark.tasks import Engine
from penstock.jobs.spark.types import cast_in
from penstock.model.views import Branch, CheckedSql, Definition, KeyPart, Keys, Occurrence, Source
from tests.harness.views.definitions import make
from tests.harness.views.local_views import LocalView, encode_schema


def define_query(
    sql: str,
    kinds: Mapping[str, Any],
    sources: Mapping[str, Sequence[str]],
    keys: Mapping[str, str] | None = None,
    *,
    filters: Mapping[str, str] | None = None,
) -> Definition:
    """A view that is followed by keys, if there are any (outputs and the columns that they are)."""
    followed = None
    if keys is not None:
        (name,) = sources
        parts = tuple(KeyPart(0, path) for path in keys.values())
        branch = Branch((Occurrence(name=name, source=name),), parts)
        followed = Keys(columns=tuple(keys), sql=CheckedSql(sql), branches=(branch,))
    return Definition(
        kind="query",
        shape="whole" if keys is None else "keys",
        language="spark",
        sources=tuple(
            Source(
                id=f"id-{name}",
                table=("n", name),
                name=name,
                reads=tuple(reads),
                filter=(filters or {}).get(name),
            )
            for name, reads in sources.items()
        ),
        sql=CheckedSql(sql),
        keys=followed,
        schema=encode_schema(pa.schema(list(kinds.items()))),
        digest="1",
    )


def define_sql(folder: Path, sql: str, *tables: str, **options: Any) -> Definition:
    """A view of tables in a folder, as a server defines it."""
    schemas = {("n", name): lance.dataset(str(folder / name)).schema for name in tables}
    return make(sql, schemas=schemas, namespace=("n",), **options)


def write_source(folder: Path, name: str, table: pa.Table, files: int = 2) -> lance.LanceDataset:
    rows = max(1, -(-len(table) // files))
    return lance.write_dataset(
        table, str(folder / name), max_rows_per_file=rows, enable_stable_row_ids=True
    )


def recompute(view: LocalView, engine: Engine) -> list[Any]:
    """What plain Spark makes of the rows that the sources have, sorted."""
    spark = engine.spark.newSession()
    for key, value in MEANING.items():
        spark.conf.set(key, value)
    spark.conf.set("spark.sql.shuffle.partitions", "2")
    for source in view.definition.sources:
        rows = lance.dataset(str(view.folder / source.table[-1])).to_table()
        batches = rows.combine_chunks().to_batches() or [_no_rows(rows.schema)]
        made = pa.Table.from_batches([cast_in(batch) for batch in batches])
        spark.createDataFrame(made).createOrReplaceTempView(source.name)
    return sort_rows(spark.sql(view.definition.sql).toArrow())


def _no_rows(schema: pa.Schema) -> pa.RecordBatch:
    return pa.RecordBatch.from_pylist([], schema=schema)


def sort_rows(table: pa.Table) -> list[Any]:
    """Rows as text that can be compared: NaN and -0.0 too."""
    return sorted(repr(tuple(row.values())) for row in table.to_pylist())


def rows_of(view: LocalView, without: Sequence[str] = ()) -> list[Any]:
    return sort_rows(view.open().to_table().drop_columns(list(without)))
