"""Drops, renames and registrations of Iceberg tables, and names that other things have."""

import pytest

from tests.harness.clients import iceberg_requests as views
from tests.harness.clients import iceberg_tables as tables
from tests.harness.data.arrow import people, send
from tests.harness.processes.servers import Server
from tests.harness.processes.waiting import until
from tests.server.iceberg.tables.test_commits import refused


def test_a_drop_leaves_the_files(server: Server, namespace: str) -> None:
    made = tables.make(server, namespace)
    assert tables.drop(namespace).send(server).status_code == 204
    refused(tables.drop(namespace).send(server), 404, "NoSuchTableException")
    assert tables.read_file(made["metadata-location"]) == made["metadata"]


def test_a_purge_removes_the_tables_folder(server: Server, namespace: str) -> None:
    made = tables.make(server, namespace)
    folder = tables.local(made["metadata"]["location"])
    (folder / "data").mkdir()
    (folder / "data" / "x.parquet").write_bytes(b"x")
    assert tables.drop(namespace, purge=True).send(server).status_code == 204
    until(lambda: not folder.exists(), "the folder is still there")


def test_a_purge_removes_nothing_outside_the_tables_folders(server: Server, namespace: str) -> None:
    lake = server.lake.resolve()
    place, beside = lake / f"mine-{namespace}", lake / f"mine-{namespace}-too"
    beside.mkdir()
    tables.make(server, namespace, location=str(place))
    log = f"{lake}/logs-{namespace}"
    request = tables.set_property(namespace, **{"write.metadata.path": log})
    location = request.send(server).raise_for_status().json()["metadata-location"]
    other = tables.local(location).parent / "other.metadata.json"
    other.write_text("{}")
    assert tables.drop(namespace, purge=True).send(server).status_code == 204
    until(lambda: not place.exists(), "the folder is still there")
    assert not tables.local(location).exists()
    assert beside.exists()
    assert other.exists()


def test_what_may_not_be_collected_is_not_purged(server: Server, namespace: str) -> None:
    made = tables.make(server, namespace, properties={"gc.enabled": "false"})
    message = refused(tables.drop(namespace, purge=True).send(server), 400, "BadRequestException")
    assert "gc.enabled" in message
    assert tables.load(server, namespace)["metadata"] == made["metadata"]
    assert tables.drop(namespace).send(server).status_code == 204


def test_purge_is_yes_or_no(server: Server, namespace: str) -> None:
    tables.make(server, namespace)
    path = tables.path(namespace)
    answer = server.client.delete(path, params={"purgeRequested": "perhaps"})
    refused(answer, 400, "BadRequestException")


def test_an_unregistered_table_is_told_as_it_was_and_can_come_back(
    server: Server, namespace: str
) -> None:
    metadata = tables.make(server, namespace)["metadata"]
    now = tables.append_to(namespace, "t", metadata).send(server).raise_for_status().json()
    assert tables.unregister(namespace).send(server).raise_for_status().json() == now
    assert server.get(tables.path(namespace)).status_code == 404
    back = tables.register(namespace, "again", now["metadata-location"]).send(server)
    assert back.raise_for_status().json() == {**now, "config": {}}
    found = tables.append_to(namespace, "again", now["metadata"]).send(server)
    assert found.raise_for_status().json()["metadata-location"].rpartition("/")[2][:5] == "00002"


def test_a_renamed_table_keeps_its_files(server: Server, namespace: str) -> None:
    made = tables.make(server, namespace)
    server.post(f"/v1/namespace/{namespace}$x/create").raise_for_status()
    body = tables.rename(namespace, "t", "u").body
    body["destination"]["namespace"] = [namespace, "x"]
    assert server.post(f"{tables.ROOT}/tables/rename", body).status_code == 204
    assert server.get(tables.path(namespace)).status_code == 404
    found = tables.load(server, f"{namespace}%1Fx", "u")
    assert found["metadata-location"] == made["metadata-location"]
    # The name is free for another, with a folder of its own.
    other = tables.make(server, namespace)
    assert other["metadata"]["location"] != made["metadata"]["location"]


def test_a_rename_that_cannot_be_changes_nothing(server: Server, namespace: str) -> None:
    tables.make(server, namespace, "a")
    tables.make(server, namespace, "b")
    views.create(namespace, "v").send(server).raise_for_status()
    server.post(f"/v1/table/{namespace}$lance/declare").raise_for_status()
    for name, kind in (("b", "Table"), ("v", "View"), ("lance", "Table")):
        answer = tables.rename(namespace, "a", name).send(server)
        message = refused(answer, 409, "AlreadyExistsException")
        ns = namespace
        assert message.startswith(f"Cannot rename {ns}.a to {ns}.{name}. {kind} already exists")
    gone = tables.rename(namespace, "x", "y").send(server)
    refused(gone, 404, "NoSuchTableException")
    nowhere = tables.rename(namespace, "a", "y", to="nowhere").send(server)
    refused(nowhere, 404, "NoSuchNamespaceException")
    assert tables.rename(namespace, "a", "a").send(server).status_code == 204
    # A view or a Lance table is none of these routes' tables.
    for name in ("v", "lance"):
        refused(tables.rename(namespace, name, "y").send(server), 404, "NoSuchTableException")


def test_one_name_is_one_thing_and_each_protocol_says_so(server: Server, namespace: str) -> None:
    tables.make(server, namespace, "i")
    views.create(namespace, "v").send(server).raise_for_status()
    send(server, f"/v1/table/{namespace}$l/create", people(1)).raise_for_status()
    message = refused(tables.create(namespace, "i").send(server), 409, "AlreadyExistsException")
    assert message == f"Table already exists: {namespace}.i"
    for name, kind in (("v", "View"), ("l", "Table")):
        for stage in (False, True):
            answer = tables.create(namespace, name, stage=stage).send(server)
            message = refused(answer, 409, "AlreadyExistsException")
            assert message.startswith(f"{kind} with same name already exists: {namespace}.{name}")
    answer = views.create(namespace, "i").send(server)
    message = refused(answer, 409, "AlreadyExistsException")
    assert message == f"Table with same name already exists: {namespace}.i"
    answer = views.rename(namespace, "v", "i").send(server)
    message = refused(answer, 409, "AlreadyExistsException")
    assert message == f"Cannot rename {namespace}.v to {namespace}.i. Table already exists"
    for path, body in (
        ("declare", None),
        ("register", {"location": "somewhere.lance"}),
    ):
        told = server.post(f"/v1/table/{namespace}$i/{path}", body)
        assert (told.status_code, told.json()["code"]) in ((409, 5), (400, 13)), told.text
    made = send(server, f"/v1/table/{namespace}$i/create", people(1))
    assert (made.status_code, made.json()["code"]) == (409, 5)
    query = {"source_query": "SELECT 1 AS a", "kind": "query"}
    made = server.post(f"/v1/materialized_view/{namespace}$i/create", query)
    assert made.status_code in (400, 409), made.text
    renamed = server.post(f"/v1/table/{namespace}$l/rename", {"new_table_name": "i"})
    assert (renamed.status_code, renamed.json()["code"]) == (409, 5)


@pytest.mark.parametrize("where", ["", "/metadata", "/data/x"])
def test_nothing_else_may_be_put_into_a_tables_folder(
    server: Server, namespace: str, where: str
) -> None:
    location = tables.make(server, namespace)["metadata"]["location"] + where
    answer = tables.create(namespace, "u", location=location).send(server)
    assert "overlaps" in refused(answer, 400, "BadRequestException")
    view = views.create(namespace, "v")
    view.body["location"] = location
    refused(view.send(server), 400, "BadRequestException")
    plain = location.removeprefix("file://")
    lance = server.post(f"/v1/table/{namespace}$l/declare", {"location": plain})
    assert lance.status_code == 409, lance.text


def test_a_table_cannot_be_put_around_or_into_something_else(
    server: Server, namespace: str
) -> None:
    path = f"/v1/table/{namespace}$l"
    lake = server.lake.resolve()
    place = f"deep-{namespace}/in/table.lance"
    server.post(f"{path}/declare", {"location": place}).raise_for_status()
    for location in (f"{lake}/deep-{namespace}", f"{lake}/{place}", f"{lake}/{place}/x"):
        answer = tables.create(namespace, location=location).send(server)
        assert "overlaps" in refused(answer, 400, "BadRequestException")
    refused(tables.create(namespace, location=str(lake)).send(server), 403, "ForbiddenException")


def test_a_namespaces_location_is_where_its_tables_go(server: Server) -> None:
    ns = "placed" + server.url.rpartition(":")[2]
    place = f"{server.lake.resolve()}/below-{ns}"
    body = {"namespace": [ns], "properties": {"location": place}}
    server.post(f"{tables.ROOT}/namespaces", body).raise_for_status()
    made = tables.make(server, ns)["metadata"]
    assert made["location"].startswith(f"file://{place}/{ns}.t-")
    staged = tables.make(server, ns, "u", stage=True)["metadata"]
    tables.finish(ns, "u", staged).send(server).raise_for_status()
    assert tables.load(server, ns, "u")["metadata"]["location"] == staged["location"]
    assert tables.drop(ns, "u", purge=True).send(server).status_code == 204
    until(lambda: not tables.local(staged["location"]).exists(), "it is still there")


def test_a_registered_table_has_its_history(server: Server, namespace: str) -> None:
    metadata = tables.make(server, namespace)["metadata"]
    first = tables.append_to(namespace, "t", metadata).send(server).raise_for_status().json()
    place = first["metadata-location"]
    refused(tables.register(namespace, "t", place).send(server), 409, "AlreadyExistsException")
    refused(tables.register(namespace, "u", place).send(server), 400, "BadRequestException")
    tables.drop(namespace).send(server).raise_for_status()
    found = tables.register(namespace, "u", place).send(server).raise_for_status().json()
    assert found == {**first, "config": {}}
    assert tables.load(server, namespace, "u") == found


def test_registering_over_a_table_makes_it_what_the_file_says(
    server: Server, namespace: str
) -> None:
    made = tables.make(server, namespace)
    newer = tables.append_to(namespace, "t", made["metadata"]).send(server).json()
    back = tables.register(namespace, "t", made["metadata-location"], overwrite=True)
    assert back.send(server).raise_for_status().json() == made | {"config": {}}
    assert tables.load(server, namespace)["metadata"] == made["metadata"]
    forth = tables.register(namespace, "t", newer["metadata-location"], overwrite=True)
    assert forth.send(server).raise_for_status().json()["metadata"] == newer["metadata"]
    fresh = tables.register(namespace, "u", newer["metadata-location"], overwrite=True)
    refused(fresh.send(server), 400, "BadRequestException")
    views.create(namespace, "v").send(server).raise_for_status()
    over = tables.register(namespace, "v", newer["metadata-location"], overwrite=True)
    message = refused(over.send(server), 409, "AlreadyExistsException")
    assert message == f"View with same name already exists: {namespace}.v"


def test_only_a_tables_metadata_in_the_lake_can_be_registered(
    server: Server, namespace: str
) -> None:
    view = views.create(namespace, "v").send(server).raise_for_status().json()
    lake = server.lake.resolve()
    (lake / "nothing.metadata.json").write_text("[]")
    for place, status, kind in (
        (view["metadata-location"], 400, "IllegalArgumentException"),
        (f"{lake}/nothing.metadata.json", 400, "IllegalArgumentException"),
        (f"{lake}/absent.metadata.json", 404, "NotFoundException"),
        ("/etc/passwd", 403, "ForbiddenException"),
        ("s3://elsewhere/x.metadata.json", 403, "ForbiddenException"),
    ):
        refused(tables.register(namespace, "t", place).send(server), status, kind)


def test_a_namespace_with_a_table_is_not_empty(server: Server, namespace: str) -> None:
    made = tables.make(server, namespace)
    answer = server.client.delete(f"{tables.ROOT}/namespaces/{namespace}")
    refused(answer, 409, "NamespaceNotEmptyException")
    told = server.post(f"/v1/namespace/{namespace}/drop", {})
    assert (told.status_code, told.json()["code"]) == (409, 3)
    assert "iceberg table 't'" in told.text
    dropped = server.post(f"/v1/namespace/{namespace}/drop", {"behavior": "Cascade"})
    dropped.raise_for_status()
    assert server.get(tables.path(namespace)).status_code == 404
    # Its files were not asked for.
    assert tables.read_file(made["metadata-location"]) == made["metadata"]
