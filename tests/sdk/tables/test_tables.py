"""Tables through the SDK: data of every kind in and out, changes, searches, versions."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from lance_namespace import ListTablesRequest

import penstock
from penstock.errors import (
    InvalidRequest,
    NamespaceAlreadyExists,
    NamespaceNotFound,
    SchemaMismatch,
    TableAlreadyExists,
    TableNotFound,
    Unavailable,
)
from penstock.sdk.tables.refs import WriteResult

ROWS = [{"id": 1, "text": "a"}, {"id": 2, "text": "bb"}]
ARROW = pa.Table.from_pylist(ROWS)
FORMS = {
    "table": ARROW,
    "batch": ARROW.to_batches()[0],
    "reader": lambda: pa.RecordBatchReader.from_batches(ARROW.schema, ARROW.to_batches()),
    "pandas": pd.DataFrame(ROWS),
    "polars": pl.DataFrame(ROWS),
    "lazy": pl.LazyFrame(ROWS),
    "dicts": ROWS,
    "columns": {"id": [1, 2], "text": ["a", "bb"]},
}


@pytest.mark.parametrize("form", FORMS)
def test_a_table_is_made_of_any_form_of_data(lake: penstock.Lake, space: str, form: str) -> None:
    data = FORMS[form]() if callable(FORMS[form]) else FORMS[form]
    made = lake.create_table(f"{space}.t", data)
    assert made.to_list() == ROWS
    assert made.schema().field("id").type == pa.int64()


def test_a_table_is_made_of_parquet_files(lake: penstock.Lake, space: str, tmp_path: Path) -> None:
    for n in range(2):
        pq.write_table(pa.table({"id": [n]}), tmp_path / f"{n}.parquet")
    for name, paths in {
        "folder": tmp_path,
        "pattern": str(tmp_path / "*.parquet"),
        "files": [tmp_path / "0.parquet", tmp_path / "1.parquet"],
    }.items():
        made = lake.create_table(f"{space}.{name}", paths)
        assert made.to_arrow()["id"].to_pylist() == [0, 1]
    assert lake.table(f"{space}.files").append(tmp_path / "0.parquet") == WriteResult(2, 1)
    with pytest.raises(InvalidRequest, match="there is no file"):
        lake.create_table(f"{space}.none", tmp_path / "nothing.parquet")


def test_an_empty_table_has_its_columns(lake: penstock.Lake, space: str) -> None:
    made = lake.create_table(f"{space}.t", pa.schema([("id", pa.int64())]).empty_table())
    assert (len(made), made.schema().names) == (0, ["id"])


def test_rows_come_back_in_every_form(table: penstock.Table) -> None:
    expected = [{"id": 1, "text": "a"}, {"id": 2, "text": "bb"}, {"id": 3, "text": "ccc"}]
    assert table.to_arrow().to_pylist() == expected
    assert table.to_pandas().to_dict("records") == expected
    assert table.to_polars().to_dicts() == expected
    assert table.head(2).to_pylist() == expected[:2]
    assert table.to_lance().to_table().to_pylist() == expected


def test_a_query_selects_filters_and_limits(table: penstock.Table) -> None:
    query = table.select("id", size="length(text)").where("id > 1").where("id < 9")
    assert query.to_list() == [{"id": 2, "size": 2}, {"id": 3, "size": 3}]
    assert query.limit(1).offset(1).to_list() == [{"id": 3, "size": 3}]
    assert (query.count(), table.count("id = 1"), len(table)) == (2, 1, 3)
    assert "LanceScan" in query.explain() or "LanceRead" in query.explain()


def test_plain_values_take_on_the_types_of_the_table(lake: penstock.Lake, space: str) -> None:
    made = lake.create_table(
        f"{space}.t", [{"id": 1, "v": [1, 2]}], schema={"id": "int32", "v": penstock.vector(2)}
    )
    assert made.schema().field("v").type == pa.list_(pa.float32(), 2)
    made.append([{"id": 2, "v": [3, 4]}])
    made.append(pd.DataFrame({"id": [3], "v": [[5.0, 6.0]]}))
    assert made.merge([{"id": 3, "v": [7, 8]}], on="id").rows_updated == 1
    assert made.to_list()[-1] == {"id": 3, "v": [7.0, 8.0]}
    assert made.version() == 4
    made.append(pl.DataFrame({"id": [4]}))
    assert made.at(5).count("v IS NULL") == 1
    for wrong in ([{"id": "three"}], pa.table({"id": [2**40]}), {"id": [1], "v": [[1, 2, 3]]}):
        with pytest.raises(SchemaMismatch, match="does not fit"):
            made.append(wrong)


def test_polars_texts_are_texts(lake: penstock.Lake, space: str) -> None:
    rows = {"a": ["x", "a longer text than twelve"], "b": [["y"], []], "c": [{"d": "z"}, {"d": ""}]}
    made = lake.create_table(f"{space}.t", pl.DataFrame(rows))
    assert made.to_polars().to_dict(as_series=False) == rows
    assert made.schema().field("a").type == pa.string()


def test_a_merge_of_no_rows_makes_no_version(table: penstock.Table) -> None:
    version = table.version()
    nothing: list[Any] = [[], table.to_arrow().slice(0, 0)]
    for rows in nothing:
        assert table.merge(rows, on="id") == WriteResult(version)
    assert table.version() == version
    gone = table.merge(table.to_arrow().slice(0, 0), on="id", delete_missing=True)
    assert (gone, len(table)) == (WriteResult(version + 1, rows_deleted=3), 0)


def test_rows_are_merged_updated_and_deleted(table: penstock.Table) -> None:
    news = [{"id": 3, "text": "new"}, {"id": 4, "text": "d"}]
    assert table.merge(news, on="id") == WriteResult(2, rows_inserted=1, rows_updated=1)
    gone = table.merge(news, on=["id"], update=False, insert=False, delete_missing=True)
    assert gone == WriteResult(3, rows_deleted=2)
    assert table.update({"text": "it's"}, where="id = 4") == WriteResult(4, rows_updated=1)
    assert table.update(values_sql={"text": "upper(text)"}).rows_updated == 2
    assert table.update({"id": np.int64(4)}, where="id = 4").rows_updated == 1
    assert len(table.at(table.append([]).version)) == 2
    assert table.to_list() == [{"id": 3, "text": "NEW"}, {"id": 4, "text": "IT'S"}]
    assert table.delete("id = 3") == WriteResult(8, rows_deleted=1)
    assert table.to_arrow()["id"].to_pylist() == [4]
    assert table.overwrite({"id": [1, 2, 3]}) == WriteResult(9, rows_inserted=3, rows_deleted=1)
    trial = table.create_branch("trial")
    assert trial.overwrite({"id": [5]}) == WriteResult(10, rows_inserted=1, rows_deleted=3)
    with pytest.raises(InvalidRequest, match="no form in SQL"):
        table.update({"text": object()})


def test_rows_are_found_by_vector_by_text_and_by_both(lake: penstock.Lake, space: str) -> None:
    rows = [
        {"id": n, "text": text, "v": [float(n), 0.0]}
        for n, text in enumerate(["water wheel", "bread and water", "bread", "stone"])
    ]
    made = lake.create_table(f"{space}.t", rows, schema={"v": penstock.vector(2)})
    assert [row["id"] for row in made.search([2.1, 0]).limit(2).to_list()] == [2, 3]
    near = made.search(vector=[1, 0], distance_type="l2").select("id").where("id <> 1")
    assert sorted(row["id"] for row in near.to_list()) == [0, 2, 3]
    made.create_index("text", "FTS").create_index("id", "BTREE")
    assert {row["id"] for row in made.search("water").to_list()} == {0, 1}
    both = made.search(vector=[3, 0], text="stone").limit(1).to_arrow()
    assert (both["id"].to_pylist(), "_relevance_score" in both.column_names) == ([3], True)
    assert [(each.index_type, each.columns) for each in made.indexes()] == [
        ("BTREE", ["id"]),
        ("FTS", ["text"]),
    ]
    made.drop_index("id_idx")
    assert len(made.indexes()) == 1
    with pytest.raises(InvalidRequest, match="neither a vector nor a text"):
        made.search()


def test_versions_tags_and_branches(table: penstock.Table) -> None:
    table.create_tag("start")
    table.append([{"id": 4, "text": "d"}])
    assert [each.version for each in table.versions()] == [2, 1]
    assert table.version() == 2
    assert len(table.at(1)) == len(table.at("start")) == 3
    table.update_tag("start", 2)
    assert (table.tags()["start"].version, len(table.at("start").to_arrow())) == (2, 4)
    assert table.drop_tag("start").tags() == {}
    trial = table.create_branch("trial", version=1)
    trial.append([{"id": 9, "text": "z"}])
    assert (len(trial), len(table), trial.to_lance().count_rows()) == (4, 4, 4)
    assert table.branches()["trial"].parent_version == 1
    assert len(table.at(1).create_tag("old").create_branch("again")) == 3
    assert table.tags()["old"].version == 1
    trial.create_tag("there")
    with pytest.raises(InvalidRequest, match="tag 'there' is of branch 'trial', and this table"):
        table.restore("there")
    table.drop_tag("there").drop_branch("trial").drop_branch("again").restore("old")
    assert (len(table), table.version()) == (3, 3)
    with pytest.raises(InvalidRequest, match="old versions are not changed"):
        table.at(1).delete("id = 1")


def test_names_hold_anything(lake: penstock.Lake, space: str) -> None:
    odd = (space, "a.b$c/d e+f")
    made = lake.create_table(odd, {"id": [1]})
    assert len(lake.table(odd)) == made.to_lance().count_rows() == 1
    assert lake.tables(space) == [f"{space}.`a.b$c/d e+f`"]
    made.rename(f"{space}.plain")
    assert f"{space}.plain" in lake.tables()
    assert odd not in lake


def test_what_is_there_and_what_is_not(lake: penstock.Lake, space: str) -> None:
    lake.create_namespace(f"{space}.inner.most", properties={"team": "search"})
    lake.create_namespace(f"{space}.inner", if_exists="ok")
    with pytest.raises(NamespaceAlreadyExists):
        lake.create_namespace(f"{space}.inner")
    assert lake.namespaces(space) == [f"{space}.inner"]
    assert {space, f"{space}.inner", f"{space}.inner.most"} <= {*lake.namespaces()}
    assert space in lake.namespaces("")
    assert f"{space}.inner" not in lake.namespaces("")
    lake.create_table(f"{space}.inner.t", {"id": [1]})
    with pytest.raises(TableAlreadyExists) as refused:
        lake.create_table(f"{space}.inner.t", {"id": [1]})
    assert refused.value.detail
    lake.create_table(f"{space}.inner.t", {"id": [1, 2]}, if_exists="replace")
    assert len(lake.table(f"{space}.inner.t")) == 2
    assert lake.tables(space) == []
    assert f"{space}.inner.t" in lake.tables()
    with pytest.raises(TableNotFound):
        lake.table(f"{space}.none")
    with pytest.raises(NamespaceNotFound):
        lake.create_table(f"{space}.none.t", {"id": [1]})
    with pytest.raises(InvalidRequest, match="is no materialized view"):
        lake.view(f"{space}.inner.t")
    with pytest.raises(InvalidRequest, match="cannot be read as rows"):
        lake.create_table(f"{space}.t", 5)
    lake.drop_table(f"{space}.none", missing_ok=True)
    lake.drop_namespace(space, cascade=True)
    assert space not in lake.namespaces()


def test_tables_and_lakes_show_themselves(lake: penstock.Lake, table: penstock.Table) -> None:
    table.add_column("<size>", computed="length(text)")
    assert repr(table) == f"<Table {table.name}, version 2, 3 rows>"
    page = table._repr_html_()
    assert "&lt;size&gt;" in page
    assert "int32" in page
    assert "3 rows" in page
    assert "<size>" not in page
    assert table.name in lake._repr_html_()
    assert lake.url in repr(lake)
    lake.drop_table(table.id)
    assert "does not exist" in repr(table)


def test_an_address_where_nobody_is() -> None:
    with pytest.raises(Unavailable, match=r"no answer from http://127\.0\.0\.1:9"):
        penstock.connect("http://127.0.0.1:9")
    for address in ("localhost:2333", "http://[::1", "http://a:b"):
        with pytest.raises(InvalidRequest, match="the address is"):
            penstock.connect(address)


def test_other_clients_see_the_same(lake: penstock.Lake, space: str, table: penstock.Table) -> None:
    request = ListTablesRequest(id=[space])
    assert lake.namespace_client().list_tables(request).tables == ["docs"]
    assert lake.lancedb().open_table("docs", namespace_path=[space]).count_rows() == 3
    catalog = lake.iceberg_catalog()
    assert (space,) in catalog.list_namespaces()


def test_a_column_that_is_not_there_is_named_without_a_dump(table: penstock.Table) -> None:
    with pytest.raises(penstock.errors.ColumnNotFound, match=r"(?m)Column 'nope' does not exist$"):
        table.update({"nope": 1})


def test_a_table_without_rows_is_a_table(lake: penstock.Lake, space: str) -> None:
    table = lake.create_table(f"{space}.t", pa.schema([("id", pa.int64())]).empty_table())
    assert (len(table), bool(table)) == (0, True)


def test_columns_to_drop_are_given_one_by_one(table: penstock.Table) -> None:
    names: Any = ["text"]
    with pytest.raises(InvalidRequest, match="by its name") as raised:
        table.drop_columns(names)
    assert 'drop_columns("a", "b")' in raised.value.detail
    assert table.drop_columns("text").schema().names == ["id"]
