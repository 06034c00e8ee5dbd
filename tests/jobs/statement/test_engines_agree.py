"""What Lance answers alone has the rows that Spark gives for the very text of the statement."""

import datetime
import random
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pytest

from penstock.errors import InvalidRequest
from penstock.jobs.spark.lance_source import load, make_scan
from penstock.jobs.spark.sql_sessions import open_sql
from penstock.jobs.spark.tasks import Engine
from penstock.lance.read import query
from penstock.lance.session.remote import Location
from penstock.sql.definitions.queries import read_sql
from penstock.sql.definitions.requests import SourceTable
from penstock.sql.definitions.statements import LanceCount, LanceStatement, read_statement
from tests.harness.fuzzing.lance_sql import Statements, make_table

TAKEN = 150


@pytest.mark.slow
@pytest.mark.parametrize("is_indexed", [False, True])
def test_lance_and_spark_give_the_same_rows(
    engine: Engine, tmp_path: Path, is_indexed: bool
) -> None:
    chance = random.Random(18 + is_indexed)
    dataset = lance.write_dataset(make_table(chance), tmp_path / "t", max_rows_per_file=50)
    for column in ("i32", "s", "d", "b") if is_indexed else ():
        dataset.create_scalar_index(column, "BITMAP" if column == "b" else "BTREE")
    source = SourceTable(id="t", identifier=("t",), schema=dataset.schema, open=lambda: dataset)
    statements, taken = Statements(chance), 0
    with open_sql(engine, 1) as session:
        names = [name if name.isidentifier() else f"`{name}`" for name in dataset.schema.names]
        scan = make_scan(dataset, Location(str(tmp_path / "t"), ""), names, "agree", 1)
        frame = load(session, scan).cache()
        frame.createOrReplaceTempView("t")
        while taken < TAKEN:
            sql = statements.make()
            try:
                found = read_statement(read_sql(sql, None, ()), {("t",): source}, 0)
            except InvalidRequest:
                continue
            if isinstance(found, LanceStatement | LanceCount):
                taken += 1
                assert _sort(_ask_lance(found)) == _sort(session.spark.sql(sql).toArrow()), sql
        frame.unpersist()


def _ask_lance(found: LanceStatement | LanceCount) -> pa.Table:
    dataset = found.table.open_dataset()
    if isinstance(found, LanceCount):
        return pa.table({found.name: [query.count(dataset, found.filter)]})
    columns = {column.name: column.expression for column in found.rows.columns}
    rows = query.search(dataset, query.Query(columns=columns, filter=found.rows.filter))
    return rows.read_all() if isinstance(rows, pa.RecordBatchReader) else rows


def _sort(rows: pa.Table) -> list[str]:
    return sorted(repr([_show(value) for value in row.values()]) for row in rows.to_pylist())


def _show(value: Any) -> Any:
    """A value in which NaN is itself, 0.0 is not -0.0, and a zone is not told."""
    if isinstance(value, datetime.datetime):
        return value.replace(tzinfo=None).isoformat()
    return {k: _show(v) for k, v in value.items()} if isinstance(value, dict) else repr(value)
