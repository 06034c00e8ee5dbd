"""A lake on S3: a managed table written and read by pylance, on a local moto server."""

from collections.abc import Iterator

import lance
import pytest

from tests.harness.clients.pylance import Client, connect, rows
from tests.harness.data.manifests import make_manifest
from tests.harness.data.tables import code
from tests.harness.processes.s3 import BUCKET, SECRETS, Store, serving
from tests.harness.processes.servers import Server


@pytest.fixture(scope="module")
def server(store: Store, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with serving(store, tmp_path_factory.mktemp("data")) as started:
        yield started


@pytest.fixture
def client(server: Server, store: Store, namespace: str) -> Client:
    """A table on S3 that was created with the rows 1, 2 and 3."""
    client = Client(connect(server), [namespace, "t"], store.options)
    client.write(1, 2, 3, mode="create")
    return client


def location(server: Server, client: Client) -> str:
    answer = server.post(f"/v1/table/{'$'.join(client.id)}/describe")
    return str(answer.raise_for_status().json()["location"])


def key(server: Server, client: Client) -> str:
    return location(server, client).removeprefix(f"s3://{BUCKET}/")


def test_the_server_is_ready(server: Server) -> None:
    assert server.get("/readyz").status_code == 200


def test_a_table_is_written_and_read(server: Server, client: Client) -> None:
    client.write(4)
    client.open().delete("n = 1")
    assert client.numbers() == [2, 3, 4]
    assert client.versions() == [1, 2, 3]
    assert location(server, client).startswith(f"s3://{BUCKET}/lake/")


def test_manifests_have_their_final_names(server: Server, store: Store, client: Client) -> None:
    client.write(4)
    folder = f"{key(server, client)}/_versions/"
    found = [k.removeprefix(folder) for k in store.keys(folder) if ".manifest" in k]
    assert found == [f"{2**64 - 1 - v:020d}.manifest" for v in (2, 1)]


def test_a_reader_by_path_sees_the_same(server: Server, store: Store, client: Client) -> None:
    client.write(4)
    by_path = lance.dataset(location(server, client), storage_options=store.options)
    assert sorted(by_path.to_table()["n"].to_pylist()) == [1, 2, 3, 4]


def test_a_writer_by_path_is_seen(server: Server, store: Store, client: Client) -> None:
    place = location(server, client)
    lance.write_dataset(rows(4), place, mode="append", storage_options=store.options)
    assert client.numbers() == [1, 2, 3, 4]
    client.write(5)
    assert client.versions() == [1, 2, 3]


def stage(store: Store, folder: str, version: int) -> str:
    path = f"{folder}/_versions/{2**64 - 1 - version:020d}.manifest-staged"
    store.bucket.put_object(Key=path, Body=make_manifest(version))
    return path


def test_a_taken_version_is_a_conflict(server: Server, store: Store, client: Client) -> None:
    folder, path = key(server, client), f"/v1/table/{'$'.join(client.id)}/version"
    staged = stage(store, folder, 1)
    body = {"version": 1, "manifest_path": staged}
    assert code(server.post(f"{path}/create", body)) == (409, 14)
    assert server.post(f"{path}/describe", {"version": 1}).status_code == 200
    assert staged not in store.keys(folder)
    assert client.numbers() == [1, 2, 3]


@pytest.mark.parametrize("form", ["{key}", "s3://bucket/{key}"])
def test_a_staged_manifest_is_moved(
    server: Server, store: Store, client: Client, form: str
) -> None:
    folder, path = key(server, client), f"/v1/table/{'$'.join(client.id)}/version/create"
    staged = stage(store, folder, 2)
    body = {"version": 2, "manifest_path": form.format(key=staged)}
    answer = server.post(path, body)
    assert answer.json()["version"]["manifest_path"] == staged.removesuffix("-staged")
    assert staged not in store.keys(folder)
    assert staged.removesuffix("-staged") in store.keys(folder)
    assert server.post(path, body).status_code == 200


def test_a_staged_manifest_elsewhere_is_refused(
    server: Server, store: Store, client: Client
) -> None:
    staged = stage(store, "elsewhere", 2)
    path = f"/v1/table/{'$'.join(client.id)}/version/create"
    for form in (staged, f"s3://{BUCKET}/{staged}", f"s3://other/{staged}", "/etc/passwd"):
        assert code(server.post(path, {"version": 2, "manifest_path": form})) == (400, 13)
    assert store.keys("elsewhere") == [staged]


def test_drop_removes_the_objects(server: Server, store: Store, client: Client) -> None:
    folder, path = key(server, client), f"/v1/table/{'$'.join(client.id)}/drop"
    assert store.keys(f"{folder}/")
    assert server.post(path).json()["location"] == f"s3://{BUCKET}/{folder}"
    assert store.keys(f"{folder}/") == []


def test_drop_leaves_a_neighbour_whose_name_begins_alike(
    server: Server, store: Store, client: Client
) -> None:
    folder = key(server, client)
    store.bucket.put_object(Key=f"{folder}-2/x", Body=b"x")
    server.post(f"/v1/table/{'$'.join(client.id)}/drop").raise_for_status()
    assert store.keys(folder) == [f"{folder}-2/x"]


def test_describe_tells_the_way_to_the_store_but_no_secret(
    server: Server, store: Store, client: Client
) -> None:
    public = {name: value for name, value in store.options.items() if name not in SECRETS}
    path = f"/v1/table/{'$'.join(client.id)}/describe"
    for body in ({}, {"vend_credentials": True}):
        answer = server.post(path, body)
        assert answer.json()["storage_options"] == public
        assert not any(secret in answer.text for secret in SECRETS.values())
    assert "storage_options" not in server.post(path, {"vend_credentials": False}).json()


def test_declare_tells_the_way_to_the_store_too(server: Server, namespace: str) -> None:
    answer = server.post(f"/v1/table/{namespace}$d/declare").json()
    assert answer["storage_options"]["aws_region"] == "us-east-1"
    assert not SECRETS.keys() & answer["storage_options"].keys()


def test_a_table_is_described_in_detail(server: Server, client: Client) -> None:
    path = f"/v1/table/{'$'.join(client.id)}/describe"
    answer = server.post(path, {"load_detailed_metadata": True, "with_table_uri": True}).json()
    assert [field["name"] for field in answer["schema"]["fields"]] == ["n", "vector"]
    assert answer["table_uri"] == answer["location"]


def test_a_table_on_s3_is_registered(server: Server, store: Store, namespace: str) -> None:
    place = f"s3://{BUCKET}/lake/by-hand-{namespace}.lance"
    lance.write_dataset(rows(1, 2), place, storage_options=store.options)
    relative = {"location": place.removeprefix(f"s3://{BUCKET}/lake/")}
    answer = server.post(f"/v1/table/{namespace}$r/register", relative)
    assert answer.json()["location"] == place


@pytest.mark.parametrize("place", ["s3://bucket/x", "s3://other/lake/x", "../x", "/tmp/x"])
def test_a_place_outside_the_root_is_refused(server: Server, namespace: str, place: str) -> None:
    for operation in ("register", "declare"):
        answer = server.post(f"/v1/table/{namespace}$r/{operation}", {"location": place})
        assert code(answer) == (400, 13)
