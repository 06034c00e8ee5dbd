"""lancedb's remote tables: rows in and out, and what the results of changes say."""

from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from typing import Any

import lancedb
import pyarrow as pa
import pytest

from tests.harness.clients.lancedb_modes import SYNC, Lake, covers, some_rows
from tests.harness.data.tables import new_name
from tests.harness.processes.servers import Server


def ids(lake: Lake, table: Any) -> list[int]:
    return sorted(lake.done(lake.query(table).select(["id"]).to_arrow())["id"].to_pylist())


@covers("table", "add", "count_rows", "version", "head")
def test_rows_are_added_and_counted(lake: Lake, table: Any) -> None:
    assert lake.done(table.add(some_rows(4, 5))).version == 2
    assert lake.done(table.count_rows()) == 5
    assert lake.done(table.count_rows("id > 3")) == 2
    assert lake.done(table.head(2))["id"].to_pylist() == [1, 2]
    assert lake.get(table, "version") == 2


def test_rows_replace_others_and_come_in_every_form(lake: Lake, table: Any) -> None:
    lake.done(table.add(some_rows(4, 5), mode="overwrite"))
    assert ids(lake, table) == [4, 5]
    lake.done(table.add(some_rows(6).to_pandas()))
    lake.done(table.add(some_rows(7).to_pylist()))
    reader = pa.RecordBatchReader.from_batches(some_rows(8).schema, some_rows(8).to_batches())
    lake.done(table.add(reader))
    assert ids(lake, table) == [4, 5, 6, 7, 8]


def test_bad_vectors_are_the_clients_business(lake: Lake, table: Any) -> None:
    row = {**some_rows(4).to_pylist()[0], "vector": [1.0, float("nan"), 0.0, 0.0]}
    with pytest.raises(Exception, match="NaN"):
        lake.done(table.add([row]))
    lake.done(table.add([row], on_bad_vectors="drop"))
    assert lake.done(table.count_rows()) == 3


@covers("table", "update")
def test_an_update_says_how_many_rows_it_changed(lake: Lake, table: Any) -> None:
    changed = lake.done(table.update(where="id > 1", **_values(lake, {"text": "new"})))
    assert (changed.rows_updated, changed.version) == (2, 2)
    every = {"values_sql": {"id": "id + 10"}} if lake.mode == SYNC else {}
    done = table.update(**every) if every else table.update(updates_sql={"id": "id + 10"})
    assert lake.done(done).rows_updated == 3
    assert lake.done(table.update(where="id = 99", **_values(lake, {"id": 1}))).rows_updated == 0
    assert ids(lake, table) == [11, 12, 13]


@covers("table", "delete")
def test_a_deletion_says_how_many_rows_are_gone(lake: Lake, table: Any) -> None:
    gone = lake.done(table.delete("id > 1"))
    assert (gone.num_deleted_rows, gone.version) == (2, 2)
    assert lake.done(table.delete("id = 99")).num_deleted_rows == 0
    assert ids(lake, table) == [1]


@covers("table", "merge_insert")
@covers("merge", "when_matched_update_all", "when_not_matched_insert_all", "execute")
def test_a_merge_updates_and_inserts(lake: Lake, table: Any) -> None:
    merge = table.merge_insert("id").when_matched_update_all().when_not_matched_insert_all()
    done = lake.done(merge.execute(some_rows(3, 4, 5)))
    assert (done.num_updated_rows, done.num_inserted_rows, done.num_deleted_rows) == (1, 2, 0)
    assert (done.num_rows, done.version) == (3, 2)
    assert ids(lake, table) == [1, 2, 3, 4, 5]


@covers("merge", "when_not_matched_by_source_delete", "use_index", "use_lsm")
def test_a_merge_has_conditions_keys_and_a_time_limit(lake: Lake, table: Any) -> None:
    only = table.merge_insert("id").when_matched_update_all(where="target.id = 3")
    assert lake.done(only.execute(some_rows(2, 3))).num_updated_rows == 1
    two = table.merge_insert(["id", "text"]).when_not_matched_insert_all().use_index(False)
    assert lake.done(two.execute(some_rows(3, 4))).num_inserted_rows == 1
    drop = table.merge_insert("id").when_not_matched_by_source_delete("id < 3").use_lsm(False)
    done = lake.done(drop.execute(some_rows(3), timeout=timedelta(seconds=60)))
    assert done.num_deleted_rows == 2
    assert ids(lake, table) == [3, 4]


@covers("table", "take_offsets", "take_row_ids")
@covers("take", "select", "with_row_id", "to_arrow", "to_list", "to_pandas", "to_batches")
def test_rows_are_taken_by_place_and_by_id(lake: Lake, table: Any) -> None:
    taken = table.take_offsets([0, 2]).select(["id"]).with_row_id()
    found = lake.done(taken.to_list())
    assert [row["id"] for row in found] == [1, 3]
    by_id = table.take_row_ids([row["_rowid"] for row in found])
    assert lake.done(by_id.to_arrow())["id"].to_pylist() == [1, 3]
    assert len(lake.done(table.take_offsets([1]).to_pandas())) == 1
    assert lake.done(table.take_offsets([1]).to_batches()) is not None


@covers("take", "explain_plan", "analyze_plan", "output_schema", "to_polars", "to_query_object")
def test_a_take_is_explained(lake: Lake, table: Any) -> None:
    rows = lake.done(lake.with_row_id(lake.query(table)).to_list())
    taken = table.take_row_ids([rows[0]["_rowid"]])
    assert lake.done(taken.explain_plan())
    assert lake.done(taken.analyze_plan())
    assert "id" in lake.done(taken.output_schema()).names
    assert lake.done(taken.to_polars()) is not None
    assert taken.to_query_object() is not None


def _values(lake: Lake, values: dict[str, Any]) -> dict[str, Any]:
    return {"values" if lake.mode == SYNC else "updates": values}


def test_counts_are_true_whatever_others_write_meanwhile(lake: Lake, server: Server) -> None:
    """Each of several clients changes rows of its own, in fragments that they share."""
    name, clients = new_name(), 4
    table = lake.done(lake.database.create_table(name, some_rows(*range(400))))
    lake.done(table.add(some_rows(*range(400, 800))))

    def work(client: int) -> list[int]:
        database = lancedb.connect("db://x", api_key="k", host_override=server.url)
        own: Any = database.open_table(name)
        told = []
        for low in range(client * 200, client * 200 + 60, 20):
            told.append(own.delete(f"id >= {low} AND id < {low + 5}").num_deleted_rows)
            where = f"id >= {low} AND id < {low + 12}"
            told.append(own.update(where=where, values={"text": "new"}).rows_updated)
            own.add(some_rows(10_000))
        return told

    with ThreadPoolExecutor(clients) as pool:
        assert list(pool.map(work, range(clients))) == [[5, 7] * 3] * clients
    assert lake.done(table.count_rows()) == 800 + clients * 3 - clients * 3 * 5
    assert lake.done(table.count_rows("text = 'new'")) == clients * 3 * 7
    assert lake.done(table.count_rows("id >= 10000")) == clients * 3
