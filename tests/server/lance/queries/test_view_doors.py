"""Views that hold no rows, by all doors at once: names and SQL that do not belong, and races."""

from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from typing import Any
from urllib.parse import quote

import pytest

from tests.harness.clients import iceberg_requests as iceberg
from tests.harness.data.arrow import people, send
from tests.harness.fuzzing.hostile_sql import STATEMENTS
from tests.harness.processes.servers import Server

# Between the names of an id: none of the names has it.
SEPARATOR = "%1F"
NAMES = [
    *("a b", "a.b", "v`x", "v'x", 'v"x', "é", "select", "a/b", "%2F", "v;drop table t", "😀", "A"),
    *("$", "a$b", "-- c", "/*", "{}", "v@1", "v#y", "v?z", "v&w", "v+w", "\\", "1", "null", "__x"),
]
REFUSED = ["..", ".", "x" * 300, "v\n", "v\x00", " ", "\t"]
# What is asked is the same with either database.
ON_SQLITE = pytest.mark.parametrize("server", ["sqlite"], indirect=True)
QUERY = {"query": "SELECT id, name FROM t WHERE id > 1"}


@pytest.fixture
def space(server: Server, namespace: str) -> str:
    """A namespace with the table t, of the ids 0, 1 and 2."""
    send(server, f"/v1/table/{namespace}$t/create", people(0, 1, 2)).raise_for_status()
    return namespace


def ask(server: Server, kind: str, space: str, name: str, verb: str, body: Any = None) -> Any:
    path = f"/v1/{kind}/{space}{SEPARATOR}{quote(name, safe='')}/{verb}"
    return server.client.post(f"{path}?delimiter={SEPARATOR}", json=body or {})


def quoted(name: str) -> str:
    return "`{}`".format(name.replace("`", "``"))


@ON_SQLITE
@pytest.mark.parametrize("name", NAMES)
def test_a_view_is_the_same_by_every_door_whatever_its_name(
    server: Server, space: str, name: str
) -> None:
    ask(server, "view", space, name, "create", QUERY).raise_for_status()
    assert ask(server, "view", space, name, "describe").json()["name"] == name
    listed = server.get(f"/v1/namespace/{space}/view/list").json()["views"]
    assert listed == [name]
    assert ask(server, "table", space, name, "count_rows").json() == 1
    assert ask(server, "table", space, name, "query", {"filter": "id = 2"}).status_code == 200
    path = f"/iceberg/v1/namespaces/{space}/views/{quote(name, safe='')}"
    loaded = server.get(path).json()["metadata"]
    (text,) = loaded["versions"][0]["representations"]
    assert text["sql"] == QUERY["query"]
    sql = f"SELECT count(*) AS n FROM {space}.{quoted(name)}"
    assert server.post("/v1/sql", {"sql": sql}).status_code in (200, 503)
    made = {"kind": "query", "source_query": f"SELECT id FROM {space}.{quoted(name)}"}
    server.post(f"/v1/materialized_view/{space}$kept/create", made).raise_for_status()
    refused = ask(server, "view", space, name, "drop")
    assert (refused.status_code, "kept" in refused.text) == (409, True)
    server.post(f"/v1/materialized_view/{space}$kept/drop").raise_for_status()
    ask(server, "view", space, name, "drop").raise_for_status()
    assert server.get(path).status_code == 404


@ON_SQLITE
@pytest.mark.parametrize("name", REFUSED)
def test_names_that_nothing_may_have_make_no_view(server: Server, space: str, name: str) -> None:
    refused = ask(server, "view", space, name, "create", QUERY)
    assert refused.status_code == 400, refused.text
    assert "name in id" in refused.json()["error"]


@ON_SQLITE
@pytest.mark.parametrize("attack", STATEMENTS)
def test_hostile_sql_makes_no_view(server: Server, space: str, attack: str) -> None:
    sql = STATEMENTS[attack].format_map(_Words())
    refused = server.post(f"/v1/view/{space}$v/create", {"query": sql})
    assert refused.status_code == 400, refused.text
    # Iceberg's clients may store any text; nobody runs it.
    stored = iceberg.create(space, "w", sql).send(server)
    assert stored.status_code == 200, stored.text
    for path, body in (
        (f"/v1/table/{space}$w/query", {}),
        (f"/v1/table/{space}$w/count_rows", {}),
        ("/v1/sql", {"sql": f"SELECT * FROM {space}.w"}),
        (f"/v1/view/{space}$x/create", {"query": f"SELECT * FROM {space}.w"}),
        (
            f"/v1/materialized_view/{space}$m/create",
            {"kind": "query", "source_query": f"SELECT * FROM {space}.w"},
        ),
    ):
        answer = server.post(path, body)
        assert answer.status_code == 400, (path, answer.text)
    iceberg.drop(space, "w").send(server).raise_for_status()


class _Words(dict[str, str]):
    def __missing__(self, word: str) -> str:
        return f"/nowhere/{word}"


def test_of_two_doors_one_makes_the_view_and_both_replace_it(server: Server, space: str) -> None:
    def make(n: int) -> int:
        if n % 2:
            return iceberg.create(space, "v", f"SELECT id FROM {space}.t").send(server).status_code
        return server.post(f"/v1/view/{space}$v/create", QUERY).status_code

    def change(n: int) -> int:
        sql = f"SELECT id FROM {space}.t WHERE id > {n}"
        if n % 2:
            return iceberg.replace(space, "v", sql).send(server).status_code
        return server.post(f"/v1/view/{space}$v/alter", {"query": sql}).status_code

    with ThreadPoolExecutor(8) as pool:
        assert Counter(pool.map(make, range(8))) == {200: 1, 409: 7}
        assert Counter(pool.map(change, range(6))) == {200: 6}
    shown = server.post(f"/v1/view/{space}$v/describe").json()
    assert shown["version"] == 7
    conditions = {each["query"].partition("WHERE ")[2] for each in shown["versions"]}
    assert {f"id > {n}" for n in range(6)} <= conditions | {"id > 1"}


def test_dialects_are_kept_by_the_door_that_knows_one(server: Server, space: str) -> None:
    request = iceberg.create(space, "v", f"SELECT id FROM {space}.t")
    request.body["view-version"]["default-namespace"] = [space]
    texts = request.body["view-version"]["representations"]
    texts.append({"type": "sql", "dialect": "trino", "sql": f'SELECT "id" FROM "{space}"."t"'})
    request.send(server).raise_for_status()
    path = f"/v1/view/{space}$v"
    assert server.post(f"{path}/describe").json()["dialects"] == ["spark", "trino"]
    for body in (QUERY, {**QUERY, "dialect": "trino"}, {**QUERY, "dialect": "duckdb"}):
        refused = server.post(f"{path}/alter", body)
        assert (refused.status_code, "dialect" in refused.text) == (400, True), refused.text
    assert server.post(f"{path}/describe").json()["version"] == 1
