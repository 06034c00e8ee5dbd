"""The generated urllib3 client, unmodified: every operation, with its models as the oracle."""

import base64
import json
from pathlib import Path
from typing import Any, cast

import lance
import pyarrow as pa
import pytest
from lance_namespace_urllib3_client.exceptions import ApiException

from tests.harness.clients.generated import Client, models
from tests.harness.data.arrow import people, send
from tests.harness.data.manifests import stage
from tests.harness.data.tables import Table, declare
from tests.harness.processes.servers import Server


@pytest.fixture
def client(server: Server) -> Client:
    return Client(server.url)


@pytest.fixture
def table(server: Server, namespace: str) -> Table:
    return declare(server, f"{namespace}$t")


def new_version(table: Table, version: int) -> Any:
    return models.CreateTableVersionRequest(
        id=table.parts,
        version=version,
        manifest_path=stage(table.location, version),
        metadata={"a": "b"},
        e_tag="e",
        naming_scheme="V2",
    )


def all_versions(table: Table) -> Any:
    every = models.VersionRange(start_version=0, end_version=-1)
    return models.BatchDeleteTableVersionsRequest(id=table.parts, ranges=[every])


def test_namespaces(client: Client, namespace: str) -> None:
    child = f"{namespace}$child"
    request = models.CreateNamespaceRequest(mode="Create", properties={"a": "b"})
    assert client.create_namespace(child, request).properties == {"a": "b"}
    assert client.list_namespaces(namespace).namespaces == ["child"]
    described = client.describe_namespace(child, models.DescribeNamespaceRequest())
    assert described.properties == {"a": "b"}
    assert client.namespace_exists(child, models.NamespaceExistsRequest()) is None
    dropped = client.drop_namespace(child, models.DropNamespaceRequest(behavior="Restrict"))
    assert dropped.properties == {"a": "b"}
    assert client.list_namespaces(namespace).namespaces == []


def test_the_root_namespace(client: Client, namespace: str) -> None:
    assert namespace in client.list_namespaces("$").namespaces
    assert namespace in client.list_namespaces("::", delimiter="::").namespaces
    client.namespace_exists("$", models.NamespaceExistsRequest())
    client.describe_namespace("$", models.DescribeNamespaceRequest())
    client.list_tables("$")


def test_listings_come_in_pages(client: Client, namespace: str) -> None:
    for name in "abc":
        client.create_namespace(f"{namespace}${name}", models.CreateNamespaceRequest())
        client.declare_table(f"{namespace}${name}", models.DeclareTableRequest())
    first = client.list_namespaces(namespace, limit=2)
    rest = client.list_namespaces(namespace, limit=2, page_token=first.page_token)
    assert (first.namespaces, rest.namespaces, rest.page_token) == (["a", "b"], ["c"], None)
    first = client.list_tables(namespace, limit=2, include_declared=True)
    rest = client.list_tables(namespace, limit=2, page_token=first.page_token)
    assert (first.tables, rest.tables, rest.page_token) == (["a", "b"], ["c"], None)
    assert client.list_tables(namespace, include_declared=False).tables == []


def test_tables(client: Client, namespace: str) -> None:
    id = f"{namespace}$t"
    request = models.DeclareTableRequest(properties={"a": "b"}, vend_credentials=True)
    declared = client.declare_table(id, request)
    assert declared.managed_versioning is True
    assert f"{namespace}.t" in client.list_all_tables(delimiter=".").tables
    assert client.table_exists(id, models.TableExistsRequest()) is None
    described = client.describe_table(id, models.DescribeTableRequest(), with_table_uri=True)
    assert described.location == declared.location
    assert described.table_uri == f"file://{declared.location}"
    renamed = models.RenameTableRequest(new_table_name="u", new_namespace_id=[namespace])
    assert client.rename_table(id, renamed).transaction_id
    gone = client.deregister_table(f"{namespace}$u", models.DeregisterTableRequest())
    assert gone.location == declared.location


def test_registered_and_dropped_tables(client: Client, server: Server, namespace: str) -> None:
    place = server.lake / f"{namespace}-registered.lance"
    lance.write_dataset(pa.table({"n": [1]}), str(place))
    id = f"{namespace}$r"
    request = models.RegisterTableRequest(location=place.name, mode="Create", properties={})
    assert client.register_table(id, request).location == str(place)
    dropped = client.drop_table(id)
    assert dropped.id == [namespace, "r"]
    assert dropped.location == str(place)
    assert not place.exists()


def test_a_table_in_detail(client: Client, table: Table) -> None:
    fields = [
        pa.field("n", pa.int64(), nullable=False, metadata={"unit": "m"}),
        pa.field("s", pa.large_string()),
        pa.field("vector", pa.list_(pa.float32(), 4)),
        pa.field("tags", pa.list_(pa.string())),
        pa.field("point", pa.struct([("x", pa.float64()), ("y", pa.float16())])),
        pa.field("at", pa.timestamp("us", "UTC")),
        pa.field("day", pa.date32()),
        pa.field("price", pa.decimal128(10, 2)),
        pa.field("blob", pa.large_binary()),
        pa.field("hash", pa.binary(16)),
    ]
    empty = pa.schema(fields, metadata={"k": "v"}).empty_table()
    lance.write_dataset(empty, str(table.location))
    request = models.DescribeTableRequest(load_detailed_metadata=True)
    found = client.describe_table(table.id, request, load_detailed_metadata=True)
    assert (found.table, found.namespace, found.version) == ("t", table.parts[:1], 1)
    assert [field.name for field in found.var_schema.fields] == empty.schema.names
    kinds = {field.name: field.type.type for field in found.var_schema.fields}
    assert kinds["n"] == "int64"
    assert kinds["vector"] == "fixed_size_list"
    assert found.var_schema.fields[2].type.length == 4
    assert found.var_schema.fields[0].nullable is False
    assert found.stats.num_fragments == 0
    assert found.is_only_declared is False


def test_versions(client: Client, table: Table) -> None:
    created = client.create_table_version(table.id, new_version(table, 1))
    assert created.version.metadata == {"a": "b"}
    assert created.transaction_id
    client.create_table_version(table.id, new_version(table, 2))
    listed = client.list_table_versions(table.id, limit=1, descending=True)
    assert [v.version for v in listed.versions] == [2]
    more = client.list_table_versions(table.id, page_token=listed.page_token, descending=True)
    assert [v.version for v in more.versions] == [1]
    request = models.DescribeTableVersionRequest(version=1)
    assert client.describe_table_version(table.id, request).version == created.version
    client.table_exists(table.id, models.TableExistsRequest(version=2))
    deleted = client.batch_delete_table_versions(table.id, all_versions(table))
    assert deleted.deleted_count == 2


def test_batch_create(client: Client, table: Table) -> None:
    entry = models.CreateTableVersionEntry.from_dict(new_version(table, 1).to_dict())
    request = models.BatchCreateTableVersionsRequest(entries=[entry])
    answer = client.batch_create_table_versions(request)
    assert [v.version for v in answer.versions] == [1]


def test_batch_commit(client: Client, server: Server, namespace: str, table: Table) -> None:
    gone, emptied = (declare(server, f"{namespace}${name}") for name in ("gone", "emptied"))
    operations = [
        models.CommitTableOperation(
            declare_table=models.DeclareTableRequest(id=[namespace, "new"])
        ),
        models.CommitTableOperation(create_table_version=new_version(table, 1)),
        models.CommitTableOperation(delete_table_versions=all_versions(emptied)),
        models.CommitTableOperation(deregister_table=models.DeregisterTableRequest(id=gone.parts)),
    ]
    answer = client.batch_commit_tables(models.BatchCommitTablesRequest(operations=operations))
    assert answer.transaction_id
    assert answer.results[0].declare_table.location
    assert answer.results[1].create_table_version.version.version == 1
    assert answer.results[2].delete_table_versions.deleted_count == 0
    assert answer.results[3].deregister_table.id == gone.parts


def test_transactions(client: Client, table: Table) -> None:
    id = client.create_table_version(table.id, new_version(table, 1)).transaction_id
    described = client.describe_transaction(id, models.DescribeTransactionRequest())
    assert described.status.lower() == "succeeded"
    note = models.AlterTransactionSetProperty(key="note", value="x", mode="Overwrite")
    actions = [models.AlterTransactionAction(setPropertyAction=note)]
    altered = client.alter_transaction(id, models.AlterTransactionRequest(actions=actions))
    assert altered.properties["note"] == "x"


def test_context_and_identity_are_accepted(client: Client, namespace: str) -> None:
    request = models.DescribeNamespaceRequest(
        id=[namespace],
        context={"trace_id": "t"},
        identity=models.Identity(api_key="k", auth_token="t"),
    )
    client.describe_namespace(namespace, request)


@pytest.mark.parametrize("name", ["a b", "a+b", "a/b", "a%b", "é", "a.b", "a#b", "a?b", "日本"])
def test_odd_names_arrive_as_they_were_meant(client: Client, namespace: str, name: str) -> None:
    client.declare_table(f"{namespace}${name}", models.DeclareTableRequest(id=[namespace, name]))
    assert client.list_tables(namespace).tables == [name]


def test_an_error_is_the_clients_own_model(client: Client, namespace: str) -> None:
    with pytest.raises(ApiException) as caught:
        client.describe_table(f"{namespace}$none", models.DescribeTableRequest())
    error = models.ErrorResponse.from_json(cast(str, caught.value.body))
    assert (caught.value.status, error.code) == (404, 4)
    assert error.error
    assert error.instance
    assert error.to_dict() == json.loads(cast(str, caught.value.body))


def test_a_materialized_view_is_created_and_refreshed(
    client: Client, server: Server, namespace: str
) -> None:
    send(server, f"/v1/table/{namespace}$t/create", people(1, 2)).raise_for_status()
    schema = pa.schema([("id", pa.int64())]).serialize().to_pybytes()
    wanted = models.CreateMaterializedViewRequest(
        kind="query",
        source_query="SELECT id FROM t",
        output_schema=base64.b64encode(schema).decode(),
        with_no_data=False,
    )
    made = client.create_materialized_view(f"{namespace}$v", wanted)
    assert made.version == 1
    request = models.RefreshMaterializedViewRequest()
    asked = client.refresh_materialized_view(
        f"{namespace}$v", refresh_materialized_view_request=request
    )
    assert asked.job_id == made.job_id


def test_the_client_finds_the_files_where_it_is_told(client: Client, table: Table) -> None:
    answer = client.create_table_version(table.id, new_version(table, 1))
    assert Path("/" + answer.version.manifest_path) == table.file(1)
