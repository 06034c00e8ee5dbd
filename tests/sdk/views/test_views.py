"""Views through the SDK as far as no runner is needed: what is made, planned and told."""

import datetime
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pyarrow as pa
import pytest

import penstock
from penstock.errors import (
    InvalidFunction,
    InvalidRequest,
    InvalidTableState,
    TableInUse,
    TableNotFound,
    Unsupported,
)
from penstock.sdk.views.certificate import Certificate
from penstock.sdk.views.freshness import Freshness
from tests.harness.processes.servers import Server
from tests.harness.processes.waiting import until
from tests.harness.views import server_views

EPOCH = datetime.datetime.fromtimestamp(0, datetime.UTC)


@penstock.chunker(outputs={"word": str})
def words(text: str) -> Iterator[dict[str, Any]]:
    for word in text.split():
        yield {"word": word}


@penstock.udtf(outputs={"rows": int}, inputs=["text"])
def count(rows: pa.Table) -> Iterator[dict[str, Any]]:
    yield {"rows": rows.num_rows}


def test_a_view_of_a_selection(lake: penstock.Lake, space: str, table: penstock.Table) -> None:
    source = table.select("id", size="length(text)").where("id > 1").limit(5)
    view = lake.create_view(f"{space}.v", source)
    assert (view.kind(), view.schema().names) == ("query", ["__source_row_id", "id", "size"])
    plan = view.explain()
    assert plan.mode == "full"
    assert "unknown, because" in str(plan)
    assert f"{space}.docs: version - -> 1" in str(plan)
    assert isinstance(lake.open(f"{space}.v"), penstock.View)
    assert lake.views(space) == [f"{space}.v"]


def test_a_view_of_sql(lake: penstock.Lake, space: str, table: penstock.Table) -> None:
    view = lake.create_view(f"{space}.v", "SELECT id, upper(text) AS loud FROM docs")
    assert view.query() == "SELECT id, upper(text) AS loud FROM docs"
    other = lake.create_view(f"{space}.w", 'SELECT "id" FROM docs', dialect="trino")
    assert other.schema().names == ["__source_row_id", "id"]
    with pytest.raises(InvalidRequest, match="textt"):
        lake.create_view(f"{space}.x", "SELECT textt FROM docs")
    with pytest.raises(InvalidRequest, match="the source is"):
        lake.create_view(f"{space}.x", " ")
    with pytest.raises(InvalidRequest, match="cannot have a search"):
        lake.create_view(f"{space}.x", table.search("a"))


def test_a_chunker_inherits_what_is_selected(
    lake: penstock.Lake, space: str, table: penstock.Table
) -> None:
    system = ["__source_row_id", "__child_index"]
    chosen = lake.create_view(f"{space}.a", table.select("id"), chunker=words)
    assert chosen.schema().names == [*system, "id", "word"]
    whole = lake.create_view(f"{space}.b", table, chunker=words)
    assert whole.schema().names == [*system, "id", "word"]
    kept = lake.create_view(f"{space}.c", table.select("id", "text"), chunker=words)
    assert kept.schema().names == [*system, "id", "text", "word"]
    sql = lake.create_view(
        f"{space}.d",
        "SELECT id, text FROM docs",
        chunker=words,
        output_schema={"id": int, "word": str},
    )
    assert sql.schema().names == [*system, "id", "word"]
    assert sql.kind() == "chunker"
    assert sql.explain().function_calls == 3


def test_a_udtf_makes_all_columns(lake: penstock.Lake, space: str, table: penstock.Table) -> None:
    view = lake.create_view(f"{space}.v", table.where("id > 1"), udtf=count)
    assert (view.kind(), view.schema().names) == ("udtf", ["rows"])
    with pytest.raises(InvalidFunction, match="'len' is no udtf"):
        lake.create_view(f"{space}.w", table, udtf=len)  # type: ignore[arg-type]
    with pytest.raises(InvalidRequest, match="both chunker and udtf"):
        lake.create_view(f"{space}.w", table, udtf=count, chunker=words)
    with pytest.raises(InvalidRequest, match="no option 'src'") as refused:
        view.refresh(src=1)  # type: ignore[call-arg]
    assert "src_version" in refused.value.detail


def test_freshness_and_lineage(lake: penstock.Lake, space: str, table: penstock.Table) -> None:
    view = lake.create_view(f"{space}.v", table.select("id", n="id + 1"))
    above = lake.create_view(f"{space}.w", view.select("id"))
    fresh = view.freshness()
    assert (fresh.stale, fresh.age_seconds, fresh.watermark) == (True, None, {})
    assert "refreshed never" in str(fresh)
    found = above.lineage()
    assert (list(found.sources), found.kind) == ([f"{space}.v"], "query")
    below = found.upstream[f"{space}.v"]
    assert (below.sources, below.upstream) == ({f"{space}.docs": None}, {})
    assert set(below.columns) == {"id", "n"}
    assert "id" in below.columns["n"]
    assert str(found).splitlines() == [
        f"{space}.w (query)",
        f"  {space}.v (query)",
        f"    {space}.docs",
    ]


def test_a_view_is_verified(
    lake: penstock.Lake, space: str, table: penstock.Table, server: Server, cluster: str
) -> None:
    view = lake.create_view(f"{space}.v", table.select("id"))
    played = server_views.View(server, f"{space}$docs", f"{space}$v", cluster)
    counts = {"rows": 3, "rows_expected": 3, "rows_missing": 0, "rows_extra": 0}

    def verify(**result: Any) -> Certificate:
        """Ask for it, while the test does what a runner would do."""
        with ThreadPoolExecutor() as pool:
            asked = pool.submit(view.verify, cluster=cluster)
            (job,) = until(played.runner.lease, "no refresh was requested")
            assert job["spec"]["verify"] is True
            played.finish(job, **result)
            return asked.result()

    found = verify(certificate={"is_equal": True, "digest": "d", **counts})
    assert found
    assert (found.rows, found.told["digest"]) == (3, "d")
    assert not verify(certificate={"is_equal": False, **counts})
    with pytest.raises(Unsupported, match="has no certificate"):
        verify()
    assert view.freshness().watermark == {f"{space}.docs": 1}


def test_a_view_is_a_table_whose_rows_are_not_written(
    lake: penstock.Lake, space: str, table: penstock.Table
) -> None:
    view = lake.create_view(f"{space}.v", table, auto_refresh=False)
    for write in ("append", "overwrite", "merge", "update", "delete"):
        assert not hasattr(view, write)
    with pytest.raises(InvalidRequest, match="is a materialized view"):
        lake.table(view.name)
    as_table = penstock.Table(lake._wire, view.id)
    with pytest.raises(InvalidTableState, match="refresh"):
        as_table.delete("id = 1")
    with pytest.raises(TableInUse, match=r"\$v"):
        lake.drop_table(table.id)
    view.alter(target_lag_seconds=600)
    assert view.describe()["properties"]["penstock.target_lag_seconds"] == "600"
    assert "View" in repr(view)
    assert "refreshed never" in view._repr_html_()
    lake.drop_view(view.name)
    lake.drop_view(view.name, missing_ok=True)
    with pytest.raises(TableNotFound):
        lake.view(view.name)


def test_a_view_that_only_time_made_stale_tells_no_versions() -> None:
    told = str(Freshness(True, EPOCH, {"a.t": 1}, {}, lag_seconds=15.2))
    assert told.startswith("stale; 15 s behind; refreshed 1970")
    assert str(Freshness(True, EPOCH, {}, {"a.t": 2})).startswith("stale, new versions: 2 of a.t;")


@pytest.mark.parametrize("wrong", ["ignore", "overwrite"])
def test_a_word_that_a_view_does_not_know_is_refused(
    lake: penstock.Lake, space: str, table: penstock.Table, wrong: Any
) -> None:
    for make in (lake.create_view, lake.create_iceberg_view):
        with pytest.raises(InvalidRequest, match=f"if_exists is '{wrong}'") as raised:
            make(f"{space}.v", table, if_exists=wrong)
        assert raised.value.detail == "use 'error', 'ok', 'replace'"
