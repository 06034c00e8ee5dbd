"""The data operations through pylance's and lancedb's own clients, unmodified."""

import io
from typing import Any

import lancedb
import pyarrow as pa
import pytest
from lance_namespace_urllib3_client import models as generated_models

from tests.harness.clients.pylance import connect
from tests.harness.data.arrow import people, to_stream
from tests.harness.processes.servers import Server

# The package does not say what it exports.
models: Any = generated_models


@pytest.fixture
def catalog(server: Server) -> Any:
    return connect(server)


@pytest.fixture
def table(catalog: Any, namespace: str) -> list[str]:
    """A table with the persons 1, 2 and 3, made by pylance's client."""
    id = [namespace, "t"]
    made = catalog.create_table(
        models.CreateTableRequest(id=id, mode="create"), to_stream(people(1, 2, 3))
    )
    assert made.version == 1
    return id


def read(answer: Any) -> pa.Table:
    data = answer if isinstance(answer, bytes) else answer.data
    return pa.ipc.open_file(io.BytesIO(data)).read_all()


def query(table: list[str], **fields: Any) -> Any:
    vector = models.QueryTableRequestVector(single_vector=fields.pop("vector", []))
    return models.QueryTableRequest(id=table, vector=vector, **{"k": 10, **fields})


def test_pylance_inserts_and_counts(catalog: Any, table: list[str]) -> None:
    answer = catalog.insert_into_table(
        models.InsertIntoTableRequest(id=table), to_stream(people(4))
    )
    assert answer.version == 2
    counted = catalog.count_table_rows(models.CountTableRowsRequest(id=table))
    assert (counted if isinstance(counted, int) else counted.count) == 4


def test_pylance_merges_updates_and_deletes(catalog: Any, table: list[str]) -> None:
    merge = models.MergeInsertIntoTableRequest(
        id=table, on=["id"], when_matched_update_all=True, when_not_matched_insert_all=True
    )
    merged = catalog.merge_insert_into_table(merge, to_stream(people(3, 4, name="m")))
    assert (merged.num_updated_rows, merged.num_inserted_rows) == (1, 1)
    update = models.UpdateTableRequest(id=table, updates=[["name", "'x'"]], predicate="id = 1")
    assert catalog.update_table(update).updated_rows == 1
    catalog.delete_from_table(models.DeleteFromTableRequest(id=table, predicate="id = 2"))
    rows = read(catalog.query_table(query(table, filter="id < 10"))).to_pylist()
    names = {row["id"]: row["name"] for row in rows}
    assert names == {1: "x", 3: "m3", 4: "m4"}


def test_pylance_alters_columns_and_reads_them(catalog: Any, table: list[str]) -> None:
    column = models.AddColumnsEntry(name="double", expression="id * 2")
    catalog.alter_table_add_columns(
        models.AlterTableAddColumnsRequest(id=table, new_columns=[column])
    )
    rows = read(catalog.query_table(query(table))).to_pylist()
    assert sorted(row["double"] for row in rows) == [2, 4, 6]
    catalog.alter_table_drop_columns(
        models.AlterTableDropColumnsRequest(id=table, columns=["double"])
    )
    assert read(catalog.query_table(query(table))).column_names == ["id", "name"]


def test_pylance_builds_lists_and_drops_an_index(catalog: Any, table: list[str]) -> None:
    catalog.create_table_scalar_index(
        models.CreateTableIndexRequest(id=table, column="id", index_type="BTREE", name="by_id")
    )
    listed = catalog.list_table_indices(models.ListTableIndicesRequest(id=table))
    assert [index.index_name for index in listed.indexes] == ["by_id"]
    catalog.drop_table_index(models.DropTableIndexRequest(id=table, index_name="by_id"))
    assert catalog.list_table_indices(models.ListTableIndicesRequest(id=table)).indexes == []


def test_pylance_tags_branches_and_restores(catalog: Any, table: list[str]) -> None:
    catalog.create_table_tag(models.CreateTableTagRequest(id=table, tag="first", version=1))
    found = catalog.get_table_tag_version(models.GetTableTagVersionRequest(id=table, tag="first"))
    assert found.version == 1
    catalog.create_table_branch(models.CreateTableBranchRequest(id=table, name="dev"))
    catalog.delete_from_table(
        models.DeleteFromTableRequest(id=table, predicate="true", branch="dev")
    )
    catalog.delete_from_table(models.DeleteFromTableRequest(id=table, predicate="id = 1"))
    catalog.restore_table(models.RestoreTableRequest(id=table, version=1))
    assert read(catalog.query_table(query(table))).num_rows == 3
    stats = catalog.get_table_stats(models.GetTableStatsRequest(id=table))
    assert stats.num_rows == 3


def test_lancedb_works_on_a_table_that_the_server_made(
    server: Server, catalog: Any, namespace: str
) -> None:
    vectors = pa.array([[1.0, 0.0], [0.0, 1.0]], pa.list_(pa.float32(), 2))
    rows = pa.table({"id": [1, 2], "vector": vectors})
    catalog.create_table(models.CreateTableRequest(id=[namespace, "v"]), to_stream(rows))
    opened = lancedb.connect_namespace("rest", {"uri": server.url}).open_table(
        "v", namespace_path=[namespace]
    )
    opened.add(rows)
    assert opened.search([0.0, 1.0]).limit(1).to_list()[0]["id"] == 2
    nearest = read(catalog.query_table(query([namespace, "v"], vector=[1.0, 0.0], k=2)))
    assert nearest.column("id").to_pylist() == [1, 1]
