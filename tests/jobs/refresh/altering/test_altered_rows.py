"""Altered views over rows: what stays, what is computed, and that it is one commit."""

import os
import signal
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pytest

from penstock.errors import FunctionFailed, InvalidTableState
from tests.harness.data.sources import SourceHistory
from tests.harness.jobs.function_tables import store
from tests.harness.jobs.held_attempt import HeldAttempt
from tests.harness.views.local_views import LocalView, define

KILLED = -signal.SIGKILL
READS = ("id", "a", "s.x")
KINDS = {"id": pa.int64(), "a": pa.int64(), "x": pa.string()}
COLUMNS = {"id": "id", "a": "a", "x": "s.x"}


def expected(history: SourceHistory, show: Any, keep: Any = lambda row: True) -> dict[int, Any]:
    rows = history.open().to_table(["id", "a", "s"], with_row_id=True).to_pylist()
    return {row["_rowid"]: show(row) for row in rows if keep(row)}


def ids_of(view: LocalView) -> dict[int, int]:
    found = view.open().to_table(["__source_row_id"], with_row_id=True).to_pylist()
    return {row["__source_row_id"]: row["_rowid"] for row in found}


@pytest.fixture
def history(tmp_path: Path) -> SourceHistory:
    return SourceHistory(tmp_path / "source", 3)


def make(tmp_path: Path, **more: Any) -> LocalView:
    view = LocalView(tmp_path, define(COLUMNS, KINDS, READS, **more)).create()
    view.refresh()
    return view


def test_a_new_column_is_filled_and_rows_keep_their_ids(
    tmp_path: Path, history: SourceHistory
) -> None:
    view = make(tmp_path)
    before, version = ids_of(view), view.open().version
    columns = {**COLUMNS, "twice": "id * 2"}
    view.alter(define(columns, {**KINDS, "twice": pa.int64()}, READS, digest="2"))
    assert view.rows() == expected(history, lambda r: (r["id"], r["a"], r["s"]["x"], r["id"] * 2))
    assert ids_of(view) == before
    assert view.open().version == version + 1
    assert view.loose_files() == set()


def test_columns_fall_and_come_in_one_commit(tmp_path: Path, history: SourceHistory) -> None:
    view = make(tmp_path)
    version = view.open().version
    columns, kinds = {"id": "id", "b": "a + 1"}, {"id": pa.int64(), "b": pa.int64()}
    view.alter(define(columns, kinds, READS, where="id > 3", digest="2"))
    wanted = lambda r: (r["id"], None if r["a"] is None else r["a"] + 1)  # noqa: E731
    assert view.rows() == expected(history, wanted, lambda r: r["id"] > 3)
    assert view.open().schema.names == ["__source_row_id", "id", "b"]
    assert view.open().version == version + 1
    assert view.open().checkout_version(version).schema.names == ["__source_row_id", *KINDS]
    history.do_append()
    history.open().update({"a": "77"}, where="id = 5")
    assert view.refresh().mode == "incremental"
    assert view.rows() == expected(history, wanted, lambda r: r["id"] > 3)


def test_users_columns_and_indexes_stay_with_the_rows_that_stay(
    tmp_path: Path, history: SourceHistory
) -> None:
    view = make(tmp_path, where="id < 8")
    view.open().add_columns({"note": "concat('note ', cast(id as string))"})
    view.open().create_scalar_index("note", "BTREE")
    columns = {"id": "id", "x": "s.x", "more": "id + 100"}
    kinds = {"id": pa.int64(), "x": pa.string(), "more": pa.int64()}
    view.alter(define(columns, kinds, READS, where="id > 2", digest="2"))
    assert view.rows() == expected(
        history,
        lambda r: (
            *(r["id"], r["s"]["x"], r["id"] + 100),
            f"note {r['id']}" if r["id"] < 8 else None,
        ),
        lambda r: r["id"] > 2,
    )
    assert [index["name"] for index in view.open().list_indices()] == ["note_idx"]
    assert view.open().to_table(filter="note = 'note 5'").num_rows == 1
    assert view.open().to_table(filter="note = 'note 1'").num_rows == 0


def test_a_column_of_the_users_is_not_overwritten(tmp_path: Path, history: SourceHistory) -> None:
    view = make(tmp_path)
    view.open().add_columns({"note": "id"})
    version = view.open().version
    with pytest.raises(InvalidTableState, match="note of its users"):
        view.alter(define({"note": "id"}, {"note": pa.int64()}, READS, digest="2"))
    assert view.open().version == version


def test_functions_are_called_only_for_new_rows_and_columns(
    tmp_path: Path, history: SourceHistory
) -> None:
    (tmp_path / "view").mkdir()
    log = tmp_path / "calls"
    old = store(tmp_path / "view", log, lambda x: f"<{x}>", "1", inputs=("x",))
    kinds = {"id": pa.int64(), "value": pa.string()}
    columns = {"id": "id", "x": "s.x"}
    first = define(columns, kinds, READS, where="id < 20", functions=[old])
    view = LocalView(tmp_path, first).create()
    assert view.refresh().function_calls == 20
    # Other rows: only those that come are given to the function.
    wider = define(columns, kinds, READS, where="id < 25", functions=[old], digest="2")
    assert view.alter(wider).function_calls == 5
    # Another column: not called at all.
    columns = {**columns, "a": "a"}
    more = define(columns, {**kinds, "a": pa.int64()}, READS, functions=[old], digest="3",
                  where="id < 25")  # fmt: skip
    assert view.alter(more).function_calls == 0
    # Another version of the function: called for every row, once.
    new = store(tmp_path / "view", log, lambda x: f"[{x}]", "2", inputs=("x",))
    other = define(columns, {**kinds, "a": pa.int64()}, READS, functions=[new], digest="4",
                   where="id < 25")  # fmt: skip
    before = ids_of(view)
    assert view.alter(other).function_calls == 25
    assert ids_of(view) == before
    assert view.rows() == expected(
        history, lambda r: (r["id"], f"[{r['s']['x']}]", r["a"]), lambda r: r["id"] < 25
    )
    assert view.loose_files() == set()


def test_a_function_that_fails_leaves_the_view_as_it_was(
    tmp_path: Path, history: SourceHistory
) -> None:
    view = make(tmp_path)
    rows, version = view.rows(), view.open().version
    bad = store(tmp_path / "view", tmp_path / "calls", lambda x: 1 // 0, "1", inputs=("x",))
    kinds = {**KINDS, "value": pa.string()}
    with pytest.raises(FunctionFailed):
        view.alter(define(COLUMNS, kinds, READS, functions=[bad], digest="2"))
    assert (view.rows(), view.open().version) == (rows, version)
    view.refresh()
    assert view.rows() == rows


@pytest.mark.parametrize("point", ["draft made", "altered rows written", "files written"])
def test_the_next_attempt_finishes_what_a_killed_one_began(
    tmp_path: Path, history: SourceHistory, point: str
) -> None:
    view = make(tmp_path, where="id < 9")
    rows = view.rows()
    columns = {"id": "id", "twice": "id * 2"}
    altered = define(
        columns, {"id": pa.int64(), "twice": pa.int64()}, READS, where="id > 4", digest="2"
    )
    assert view.die_at(point, "j1", spec=view.alteration_spec(altered)) == KILLED
    assert view.rows() == rows
    history.open().update({"s": "named_struct('x', 'new', 'y', 1)"}, where="id = 6")
    view.alter(altered, HeldAttempt(job="j1", number=2))
    assert view.rows() == expected(history, lambda r: (r["id"], r["id"] * 2), lambda r: r["id"] > 4)
    assert view.loose_files() == set()


def test_an_attempt_that_could_not_report_is_found(tmp_path: Path, history: SourceHistory) -> None:
    view = make(tmp_path)
    altered = define({"id": "id"}, {"id": pa.int64()}, READS, digest="2")
    spec = view.alteration_spec(altered)
    assert view.die_at("refresh committed", "j1", spec=spec) == KILLED
    version = view.open().version
    done = view.alter(altered, HeldAttempt(job="j1", number=2))
    assert (done.version, view.open().version) == (version, version)
    assert done.watermark.digest == "2"


def test_whoever_commits_meanwhile_sends_the_alteration_to_another_attempt(
    tmp_path: Path, history: SourceHistory
) -> None:
    view = make(tmp_path)
    altered = define({"id": "id", "n": "id + 1"}, {"id": pa.int64(), "n": pa.int64()}, READS,
                     digest="2")  # fmt: skip
    assert view.die_at("files written", "j1", spec=view.alteration_spec(altered)) == KILLED
    # It gets the id that the first attempt's draft had for its own column.
    view.open().add_columns({"note": "id * 10"})
    view.alter(altered, HeldAttempt(job="j1", number=2))
    assert view.rows() == expected(history, lambda r: (r["id"], r["id"] + 1, r["id"] * 10))


DEFINITIONS = [
    ({"id": "id", "a": "a"}, {"id": pa.int64(), "a": pa.int64()}, None),
    ({"id": "id", "x": "s.x"}, {"id": pa.int64(), "x": pa.string()}, "id % 2 = 0"),
    ({"x": "s.x", "id": "id * 3"}, {"x": pa.string(), "id": pa.int64()}, "id % 3 = 0"),
    ({"id": "id", "a": "a", "x": "s.x"}, KINDS, "a IS NOT NULL"),
    ({"id": "id", "a": "a"}, {"id": pa.int64(), "a": pa.int64()}, "a IS NOT NULL"),
]


def histories() -> list[int]:
    return list(range(int(os.environ.get("PENSTOCK_ALTER_HISTORIES", "6"))))


@pytest.mark.parametrize("seed", histories())
def test_random_alterations_are_exact(tmp_path: Path, seed: int) -> None:
    random = Random(seed)
    history = SourceHistory(tmp_path / "source", seed)
    made = [
        define(columns, kinds, READS, where=where, digest=str(n))
        for n, (columns, kinds, where) in enumerate(DEFINITIONS)
    ]
    view = LocalView(tmp_path, made[0]).create()
    view.refresh()
    for _ in range(6):
        for _ in range(random.randrange(3)):
            history.step()
        if random.random() < 0.7:
            view.alter(random.choice(made))
        else:
            view.refresh()
        rows = view.definition.rows
        assert rows is not None
        wanted = history.open().to_table(
            {c.name: c.expression for c in rows.columns} | {"_rowid": "_rowid"}, filter=rows.filter
        )
        names = [column.name for column in rows.columns]
        assert view.rows() == {
            row["_rowid"]: tuple(row[name] for name in names) for row in wanted.to_pylist()
        }
    assert view.loose_files() == set()
