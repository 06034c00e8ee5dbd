"""What depends on a table or column, asked before anything is changed."""

from typing import Any

import pytest

from tests.harness.data.tables import code
from tests.harness.processes.servers import Server
from tests.harness.views.server_views import View, ask_create, make_iceberg_view, make_view


@pytest.fixture
def view(server: Server, cluster: str) -> View:
    """SELECT id, text FROM t WHERE id > 1."""
    return make_view(server, cluster)


def find(view: View, table: str = "t", column: str | None = None) -> dict[str, Any]:
    path = f"/v1/table/{view.namespace}${table}/dependents"
    found: dict[str, Any] = view.server.post(path, {"column": column}).raise_for_status().json()
    return found


def outline(found: dict[str, Any]) -> list[Any]:
    """The names in a tree, each with those below it, if there are any."""
    told = []
    for each in found.get("dependents", ()):
        name = each.get("column") or each["id"][-1]
        below = outline(each)
        told.append([name, below] if below else name)
    return told


def test_a_table_has_the_views_and_columns_that_read_it(view: View) -> None:
    server, ns = view.server, view.namespace
    new = {"new_columns": [{"name": "size", "computed": "length(text)"}]}
    server.post(f"/v1/table/{view.source}/add_columns", new).raise_for_status()
    ask_create(server, f"{ns}$w", source_query="SELECT id FROM v").raise_for_status()
    make_iceberg_view(server, ns, "i", "SELECT id FROM t")
    make_iceberg_view(server, ns, "j", "SELECT id FROM i")
    ask_create(server, f"{ns}$m", source_query="SELECT id FROM j").raise_for_status()
    job = view.request()
    found = find(view)
    assert outline(found) == ["size", ["i", [["j", ["m"]]]], ["v", ["w"]]]
    size, iceberg, v = found["dependents"]
    assert (size["kind"], size["columns"]) == ("computed_column", ["text"])
    assert "breaks_on" not in size
    assert (iceberg["kind"], iceberg["breaks_on"]) == ("iceberg_view", ["drop", "rename"])
    assert v == {
        "kind": "materialized_view",
        "id": [ns, "v"],
        "columns": ["id", "text"],
        "breaks_on": ["drop"],
        "jobs": [job],
        "dependents": v["dependents"],
    }
    assert outline(find(view, "v")) == ["w"]
    assert find(view, "w") == {"dependents": []}


def test_a_column_has_what_reads_it(view: View) -> None:
    server, ns = view.server, view.namespace
    new = {"new_columns": [{"name": "size", "computed": "length(text)"}]}
    server.post(f"/v1/table/{view.source}/add_columns", new).raise_for_status()
    twice = {"new_columns": [{"name": "twice", "computed": "size * 2"}]}
    server.post(f"/v1/table/{view.source}/add_columns", twice).raise_for_status()
    ask_create(server, f"{ns}$sizes", source_query="SELECT twice FROM t").raise_for_status()
    ask_create(server, f"{ns}$ids", source_query="SELECT id FROM t").raise_for_status()
    make_iceberg_view(server, ns, "i", "SELECT text FROM t")
    make_iceberg_view(server, ns, "j", "SELECT id FROM t")
    found = find(view, column="text")
    assert outline(found) == [["size", [["twice", ["sizes"]]]], "i", "v"]
    for each in found["dependents"]:
        assert each["breaks_on"] == ["drop", "rename", "retype"]
        assert each["columns"] == ["text"]
    assert outline(find(view, column="size")) == [["twice", ["sizes"]]]
    assert outline(find(view, column="id")) == ["j", "ids", "v"]


def test_a_column_that_is_not_there_is_told(view: View) -> None:
    path = f"/v1/table/{view.source}/dependents"
    assert code(view.server.post(path, {"column": "absent"})) == (404, 12)
    assert code(view.server.post(path, {"column": ""})) == (400, 13)
    assert code(view.server.post(path, {"column": "`"})) == (400, 13)
    assert code(view.server.post(path, {"column": 7})) == (400, 13)
    assert code(view.server.post(f"/v1/table/{view.namespace}$no/dependents")) == (404, 4)
