"""Views that Spark SQL computes: as a whole, or group by group; always what plain Spark gives."""

from decimal import Decimal
from pathlib import Path
from typing import Any

import lance
import msgspec
import pyarrow as pa
import pytest

from penstock.errors import InvalidRequest, SchemaMismatch
from penstock.pipeline.attempt import JobCanceled
from penstock.pipeline.spark.engine import Engine
from tests.harness.attempts import HeldAttempt
from tests.harness.definitions import make
from tests.harness.queries import define_query, recompute, rows_of, write_source
from tests.harness.refreshing import ViewHere, define

NAN = float("nan")
VECTOR = pa.list_(pa.float32(), 2)
JOIN = (
    "SELECT o.id, p.name, o.amount * p.price AS total FROM orders o "
    "JOIN products p ON o.product = p.id WHERE o.amount > 1"
)
JOINED = {"id": pa.int64(), "name": pa.large_string(), "total": pa.decimal128(21, 2)}
READS = {"orders": ("id", "product", "amount"), "products": ("id", "name", "price")}


def orders(start: int, count: int) -> pa.Table:
    ids = range(start, start + count)
    return pa.table(
        {
            "id": pa.array(ids, pa.int64()),
            "product": pa.array([n % 4 for n in ids], pa.uint8()),
            "amount": pa.array([n % 5 for n in ids], pa.int32()),
            "other": pa.array([0] * count, pa.int64()),
        }
    )


def products() -> pa.Table:
    return pa.table(
        {
            "id": pa.array(range(4), pa.int64()),
            "name": pa.array(["a", "b", None, "d"], pa.large_string()),
            "price": pa.array([Decimal(n) / 4 for n in range(4)], pa.decimal128(10, 2)),
        }
    )


@pytest.fixture
def joined(engine: Engine, tmp_path: Path) -> ViewHere:
    write_source(tmp_path, "orders", orders(0, 40), files=3)
    write_source(tmp_path, "products", products())
    definition = define_query(JOIN, JOINED, READS, filters={"orders": "(amount > 1)"})
    return ViewHere(tmp_path, definition, engine).create()


def test_a_join_is_computed_as_a_whole_and_only_when_what_it_reads_changed(
    joined: ViewHere, engine: Engine
) -> None:
    done = joined.refresh()
    assert (done.mode, done.rows_inserted) == ("full", len(rows_of(joined)))
    assert rows_of(joined) == recompute(joined, engine) != []
    source = lance.dataset(str(joined.folder / "orders"))
    source.update({"other": "other + 1"})
    source.optimize.compact_files()
    done = joined.refresh()
    assert (done.mode, done.reason) == ("none", "nothing that the query reads has changed")
    assert done.source_versions["n$orders"] == source.version
    source.delete("id < 20")
    lance.dataset(str(joined.folder / "products")).update({"price": "price + 1"}, where="id = 1")
    assert joined.explain()["reason"] == "n$orders, n$products changed"
    done = joined.refresh()
    assert (done.mode, done.rows_deleted) == ("full", 24)
    assert rows_of(joined) == recompute(joined, engine) != []
    assert joined.loose_files() == set()
    source.delete("id < 22")
    with pytest.raises(InvalidRequest, match="cannot be refreshed incrementally"):
        joined.refresh(mode="incremental")


@pytest.mark.slow
def test_any_query_can_be_a_view(engine: Engine, tmp_path: Path) -> None:
    table = pa.table(
        {
            "k": pa.array([1, 1, 2, None], pa.int64()),
            "vector": pa.array([[1.0, 2.0], None, [3.0, 4.0], [5.0, 6.0]], VECTOR),
            "at": pa.array([0, 1, 2, None], pa.timestamp("us", "UTC")),
            "flag": pa.array([True, None, False, True]),
        }
    )
    write_source(tmp_path, "t", table)
    sql = (
        "WITH w AS (SELECT *, row_number() OVER (ORDER BY at NULLS LAST) AS n FROM t) "
        "SELECT k, vector, n, date_format(at, 'yyyy-MM-dd HH') AS hour, "
        "named_struct('x', k, 'y', array(n)) AS s FROM w WHERE flag OR flag IS NULL"
    )
    kinds = {
        "k": pa.int64(),
        "vector": VECTOR,
        "n": pa.int32(),
        "hour": pa.string(),
        "s": pa.struct([("x", pa.int64()), ("y", pa.list_(pa.int32()))]),
    }
    reads = {"t": ("k", "vector", "at", "flag")}
    view = ViewHere(tmp_path, define_query(sql, kinds, reads), engine).create()
    view.refresh()
    assert rows_of(view) == recompute(view, engine)
    assert view.open().schema.field("vector").type == kinds["vector"]
    assert view.open().count_rows() == 3


@pytest.mark.slow
def test_a_query_without_columns_counts_rows(engine: Engine, tmp_path: Path) -> None:
    source = write_source(tmp_path, "t", pa.table({"a": [1, 2, 3]}))
    source.delete("a = 2")
    definition = define_query("SELECT count(*) AS n FROM t", {"n": pa.int64()}, {"t": ()})
    view = ViewHere(tmp_path, definition, engine).create()
    view.refresh()
    assert view.open().to_table().to_pylist() == [{"n": 2}]
    source.insert(pa.table({"a": [4]}))
    view.refresh()
    assert view.open().to_table().to_pylist() == [{"n": 3}]


@pytest.mark.slow
def test_names_may_differ_in_case_from_those_that_spark_gives(
    engine: Engine, tmp_path: Path
) -> None:
    tables = {"t": pa.table({"Id": [1, 2], "A": [3, 4]}), "u": pa.table({"iD": [2, 3]})}
    for name, table in tables.items():
        write_source(tmp_path, name, table)
    schemas = {("shop", name): table.schema for name, table in tables.items()}
    for number, sql in enumerate(
        ["WITH c AS (SELECT * FROM t) SELECT * FROM c", "SELECT * FROM t JOIN u USING (ID)"]
    ):
        definition = make(sql, schemas=schemas)
        view = ViewHere(tmp_path, definition, engine, f"view{number}").create()
        done = view.refresh(verify=True)
        assert rows_of(view) == recompute(view, engine) != []
        assert done.certificate is not None
        assert done.certificate["is_equal"]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("sql", "kind", "message"),
    [
        ("SELECT a * 1000 AS x FROM t", pa.int8(), "column x of the view is int8"),
        ("SELECT 1 / (a - 1) AS x FROM t", pa.float64(), "DIVIDE_BY_ZERO"),
        ("SELECT b AS x FROM t", pa.int64(), "UNRESOLVED_COLUMN"),
        ("SELECT a AS y FROM t", pa.int64(), "gives no column x"),
    ],
)
def test_what_cannot_be_computed_is_the_jobs_own_error(
    engine: Engine, tmp_path: Path, sql: str, kind: Any, message: str
) -> None:
    write_source(tmp_path, "t", pa.table({"a": [0, 1]}))
    view = ViewHere(tmp_path, define_query(sql, {"x": kind}, {"t": ("a",)}), engine).create()
    with pytest.raises((InvalidRequest, SchemaMismatch), match=message):
        view.refresh()
    assert view.open().version == 1


@pytest.mark.slow
def test_a_canceled_query_ends_and_leaves_nothing(engine: Engine, tmp_path: Path) -> None:
    # Minutes of work; Spark ends a task when it takes its next batch of rows, so these are small.
    write_source(tmp_path, "t", pa.table({"a": range(100_000)}), files=200)
    sql = "SELECT sum(x.a * y.a % 7) AS n FROM t x JOIN t y ON x.a * y.a % 3 = 1"
    view = ViewHere(tmp_path, define_query(sql, {"n": pa.int64()}, {"t": ("a",)}), engine).create()
    attempt = CanceledLater()
    with pytest.raises(JobCanceled):
        view.refresh(attempt)
    assert attempt.checks > 20
    # All of Spark is free again.
    sql = "SELECT count(*) AS n FROM t"
    view.definition = define_query(sql, {"n": pa.int64()}, {"t": ()})
    assert view.refresh().rows_inserted == 1


class CanceledLater(HeldAttempt):
    """An attempt that hears of a cancel when it has waited for Spark for a while."""

    checks = 0

    def check(self) -> None:
        self.checks += 1
        if self.checks > 20:
            raise JobCanceled


# Groups ------------------------------------------------------------------------------------------

GROUPED = (
    "SELECT k, f, count(*) AS n, sum(v) AS total, min(v) AS low, max(t) AS high, avg(v) AS mean, "
    "count(DISTINCT t) AS kinds FROM t WHERE v <> 5 GROUP BY k, f HAVING count(*) > 1"
)
OUTPUTS = {
    "k": pa.string(),
    "f": pa.float64(),
    "n": pa.int64(),
    "total": pa.int64(),
    "low": pa.int32(),
    "high": pa.string(),
    "mean": pa.float64(),
    "kinds": pa.int64(),
}


def grouped_rows(start: int, count: int) -> pa.Table:
    ids = range(start, start + count)
    return pa.table(
        {
            "id": pa.array(ids, pa.int64()),
            "k": pa.array([None if n % 7 == 0 else f"k{n % 5}" for n in ids], pa.string()),
            "f": pa.array([(NAN, -0.0, 0.0, None, 1.5)[n % 11 % 5] for n in ids], pa.float64()),
            "v": pa.array([n % 6 for n in ids], pa.int32()),
            "t": pa.array([f"t{n % 3}" for n in ids]),
            "other": pa.array([0] * count, pa.int64()),
        }
    )


NEW = {"id": 900, "k": "new", "f": 2.0, "v": 1, "t": "x", "other": 0}


def grouped_view(folder: Path, engine: Engine, **more: Any) -> ViewHere:
    reads = {"t": ("k", "f", "v", "t")}
    definition = define_query(GROUPED, OUTPUTS, reads, {"k": "k", "f": "f"}, **more)
    return ViewHere(folder, definition, engine).create()


def test_only_touched_groups_are_computed_again(engine: Engine, tmp_path: Path) -> None:
    source = write_source(tmp_path, "t", grouped_rows(0, 300), files=4)
    view = grouped_view(tmp_path, engine, lance_filter="v <> 5")
    assert view.refresh().mode == "full"
    assert rows_of(view) == recompute(view, engine) != []
    before = {row["_rowid"]: row for row in view.open().to_table(with_row_id=True).to_pylist()}
    # A row goes from one group to another, one leaves the filter, some come into a new group.
    source.update({"k": "'k2'"}, where="id = 1")
    source.update({"v": "5"}, where="id = 3")
    source.insert(pa.Table.from_pylist([NEW, NEW], source.schema))
    done = view.refresh()
    assert (done.mode, done.rows_inserted, done.rows_updated, done.rows_deleted) == (
        "incremental",
        1,
        3,
        0,
    )
    assert rows_of(view) == recompute(view, engine)
    after = {row["_rowid"]: row for row in view.open().to_table(with_row_id=True).to_pylist()}
    assert len(before.keys() & after.keys()) == len(before) - 3
    # The whole group goes.
    source.delete("k = 'new'")
    done = view.refresh(verify=True)
    assert (done.mode, done.rows_deleted) == ("incremental", 1)
    assert done.certificate is not None
    assert done.certificate["is_equal"]
    assert rows_of(view) == recompute(view, engine)


@pytest.mark.slow
def test_keys_are_equal_as_spark_has_them(engine: Engine, tmp_path: Path) -> None:
    source = write_source(tmp_path, "t", grouped_rows(0, 300))
    view = grouped_view(tmp_path, engine)
    view.refresh()
    rows = [{**NEW, "k": None, "f": value} for value in (NAN, -0.0, 0.0, None)]
    source.insert(pa.Table.from_pylist(rows, source.schema))
    done = view.refresh()
    assert (done.mode, done.rows_updated, done.rows_inserted) == ("incremental", 3, 0)
    assert rows_of(view) == recompute(view, engine)


@pytest.mark.slow
def test_when_most_groups_changed_all_are_computed_at_once(engine: Engine, tmp_path: Path) -> None:
    table = pa.table({"k": list(range(60)) * 2, "v": [1] * 120})
    source = write_source(tmp_path, "t", table)
    definition = define_query(
        "SELECT k, sum(v) AS total FROM t GROUP BY k",
        {"k": pa.int64(), "total": pa.int64()},
        {"t": ("k", "v")},
        {"k": "k"},
    )
    view = ViewHere(tmp_path, definition, engine).create()
    view.refresh()
    source.update({"v": "2"}, where="k < 40")
    assert view.explain()["reason"] == "80 rows changed in 40 of the view's 60 groups"
    assert view.refresh().mode == "full"
    assert rows_of(view) == recompute(view, engine)
    source.update({"v": "3"}, where="k < 40")
    assert view.refresh(mode="incremental").mode == "incremental"
    assert rows_of(view) == recompute(view, engine)


@pytest.mark.slow
def test_a_key_that_is_rounded_in_the_view_is_no_key_there(engine: Engine, tmp_path: Path) -> None:
    source = write_source(tmp_path, "t", pa.table({"k": [0.1, 0.2], "v": [1, 2]}))
    definition = define_query(
        "SELECT k, sum(v) AS total FROM t GROUP BY k",
        {"k": pa.float32(), "total": pa.int64()},
        {"t": ("k", "v")},
        {"k": "k"},
    )
    view = ViewHere(tmp_path, definition, engine).create()
    view.refresh()
    source.update({"v": "5"}, where="v = 1")
    done = view.refresh()
    assert (done.mode, done.reason) == ("full", "k is double, and float in the view")
    assert sorted(row["total"] for row in view.open().to_table().to_pylist()) == [2, 5]


# Verifying ---------------------------------------------------------------------------------------


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
    view = ViewHere(tmp_path, definition, engine).create()
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
    view = ViewHere(tmp_path, definition, engine).create()
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
        view = ViewHere(tmp_path, definition, engine, name).create()
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
    view = ViewHere(tmp_path, definition, engine).create()
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
def test_a_source_without_stable_row_ids_costs_nothing_while_it_stays(
    engine: Engine, tmp_path: Path
) -> None:
    write_source(tmp_path, "orders", orders(0, 40))
    source = lance.write_dataset(products(), str(tmp_path / "products"))
    view = ViewHere(tmp_path, define_query(JOIN, JOINED, READS), engine).create()
    view.refresh()
    assert view.refresh().mode == "none"
    source.delete("id = 3")
    assert "has no stable row ids" in view.refresh().reason
    assert rows_of(view) == recompute(view, engine) != []
