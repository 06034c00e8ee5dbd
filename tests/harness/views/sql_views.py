"""Views that Spark SQL computes, and what plain Spark makes of the same rows."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa

from penstock.jobs.spark.sql_sessions import MEANING
from penstock.jobs.spark.tasks import Engine
from penstock.jobs.spark.types import cast_in
from penstock.model.views import CheckedSql, Column, Definition, Groups, Source
from tests.harness.views.local_views import LocalView, encode_schema


def define_query(
    sql: str,
    kinds: Mapping[str, Any],
    sources: Mapping[str, Sequence[str]],
    keys: Mapping[str, str] | None = None,
    *,
    lance_filter: str | None = None,
    filters: Mapping[str, str] | None = None,
) -> Definition:
    """A view of shape "groups" if there are keys (outputs and the columns that they are)."""
    grouped = None
    if keys is not None:
        columns = [Column(name=n, expression=path, path=path) for n, path in keys.items()]
        grouped = Groups(keys=tuple(columns), lance_filter=lance_filter)
    return Definition(
        kind="query",
        shape="whole" if keys is None else "groups",
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
        groups=grouped,
        schema=encode_schema(pa.schema(list(kinds.items()))),
        digest="1",
    )


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


def rows_of(view: LocalView) -> list[Any]:
    return sort_rows(view.open().to_table())
