"""pylance, unmodified, on tables whose versions the catalog manages."""

from pathlib import Path
from typing import Any

import lance
import pytest
from lance_namespace import (
    CreateNamespaceRequest,
    DescribeTableRequest,
    DropTableRequest,
    ListTablesRequest,
    NamespaceExistsRequest,
    RenameTableRequest,
    TableExistsRequest,
)
from lance_namespace.errors import TableAlreadyExistsError

from tests.harness.clients.pylance import Client, rows
from tests.harness.processes.servers import Server


def test_a_created_table_is_read_back(client: Client) -> None:
    assert client.numbers() == [1, 2, 3]
    assert client.versions() == [1]


def test_the_catalog_manages_the_table(client: Client) -> None:
    described = client.namespace.describe_table(DescribeTableRequest(id=client.id))
    assert described.managed_versioning is True
    assert described.location


def test_a_second_create_fails(client: Client) -> None:
    with pytest.raises(TableAlreadyExistsError):
        client.write(9, mode="create")
    assert client.numbers() == [1, 2, 3]


def test_each_kind_of_change_is_a_version(client: Client) -> None:
    client.write(4, 5)
    dataset = client.open()
    dataset.delete("n = 1")
    dataset.update({"n": "n + 100"}, where="n = 2")
    assert dataset.version == 4
    assert client.versions() == [1, 2, 3, 4]
    assert client.numbers() == [3, 4, 5, 102]


def test_overwrite_replaces_the_rows(client: Client) -> None:
    client.write(7, mode="overwrite")
    assert client.numbers() == [7]
    assert client.versions() == [1, 2]


def test_merge_insert_updates_and_inserts(client: Client) -> None:
    dataset = client.open()
    merge = dataset.merge_insert("n").when_matched_update_all().when_not_matched_insert_all()
    merge.execute(rows(3, 4))
    assert client.numbers() == [1, 2, 3, 4]


def test_compaction_commits_through_the_catalog(client: Client) -> None:
    client.write(4)
    client.write(5)
    dataset = client.open()
    metrics = dataset.optimize.compact_files()
    assert metrics.fragments_removed == 3
    assert client.numbers() == [1, 2, 3, 4, 5]
    assert client.versions()[-1] == client.open().version == dataset.version


def test_columns_can_be_added_and_dropped(client: Client) -> None:
    dataset = client.open()
    dataset.add_columns({"double": "n * 2"})
    dataset.drop_columns(["vector"])
    assert client.open().to_table(columns=["double"])["double"].to_pylist() == [2, 4, 6]
    assert client.open().schema.names == ["n", "double"]


def test_indices_are_built_and_used(client: Client) -> None:
    client.open().create_scalar_index("n", "BTREE")
    dataset = client.open()
    assert [index.name for index in dataset.describe_indices()] == ["n_idx"]
    assert dataset.to_table(filter="n = 2").num_rows == 1


def test_older_versions_stay_readable(client: Client) -> None:
    client.write(4)
    client.write(5)
    assert client.open(version=1).count_rows() == 3
    assert client.open().checkout_version(2).count_rows() == 4


def test_a_version_that_is_not_there_cannot_be_opened(client: Client) -> None:
    with pytest.raises((OSError, ValueError, RuntimeError), match=r"99|(?i:not found)"):
        client.open(version=99)


def test_a_restored_version_is_the_newest(client: Client) -> None:
    client.write(4)
    old: Any = client.open().checkout_version(1)
    old.restore()
    assert client.numbers() == [1, 2, 3]
    assert client.versions() == [1, 2, 3]


def test_a_branch_goes_its_own_way(client: Client) -> None:
    branch = client.open().create_branch("dev")
    lance.write_dataset(rows(50), branch, mode="append")
    assert client.open().checkout_version(("dev", None)).count_rows() == 4
    assert client.numbers() == [1, 2, 3]
    assert client.versions("dev")[-1] == 2


def test_a_branch_can_be_deleted_and_made_again(client: Client) -> None:
    branch = client.open().create_branch("dev")
    lance.write_dataset(rows(50, 51), branch, mode="append")
    client.open().branches.delete("dev")
    again = client.open().create_branch("dev")
    lance.write_dataset(rows(60), again, mode="append")
    found = client.open().checkout_version(("dev", None)).to_table()["n"].to_pylist()
    assert sorted(found) == [1, 2, 3, 60]


def test_a_tag_leads_to_its_version(client: Client) -> None:
    dataset = client.open()
    dataset.tags.create("first", 1)
    client.write(4)
    assert client.open(version="first").count_rows() == 3
    request = DescribeTableRequest(id=client.id, tag="first")
    assert client.namespace.describe_table(request).version == 1


def test_a_renamed_table_is_written_under_its_new_name(server: Server, client: Client) -> None:
    client.write(4)
    answer = server.post(f"/v1/table/{'$'.join(client.id)}/rename", {"new_table_name": "renamed"})
    answer.raise_for_status()
    renamed = Client(client.namespace, [client.id[0], "renamed"])
    renamed.write(5)
    assert renamed.numbers() == [1, 2, 3, 4, 5]
    assert renamed.versions() == [1, 2, 3]


def test_names_with_spaces_plus_and_slashes_work(server: Server, client: Client) -> None:
    odd = Client(client.namespace, [client.id[0], "a b+c/d é"])
    odd.write(1, mode="create")
    odd.write(2)
    assert odd.numbers() == [1, 2]
    listed = client.namespace.list_tables(ListTablesRequest(id=[client.id[0]])).tables
    assert "a b+c/d é" in listed


def test_the_namespace_object_asks_and_drops(client: Client) -> None:
    space = client.namespace
    space.create_namespace(CreateNamespaceRequest(id=[client.id[0], "sub"]))
    space.namespace_exists(NamespaceExistsRequest(id=[client.id[0], "sub"]))
    space.table_exists(TableExistsRequest(id=client.id))
    uri = client.open().uri
    space.drop_table(DropTableRequest(id=client.id))
    assert not Path(uri).exists()
    assert space.list_tables(ListTablesRequest(id=[client.id[0]])).tables == []


def test_the_namespace_object_renames(client: Client) -> None:
    request = RenameTableRequest(id=client.id, new_table_name="other")
    client.namespace.rename_table(request)
    assert client.namespace.list_tables(ListTablesRequest(id=[client.id[0]])).tables == ["other"]
