"""Dialect care over HTTP: marks on SQL that does not parse, translations, lineage."""

from typing import Any

import pytest

from tests.harness.clients.iceberg import Iceberg, Namespace, View
from tests.harness.clients.iceberg_views import Json, create_body, new_version, sql
from tests.harness.data import arrow

COLUMNS: Json = {
    "type": "struct",
    "schema-id": 0,
    "fields": [
        {"id": 1, "name": "id", "type": "long", "required": False},
        {"id": 2, "name": "name", "type": "string", "required": False},
    ],
}


@pytest.fixture
def people(iceberg: Iceberg, ns: Namespace) -> Namespace:
    """A namespace that holds the Lance table `people` with the columns id and name."""
    path = f"/v1/table/{ns.lance_id}$people/create"
    arrow.send(iceberg.server, path, arrow.people(1, 2)).raise_for_status()
    return ns


def make(ns: Namespace, name: str, *queries: Json) -> View:
    body = create_body(name, queries=list(queries), schema=COLUMNS)
    body["view-version"]["default-namespace"] = list(ns.levels)
    ns.client.post(f"{ns.path}/views", body).ok()
    return View(ns, name)


def translated(view: View, target: str, **query: Any) -> Any:
    return view.client.get(f"{view.path}/dialects", target=target, **query).ok()


def test_sql_that_does_not_parse_is_stored_and_marked_with_its_place(ns: Namespace) -> None:
    view = make(ns, "v", sql("spark", "SELECT id\nFRM people"), sql("trino", "SELECT 1 AS id"))
    properties = view.load().properties
    assert list(properties) == ["penstock.dialect.spark.problem"]
    assert properties["penstock.dialect.spark.problem"].startswith("line 2, column ")


def test_the_mark_goes_when_the_sql_is_replaced(ns: Namespace) -> None:
    view = make(ns, "v", sql("spark", "SELEC nothing"))
    known = View(ns, "v", view.load().metadata["view-uuid"])
    assert known.replace(*new_version(sql("spark", "SELECT 1 AS id"))).properties == {}


def test_a_dialect_that_nobody_knows_is_not_judged(ns: Namespace) -> None:
    assert make(ns, "v", sql("klingon", "nuqneH")).load().properties == {}


def test_a_translation_keeps_tables_and_columns(people: Namespace) -> None:
    view = make(people, "v", sql("spark", "SELECT id, concat(name, '!') AS name FROM people"))
    found = translated(view, "trino")
    assert found["source"] == "spark"
    assert found["dialect"] == "trino"
    assert found["references"] == [[*people.levels, "people"]]
    assert found["output-columns"] == ["id", "name"]
    assert '"people"."name"' in found["sql"]


def test_a_representation_in_the_target_dialect_is_given_as_it_is(people: Namespace) -> None:
    own = "SELECT id FROM people -- mine"
    view = make(people, "v", sql("spark", "SELECT id FROM people"), sql("trino", own))
    assert translated(view, "Trino") == {"dialect": "Trino", "source": "trino", "sql": own}


def test_the_representation_to_translate_can_be_chosen(people: Namespace) -> None:
    view = make(
        people, "v", sql("trino", "SELECT id FROM people"), sql("spark", "SELECT name FROM people")
    )
    assert translated(view, "duckdb")["output-columns"] == ["id"]
    assert translated(view, "duckdb", **{"from": "spark"})["output-columns"] == ["name"]
    answer = view.client.get(f"{view.path}/dialects", target="duckdb", **{"from": "hive"})
    assert "it has trino, spark" in answer.refused(400, "BadRequestException")


def test_a_view_may_read_another_view(people: Namespace) -> None:
    make(people, "first", sql("spark", "SELECT id, name FROM people"))
    second = make(people, "second", sql("spark", "SELECT name FROM first WHERE id > 1"))
    assert translated(second, "trino")["references"] == [[*people.levels, "first"]]


def test_a_name_that_a_dialect_folds_is_found_in_the_catalog_s_spelling(people: Namespace) -> None:
    view = make(people, "v", sql("snowflake", "SELECT id FROM people"))
    found = translated(view, "duckdb")
    assert found["references"] == [[*people.levels, "people"]]


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("SELECT nam FROM people", "column nam does not exist; near names: name"),
        ("SELECT id FROM nobody", "is not in the catalog"),
        ("SELECT my_own(name) AS name FROM people", "my_own"),
        ("SELEC id", "does not parse"),
    ],
)
def test_what_is_not_sure_to_mean_the_same_is_refused(
    people: Namespace, text: str, reason: str
) -> None:
    view = make(people, "v", sql("spark", text))
    answer = view.client.get(f"{view.path}/dialects", target="trino")
    message = answer.refused(422, "UnprocessableEntityException")
    assert reason.lower() in message.lower()


def test_an_unknown_target_is_refused(people: Namespace) -> None:
    view = make(people, "v", sql("spark", "SELECT id FROM people"))
    answer = view.client.get(f"{view.path}/dialects", target="klingon")
    assert "klingon" in answer.refused(422, "UnprocessableEntityException")
    view.client.get(f"{view.path}/dialects").refused(400, "BadRequestException", "target")


def test_lineage_tells_sources_and_filters(people: Namespace) -> None:
    view = make(people, "v", sql("spark", "SELECT upper(name) AS name FROM people WHERE id > 1"))
    found = view.client.get(f"{view.path}/lineage").ok()
    table = [*people.levels, "people"]
    (column,) = found["columns"]
    assert column["name"] == "name"
    assert column["sources"] == [{"table": table, "column": "name"}]
    assert found["filters"] == [{"table": table, "column": "id"}]


def test_a_table_that_was_never_written_has_no_columns_to_check(
    iceberg: Iceberg, ns: Namespace
) -> None:
    iceberg.server.post(f"/v1/table/{ns.lance_id}$later/declare").raise_for_status()
    view = make(ns, "v", sql("spark", "SELECT id FROM later"))
    answer = view.client.get(f"{view.path}/dialects", target="trino")
    answer.refused(422, "UnprocessableEntityException")


def test_a_view_that_does_not_exist_has_no_dialects(ns: Namespace) -> None:
    for route in ("dialects?target=trino", "lineage"):
        answer = ns.client.get(f"{ns.path}/views/nobody/{route}")
        answer.refused(404, "NoSuchViewException", "View does not exist")
