"""`source_query` in all of its forms, and which tables its names mean."""

import pyarrow as pa

from penstock.sql.definitions.queries import add_view, find_references
from penstock.sql.definitions.requests import Reference
from tests.harness.views.definitions import columns, fields, make, refusal


def test_plain_text_is_sparks_dialect_in_the_views_namespace() -> None:
    query = find_references("SELECT id FROM docs", ("shop",))
    assert query.language == "spark"
    assert query.references == (Reference(("docs",), (("shop", "docs"), ("docs",))),)


def test_a_name_of_several_parts_is_a_full_path_first() -> None:
    query = find_references("SELECT id FROM er.docs", ("deep",))
    assert query.references[0].candidates == (("er", "docs"), ("deep", "er", "docs"))
    made = make("SELECT id FROM er.docs", namespace=("deep",))
    assert made.sources[0].table == ("deep", "er", "docs")


def test_a_name_that_the_namespace_lacks_is_looked_for_as_a_path() -> None:
    assert make("SELECT id FROM other").sources[0].table == ("other",)


def test_a_namespace_of_its_own() -> None:
    made = make({"sql": "SELECT id FROM docs", "namespace": ["deep", "er"]})
    assert made.sources[0].table == ("deep", "er", "docs")


def test_sparks_names_ignore_case_and_keep_their_quotes() -> None:
    made = make("SELECT t.`A B` AS x, NAME FROM `SHOP`.Docs t")
    assert fields(made) == [("__source_row_id", "int64"), ("x", "int32"), ("NAME", "string")]
    assert columns(made) == {"x": "`a b`", "NAME": "`Name`"}


def test_lancedbs_own_body_is_lances_sql() -> None:
    made = make({"query": 'SELECT "id", docs."a b", upper(name) AS n FROM "docs" WHERE "id" > 1'})
    assert made.language == "lance"
    assert columns(made) == {"id": "`id`", "a b": "`a b`", "n": "upper(`Name`)"}
    assert made.rows is not None
    assert made.rows.filter == "`id` > 1"
    assert fields(made)[1:] == [("id", "int64"), ("a b", "int32"), ("n", "string")]


def test_another_dialect_is_translated_when_that_is_safe() -> None:
    made = make({"sql": 'SELECT id, lower("Name") AS n FROM docs', "dialect": "duckdb"})
    assert made.language == "spark"
    assert columns(made)["n"] == "LOWER(`Name`)"


def test_another_dialect_is_refused_with_the_reason_when_that_is_not_safe() -> None:
    said = refusal({"sql": "SELECT id / 2 AS half FROM docs", "dialect": "trino"})
    assert "a division of integers is integer here and double in spark" in said
    assert "(line 1, column 8)" in said


def test_dialects_that_nobody_knows() -> None:
    assert "the dialect 'klingon' is not known" in refusal({"sql": "x", "dialect": "klingon"})


def test_an_iceberg_view_is_its_sql() -> None:
    views = {("shop", "v"): ("SELECT id FROM docs WHERE id > 1;", "spark", ("shop",))}
    made = make({"iceberg_view": ["shop", "v"]}, views=views)
    assert made.shape == "rows"
    assert columns(made) == {"id": "`id`"}


def test_iceberg_views_in_a_query_are_written_out_each_in_its_namespace() -> None:
    views = {
        ("shop", "v"): ("SELECT id FROM docs -- all of them", "spark", ("deep", "er")),
        ("shop", "w"): ("SELECT id FROM v WHERE id > 1", "trino", ("shop",)),
    }
    made = make("SELECT w.id, d.price FROM w JOIN docs d ON d.id = w.id", views=views)
    assert made.shape == "keys"
    assert {source.table for source in made.sources} == {("deep", "er", "docs"), ("shop", "docs")}
    assert fields(made)[2:] == [("id", "int64"), ("price", "double")]
    assert "`source_1` AS `docs` -- all of them" not in made.sql


def test_iceberg_views_that_read_themselves() -> None:
    views = {("shop", "v"): ("SELECT id FROM v", "spark", ("shop",))}
    assert "reads itself" in refusal("SELECT id FROM v", views=views)


def test_a_view_that_is_added_twice_is_there_once() -> None:
    query = find_references("SELECT id FROM v", ("shop",))
    once = add_view(query, ("shop", "v"), "SELECT id FROM docs", "spark", ("shop",))
    assert add_view(once, ("shop", "v"), "SELECT 1", "spark", ()) == once
    assert once.references[1].candidates[0] == ("shop", "docs")


def test_a_table_is_no_iceberg_view() -> None:
    assert "is not an Iceberg view" in refusal({"iceberg_view": ["shop", "docs"]})


def test_the_dump_of_other_clients() -> None:
    base = {"filter": "id > 1", "columns": {"i": "id + 1", "w": "place.`y z`.w"}, "limit": 5}
    made = make({"base": base, "source_table": "docs", "source_db_uri": "db://x", "shuffle": False})
    assert made.language == "lance"
    assert fields(made)[1:] == [("i", "int64"), ("w", "string")]
    assert made.rows is not None
    assert (made.rows.filter, made.rows.limit) == ("id > 1", 5)
    assert made.sources[0].reads == ("id", "place.y z.w")


def test_a_dump_without_columns_has_all_but_a_views_own() -> None:
    made = make({"base": {}, "source_table": "shop$made"})
    assert columns(made) == {"id": "`id`", "text": "`text`"}


def test_a_dump_with_names_of_columns() -> None:
    made = make({"base": {"columns": ["id", "a b"]}, "source_table": ["shop", "docs"]})
    assert columns(made) == {"id": "`id`", "a b": "`a b`"}


def test_dumps_that_no_view_can_follow() -> None:
    for base, word in (
        ({"vector": [1.0]}, "vector"),
        ({"full_text_query": {"q": 1}}, "full_text_query"),
        ({"offset": 3}, "offset"),
        ({"limit": 3, "order_by": [{"column": "id"}]}, "order_by"),
        ({"take_offsets": [1]}, "take_offsets"),
        ({"limit": -1}, "limit"),
    ):
        said = refusal({"base": base, "source_table": "docs"})
        assert said.startswith("InvalidRequest"), said
        assert word in said


def test_a_dump_says_which_column_is_meant() -> None:
    said = refusal({"base": {"filter": "pricee > 1"}, "source_table": "docs"})
    assert "pricee" in said
    assert "near names: price" in said


def test_what_is_no_query() -> None:
    for query, word in (
        ("", "empty"),
        ("{", "JSON"),
        ("{}", "no known form"),
        ({"sql": 3}, "no text"),
        ({"iceberg_view": []}, "list of names"),
        ({"base": {}}, "source_table"),
        ({"base": {}, "source_table": ""}, "no name"),
        ("SELECT 1 AS x", "reads no table"),
        ("DROP TABLE docs", "not a query"),
        ("SELECT id FROM docs; SELECT id FROM docs", "2 statements"),
    ):
        assert word in refusal(query), query


def test_a_query_over_a_table_of_another_name_only_in_case() -> None:
    made = make("SELECT id FROM DOCS", schemas={("shop", "Docs"): pa.schema([("id", pa.int8())])})
    assert made.sources[0].table == ("shop", "Docs")
