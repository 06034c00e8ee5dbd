"""The graph around a table, column, view or function: above it and below it."""

from typing import Any

import pytest

from tests.catalog.functions.test_functions import length, register, use
from tests.harness.data.tables import code
from tests.harness.processes.servers import Server
from tests.harness.views.server_views import View, ask_create, make_iceberg_view, make_view


@pytest.fixture
def view(server: Server, cluster: str) -> View:
    """SELECT id, text FROM t WHERE id > 1."""
    return make_view(server, cluster)


def find(view: View, name: str, kind: str = "table", **body: Any) -> dict[str, Any]:
    path = f"/v1/{kind}/{view.namespace}${name}/lineage"
    answer = view.server.post(path, body)
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json()
    assert {edge[end] for edge in found["edges"] for end in ("from", "to")} <= {
        node["key"] for node in found["nodes"]
    }
    return found


def name_of(node: dict[str, Any]) -> str:
    return ".".join([node["id"][-1], *([node["column"]] if "column" in node else [])])


def draw(found: dict[str, Any]) -> list[str]:
    """The edges by names, and nodes without any."""
    names = {node["key"]: name_of(node) for node in found["nodes"]}
    drawn = [f"{names[edge['from']]}>{names[edge['to']]}" for edge in found["edges"]]
    linked = {end for each in drawn for end in each.split(">")}
    return sorted([*drawn, *({*names.values()} - linked)])


def add_column(view: View, name: str, expression: str) -> None:
    body = {"new_columns": [{"name": name, "computed": expression}]}
    view.server.post(f"/v1/table/{view.source}/add_columns", body).raise_for_status()


@pytest.fixture
def land(view: View) -> View:
    """t with the column size; v and w of v; the Iceberg views i, j of i, and m that reads j."""
    server, ns = view.server, view.namespace
    add_column(view, "size", "length(text)")
    ask_create(server, f"{ns}$w", source_query="SELECT id FROM v").raise_for_status()
    make_iceberg_view(server, ns, "i", "SELECT id FROM t")
    make_iceberg_view(server, ns, "j", "SELECT id FROM i")
    ask_create(server, f"{ns}$m", source_query="SELECT id FROM j").raise_for_status()
    return view


def test_a_table_has_all_that_is_made_of_it(land: View) -> None:
    found = find(land, "t")
    assert draw(found) == ["i>j", "j>m", "t>i", "t>t.size", "t>v", "v>w"]
    kinds = {name_of(node): node["kind"] for node in found["nodes"]}
    assert kinds == {
        "t": "table",
        "t.size": "column",
        "i": "view",
        "j": "view",
        "v": "materialized_view",
        "w": "materialized_view",
        "m": "materialized_view",
    }
    assert found["cut"] is False
    [root] = [node for node in found["nodes"] if node["key"] == found["root"]]
    assert root["id"] == [land.namespace, "t"]
    columns = {e["to"]: e.get("columns") for e in found["edges"] if e["from"] == found["root"]}
    by_name = {name_of(node): node["key"] for node in found["nodes"]}
    assert columns[by_name["v"]] == ["id", "text"]
    assert columns[by_name["t.size"]] == ["text"]


def test_a_view_has_what_it_is_made_from_and_not_its_siblings(land: View) -> None:
    assert draw(find(land, "w")) == ["t>v", "v>w"]
    assert draw(find(land, "m")) == ["i>j", "j>m", "t>i"]
    assert draw(find(land, "i")) == ["i>j", "j>m", "t>i"]
    assert draw(find(land, "v")) == ["t>v", "v>w"]


def test_one_can_go_only_so_far(land: View) -> None:
    assert draw(find(land, "t", down=0)) == ["t"]
    assert draw(find(land, "t", down=1, columns=False)) == ["t>i", "t>v"]
    assert draw(find(land, "m", up=1, down=0)) == ["j>m"]
    assert draw(find(land, "v", up=0)) == ["v>w"]


def test_a_column_has_what_reads_it(land: View) -> None:
    add_column(land, "twice", "size * 2")
    server, ns = land.server, land.namespace
    ask_create(server, f"{ns}$sizes", source_query="SELECT twice FROM t").raise_for_status()
    assert draw(find(land, "t", column="size")) == [
        "t.size>t.twice",
        "t.twice>sizes",
        "t>t.size",
    ]
    assert draw(find(land, "t", column="text")) == [
        *("t.size>t.twice", "t.text>t.size", "t.text>v", "t.twice>sizes"),
        *("t>t.text", "v>w"),
    ]
    whole = draw(find(land, "t"))
    assert {"t.size>t.twice", "t.twice>sizes", "t>t.size"} <= set(whole)
    assert draw(find(land, "sizes")) == ["t.twice>sizes", "t>sizes", "t>t.twice"]


def test_a_function_has_the_columns_and_views_that_it_makes(land: View) -> None:
    server, ns = land.server, land.namespace
    register(server, f"{ns}$f", length()).raise_for_status()
    use(server, land.source, "made", f"{ns}$f").raise_for_status()
    ask_create(server, f"{ns}$of", source_query="SELECT made FROM t").raise_for_status()
    assert draw(find(land, "f", "function")) == ["f>t.made", "t.made>of"]
    assert draw(find(land, "f", "function", columns=False))[0] == "f>t"
    assert {"f>t.made", "t.made>of", "t>t.made"} <= set(draw(find(land, "t")))
    assert draw(find(land, "of")) == ["f>t.made", "t.made>of", "t>of", "t>t.made"]
    disable = {"action": "disable"}
    server.post(f"/v1/function/{ns}$f/alter", disable)
    states = {name_of(n): n.get("state") for n in find(land, "f", "function")["nodes"]}
    assert states["t.made"] == "unfilled"


def test_each_node_says_whether_it_is_up_to_date(land: View) -> None:
    states = {name_of(node): node.get("state") for node in find(land, "t")["nodes"]}
    assert states == {
        "t": None,
        "t.size": "unfilled",
        "i": None,
        "j": None,
        "v": "unfilled",
        "w": "unfilled",
        "m": "unfilled",
    }


def test_a_graph_has_as_many_nodes_as_are_wanted(land: View) -> None:
    found = find(land, "t", limit=3)
    assert (len(found["nodes"]), found["cut"]) == (3, True)
    found = find(land, "t", limit=7)
    assert (len(found["nodes"]), found["cut"]) == (7, False)
    assert len(find(land, "t", limit=1)["nodes"]) == 1


def test_what_has_no_lineage_is_refused(land: View) -> None:
    path = f"/v1/table/{land.source}/lineage"
    assert code(land.server.post(path, {"column": "absent"})) == (404, 12)
    for body in ({"column": ""}, {"up": -1}, {"down": 51}, {"limit": 0}, {"limit": 501}):
        assert code(land.server.post(path, body)) == (400, 13)
    assert code(land.server.post(f"/v1/table/{land.namespace}$i/lineage", {"column": "id"})) == (
        400,
        13,
    )
    assert code(land.server.post(f"/v1/table/{land.namespace}$no/lineage")) == (404, 4)
    assert code(land.server.post(f"/v1/function/{land.namespace}$no/lineage"))[0] == 404
