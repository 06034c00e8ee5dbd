"""Views that follow a renamed column or table, on request."""

from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.harness.clients import iceberg_requests as iceberg
from tests.harness.data.arrow import send
from tests.harness.data.tables import code, open_by_path
from tests.harness.jobs.fake_runner import TEXTS
from tests.harness.processes import servers
from tests.harness.processes.servers import Server
from tests.harness.views.server_views import View, ask_create, head, make_iceberg_view, make_view


@pytest.fixture
def view(server: Server, cluster: str) -> View:
    """SELECT id, text FROM t WHERE id > 1."""
    return make_view(server, cluster)


@pytest.fixture
def space(server: Server, namespace: str) -> str:
    """A namespace with the table `t`, of the columns id and text."""
    send(server, f"/v1/table/{namespace}$t/create", TEXTS).raise_for_status()
    return namespace


def rename(server: Server, table: str, old: str, new: str, **params: str) -> httpx.Response:
    body = {"alterations": [{"path": old, "rename": new}]}
    params = {"cascade": "true"} | params
    return server.client.post(f"/v1/table/{table}/alter_columns", json=body, params=params)


def query_of(server: Server, view: str) -> str:
    found = server.post(f"/v1/materialized_view/{view}/describe").raise_for_status().json()
    return str(found["source_query"])


def sql_of(server: Server, namespace: str, name: str) -> dict[str, str]:
    metadata = iceberg.load(server, namespace, name)["metadata"]
    wanted = metadata["current-version-id"]
    current = next(v for v in metadata["versions"] if v["version-id"] == wanted)
    return {each["dialect"]: each["sql"] for each in current["representations"]}


def test_a_view_follows_a_renamed_column_and_keeps_its_outputs(view: View) -> None:
    server = view.server
    view.refresh()
    # Requested before, and leased after the rename.
    view.request()
    rename(server, view.source, "text", "words").raise_for_status()
    assert open_by_path(server, view.source).schema.names == ["id", "words"]
    assert query_of(server, view.id) == "SELECT id, `words` AS `text` FROM t WHERE id > 1"
    definition = view.lease()["spec"]["definition"]
    assert definition["sources"][0]["reads"] == ["id", "words"]
    history = view.ask("history").raise_for_status().json()["definitions"]
    assert [each["source_query"] for each in history] == [
        "SELECT id, `words` AS `text` FROM t WHERE id > 1",
        "SELECT id, text FROM t WHERE id > 1",
    ]
    assert open_by_path(server, view.id).schema.names == ["__source_row_id", "id", "text"]
    # What it reads now is known under the new name.
    assert code(rename(server, view.source, "words", "x", cascade="false")) == (409, 19)
    dependents = server.post(f"/v1/table/{view.source}/dependents", {"column": "words"}).json()
    assert dependents["dependents"][0]["columns"] == ["words"]


FORMS = {
    "a star": ("SELECT * FROM t", "SELECT `t`.`id` AS `id`, `t`.`words` AS `text` FROM t"),
    "a group": (
        "SELECT text, count(*) AS n FROM t GROUP BY text",
        "SELECT `words` AS `text`, count(*) AS n FROM t GROUP BY `words`",
    ),
    "a whole query": (
        "SELECT a.text FROM t a JOIN t b ON a.text = b.text",
        "SELECT a.`words` AS `text` FROM t a JOIN t b ON a.`words` = b.`words`",
    ),
    "JSON": (
        '{"sql":"SELECT text FROM t","dialect":"lance"}',
        '{"sql":"SELECT \\"words\\" AS \\"text\\" FROM t","dialect":"lance"}',
    ),
}


@pytest.mark.parametrize(("sql", "expected"), FORMS.values(), ids=FORMS.keys())
def test_queries_of_all_forms_follow(server: Server, space: str, sql: str, expected: str) -> None:
    ask_create(server, f"{space}$m", source_query=sql).raise_for_status()
    rename(server, f"{space}$t", "text", "words").raise_for_status()
    assert query_of(server, f"{space}$m") == expected
    answer = server.post(f"/v1/materialized_view/{space}$m/explain")
    assert answer.status_code == 200, answer.text


def test_iceberg_views_get_a_new_version(server: Server, space: str) -> None:
    make_iceberg_view(server, space, "i", "SELECT text FROM t", trino="SELECT id FROM t")
    make_iceberg_view(server, space, "above", "SELECT text FROM i")
    ask_create(server, f"{space}$m", source_query="SELECT text FROM i").raise_for_status()
    rename(server, f"{space}$t", "text", "words").raise_for_status()
    spark = "SELECT `words` AS `text` FROM t"
    assert sql_of(server, space, "i") == {"spark": spark, "trino": "SELECT id FROM t"}
    assert sql_of(server, space, "above") == {"spark": "SELECT text FROM i"}
    assert query_of(server, f"{space}$m") == "SELECT text FROM i"
    answer = server.post(f"/v1/materialized_view/{space}$m/explain")
    assert answer.status_code == 200, answer.text
    assert len(iceberg.load(server, space, "i")["metadata"]["versions"]) == 2


def test_iceberg_views_follow_a_renamed_table(server: Server, space: str) -> None:
    make_iceberg_view(server, space, "i", "SELECT t.id FROM t", trino=f"SELECT id FROM {space}.t")
    make_iceberg_view(server, space, "above", "SELECT id FROM i")
    server.post(f"/v1/namespace/{space}x/create").raise_for_status()
    body = {"new_table_name": "new", "new_namespace_id": [f"{space}x"]}
    path = f"/v1/table/{space}$t/rename"
    assert code(server.post(path, body)) == (409, 19)
    server.post(f"{path}?cascade=true", body).raise_for_status()
    assert sql_of(server, space, "i") == {
        "spark": f"SELECT t.id FROM `{space}x`.`new` AS `t`",
        "trino": f'SELECT id FROM "{space}x"."new" AS "t"',
    }
    assert sql_of(server, space, "above") == {"spark": "SELECT id FROM i"}


REFUSED: dict[str, dict[str, Any]] = {
    "USING": {"source_query": "SELECT a.id FROM t a JOIN t b USING (text)"},
    "a star below": {"source_query": "SELECT upper(text) AS u FROM (SELECT * FROM t) AS s"},
}


@pytest.mark.parametrize("body", REFUSED.values(), ids=REFUSED.keys())
def test_a_view_that_cannot_follow_is_named_and_nothing_changes(
    server: Server, space: str, body: dict[str, Any]
) -> None:
    make_iceberg_view(server, space, "i", "SELECT text FROM t")
    ask_create(server, f"{space}$m", **body).raise_for_status()
    answer = rename(server, f"{space}$t", "text", "words")
    assert code(answer) == (409, 19)
    assert f"{space}$m cannot follow" in answer.json()["error"]
    assert head(server, f"{space}$t") == 1
    assert sql_of(server, space, "i") == {"spark": "SELECT text FROM t"}


def test_what_else_cannot_be_followed_is_told(view: View) -> None:
    server, table = view.server, view.source
    path = f"/v1/table/{table}/alter_columns?cascade=true"
    two = [{"path": "text", "rename": "words"}, {"path": "id", "rename": "key"}]
    assert code(server.post(path, {"alterations": two})) == (400, 13)
    retype = [{"path": "id", "data_type": {"type": "int32"}}]
    assert code(server.post(path, {"alterations": retype})) == (400, 13)
    assert code(rename(server, table, "text", "id")) == (400, 20)
    assert code(rename(server, table, "text", "_rowid")) == (400, 13)
    assert query_of(server, view.id) == "SELECT id, text FROM t WHERE id > 1"


@pytest.mark.parametrize(
    "point", [pytest.param("view file written", marks=pytest.mark.slow), "version recorded"]
)
def test_a_kill_leaves_all_of_a_rename_or_nothing(tmp_path: Path, point: str) -> None:
    with servers.running(tmp_path) as server:
        view = make_view(server, "local")
        make_iceberg_view(server, view.namespace, "i", "SELECT text FROM t")
    dying = servers.start(tmp_path, environ={"PENSTOCK_CRASH_AT": point})
    with pytest.raises(httpx.HTTPError):
        rename(dying, view.source, "text", "words")
    dying.process.wait(60)
    with servers.running(tmp_path) as server:
        described = server.post(
            f"/v1/table/{view.source}/describe", {"load_detailed_metadata": True}
        )
        names = [each["name"] for each in described.json()["schema"]["fields"]]
        told = (names[1], "words" in query_of(server, view.id))
        assert told == (("text", False) if point == "view file written" else ("words", True))
        assert ("words" in sql_of(server, view.namespace, "i")["spark"]) is told[1]
        if not told[1]:
            rename(server, view.source, "text", "words").raise_for_status()
        assert "words" in sql_of(server, view.namespace, "i")["spark"]
