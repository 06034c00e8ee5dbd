"""What is in a namespace, of any kind, and the names below it that hold a text."""

from typing import Any

import pytest

from tests.harness.clients import iceberg_requests as views
from tests.harness.clients import iceberg_tables
from tests.harness.data.arrow import people, send
from tests.harness.processes.servers import Server


@pytest.fixture
def filled(server: Server, namespace: str) -> str:
    """A namespace with something of each kind, and namespaces below."""
    for below in ("Orders", "Orders$deep", "a%b"):
        server.post(f"/v1/namespace/{namespace}${below}/create").raise_for_status()
    send(server, f"/v1/table/{namespace}$orders/create", people(1)).raise_for_status()
    send(server, f"/v1/table/{namespace}$orders/insert", people(2)).raise_for_status()
    server.post(f"/v1/table/{namespace}$Orders$deep$myORDERS/declare").raise_for_status()
    server.post(f"/v1/table/{namespace}$50%_off/declare").raise_for_status()
    views.create(namespace, "v_orders", "select 1 as a").send(server).raise_for_status()
    query = {"kind": "query", "source_query": f"SELECT id FROM {namespace}.orders"}
    server.post(f"/v1/materialized_view/{namespace}$m_orders/create", query).raise_for_status()
    return namespace


def names(server: Server, namespace: str, how: str = "list", **body: Any) -> list[tuple[str, str]]:
    """Kinds and names of all pages, below the namespace."""
    found, token = [], None
    while True:
        answer = server.post(
            f"/v1/namespace/{namespace}/names/{how}", {**body, "page_token": token}
        )
        assert answer.status_code == 200, answer.text
        told = answer.json()
        found += [(each["kind"], "$".join(each["id"][1:])) for each in told["names"]]
        token = told.get("page_token")
        if token is None:
            return found


@pytest.mark.parametrize("limit", [1, 2, 3, 100])
def test_all_that_is_in_a_namespace_is_told_namespaces_first(
    server: Server, filled: str, limit: int
) -> None:
    assert names(server, filled, limit=limit) == [
        ("namespace", "Orders"),
        ("namespace", "a%b"),
        ("table", "50%_off"),
        ("materialized_view", "m_orders"),
        ("table", "orders"),
        ("view", "v_orders"),
    ]


def test_only_the_kinds_that_are_asked_for_are_told(server: Server, filled: str) -> None:
    assert names(server, filled, kinds=["view"]) == [("view", "v_orders")]
    assert names(server, filled, kinds=["namespace"], limit=1) == [
        ("namespace", "Orders"),
        ("namespace", "a%b"),
    ]
    assert names(server, filled, kinds=["function"]) == []


@pytest.mark.parametrize("name", ["ice_orders", "<b>ice_ORDERS", "ice orders é%_!"])
def test_iceberg_tables_are_a_kind_of_their_own(server: Server, filled: str, name: str) -> None:
    iceberg_tables.make(server, filled, name)
    only = ["iceberg_table"]
    assert names(server, filled, kinds=only) == [("iceberg_table", name)]
    assert names(server, filled, "search", text="ICE", kinds=only) == [("iceberg_table", name)]
    assert ("iceberg_table", name) in names(server, filled, limit=1)
    assert name not in [each for _, each in names(server, filled, kinds=["table", "view"])]
    [told] = server.post(f"/v1/namespace/{filled}/names/list", {"kinds": only}).json()["names"]
    assert (set(told), told["id"]) == ({"kind", "id", "created_at"}, [filled, name])


def test_iceberg_tables_are_counted(server: Server, filled: str) -> None:
    iceberg_tables.make(server, filled, "ice")
    assert server.post("/v1/overview", {}).json()["counts"]["iceberg_table"] >= 1


def test_a_table_is_told_with_its_newest_version(server: Server, filled: str) -> None:
    told = server.post(f"/v1/namespace/{filled}/names/list", {"kinds": ["table"]}).json()["names"]
    found = {each["id"][-1]: each for each in told}
    assert found["orders"]["version"] == 2
    assert found["orders"]["updated_at"] >= found["orders"]["created_at"] - 60_000
    assert "version" not in found["50%_off"]


@pytest.mark.parametrize("limit", [1, 2, 100])
@pytest.mark.parametrize("text", ["order", "ORDER", "rDe"])
def test_names_are_found_by_any_part_of_them(
    server: Server, filled: str, text: str, limit: int
) -> None:
    kinds = ["namespace", "table", "view"]
    assert names(server, filled, "search", text=text, limit=limit, kinds=kinds) == [
        ("namespace", "Orders"),
        ("table", "orders"),
        ("view", "v_orders"),
        ("table", "Orders$deep$myORDERS"),
    ]


@pytest.mark.parametrize("text", ["%", "_", "50%", "!", "'", "\\", "é", "\x1f", "<script>"])
def test_a_text_is_looked_for_as_it_is(server: Server, filled: str, text: str) -> None:
    found = names(server, filled, "search", text=text)
    all_names = names(server, filled)
    wanted = [each for each in all_names if text in each[1]]
    assert sorted(each for each in found if "$" not in each[1]) == sorted(wanted)


def test_an_empty_text_is_in_every_name(server: Server, filled: str) -> None:
    found = names(server, filled, "search", text="", kinds=["table", "view"], limit=1)
    assert [name for _, name in found] == ["50%_off", "orders", "v_orders", "Orders$deep$myORDERS"]


def test_a_search_stays_below_its_namespace(server: Server, filled: str) -> None:
    server.post(f"/v1/namespace/{filled}x/create").raise_for_status()
    server.post(f"/v1/table/{filled}x$orders/declare").raise_for_status()
    found = names(server, filled, "search", text="orders", kinds=["table"])
    assert [name for _, name in found] == ["orders", "Orders$deep$myORDERS"]
    below = names(server, f"{filled}$Orders", "search", text="orders", kinds=["table"])
    assert [name for _, name in below] == ["Orders$deep$myORDERS"]
    told = server.post("/v1/namespace/$/names/search", {"text": filled}).json()["names"]
    assert [each["id"] for each in told] == [[filled], [f"{filled}x"]]


@pytest.mark.parametrize(
    "body",
    [
        *({}, {"text": None}, {"text": 7}, {"text": "a\x00"}, {"text": "a" * 300}),
        *({"text": "a", "limit": 0}, {"text": "a", "kinds": ["column"]}),
        {"text": "a", "page_token": "x"},
    ],
)
def test_what_is_no_search_is_refused(server: Server, filled: str, body: Any) -> None:
    answer = server.post(f"/v1/namespace/{filled}/names/search", body)
    assert answer.status_code == 400, answer.text


def test_a_page_belongs_to_its_search(server: Server, filled: str) -> None:
    path = f"/v1/namespace/{filled}/names/search"
    token = server.post(path, {"text": "o", "limit": 1}).json()["page_token"]
    assert server.post(path, {"text": "x", "page_token": token}).status_code == 400
    assert server.post(path, {"text": "o", "page_token": token}).status_code == 200


def test_what_is_not_there_is_not_listed(server: Server, filled: str) -> None:
    for how, body in (("list", {}), ("search", {"text": "a"})):
        answer = server.post(f"/v1/namespace/{filled}none/names/{how}", body)
        assert answer.status_code == (404 if how == "list" else 200), answer.text


def test_without_authentication_everybody_may_do_everything(server: Server, filled: str) -> None:
    objects = [{"kind": "table", "id": [filled, "orders"]}, {"kind": "namespace", "id": []}]
    told = server.post("/v1/rights/describe", {"objects": objects}).json()
    assert told == {"roles": [["reader", "writer", "owner", "functions"]] * 2}
    assert server.post("/v1/rights/describe", {"objects": []}).json() == {"roles": []}
    many = {"objects": objects * 101}
    assert server.post("/v1/rights/describe", many).status_code == 400
