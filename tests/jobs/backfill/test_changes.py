"""Which rows are fresh, after all that can happen to a table: real Lance tables, filled by hand."""

from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pytest

from penstock.errors import PenstockError
from penstock.jobs.backfill.plan import Fill
from penstock.jobs.backfill.selection import Scope
from tests.harness.jobs.filled_tables import FilledTable, make_filled, some_rows


@pytest.fixture
def table(tmp_path: Path) -> FilledTable:
    return make_filled(tmp_path / "t")


def compact(table: FilledTable, branch: str = "") -> None:
    table.open(branch).optimize.compact_files(target_rows_per_fragment=1000)


def restore(table: FilledTable, version: int) -> None:
    earlier: Any = table.open().checkout_version(version)
    earlier.restore()


def merge(table: FilledTable, rows: pa.Table) -> None:
    builder = (
        table.open().merge_insert("id").when_matched_update_all().when_not_matched_insert_all()
    )
    builder.execute(rows)


def rename(table: FilledTable, old: str, new: str) -> None:
    change: Any = {"path": old, "name": new}
    table.open().alter_columns(change)


def overwrite(table: FilledTable) -> None:
    now = table.open().to_table()
    lance.write_dataset(now, str(table.path), mode="overwrite", enable_stable_row_ids=True)


def test_every_row_is_computed_once(table: FilledTable) -> None:
    found = table.plan()
    assert isinstance(found, Fill)
    assert (found.mode, found.function_calls) == ("full", 40)
    assert table.fill() == 40
    assert table.values() == table.expected()
    assert table.plan().function_calls == 0
    assert table.fill() == 0


# What happens after a fill, how many rows need work then, and for which reason.
CASES: dict[str, tuple[Callable[[FilledTable], object], int, str]] = {
    "append": (lambda t: t.open().insert(some_rows(100, 7)), 7, "never_filled"),
    "update an input": (
        lambda t: t.open().update({"text": "'new'"}, "id < 3"),
        3,
        "inputs_changed",
    ),
    "update to the same": (lambda t: t.open().update({"text": "text"}, "id < 3"), 0, ""),
    "update another": (lambda t: t.open().update({"other": "5"}, "id < 30"), 0, ""),
    "update all": (lambda t: t.open().update({"number": "number + 1"}), 40, "inputs_changed"),
    "delete": (lambda t: t.open().delete("id % 3 = 0"), 0, ""),
    "compact": (compact, 0, ""),
    "write a value": (lambda t: t.open().update({"value": "'x'"}, "id = 4"), 1, "foreign_value"),
    "write null": (lambda t: t.open().update({"value": "NULL"}, "id = 4"), 1, "foreign_value"),
    "append values": (
        lambda t: t.open().insert(some_rows(100, 3).append_column("value", pa.array(["x"] * 3))),
        3,
        "foreign_value",
    ),
    "add a column": (lambda t: t.open().add_columns({"more": "id * 2"}), 0, ""),
    "drop a column": (lambda t: t.open().drop_columns(["other"]), 0, ""),
    "rename a column": (
        lambda t: rename(t, "other", "renamed"),
        0,
        "",
    ),
    "merge": (lambda t: merge(t, with_value(some_rows(38, 4))), 4, ""),
    "overwrite": (overwrite, 40, "foreign_value"),
}


def with_value(rows: pa.Table) -> pa.Table:
    return rows.append_column("value", pa.nulls(len(rows), pa.string()))


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("then", ["", "compact"])
def test_rows_that_need_work(table: FilledTable, case: str, then: str) -> None:
    table.fill()
    change, count, reason = CASES[case]
    change(table)
    if then:
        compact(table)
    found = table.plan()
    assert found.function_calls == count
    if reason:
        assert (found.calls_by_reason or {})[reason] == count
    assert table.fill() == count
    assert table.values() == table.expected()
    assert table.fill() == 0


def test_a_partial_update_in_place_computes_only_the_rows_that_changed(table: FilledTable) -> None:
    table.fill()
    changed = pa.table({"id": pa.array([3, 17], pa.int64()), "text": ["new", "t2"]})
    table.open().merge_insert("id").when_matched_update_all().execute(changed)
    assert table.fill() == 1
    assert table.values() == table.expected()


def test_a_change_that_was_undone_by_restore_needs_nothing(table: FilledTable) -> None:
    table.fill()
    filled = table.open().version
    table.open().update({"text": "'new'"}, where="id < 30")
    compact(table)
    restore(table, filled)
    assert table.fill() == 0
    restore(table, 1 + 1)
    assert table.fill() == 40
    assert table.values() == table.expected()


def test_rows_that_a_restore_brings_back_are_computed(table: FilledTable) -> None:
    before = table.open().version
    table.open().delete("id % 4 = 0")
    table.fill()
    restore(table, before)
    assert table.fill() == 40
    assert table.values() == table.expected()


def test_where_fills_some_rows_and_the_others_are_known_afterwards(table: FilledTable) -> None:
    assert table.fill(scope=Scope(where="id % 2 = 0")) == 20
    assert table.plan(scope=Scope(where="id % 2 = 0")).function_calls == 0
    assert table.plan().function_calls == 20
    compact(table)
    assert table.plan().function_calls == 20
    assert table.fill(scope=Scope(where="id < 10")) == 5
    assert table.fill() == 15
    assert table.values() == table.expected()


def test_num_frags_takes_fragments_with_something_to_compute(table: FilledTable) -> None:
    assert table.fill(num_frags=1) == 10
    assert table.fill(scope=Scope(where="id >= 35"), num_frags=1) == 5
    compact(table)
    assert table.plan().rows_left == 0
    assert table.fill(num_frags=1) == 25


def test_another_version_of_the_function_computes_everything(table: FilledTable) -> None:
    table.fill()
    table.version = "2"
    assert (table.plan().calls_by_reason or {})["function_changed"] == 40
    assert table.fill(scope=Scope(where="id < 5")) == 5
    compact(table)
    assert table.fill() == 35
    assert table.fill() == 0


def test_going_back_to_an_earlier_version_finds_its_values(table: FilledTable) -> None:
    table.fill()
    filled = table.open().version
    table.version = "2"
    table.fill()
    restore(table, filled)
    compact(table)
    table.version = "1"
    assert table.fill() == 0


def test_read_version_leaves_later_rows_alone(table: FilledTable) -> None:
    before = table.open().version
    table.open().insert(some_rows(100, 5))
    table.open().update({"text": "'new'"}, where="id < 3")
    compact(table)
    scope = Scope(version=before)
    assert table.fill(scope=scope) == 40
    assert table.fill(scope=scope) == 0
    assert table.fill() == 5


def test_only_rows_of_the_ledger(table: FilledTable) -> None:
    ids = table.open().to_table(columns=["id"], with_row_id=True, filter="id IN (3, 25)")
    chosen = Scope(row_ids=frozenset(ids["_rowid"].to_pylist()))
    assert table.fill(scope=chosen) == 2
    assert table.fill() == 38


def test_force_computes_fresh_rows_too(table: FilledTable) -> None:
    table.fill()
    table.open().delete("id < 5")
    assert table.fill(scope=Scope(force=True), force=True) == 35
    assert table.fill(scope=Scope(where="id < 12", force=True), force=True) == 7
    assert table.fill() == 0
    assert table.values() == table.expected()


def test_force_looks_at_no_row_for_its_plan(table: FilledTable) -> None:
    table.fill()
    table.open().update({"value": "'x'"})
    for file in (table.path / "data").iterdir():
        file.write_bytes(b"nothing that can be read")
    found = table.plan(scope=Scope(force=True), force=True)
    assert (found.function_calls, found.rows_left) == (40, 0)
    with pytest.raises(PenstockError):
        table.plan()


def test_force_of_some_fragments_still_knows_what_is_left(table: FilledTable) -> None:
    table.fill()
    table.open().update({"value": "'x'"}, "id = 4")
    fragments = len(table.open().get_fragments())
    forced = table.plan(scope=Scope(force=True, num_frags=1), force=True, num_frags=1)
    assert (forced.fragments, forced.rows_left, fragments > 1) == (1, 1, True)


def test_a_branch_goes_its_own_way(table: FilledTable) -> None:
    table.fill(scope=Scope(where="id < 20"))
    table.open().create_branch("dev")
    compact(table, "dev")
    assert table.plan("dev").function_calls == 20
    table.open("dev").update({"text": "'dev'"}, where="id < 3")
    assert table.fill("dev") == 23
    assert table.values("dev") == table.expected("dev")
    assert table.fill() == 20
    compact(table)
    compact(table, "dev")
    assert (table.fill(), table.fill("dev")) == (0, 0)


def test_a_branch_reads_what_partly_filled_files_of_main_say(table: FilledTable) -> None:
    table.fill(scope=Scope(where="id < 20"))
    table.open().create_branch("dev")
    assert table.fill("dev") == 20
    assert table.values("dev") == table.expected("dev")


def forget_versions(table: FilledTable) -> None:
    for tag in table.open().tags.list():
        table.open().tags.delete(tag)
    table.open().cleanup_old_versions(older_than=timedelta(0))


def test_what_a_compaction_made_of_filled_fragments_needs_no_earlier_version(
    table: FilledTable,
) -> None:
    table.fill()
    table.open().delete("id % 3 = 0")
    table.open().optimize.compact_files(target_rows_per_fragment=20)
    compact(table)
    forget_versions(table)
    table.watermarks.clear()
    assert table.plan().function_calls == 0
    changed = pa.table({"id": pa.array([4], pa.int64()), "text": ["new"]})
    table.open().merge_insert("id").when_matched_update_all().execute(changed)
    assert table.plan().function_calls > 0


def test_a_version_that_was_cleaned_up_is_named_and_everything_computed(table: FilledTable) -> None:
    table.fill()
    table.open().update({"other": "1"}, where="id = 3")
    compact(table)
    forget_versions(table)
    found = table.plan()
    assert found.function_calls == 40
    assert "is gone" in found.reason


def test_the_tag_keeps_the_version(table: FilledTable) -> None:
    table.fill()
    compact(table)
    table.open().cleanup_old_versions(older_than=timedelta(0), error_if_tagged_old_versions=False)
    assert table.plan().function_calls == 0


def test_a_table_without_stable_row_ids_goes_by_files_alone(tmp_path: Path) -> None:
    table = make_filled(tmp_path / "t", stable=False)
    table.fill()
    table.open().insert(some_rows(100, 5))
    assert table.fill() == 5
    table.open().update({"other": "1"}, where="id = 3")
    found = table.plan()
    assert found.function_calls == 1
    assert "stable row ids" in found.reason
    compact(table)
    assert table.fill() == 45
    assert table.values() == table.expected()


def test_inputs_that_swap_their_names_are_other_inputs(tmp_path: Path) -> None:
    data = pa.table({"id": [1, 2, 3], "a": ["x", "y", "z"], "b": ["p", "q", "z"]})
    table = make_filled(
        tmp_path / "t", data=data, fragments=1, inputs=("a", "b"), compute=lambda a, b: a + b
    )
    table.fill()
    for old, new in (("a", "c"), ("b", "a"), ("c", "b")):
        rename(table, old, new)
    assert table.fill() == 2
    assert table.values() == table.expected()


def test_inputs_that_were_renamed_are_the_same_inputs(table: FilledTable) -> None:
    table.fill()
    rename(table, "text", "words")
    table.inputs = ("words", "number")
    assert table.fill() == 0
    compact(table)
    assert table.fill() == 0


def test_several_outputs_are_filled_together(tmp_path: Path) -> None:
    fields = (pa.field("upper", pa.string()), pa.field("more", pa.int64()))
    table = make_filled(
        tmp_path / "t", fields=fields, compute=lambda text, number: (text.upper(), number + 1)
    )
    assert table.fill() == 40
    table.open().update({"more": "0"}, where="id = 3")
    assert table.fill() == 1
    compact(table)
    assert table.fill() == 0
    assert table.values() == table.expected()


def test_null_counts_as_filled(tmp_path: Path) -> None:
    table = make_filled(tmp_path / "t", compute=lambda text, number: None)
    assert table.fill() == 40
    compact(table)
    assert table.fill() == 0


NAN = float("nan")
KINDS: dict[str, tuple[Any, list[Any], Any]] = {
    "floats": (pa.float32(), [1.0, NAN, None], 2.0),
    "vectors": (pa.list_(pa.float32(), 2), [[1.0, NAN], [0.0, 1.0], None], [5.0, 5.0]),
    "lists": (pa.list_(pa.string()), [["a"], [], None], ["b"]),
    "structs": (pa.struct([("x", pa.int64())]), [{"x": 1}, {"x": None}, {"x": 3}], {"x": 9}),
    "binary": (pa.binary(), [b"a", b"", None], b"z"),
    "times": (pa.timestamp("us"), [1, 2, None], 7),
}


@pytest.mark.parametrize("kind", KINDS)
def test_inputs_of_any_type_are_compared(tmp_path: Path, kind: str) -> None:
    arrow, values, other = KINDS[kind]
    data = pa.table({"id": [1, 2, 3], "in": pa.array(values, arrow), "other": [1, 1, 1]})
    table = make_filled(tmp_path / "t", data=data, fragments=1, inputs=("in",), compute=repr)
    table.fill()
    table.open().update({"other": "2"})
    compact(table)
    assert table.fill() == 0
    changed = pa.table({"id": [2], "in": pa.array([other], arrow)})
    table.open().merge_insert("id").when_matched_update_all().execute(changed)
    assert table.fill() == 1
    assert table.values() == table.expected()


@pytest.mark.parametrize("storage", ["2.0", "2.2"])
def test_blobs_are_compared_by_their_bytes(tmp_path: Path, storage: Any) -> None:
    blob = pa.field("blob", pa.large_binary(), metadata={"lance-encoding:blob": "true"})
    schema = pa.schema([pa.field("id", pa.int64()), blob, pa.field("other", pa.int64())])
    data = pa.table({"id": [1, 2, 3], "blob": [b"one", b"", None], "other": [0, 0, 0]}, schema)
    path = str(tmp_path / "t")
    dataset = lance.write_dataset(
        data, path, enable_stable_row_ids=True, data_storage_version=storage
    )
    dataset.add_columns(pa.field("value", pa.string()))
    table = FilledTable(tmp_path / "t", inputs=("blob",), compute=lambda blob: "constant")
    table.fill()
    extra = pa.table({"id": [4], "blob": [b"four"], "other": [0]}, schema)
    table.open().insert(extra)
    assert table.fill() == 1
    compact(table)
    assert table.fill() == 0
    found: Any = extra.set_column(0, "id", pa.array([1], pa.int64()))
    lance.write_dataset(found, path, mode="append")
    assert table.fill() == 1


def test_a_field_inside_a_struct_or_a_list_is_an_input(tmp_path: Path) -> None:
    data = pa.table(
        {
            "id": [1, 2],
            "s": [{"x": 1, "y": 1}, {"x": 2, "y": 2}],
            "l": [[{"k": 1}], [{"k": 2}, {"k": 3}]],
        }
    )
    table = make_filled(tmp_path / "t", data=data, fragments=1, inputs=("s.x", "l.k"))
    table.inputs = ("s.x", "l.k")
    bound = table.freshness()
    assert bound.snapshot(table.open()).fragments[0].codes == 2
