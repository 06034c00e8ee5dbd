"""Refreshes that are verified: the certificate says whether the view is what its query gives."""

from datetime import time
from pathlib import Path

import lance
import msgspec
import pyarrow as pa
import pytest

from penstock.jobs.spark.tasks import Engine
from tests.harness.jobs.held_attempt import HeldAttempt
from tests.harness.views.definitions import make
from tests.harness.views.group_views import NAN, grouped_rows, grouped_view
from tests.harness.views.local_views import LocalView, define
from tests.harness.views.sql_views import define_query, write_source


@pytest.mark.slow
def test_a_verified_refresh_has_a_certificate(engine: Engine, tmp_path: Path) -> None:
    write_source(tmp_path, "t", grouped_rows(0, 100))
    view = grouped_view(tmp_path, engine)
    first = view.refresh(verify=True).certificate
    assert first is not None
    assert (first["is_equal"], first["rows"]) == (True, view.open().count_rows())
    assert first["source_versions"] == {"n$t": 1}
    again = view.refresh(verify=True)
    assert (again.mode, again.certificate) == ("none", first)
    # A digest says what the rows are: another certificate of other rows has another one.
    lance.dataset(str(tmp_path / "t")).delete("id = 1")
    second = view.refresh(verify=True).certificate
    assert second is not None
    assert second["is_equal"]
    assert second["digest"] != first["digest"]


@pytest.mark.slow
@pytest.mark.parametrize("language", ["lance", "spark"])
def test_a_view_that_is_not_its_query_is_found_out(
    engine: Engine, tmp_path: Path, language: str
) -> None:
    source = write_source(
        tmp_path, "source", pa.table({"a": [1, 2, 3, 4], "f": [0.5, NAN, -0.0, 1]})
    )
    definition = define(
        {"a": "a + 1", "f": "f"},
        {"a": pa.int64(), "f": pa.float64()},
        ("a", "f"),
        where="a > 1",
        limit=2,
        engine=language,
    )
    view = LocalView(tmp_path, definition, engine).create()
    good = view.refresh(verify=True).certificate
    assert good is not None
    assert (good["is_equal"], good["rows"], good["columns"]) == (
        True,
        2,
        ["__source_row_id", "a", "f"],
    )
    # Somebody who writes by path; the refresh that hears of it computes all of it again.
    view.open().update({"a": "a + 1"}, where="a = 3")
    spoiled = view.open().version
    assert view.watermark is not None
    view.watermark = msgspec.structs.replace(view.watermark, view_version=spoiled)
    bad = view.refresh(verify=True).certificate
    assert bad is not None
    assert (bad["is_equal"], bad["rows_missing"], bad["rows_extra"]) == (False, 1, 1)
    assert source.version == 1


@pytest.mark.slow
def test_a_view_of_another_views_row_ids_is_verified_too(engine: Engine, tmp_path: Path) -> None:
    table = pa.table({"__source_row_id": [7, 8, 9], "text": ["a", "b", "c"]})
    write_source(tmp_path, "made", table)
    sql = "SELECT __source_row_id AS d, initcap(text) AS w FROM made WHERE __source_row_id > 7"
    definition = make(sql, schemas={("shop", "made"): table.schema})
    assert definition.rows is not None
    assert definition.rows.engine == "spark"
    view = LocalView(tmp_path, definition, engine).create()
    found = view.refresh(verify=True).certificate
    assert found is not None
    assert (found["is_equal"], found["rows"], found["rows_expected"]) == (True, 2, 2)
    assert view.open().to_table(["d", "w"]).to_pylist() == [{"d": 8, "w": "B"}, {"d": 9, "w": "C"}]


@pytest.mark.slow
def test_a_sample_is_compared_when_that_is_asked_for(engine: Engine, tmp_path: Path) -> None:
    table = pa.table({"a": range(400), "k": [n // 4 for n in range(400)]})
    write_source(tmp_path, "source", table)
    by_row = define({"a": "a"}, {"a": pa.int64()}, ("a",))
    grouped = define_query(
        "SELECT k, max(a) AS a FROM source GROUP BY k",
        {"k": pa.int64(), "a": pa.int64()},
        {"source": ("a", "k")},
        {"k": "k"},
    )
    for name, definition in (("rows", by_row), ("groups", grouped)):
        view = LocalView(tmp_path, definition, engine, name).create()
        good = view.refresh(verify_rows=10).certificate
        assert good is not None
        assert (good["is_equal"], good["one_in"]) == (True, view.open().count_rows() // 10)
        assert 0 < good["rows"] < 40
        view.open().update({"a": "-1"})
        assert view.watermark is not None
        view.watermark = msgspec.structs.replace(view.watermark, view_version=2 + 1)
        bad = view.refresh(verify_rows=10).certificate
        assert bad is not None
        assert bad["rows_missing"] == bad["rows_expected"] > 0


@pytest.mark.slow
def test_columns_that_are_swapped_are_found_out(engine: Engine, tmp_path: Path) -> None:
    write_source(tmp_path, "t", pa.table({"a": pa.array([1, None]), "b": pa.array([None, 2])}))
    kinds = {"a": pa.int64(), "b": pa.int64()}
    definition = define_query("SELECT DISTINCT a, b FROM t", kinds, {"t": ("a", "b")})
    view = LocalView(tmp_path, definition, engine).create()
    view.refresh()
    view.open().update({"a": "b", "b": "a"})
    assert view.watermark is not None
    view.watermark = msgspec.structs.replace(view.watermark, view_version=view.open().version)
    found = view.refresh(verify=True).certificate
    assert found is not None
    assert (found["rows_missing"], found["rows_extra"]) == (2, 2)


@pytest.mark.slow
def test_an_attempt_that_only_reports_has_a_certificate_too(engine: Engine, tmp_path: Path) -> None:
    source = write_source(tmp_path, "t", grouped_rows(0, 100))
    view = grouped_view(tmp_path, engine)
    first = view.refresh(HeldAttempt(job="one"), verify=True)
    # The catalog never heard of it, and the table has changed since.
    view.watermark = None
    source.delete("id < 50")
    again = view.refresh(HeldAttempt(job="one", number=2), verify=True)
    assert (again.version, again.certificate) == (first.version, first.certificate)


@pytest.mark.slow
def test_a_view_with_a_column_of_times_is_verified(engine: Engine, tmp_path: Path) -> None:
    times = pa.array([time(1, 2, 3, 456), None], pa.time64("us"))
    table = pa.table({"id": [1, 2], "tm": times})
    write_source(tmp_path, "t", table)
    kinds = {"tm": pa.time64("us"), "n": pa.int64()}
    query = "SELECT max(tm) AS tm, count(*) AS n FROM t GROUP BY id"
    definition = define_query(query, kinds, {"t": ("id", "tm")})
    view = LocalView(tmp_path, definition, engine).create()
    found = view.refresh(verify=True).certificate
    assert found is not None
    assert (found["is_equal"], found["rows"]) == (True, 2)
    assert view.open().to_table(["tm"])["tm"].to_pylist() == [time(1, 2, 3, 456), None]
