"""Views that hold no rows: who may make, read and change them, and whose rows they give."""

import json
from typing import Any

import httpx
import pytest

from tests.harness.processes.access import Person, person
from tests.server.access.views.conftest import Place


def ask(who: Person, place: Place, operation: str, body: Any = None) -> httpx.Response:
    return who.ask(f"view/{place.home}$v/{operation}", body)


def define(place: Place, table: str = "t") -> dict[str, str]:
    return {"query": f"SELECT id FROM {place.data}.{table}"}


def read(who: Person, place: Place) -> list[httpx.Response]:
    """Every way to a view's rows."""
    path = f"table/{place.home}$v"
    return [
        who.ask(f"{path}/query", {}),
        who.ask(f"{path}/count_rows"),
        who.ask(f"{path}/explain_plan", {"query": {}}),
        who.ask(f"{path}/analyze_plan", {}),
        who.ask("sql", {"sql": f"SELECT id FROM {place.home}.v"}),
    ]


@pytest.fixture
def view(place: Place) -> Place:
    """A view of ann's, of a table that she may read."""
    ask(place.ann, place, "create", define(place)).raise_for_status()
    return place


@pytest.mark.parametrize("operation", ["create", "alter"])
def test_what_may_not_be_read_is_not_there_for_a_query(view: Place, operation: str) -> None:
    view.gate.ungrant(view.ann.name, "reader", "table", view.data, "t")
    if operation == "create":
        ask(view.ann, view, "drop").raise_for_status()
    hidden, absent = (ask(view.ann, view, operation, define(view, name)) for name in "tq")
    assert hidden.status_code == absent.status_code == 400
    told = [{**each.json(), "instance": ""} for each in (hidden, absent)]
    said = json.dumps(told[1])
    for sign in "$.":
        said = said.replace(f"{view.data}{sign}q", f"{view.data}{sign}t")
    assert told[0] == json.loads(said)


def test_its_definition_needs_a_right_on_it_and_its_rows_one_on_its_tables(view: Place) -> None:
    bob = person(view.gate)
    listing = f"namespace/{view.home}/view/list"
    assert ask(bob, view, "describe").status_code == 404
    assert {each.status_code for each in read(bob, view)[:4]} == {404}
    assert bob.ask(listing).status_code == 404
    view.gate.grant(bob.name, "reader", "view", view.home, "v")
    assert ask(bob, view, "describe").json()["query"] == define(view)["query"]
    assert bob.get(listing)["views"] == ["v"]
    for refused in read(bob, view):
        assert (refused.status_code, refused.json()["code"]) == (400, 13), refused.text
        assert "is not in the catalog" in refused.text
    view.gate.grant(bob.name, "reader", "table", view.data, "t")
    found = read(bob, view)
    assert {each.status_code for each in found[:4]} == {200}
    assert found[1].json() == 2


def test_a_reader_changes_nothing_and_a_writer_neither(view: Place) -> None:
    bob = person(view.gate)
    for role in ("reader", "writer"):
        view.gate.grant(bob.name, role, "view", view.home, "v")
        for operation, body in (("alter", define(view)), ("drop", None)):
            refused = ask(bob, view, operation, body)
            assert (refused.status_code, refused.json()["code"]) == (403, 15), operation
        renamed = bob.ask(f"table/{view.home}$v/rename", {"new_table_name": "w"})
        assert renamed.status_code == 403
    assert ask(view.ann, view, "describe").json()["version"] == 1


def test_whoever_makes_a_view_owns_it_by_both_doors(view: Place) -> None:
    loaded = view.ann.server.get(f"/iceberg/v1/namespaces/{view.home}/views/v")
    assert loaded.status_code == 200
    ask(view.ann, view, "alter", define(view)).raise_for_status()
    ask(view.ann, view, "drop").raise_for_status()
