"""Views of joins follow their tables row by row: always what plain Spark gives."""

from pathlib import Path

import lance
import pyarrow as pa
import pytest

from penstock.errors import InvalidRequest
from penstock.jobs.spark.tasks import Engine
from tests.harness.views.joined_views import NAN, JoinedView

INNER = "SELECT f.id, f.v, d.name FROM facts f JOIN dims d ON f.dim = d.id WHERE f.v <> 5"
LEFT = (
    "SELECT f.id, d.name, d.place FROM facts f LEFT JOIN dims d ON d.id = f.dim AND d.name <> 'd3'"
)


def counts(done: object) -> tuple[int, int, int]:
    return done.rows_inserted, done.rows_updated, done.rows_deleted  # type: ignore[attr-defined]


def test_an_inner_join_follows_both_sides(engine: Engine, tmp_path: Path) -> None:
    joined = JoinedView(tmp_path, engine, INNER)
    joined.check("full")
    assert joined.view.refresh().mode == "none"
    joined.table("facts").update({"v": "v + 100"}, where="id = 1")
    assert counts(joined.check()) == (0, 1, 0)
    # All facts of a dimension.
    joined.table("dims").update({"name": "'new'"}, where="id = 2")
    done = joined.check(verify=True)
    assert counts(done) == (0, 4, 0)
    assert done.reason == "1 row changed in 4 joined rows"
    assert done.certificate is not None
    assert done.certificate["is_equal"]
    # A dimension goes, another comes, facts change theirs.
    joined.table("dims").delete("id = 3")
    joined.insert("dims", id=10, name="ten", place=None, f=None)
    joined.table("facts").update({"dim": "10"}, where="id = 4")
    joined.check()
    joined.table("facts").update({"other": "1"})
    joined.table("facts").optimize.compact_files()
    assert joined.view.refresh().mode == "none"
    joined.table("facts").delete("id > 30")
    joined.check()
    assert joined.view.loose_files() == set()


def test_a_left_join_gains_and_loses_the_only_match(engine: Engine, tmp_path: Path) -> None:
    joined = JoinedView(tmp_path, engine, LEFT)
    joined.check("full")
    joined.insert("dims", id=11, name="late", place="p1", f=None)
    assert counts(joined.check()) == (0, 4, 0)
    joined.table("dims").delete("id = 11")
    assert counts(joined.check()) == (0, 4, 0)
    # Another match, and one that a condition of the join now leaves out.
    joined.insert("dims", id=1, name="twin", place="p1", f=None)
    joined.table("dims").update({"name": "'d3'"}, where="id = 2")
    joined.check()


@pytest.mark.parametrize(
    "sql",
    [
        # Dimension first: only the changed fact is computed again.
        "SELECT d.name, f.id FROM dims d JOIN facts f ON f.dim = d.id",
        "SELECT d.name, f.id FROM dims d, facts f WHERE f.dim = d.id AND f.v >= 0",
    ],
)
def test_one_fact_is_one_row_wherever_it_stands(engine: Engine, tmp_path: Path, sql: str) -> None:
    joined = JoinedView(tmp_path, engine, sql)
    joined.check("full")
    joined.table("facts").update({"id": "id + 1000"}, where="id = 1")
    assert counts(joined.check()) == (0, 1, 0)


@pytest.mark.slow
def test_chains_and_self_joins_are_followed_from_every_end(engine: Engine, tmp_path: Path) -> None:
    chain = JoinedView(
        tmp_path,
        engine,
        "SELECT f.id, d.name, p.size, e.name AS also FROM facts f LEFT JOIN dims d ON f.dim = d.id "
        "LEFT JOIN places p ON d.place = p.code LEFT JOIN dims e ON e.place = p.code AND e.id < 3",
    )
    chain.check("full")
    chain.table("places").update({"size": "10"}, where="code = 'p2'")
    chain.check()
    chain.table("places").delete("code = 'p2'")
    chain.table("dims").update({"place": "'p2'"}, where="id = 4")
    chain.check()
    chain.insert("places", code="p2", size=7)
    chain.table("dims").update({"place": "'p1'"}, where="id = 2")
    chain.table("facts").update({"dim": "2"}, where="id IN (8, 10)")
    chain.check()


@pytest.mark.slow
def test_values_are_equal_as_spark_joins_them(engine: Engine, tmp_path: Path) -> None:
    joined = JoinedView(
        tmp_path,
        engine,
        "SELECT f.id, d.id AS dim, d.name FROM facts f JOIN dims d ON f.f = d.f AND f.dim = d.id",
    )
    joined.check("full")
    for value in (NAN, 0.0, -0.0, None):
        table = joined.table("dims")
        table.merge_insert("id").when_matched_update_all().execute(
            pa.Table.from_pylist([{"id": 3, "name": "x", "place": None, "f": value}], table.schema)
        )
        joined.check()


def test_integers_of_two_widths_join_as_spark_widens_them(engine: Engine, tmp_path: Path) -> None:
    joined = JoinedView(
        tmp_path,
        engine,
        "SELECT f.id, d.name, p.code FROM facts f JOIN dims d ON f.v = d.id "
        "LEFT JOIN places p ON p.size = d.id",
    )
    joined.check("full")
    # Beyond the narrow one's range, and equal to 1 in its last bits.
    joined.insert("dims", id=2**32 + 1, name="far", place=None, f=None)
    joined.insert("facts", id=70, dim=1, f=None, v=1, other=0)
    joined.check()
    joined.table("dims").delete("id = 1")
    joined.table("places").update({"size": "2"}, where="code = 'p0'")
    joined.check(verify=True)


@pytest.mark.slow
def test_views_of_views_are_joined(engine: Engine, tmp_path: Path) -> None:
    first = JoinedView(tmp_path, engine, INNER)
    first.check("full")
    sql = "SELECT v.id, v.name, d.place FROM view v LEFT JOIN dims d ON v.name = d.name"
    second = JoinedView(tmp_path, engine, sql, "second")
    second.check("full")
    first.table("facts").update({"dim": "9"}, where="id = 1")
    first.table("dims").update({"name": "'d9'"}, where="id = 9")
    first.check()
    second.check()


@pytest.mark.slow
def test_too_much_is_computed_as_a_whole(engine: Engine, tmp_path: Path) -> None:
    joined = JoinedView(tmp_path, engine, INNER)
    joined.check("full")
    joined.table("facts").update({"v": "0"}, where="id < 50")
    done = joined.view.refresh()
    assert done.mode == "full"
    assert "of the view's" in done.reason
    joined.check_rows()
    joined.table("facts").update({"v": "1"}, where="id < 50")
    joined.check()


@pytest.mark.slow
def test_a_source_without_stable_row_ids_is_followed_while_it_stays(
    engine: Engine, tmp_path: Path
) -> None:
    JoinedView(tmp_path, engine, INNER)
    rows = lance.dataset(str(tmp_path / "dims")).to_table()
    lance.write_dataset(rows, str(tmp_path / "dims"), mode="overwrite")
    again = tmp_path / "again"
    again.mkdir()
    for name in ("facts", "dims", "places"):
        rows = lance.dataset(str(tmp_path / name)).to_table()
        lance.write_dataset(rows, str(again / name), enable_stable_row_ids=name != "dims")
    joined = JoinedView(again, engine, INNER)
    joined.check("full")
    joined.table("facts").update({"v": "0"}, where="id = 1")
    joined.check()
    joined.table("dims").update({"name": "'x'"}, where="id = 1")
    with pytest.raises(InvalidRequest, match="no stable row ids"):
        joined.view.refresh(mode="incremental")
    joined.check("full")
