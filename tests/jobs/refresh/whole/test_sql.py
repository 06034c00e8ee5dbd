"""Views that Spark SQL computes as a whole: always what plain Spark gives."""

from decimal import Decimal
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pytest

from penstock.errors import InvalidRequest, SchemaMismatch
from penstock.jobs.spark.tasks import Engine
from penstock.model.views import SOURCE_ROW_IDS
from tests.harness.views.definitions import make
from tests.harness.views.local_views import LocalView
from tests.harness.views.sql_views import define_query, recompute, rows_of, write_source

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
def joined(engine: Engine, tmp_path: Path) -> LocalView:
    write_source(tmp_path, "orders", orders(0, 40), files=3)
    write_source(tmp_path, "products", products())
    definition = define_query(JOIN, JOINED, READS, filters={"orders": "(amount > 1)"})
    return LocalView(tmp_path, definition, engine).create()


def test_a_join_is_computed_as_a_whole_and_only_when_what_it_reads_changed(
    joined: LocalView, engine: Engine
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
    view = LocalView(tmp_path, define_query(sql, kinds, reads), engine).create()
    view.refresh()
    assert rows_of(view) == recompute(view, engine)
    assert view.open().schema.field("vector").type == kinds["vector"]
    assert view.open().count_rows() == 3


@pytest.mark.slow
def test_a_query_without_columns_counts_rows(engine: Engine, tmp_path: Path) -> None:
    source = write_source(tmp_path, "t", pa.table({"a": [1, 2, 3]}))
    source.delete("a = 2")
    definition = define_query("SELECT count(*) AS n FROM t", {"n": pa.int64()}, {"t": ()})
    view = LocalView(tmp_path, definition, engine).create()
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
        view = LocalView(tmp_path, definition, engine, f"view{number}").create()
        done = view.refresh(verify=True)
        ids = [name for name in view.open().schema.names if name in SOURCE_ROW_IDS]
        assert rows_of(view, without=ids) == recompute(view, engine) != []
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
    view = LocalView(tmp_path, define_query(sql, {"x": kind}, {"t": ("a",)}), engine).create()
    with pytest.raises((InvalidRequest, SchemaMismatch), match=message):
        view.refresh()
    assert view.open().version == 1


@pytest.mark.slow
def test_a_source_without_stable_row_ids_costs_nothing_while_it_stays(
    engine: Engine, tmp_path: Path
) -> None:
    write_source(tmp_path, "orders", orders(0, 40))
    source = lance.write_dataset(products(), str(tmp_path / "products"))
    view = LocalView(tmp_path, define_query(JOIN, JOINED, READS), engine).create()
    view.refresh()
    assert view.refresh().mode == "none"
    source.delete("id = 3")
    assert "has no stable row ids" in view.refresh().reason
    assert rows_of(view) == recompute(view, engine) != []
