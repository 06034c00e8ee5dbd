"""lancedb's namespace connection, unmodified."""

from typing import Any

import lancedb
import pyarrow as pa
import pytest
from lancedb.index import BTree

from tests.harness.data.tables import new_name
from tests.harness.processes.servers import Server


def rows(*ids: int) -> pa.Table:
    vectors = pa.array([[float(id), 0.0] for id in ids], pa.list_(pa.float32(), 2))
    return pa.table({"id": pa.array(ids, pa.int64()), "vector": vectors})


def names(database: Any, *namespace: str) -> list[str]:
    return list(database.list_tables(namespace_path=list(namespace)).tables)


@pytest.fixture
def database(server: Server) -> Any:
    return lancedb.connect_namespace("rest", {"uri": server.url})


def test_create_open_add_and_count(database: Any, namespace: str) -> None:
    database.create_table("t", rows(1, 2), namespace_path=[namespace]).add(rows(3))
    table = database.open_table("t", namespace_path=[namespace])
    assert table.count_rows() == 3
    assert table.version == 2


def test_search_finds_the_nearest(database: Any, namespace: str) -> None:
    table = database.create_table("t", rows(1, 2, 3), namespace_path=[namespace])
    assert [row["id"] for row in table.search([2.1, 0.0]).limit(1).to_list()] == [2]
    assert table.search().where("id > 1").to_arrow()["id"].to_pylist() == [2, 3]


def test_rows_are_deleted_updated_and_merged(database: Any, namespace: str) -> None:
    table = database.create_table("t", rows(1, 2, 3), namespace_path=[namespace])
    table.delete("id = 1")
    table.update(where="id = 2", values={"id": 20})
    table.merge_insert("id").when_not_matched_insert_all().execute(rows(3, 4))
    again = database.open_table("t", namespace_path=[namespace])
    assert sorted(again.to_arrow()["id"].to_pylist()) == [3, 4, 20]


def test_optimize_and_index(database: Any, namespace: str) -> None:
    table = database.create_table("t", rows(*range(300)), namespace_path=[namespace])
    table.add(rows(300))
    table.create_index("id", config=BTree())
    table.optimize()
    again = database.open_table("t", namespace_path=[namespace])
    assert [index.columns for index in again.list_indices()] == [["id"]]
    assert again.count_rows("id >= 299") == 2


def test_versions_can_be_checked_out_and_restored(database: Any, namespace: str) -> None:
    table = database.create_table("t", rows(1), namespace_path=[namespace])
    table.add(rows(2))
    table.checkout(1)
    assert table.count_rows() == 1
    table.restore()
    assert database.open_table("t", namespace_path=[namespace]).count_rows() == 1


def test_tables_are_listed_and_dropped(server: Server, database: Any, namespace: str) -> None:
    for name in ("a", "b", "c"):
        database.create_table(name, rows(1), namespace_path=[namespace])
    assert names(database, namespace) == ["a", "b", "c"]
    database.drop_table("b", namespace_path=[namespace])
    assert names(database, namespace) == ["a", "c"]
    database.drop_all_tables(namespace_path=[namespace])
    assert names(database, namespace) == []
    assert not list(server.lake.glob(f"{namespace}.*"))


def test_tables_of_the_root_work(database: Any) -> None:
    name = new_name("root")
    database.create_table(name, rows(1))
    assert name in names(database)
    assert database.open_table(name).count_rows() == 1
    database.drop_table(name)
    assert name not in names(database)


def test_namespaces_are_created_listed_and_dropped(database: Any, namespace: str) -> None:
    database.create_namespace([namespace, "sub"], properties={"a": "b"})
    assert list(database.list_namespaces([namespace]).namespaces) == ["sub"]
    assert database.describe_namespace([namespace, "sub"]).properties == {"a": "b"}
    database.drop_namespace([namespace, "sub"])
    assert list(database.list_namespaces([namespace]).namespaces) == []


def test_create_modes_of_the_client_work(database: Any, namespace: str) -> None:
    database.create_table("t", rows(1), namespace_path=[namespace])
    with pytest.raises(Exception, match=r"(?i)exist"):
        database.create_table("t", rows(2), namespace_path=[namespace])
    kept = database.create_table("t", rows(2), namespace_path=[namespace], exist_ok=True)
    assert kept.to_arrow()["id"].to_pylist() == [1]
    database.create_table("t", rows(5, 6), namespace_path=[namespace], mode="overwrite")
    again = database.open_table("t", namespace_path=[namespace])
    assert again.to_arrow()["id"].to_pylist() == [5, 6]


def test_a_missing_table_is_said(database: Any, namespace: str) -> None:
    with pytest.raises(Exception, match=r"(?i)not found|does not exist"):
        database.open_table("none", namespace_path=[namespace])
