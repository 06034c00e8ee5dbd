"""Views over the rows of one source: after a refresh they are their query, whatever happened."""

from datetime import timedelta
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pytest
from msgspec import structs

from penstock.errors import InvalidRequest
from penstock.jobs.engine.attempt import is_passing
from penstock.model.views import Definition, RefreshResult
from tests.harness.data.sources import SourceHistory, some_rows
from tests.harness.jobs.held_attempt import HeldAttempt
from tests.harness.views.definitions import make
from tests.harness.views.local_views import LocalView, define, encode_schema

KINDS = {"id": pa.int64(), "twice": pa.int64(), "x": pa.string()}
COLUMNS = {"id": "id", "twice": "a * 2", "x": "s.x"}
READS = ("id", "a", "s.x")


def by_two(limit: int | None = None, **more: Any) -> Definition:
    return define(COLUMNS, KINDS, READS, where="a > 0", limit=limit, **more)


def expected(source: lance.LanceDataset, limit: int | None = None) -> dict[int, tuple[Any, ...]]:
    rows = source.to_table(columns=["id", "a", "s"], with_row_id=True).to_pylist()
    rows.sort(key=lambda row: row["_rowid"])
    taken = [row for row in rows if row["a"] is not None and row["a"] > 0][:limit]
    return {row["_rowid"]: (row["id"], row["a"] * 2, row["s"]["x"]) for row in taken}


@pytest.fixture
def history(tmp_path: Path) -> SourceHistory:
    return SourceHistory(tmp_path / "source", 7)


@pytest.fixture
def view(history: SourceHistory, tmp_path: Path) -> LocalView:
    view = LocalView(tmp_path, by_two()).create()
    view.refresh()
    return view


def test_the_first_refresh_computes_everything(history: SourceHistory, tmp_path: Path) -> None:
    view = LocalView(tmp_path, by_two()).create()
    plan = view.explain()
    done = view.refresh()
    assert (done.mode, done.reason) == ("full", "the view was never filled")
    assert (plan["mode"], plan["rows_to_insert"]) == ("full", done.rows_inserted)
    assert view.rows() == expected(history.open())
    assert (done.rows_inserted, done.rows_updated, done.rows_deleted) == (len(view.rows()), 0, 0)
    assert (done.version, done.source_versions) == (2, {"n$source": 1})


def test_lance_counts_by_its_filter_though_spark_computes_an_output(
    history: SourceHistory, tmp_path: Path
) -> None:
    schemas = {("n", "source"): history.open().schema}
    by_spark = make(
        "SELECT id, upper(b) AS b FROM source WHERE id < 3", schemas=schemas, namespace=("n",)
    )
    assert by_spark.rows is not None
    assert by_spark.rows.engine == "spark"
    there = history.open().count_rows("id < 3")
    plan = LocalView(tmp_path, by_spark, name="new").create().explain()
    assert (plan["rows_to_insert"], plan["unknown"]) == (there, {})
    plain = make("SELECT id FROM source WHERE id < 3", schemas=schemas, namespace=("n",))
    view = LocalView(tmp_path, plain).create()
    view.refresh()
    told = view.explain_alter(by_spark)
    assert (told["rows_staying"], told["rows_to_insert"], told["unknown"]) == (there, 0, {})


def test_one_row_is_told_as_one(history: SourceHistory, view: LocalView) -> None:
    (id, *_), *_ = view.rows().values()
    history.open().delete(f"id = {id}")
    assert view.refresh().reason == "1 row of the source is gone"


def test_progress_counts_source_rows_and_ends_with_all_of_them_done(
    history: SourceHistory, view: LocalView
) -> None:
    attempt, total = HeldAttempt(), history.open().count_rows()
    view.refresh(attempt, mode="full")
    assert 0 < len(view.rows()) < total
    assert (attempt.told["rows_done"], attempt.told["rows_total"]) == (total, total)
    nothing = HeldAttempt()
    view.refresh(nothing)
    assert (nothing.told["rows_done"], nothing.told["rows_total"]) == (0, 0)


def test_a_refresh_without_changes_commits_nothing_and_asks_for_no_engine(
    history: SourceHistory, view: LocalView
) -> None:
    view.engine = None  # type: ignore[assignment]
    done = view.refresh()
    assert (done.mode, done.version, view.open().version) == ("none", 2, 2)
    history.open().update({"b": "b + 1"})
    done = view.refresh()
    assert (done.mode, view.open().version) == ("none", 2)
    assert done.source_versions == {"n$source": 2}


def test_rows_are_added_replaced_and_removed_in_one_version(
    history: SourceHistory, view: LocalView
) -> None:
    before = view.rows()
    history.do_append()
    history.open().update({"a": "7"}, where="id IN (0, 1)")
    history.open().update({"a": "0"}, where="id = 2")
    history.open().delete("id = 4")
    plan = view.explain()
    done = view.refresh()
    check_plan(plan, done)
    now = view.rows()
    assert now == expected(history.open())
    assert (done.mode, done.version) == ("incremental", 3)
    news = now.keys() - before.keys()
    assert done.rows_inserted == len(news)
    assert done.rows_updated == sum(before[id] != now[id] for id in now.keys() - news) == 1
    assert done.rows_deleted == len(before.keys() - now.keys()) == 2


def test_only_deletions_need_no_engine(history: SourceHistory, view: LocalView) -> None:
    history.open().delete("id < 10")
    view.engine = None  # type: ignore[assignment]
    assert view.refresh().rows_deleted > 0
    assert view.rows() == expected(history.open())


def test_columns_that_users_added_stay_where_rows_do(
    history: SourceHistory, view: LocalView
) -> None:
    view.open().add_columns({"extra": "id + 1000"})
    view.open().optimize.compact_files()
    history.do_append()
    done = view.refresh()
    assert done.mode == "incremental"
    for row in view.open().to_table().to_pylist():
        assert row["extra"] == (row["id"] + 1000 if row["id"] < 40 else None)


@pytest.mark.parametrize("mode", ["incremental", "full"])
def test_an_index_of_the_view_stays(history: SourceHistory, view: LocalView, mode: str) -> None:
    view.open().create_scalar_index("id", "BTREE")
    history.open().update({"a": "5"}, where="id = 1")
    assert view.refresh(mode=mode).mode == mode
    opened = view.open()
    assert [index.name for index in opened.describe_indices()] == ["id_idx"]
    assert opened.to_table(filter="id = 1")["twice"].to_pylist() == [10]
    assert opened.to_table(filter="id >= 0").num_rows == len(expected(history.open()))


@pytest.mark.parametrize("kind", ["append", "delete", "restore"])
def test_rows_that_somebody_else_wrote_are_gone_after_a_full_refresh(
    history: SourceHistory, view: LocalView, kind: str
) -> None:
    if kind == "append":
        view.open().insert(pa.table({"id": [1]}))
    elif kind == "delete":
        view.open().delete("id < 10")
    else:
        lance.dataset(str(view.path), version=1).restore()  # type: ignore[no-untyped-call]
    done = view.refresh()
    assert (done.mode, f"somebody else's {kind}" in done.reason) == ("full", True)
    assert view.rows() == expected(history.open())


def test_an_older_version_of_the_source_gives_the_view_as_of_then(
    history: SourceHistory, view: LocalView
) -> None:
    history.open().update({"a": "5"}, where="id % 2 = 0")
    history.do_append()
    view.refresh()
    assert view.refresh(src_version=2).mode == "incremental"
    assert view.rows() == expected(history.open(2))
    view.refresh()
    assert view.rows() == expected(history.open())


def test_another_meaning_is_a_full_refresh_unless_that_is_not_wanted(
    history: SourceHistory, view: LocalView
) -> None:
    view.definition = by_two(digest="2")
    with pytest.raises(InvalidRequest, match="means something else"):
        view.refresh(mode="incremental")
    assert view.refresh().mode == "full"
    assert view.refresh(mode="full").reason == "a full refresh was asked for"
    assert view.rows() == expected(history.open())


def test_a_source_without_stable_row_ids_is_refreshed_in_full(tmp_path: Path) -> None:
    source = lance.write_dataset(some_rows(0, 20), str(tmp_path / "source"))
    view = LocalView(tmp_path, by_two()).create()
    view.refresh()
    assert view.refresh().mode == "none"
    source.insert(some_rows(20, 1))
    assert "no stable row ids" in view.refresh().reason
    source.insert(some_rows(21, 1))
    with pytest.raises(InvalidRequest, match="no stable row ids"):
        view.refresh(mode="incremental")


def test_the_version_that_a_view_follows_outlives_a_clean_up(
    history: SourceHistory, view: LocalView
) -> None:
    history.do_append()
    view.refresh()
    tags = history.open().tags.list()
    assert {tag["version"] for tag in tags.values()} == {1, 2}
    history.open().update({"a": "5"}, where="id = 1")
    clean_up(history.open())
    assert view.refresh().mode == "incremental"
    for tag in history.open().tags.list():
        history.open().tags.delete(tag)
    history.open().update({"a": "6"}, where="id = 1")
    history.open().cleanup_old_versions(timedelta(0))
    assert "is gone" in view.refresh().reason
    assert view.rows() == expected(history.open())


def clean_up(dataset: lance.LanceDataset) -> None:
    dataset.cleanup_old_versions(timedelta(0), error_if_tagged_old_versions=False)


@pytest.mark.parametrize("is_changed", [False, True])
def test_a_view_whose_own_history_was_cleaned_up_is_compared(
    history: SourceHistory, view: LocalView, is_changed: bool
) -> None:
    history.do_append()
    left = view.refresh().version
    if is_changed:
        view.open().delete("id < 10")
    view.open().optimize.compact_files()
    view.open().create_scalar_index("id", "BTREE")
    clean_up(view.open())
    versions = {each["version"] for each in view.open().versions()}
    assert (left in versions, left + 1 in versions) == (True, False)
    history.do_append()
    done = view.refresh()
    assert view.rows() == expected(history.open())
    if is_changed:
        assert (done.mode, "changed rows of the view" in done.reason) == ("full", True)
    else:
        assert done.mode == "incremental"
    # Of the view's own versions two are kept: the one that the catalog may still know, and this.
    kept = {tag["version"] for tag in view.open().tags.list().values()}
    assert kept == {left, done.version}


def test_fragments_have_as_many_rows_as_was_asked_for(
    history: SourceHistory, view: LocalView
) -> None:
    view.refresh(mode="full", max_rows_per_fragment=5, source_task_size=13)
    sizes = [fragment.count_rows() for fragment in view.open().get_fragments()]
    assert max(sizes) == 5
    assert view.rows() == expected(history.open())


def test_an_explanation_says_what_a_refresh_does(history: SourceHistory, view: LocalView) -> None:
    assert view.explain()["mode"] == "none"
    history.do_append()
    said = view.explain()
    assert (said["mode"], said["fragments"]) == ("incremental", 1)
    assert said["source_versions"] == {"n$source": {"from": 1, "to": 2}}
    done = view.refresh()
    assert (done.mode, done.reason) == (said["mode"], said["reason"])


def check_plan(plan: dict[str, Any], done: RefreshResult) -> None:
    planned = [plan[f"rows_to_{what}"] for what in ("insert", "update", "delete")]
    assert planned == [done.rows_inserted, done.rows_updated, done.rows_deleted]


def go_through(folder: Path, seed: int, steps: int, limit: int | None) -> None:
    history = SourceHistory(folder / "source", seed)
    view = LocalView(folder, by_two(limit)).create()
    for _ in range(steps):
        for _ in range(history.chance.randrange(1, 4)):
            history.step()
        options: dict[str, Any] = {}
        if history.chance.random() < 0.2:
            options["src_version"] = history.chance.choice(history.versions)
        if history.chance.random() < 0.1:
            view.open().optimize.compact_files()
        plan, done = view.explain(**options), view.refresh(**options)
        wanted = expected(history.open(options.get("src_version")), limit)
        if limit is None and done.mode != "none":
            check_plan(plan, done)
        assert view.rows() == wanted, f"seed {seed}, {history.steps}, {options}"
        assert not view.loose_files()


@pytest.mark.parametrize("limit", [None, 12])
@pytest.mark.parametrize("seed", range(2))
def test_after_every_refresh_of_a_random_history_the_view_is_its_query(
    tmp_path: Path, seed: int, limit: int | None
) -> None:
    go_through(tmp_path, seed, 8, limit)


@pytest.mark.slow
@pytest.mark.parametrize("limit", [None, 3, 12])
@pytest.mark.parametrize("seed", range(100, 154))
def test_after_every_refresh_of_many_random_histories_the_view_is_its_query(
    tmp_path: Path, seed: int, limit: int | None
) -> None:
    go_through(tmp_path, seed, 10, limit)


def test_columns_of_the_view_that_swapped_their_names_are_filled_anew(
    history: SourceHistory, view: LocalView
) -> None:
    for old, new in (("id", "kept"), ("twice", "id"), ("kept", "twice")):
        change: Any = {"path": old, "name": new}
        view.open().alter_columns(change)
    history.open().update({"a": "8"}, where="id = 1")
    done = view.refresh()
    assert (done.mode, done.reason) == (
        "full",
        "column id of the view is not the one that was filled",
    )
    found = view.open().to_table(["__source_row_id", "id", "twice", "x"]).to_pylist()
    rows = {row.pop("__source_row_id"): tuple(row.values()) for row in found}
    assert rows == expected(history.open())
    view.open().add_columns({"more": "id + 1"})
    view.open().drop_columns(["more"])
    assert view.refresh().mode == "none"


@pytest.mark.parametrize(
    ("column", "change", "told"),
    [
        ("a", {"path": "a", "data_type": pa.int32()}, "column a was int64 and is int32"),
        ("a", {"path": "a", "name": "c"}, "column a is gone"),
        ("s.x", {"path": "s.x", "name": "z"}, "column s.x is gone"),
        ("s.x", {"path": "s.y", "name": "z"}, ""),
    ],
)
def test_a_source_that_changed_its_columns_since_the_request_is_told(
    history: SourceHistory, view: LocalView, column: str, change: Any, told: str
) -> None:
    (source,) = view.definition.sources
    kind = pa.int64() if column == "a" else pa.string()
    types = encode_schema(pa.schema([(column, kind)]))
    view.definition = structs.replace(
        view.definition, sources=(structs.replace(source, types=types),)
    )
    history.open().alter_columns(change)
    if not told:
        view.refresh()
        return
    with pytest.raises(InvalidRequest, match=told) as raised:
        view.refresh()
    assert (raised.value.detail, is_passing(raised.value)) == ("request the refresh again", False)
