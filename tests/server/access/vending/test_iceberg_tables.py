"""Iceberg tables and grants: who may do what with one, and which credentials for its files."""

import uuid
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pytest
from pyiceberg.catalog.rest import RestCatalog

from tests.harness.clients import iceberg_tables as tables
from tests.harness.processes.access import GuardedServer
from tests.harness.processes.s3 import BUCKET, SECRETS, Store
from tests.harness.processes.servers import Server
from tests.server.access.vending.test_vending import serve_vending

ASKED = {"X-Iceberg-Access-Delegation": "vended-credentials"}


@pytest.fixture(scope="module")
def vending(store: Store, tmp_path_factory: pytest.TempPathFactory) -> Iterator[GuardedServer]:
    with serve_vending(store, tmp_path_factory.mktemp("data")) as found:
        yield found


def load(server: Server, name: str, **headers: str) -> Any:
    answer = server.client.get(tables.path("n", name), headers=headers)
    return answer.raise_for_status()


def test_a_table_is_granted_like_any_other(gate: GuardedServer, admin: Server, ns: str) -> None:
    tables.make(admin, ns, "i")
    ann = gate.as_(gate.key(name := f"ann{uuid.uuid4().hex[:8]}"))
    assert ann.get(tables.path(ns, "i")).status_code == 404
    gate.grant(name, "reader", "table", ns, "i")
    assert ann.get(tables.path(ns, "i")).status_code == 200
    listed = ann.get(f"{tables.ROOT}/namespaces/{ns}/tables").json()["identifiers"]
    assert listed == [{"namespace": [ns], "name": "i"}]
    refused = tables.set_property(ns, "i", a="b").send(ann)
    assert (refused.status_code, refused.json()["error"]["type"]) == (403, "ForbiddenException")
    told = admin.post("/v1/grants/list", {"table": [ns, "i"]}).json()["grants"]
    assert {"principal": name, "role": "reader", "table": [ns, "i"]}.items() <= (
        next(each for each in told if each["principal"] == name).items()
    )
    # A grant follows its table, and goes with it.
    tables.rename(ns, "i", "j").send(admin).raise_for_status()
    assert ann.get(tables.path(ns, "j")).status_code == 200
    tables.drop(ns, "j").send(admin).raise_for_status()
    tables.make(admin, ns, "j")
    assert ann.get(tables.path(ns, "j")).status_code == 404


def test_a_writer_adds_rows_and_an_owner_changes_the_table(
    gate: GuardedServer, admin: Server, ns: str
) -> None:
    metadata = tables.make(admin, ns, "i")["metadata"]
    writer = gate.as_(gate.key(name := f"wil{uuid.uuid4().hex[:8]}"))
    gate.grant(name, "writer", "table", ns, "i")
    appended = tables.append_to(ns, "i", metadata).send(writer)
    assert appended.status_code == 200, appended.text
    for update in (
        {"action": "set-properties", "updates": {"a": "b"}},
        {"action": "set-location", "location": f"{metadata['location']}/x"},
        {"action": "add-schema", "schema": tables.schema("a")},
    ):
        for request in (
            tables.commit(ns, "i", update),
            tables.transaction((ns, "i", [], [update])),
        ):
            refused = request.send(writer)
            assert refused.status_code == 403, refused.text
            assert "lacks owner" in refused.json()["error"]["message"]
    assert tables.drop(ns, "i").send(writer).status_code == 403
    assert tables.create(ns, "k").send(writer).status_code in (403, 404)


def test_who_makes_a_table_owns_it(gate: GuardedServer, admin: Server, ns: str) -> None:
    owner = gate.as_(gate.key(name := f"own{uuid.uuid4().hex[:8]}"))
    gate.grant(name, "owner", "namespace", ns)
    tables.make(owner, ns, "i")
    staged = tables.make(owner, ns, "s", stage=True)["metadata"]
    tables.finish(ns, "s", staged).send(owner).raise_for_status()
    gate.admin().post(
        "/v1/grants/revoke", {"namespace": [ns], "principal": name, "role": "owner"}
    ).raise_for_status()
    for each in ("i", "s"):
        assert tables.set_property(ns, each, a="b").send(owner).status_code == 200
    refused = tables.create(ns, "k").send(owner)
    assert refused.status_code == 403, refused.text


def test_a_file_is_registered_by_who_may_read_its_table(
    gate: GuardedServer, admin: Server, ns: str
) -> None:
    location = tables.make(admin, ns, "i")["metadata-location"]
    name = f"reg{uuid.uuid4().hex[:8]}"
    person, own = gate.as_(gate.key(name)), f"{ns}$below"
    gate.admin().post(
        "/v1/grants/create", {"namespace": own.split("$"), "principal": name, "role": "owner"}
    ).raise_for_status()
    answer = tables.register(f"{ns}%1Fbelow", "t", location).send(person)
    absent = tables.register(f"{ns}%1Fbelow", "t", f"{location}x").send(person)
    assert answer.status_code == absent.status_code == 404
    assert answer.json()["error"]["type"] == "NotFoundException"


def test_credentials_come_when_they_are_asked_for(vending: GuardedServer) -> None:
    admin = vending.admin()
    made = tables.make(admin, "n", "i")
    location = made["metadata"]["location"]
    assert location.startswith(f"s3://{BUCKET}/lake/n.i-")
    plain = load(admin, "i")
    assert (plain.json()["config"], "storage-credentials" in plain.json()) == ({}, False)
    asked = load(admin, "i", **ASKED)
    assert asked.headers["cache-control"] == "no-store"
    assert "etag" not in asked.headers
    (given,) = asked.json()["storage-credentials"]
    assert given["prefix"] == f"{location}/"
    assert given["config"]["s3.session-token"]
    assert int(given["config"]["s3.session-token-expires-at-ms"]) > 0
    config = asked.json()["config"]
    assert config["client.region"] == "us-east-1"
    assert config["s3.endpoint"].startswith("http")
    assert config.items() >= given["config"].items()
    assert not set(config.values()) & set(SECRETS.values())
    # What others are told is not what this caller was told.
    assert load(admin, "i").json()["config"] == {}
    assert load(admin, "i", **ASKED, **{"If-None-Match": plain.headers["etag"]}).status_code == 200


def test_a_reader_gets_other_credentials_than_a_writer(vending: GuardedServer) -> None:
    admin = vending.admin()
    tables.make(admin, "n", "roles")
    found = []
    for role in ("reader", "writer"):
        vending.grant(f"{role}-roles", role, "table", "n", "roles")
        person = vending.as_(vending.key(f"{role}-roles"))
        answer = person.get(f"{tables.path('n', 'roles')}/credentials").raise_for_status()
        assert answer.headers["cache-control"] == "no-store"
        (given,) = answer.json()["storage-credentials"]
        found.append(given["config"]["s3.access-key-id"])
        assert load(person, "roles", **ASKED).json()["storage-credentials"] == [given]
    assert found[0] != found[1]
    stranger = vending.as_(vending.key("stranger"))
    assert stranger.get(f"{tables.path('n', 'roles')}/credentials").status_code == 404


def test_credentials_for_a_new_table_are_not_kept_with_its_answer(vending: GuardedServer) -> None:
    admin, key = vending.admin(), str(uuid.uuid4())
    body = tables.create("n", "kept").body
    headers = {**ASKED, "Idempotency-Key": key}
    path = f"{tables.ROOT}/namespaces/n/tables"
    first, again = (admin.client.post(path, json=body, headers=headers) for _ in range(2))
    assert first.json()["storage-credentials"][0]["config"]["s3.session-token"]
    assert again.json()["metadata-location"] == first.json()["metadata-location"]
    row = vending.work(
        lambda database: database.fetch_one(
            "SELECT answer FROM idempotency_keys WHERE value = $1", key
        )
    )
    assert row is not None
    assert "s3." not in row[0]


def test_no_table_can_be_put_where_its_credentials_would_reach_another(
    vending: GuardedServer,
) -> None:
    admin = vending.admin()
    location = tables.make(admin, "n", "first")["metadata"]["location"]
    admin.post("/v1/table/n$lance/declare").raise_for_status()
    lance = admin.post("/v1/table/n$lance/describe").json()["location"]
    above = f"s3://{BUCKET}/lake"
    for place in (location, f"{location}/data", lance, f"{lance}/data", above):
        for stage in (False, True):
            answer = tables.create("n", "second", stage=stage, location=place).send(admin)
            assert answer.status_code in (400, 403), answer.text
        update = {"action": "set-location", "location": place}
        tables.create("n", "mover").send(admin)
        moved = tables.commit("n", "mover", update).send(admin)
        assert moved.status_code in (400, 403), moved.text


def test_pyiceberg_works_with_nothing_but_what_it_was_given(
    vending: GuardedServer, store: Store
) -> None:
    key = vending.key("root")
    vending.admin().post(
        "/v1/grants/create", {"catalog": True, "principal": "root", "role": "owner"}
    )
    rest = RestCatalog("p", uri=f"{vending.server.url}/iceberg", token=key)
    rows = pa.table({"id": pa.array([1, 2], pa.int64())})
    table = rest.create_table("n.given", rows.schema)
    table.append(rows)
    assert rest.load_table("n.given").scan().to_arrow().num_rows == 2
    rest.purge_table("n.given")
    assert not rest.table_exists("n.given")
