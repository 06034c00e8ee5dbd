"""Who may make and read views, with whose rights they read, and what is told of them."""

import json
from typing import Any

import pyarrow as pa
import pytest

from tests.harness.data.arrow import people, send
from tests.harness.processes.access import Person, person
from tests.harness.views.definitions import encode_schema, make_column_udf
from tests.server.access.conftest import CLUSTER
from tests.server.access.views.conftest import Place, chunker, stack


def test_what_may_not_be_read_is_not_there_for_a_query(place: Place) -> None:
    place.gate.ungrant(place.ann.name, "reader", "table", place.data, "t")
    hidden = place.create()
    absent = place.create(source_query=f"SELECT id FROM {place.data}.q")
    assert hidden.status_code == absent.status_code == 400
    told = [{**a.json(), "instance": ""} for a in (hidden, absent)]
    said = json.dumps(told[1])
    for sign in "$.":
        said = said.replace(f"{place.data}{sign}q", f"{place.data}{sign}t")
    assert told[0] == json.loads(said)
    # Nor does a hint name it.
    near = f"SELECT id FROM {place.data}.tt"
    assert "there is" not in place.create(source_query=near).text
    place.gate.grant(place.ann.name, "reader", "table", place.data, "t")
    assert f"there is {place.data}$t" in place.create(source_query=near).text


def column_function(table: str) -> dict[str, Any]:
    query = {
        "base": {},
        "source_table": table,
        "column_udfs": [make_column_udf("size", "name")],
    }
    makes = people(1).schema.append(pa.field("size", pa.int64()))
    return {"source_query": json.dumps(query), "output_schema": encode_schema(makes)}


@pytest.mark.parametrize("kind", ["chunker", "column function"])
def test_a_view_with_a_function_brings_code(place: Place, kind: str) -> None:
    body = chunker() if kind == "chunker" else column_function("t")
    if kind != "chunker":
        send(place.admin, f"/v1/table/{place.home}$t/create", people(1)).raise_for_status()
    refused = place.create(**body)
    assert (refused.status_code, refused.json()["code"]) == (403, 15), refused.text
    assert f"{place.ann.name} lacks functions on namespace {place.home}" in refused.text
    place.gate.grant(place.ann.name, "functions", "namespace", place.home)
    created = place.create(**body)
    assert created.status_code == 201, created.text


def test_reading_a_view_needs_a_right_on_the_view_alone(place: Place) -> None:
    place.create().raise_for_status()
    bob = person(place.gate)
    listing = f"namespace/{place.home}/materialized_view/list"
    assert place.ask(bob, "describe").status_code == 404
    place.gate.grant(bob.name, "reader", "table", place.home, "v")
    assert place.ask(bob, "describe").status_code == 200
    assert place.ask(bob, "explain").status_code == 200
    assert bob.ask(f"table/{place.view}/count_rows").json() == 0
    assert bob.get(listing)["views"] == ["v"]
    for operation in ("refresh", "alter", "drop"):
        assert place.ask(bob, operation).json()["code"] == 15, operation
    second = f"materialized_view/{place.home}$w/create"
    query = {"kind": "query", "source_query": f"SELECT id FROM {place.data}.t"}
    place.ann.ask(second, query).raise_for_status()
    assert bob.get(listing)["views"] == ["v"]
    assert place.ann.get(listing)["views"] == ["v", "w"]


def test_a_view_reads_with_the_rights_of_who_created_it(place: Place) -> None:
    place.create().raise_for_status()
    bob = person(place.gate)
    place.gate.grant(bob.name, "writer", "table", place.home, "v")
    # The table is not there for bob, and need not be.
    assert place.ask(bob, "refresh", {"cluster": CLUSTER}).status_code == 202
    place.gate.ungrant(place.ann.name, "reader", "table", place.data, "t")
    body = {"cluster": CLUSTER, "mode": "full"}
    for who in (place.ann, bob):
        for operation in ("refresh", "explain"):
            refused = place.ask(who, operation, body)
            assert (refused.status_code, refused.json()["code"]) == (403, 15), refused.text
            lacks = f"{place.ann.name}, who lacks reader on table {place.data}$t"
            assert lacks in refused.json()["error"]


def test_tables_below_a_view_of_views_are_named_to_who_may_read_them(place: Place) -> None:
    upper = stack(place)
    bob = person(place.gate)
    place.gate.grant(bob.name, "reader", "table", place.home, "w")

    def tell(who: Person) -> tuple[str, Any]:
        told = who.ask(f"table/{upper}/describe", {}).json()["properties"]
        return told["penstock.stale"], json.loads(told["penstock.through"])

    assert tell(place.ann) == ("true", {place.view: {f"{place.data}$t": 1}})
    assert tell(bob) == ("true", {place.view: {}})


def test_dependents_are_named_to_who_may_read_them(place: Place) -> None:
    place.create().raise_for_status()
    carl = person(place.gate)
    place.gate.grant(carl.name, "owner", "namespace", place.data)

    def ask() -> tuple[list[list[str]], int]:
        told = carl.ask(f"table/{place.data}$t/dependents", {}).json()
        return [each["id"] for each in told["dependents"]], told.get("hidden", 0)

    assert ask() == ([], 1)
    dropped = carl.ask(f"table/{place.data}$t/drop_columns", {"columns": ["id"]})
    assert dropped.json()["error"].endswith("is read by materialized views")
    place.gate.grant(carl.name, "reader", "table", place.home, "v")
    assert ask() == ([[place.home, "v"]], 0)
    body = {"columns": ["id"]}
    refused = carl.ask(f"table/{place.data}$t/drop_columns", body, cascade="true")
    assert (refused.status_code, refused.json()["code"]) == (403, 15)
    assert place.ask(place.ann, "describe").status_code == 200
