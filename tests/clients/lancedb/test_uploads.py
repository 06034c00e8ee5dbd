"""lancedb's remote tables: long uploads, in parts and from batches that come one by one."""

from collections.abc import Iterator
from typing import Any

import pyarrow as pa

from tests.harness.clients.lancedb_modes import Lake, covers
from tests.harness.data.tables import new_name

BATCHES, ROWS = 40, 500


def some_batches() -> Iterator[pa.RecordBatch]:
    for n in range(BATCHES):
        ids = pa.array(range(n * ROWS, (n + 1) * ROWS), pa.int64())
        yield pa.record_batch({"id": ids})


def stream() -> pa.RecordBatchReader:
    return pa.RecordBatchReader.from_batches(pa.schema([("id", pa.int64())]), some_batches())


@covers("table", "add")
def test_parts_become_one_version(lake: Lake) -> None:
    table = lake.done(lake.database.create_table(new_name(), pa.table({"id": [0, 1]})))
    seen: list[int] = []

    def note(progress: dict[str, Any]) -> None:
        seen.append(progress["output_rows"])

    whole = pa.Table.from_batches(some_batches())
    added = lake.done(table.add(whole, write_parallelism=3, progress=note))
    assert added.version == 2
    assert lake.done(table.count_rows()) == BATCHES * ROWS + 2
    assert seen[-1] == BATCHES * ROWS
    again = lake.done(table.add(stream(), mode="overwrite", write_parallelism=2))
    assert (again.version, lake.done(table.count_rows())) == (3, BATCHES * ROWS)


@covers("connection", "create_table")
def test_batches_come_one_by_one(lake: Lake) -> None:
    schema = pa.schema([("id", pa.int64())])
    make = lake.database.create_table
    for source in (stream(), some_batches()):
        table = lake.done(make(new_name(), source, schema=schema))
        assert lake.done(table.count_rows()) == BATCHES * ROWS
    lake.done(table.add(some_batches()))
    merged = table.merge_insert("id").when_not_matched_insert_all()
    assert lake.done(merged.execute(stream())).num_inserted_rows == 0
    assert lake.done(table.count_rows()) == 2 * BATCHES * ROWS
