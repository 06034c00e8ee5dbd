"""Iceberg views through the SDK: made, read, altered, renamed and dropped."""

import msgspec
import pytest

import penstock
from penstock.errors import (
    InvalidRequest,
    InvalidTableState,
    NotFound,
    TableAlreadyExists,
    TableInUse,
)


def test_a_view_is_made_and_read(lake: penstock.Lake, space: str, table: penstock.Table) -> None:
    view = lake.create_iceberg_view(f"{space}.v", "SELECT id, text FROM docs WHERE id > 1")
    assert isinstance(view, penstock.IcebergView)
    assert repr(view) == f"<IcebergView {space}.v: SELECT id, text FROM docs WHERE id > 1>"
    assert "SELECT id, text FROM docs" in view._repr_html_()
    assert lake.views(space, kind="iceberg") == [f"{space}.v"]
    assert lake.views(space) == []
    assert view.schema().names == ["id", "text"]
    assert len(view) == 2
    assert view.select("id").where("text = 'ccc'").limit(1).to_list() == [{"id": 3}]
    assert lake.iceberg_view(f"{space}.v").to_arrow().num_rows == 2
    with pytest.raises(TableAlreadyExists):
        lake.create_iceberg_view(f"{space}.docs", "SELECT id FROM docs")
    with pytest.raises(NotFound, match="does not exist"):
        lake.iceberg_view(f"{space}.none")
    with pytest.raises(InvalidTableState, match="is a view, not a table"):
        penstock.Table(lake._wire, view.id).delete("true")


def test_its_query_is_altered_and_its_versions_are_kept(
    lake: penstock.Lake, space: str, table: penstock.Table
) -> None:
    view = lake.create_iceberg_view(f"{space}.v", "SELECT id FROM docs")
    assert view.alter("SELECT text FROM docs WHERE id = 1").version() == 2
    assert view.to_list() == [{"text": "a"}]
    assert [str(each).partition(": ")[2] for each in view.history()] == [
        "SELECT text FROM docs WHERE id = 1",
        "SELECT id FROM docs",
    ]
    same = lake.create_iceberg_view(f"{space}.v", view.query(), if_exists="replace")
    assert same.version() == 2
    other = lake.create_iceberg_view(f"{space}.v", "SELECT id FROM docs", if_exists="replace")
    assert other.query() == "SELECT id FROM docs"
    with pytest.raises(InvalidRequest, match="the view would read itself"):
        view.alter("SELECT id FROM v")
    with pytest.raises(InvalidRequest, match="near names: text"):
        view.alter("SELECT txt FROM docs")
    assert view.query() == "SELECT id FROM docs"


def test_it_is_renamed_also_out_of_the_root(
    lake: penstock.Lake, space: str, table: penstock.Table
) -> None:
    view = lake.create_iceberg_view(f"at_root_{space}", f"SELECT id FROM {space}.docs")
    assert view.name in lake.views(kind="iceberg")
    moved = view.rename((space, "v"))
    assert moved.rename("w").name == f"{space}.w"
    assert lake.views(space, kind="iceberg") == [f"{space}.w"]
    assert lake.iceberg_catalog().list_views(space) == [(space, "w")]
    lake.create_iceberg_view(f"{space}.v", "SELECT id FROM docs")
    with pytest.raises(TableAlreadyExists):
        lake.iceberg_view(f"{space}.v").rename("w")


def test_materialized_views_read_it_and_keep_it(
    lake: penstock.Lake, space: str, table: penstock.Table
) -> None:
    view = lake.create_iceberg_view(f"{space}.v", "SELECT id, text FROM docs")
    lake.create_iceberg_view(f"{space}.w", "SELECT id FROM v")
    made = lake.create_view(f"{space}.m", view)
    assert made.schema().names == ["__source_row_id", "id", "text"]
    assert "v" in made.query()
    assert {each.name for each in view.dependents()} == {f"{space}.m", f"{space}.w"}
    assert f"{space}.v" in [each.name for each in table.dependents()]
    with pytest.raises(TableInUse, match=r"is read by .*m"):
        view.drop()
    made.drop()
    with pytest.raises(TableInUse, match=r"is read by .*w"):
        view.drop()
    with pytest.raises(TableInUse, match=r"is read under this name by .*w"):
        view.rename("v2")
    moved = view.rename("v2", cascade=True)
    assert "`v2`" in lake.iceberg_view(f"{space}.w").query()
    with pytest.raises(InvalidRequest, match="what reads a column of it is not known"):
        lake.iceberg_view(f"{space}.w").dependents("id")
    moved.drop(cascade=True)
    assert lake.views(space, kind="iceberg") == []


def test_what_cannot_be_a_view_is_refused(
    lake: penstock.Lake, space: str, table: penstock.Table
) -> None:
    for sql, message in {
        "SELECT 1 AS one": "reads no table",
        "SELECT id, id FROM docs": "two columns",
        "SELECT id, id + 1 FROM docs": "column 2 of the query has no name",
        "SELECT id AS `a.b` FROM docs": "column 'a.b'",
        "SELECT rand() AS r FROM docs": "not the same at every refresh",
        "DROP TABLE docs": "not a query",
    }.items():
        with pytest.raises(InvalidRequest, match=message):
            lake.create_iceberg_view(f"{space}.v", sql)
    with pytest.raises(InvalidRequest, match="is not known"):
        lake.create_iceberg_view(f"{space}.v", "SELECT id FROM docs", dialect="cobol")
    with pytest.raises(InvalidRequest, match="kind is 'other'"):
        lake.views(space, kind="other")  # type: ignore[arg-type]
    assert lake.views(space, kind="iceberg") == []


def test_another_dialect_is_kept(lake: penstock.Lake, space: str, table: penstock.Table) -> None:
    view = lake.create_iceberg_view(f"{space}.v", 'SELECT "id" FROM docs', dialect="duckdb")
    assert view.describe()["dialects"] == ["duckdb"]
    assert view.schema().names == ["id"]
    view.alter('SELECT "text" FROM docs')
    assert [each.dialect for each in view.history()] == ["duckdb", "duckdb"]


def test_a_selection_becomes_sparks_sql_where_that_means_the_same(
    lake: penstock.Lake, space: str, table: penstock.Table
) -> None:
    source = table.select("text", size="length(text)").where("id > 1 AND text <> 'bb'").limit(9)
    view = lake.create_iceberg_view(f"{space}.v", source)
    assert view.describe()["dialects"] == ["spark"]
    assert f"FROM `{space}`.`docs`" in view.query()
    assert "LIMIT 9" in view.query()
    assert view.to_list() == [{"text": "ccc", "size": 3}]
    assert len(lake.create_iceberg_view(f"{space}.w", table)) == 3
    dump = {"base": {"columns": ["id"], "filter": "id > 2"}, "source_table": "docs"}
    made = lake.create_iceberg_view(f"{space}.x", msgspec.json.encode(dump).decode())
    assert made.to_list() == [{"id": 3}]
    for other in (
        # A whole number to Lance, half of one to Spark.
        table.select(half="id / 2"),
        # Line breaks in Spark's texts only.
        table.where("text = 'a\\n'"),
        # An overflow is an error to Spark only.
        table.where("id + 1 > 2"),
    ):
        with pytest.raises(InvalidRequest, match="may be something else to Spark than to Lance"):
            lake.create_iceberg_view(f"{space}.y", other)
    with pytest.raises(InvalidRequest, match="cannot have a search"):
        lake.create_iceberg_view(f"{space}.y", table.search([1.0]))
    with pytest.raises(InvalidRequest, match="tables only"):
        lake.create_iceberg_view(f"{space}.y", penstock.Table(lake._wire, view.id))
