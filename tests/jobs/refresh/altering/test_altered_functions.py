"""Altered views that functions make: children and partitions that stay are not made again."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
from msgspec import structs

from penstock.model.functions import Function
from penstock.model.views import CHILD_INDEX, SOURCE_ROW_ID, Column, Definition
from tests.harness.views.function_views import FunctionView, make_view
from tests.harness.views.local_views import encode_schema

OUTPUTS = {"word": pa.string()}


def split(text: str) -> Iterator[dict[str, Any]]:
    for word in text.split():
        yield {"word": word}


def chunked(folder: Path) -> FunctionView:
    data = pa.table(
        {
            "id": pa.array(range(6), pa.int64()),
            "text": ["a b", "c", "", "d e", "f", "g h i"],
            "title": [f"t{n}" for n in range(6)],
        }
    )
    view = make_view(
        *(folder, data, split, "chunker", OUTPUTS), inputs=("text",), inherited=("id",),
        where="id < 4",
    )  # fmt: skip
    view.refresh()
    view.take_calls()
    return view


def altered(definition: Definition, inherited: list[str], where: str | None) -> Definition:
    kinds = {"id": pa.int64(), "title": pa.string()}
    schema = pa.schema(
        [
            *((SOURCE_ROW_ID, pa.int64()), (CHILD_INDEX, pa.int32())),
            *((name, kinds[name]) for name in inherited),
            *OUTPUTS.items(),
        ]
    )
    columns = [Column(name=n, expression=n, path=n, reads=(n,)) for n in ("text", *inherited)]
    rows = definition.rows
    assert rows is not None
    source = structs.replace(definition.sources[0], reads=("id", "text", "title"))
    return structs.replace(
        definition,
        rows=structs.replace(rows, filter=where, columns=tuple(columns)),
        sources=(source,),
        inherited=tuple(inherited),
        schema=encode_schema(schema),
        digest=f"{inherited}{where}",
    )


def rows_of(view: FunctionView) -> dict[tuple[int, str], tuple[Any, ...]]:
    found = view.open().to_table().to_pylist()
    return {
        (row.pop(SOURCE_ROW_ID), row.pop("word")): tuple(row.values())
        for row in found
        if row.pop(CHILD_INDEX) is not None
    }


def test_children_stay_with_what_users_added(tmp_path: Path) -> None:
    view = chunked(tmp_path)
    view.open().add_columns({"vector": "concat('v-', word)"})
    done = view.alter(altered(view.definition, ["title"], "id > 0"))
    # Rows 4 and 5 come; row 2 made nothing before, and is not asked again.
    assert view.take_calls() == ["f", "g h i"]
    assert done.function_calls == 2
    assert rows_of(view) == {
        (1, "c"): ("t1", "v-c"),
        **{(3, w): ("t3", f"v-{w}") for w in "de"},
        (4, "f"): ("t4", None),
        **{(5, w): ("t5", None) for w in "ghi"},
    }
    view.source.update({"title": "'new'"}, where="id = 3")
    assert view.refresh().function_calls == 0
    assert rows_of(view)[(3, "d")][0] == "new"


def test_what_changed_meanwhile_is_in_the_altered_view(tmp_path: Path) -> None:
    view = chunked(tmp_path)
    view.source.update({"text": "'x y'"}, where="id = 1")
    view.source.update({"id": "cast(103 as bigint)"}, where="id = 3")
    view.source.delete("id = 0")
    view.alter(altered(view.definition, ["id", "title"], None))
    assert view.take_calls() == ["f", "g h i", "x y"]
    assert rows_of(view) == {
        **{(1, w): (1, "t1") for w in "xy"},
        **{(3, w): (103, "t3") for w in "de"},
        (4, "f"): (4, "t4"),
        **{(5, w): (5, "t5") for w in "ghi"},
    }


def test_another_function_is_called_for_every_row_and_changes_what_differs(tmp_path: Path) -> None:
    view = chunked(tmp_path)
    version, before = view.open().version, view.show("_rowid", "word")
    function = view.definition.function
    assert function is not None
    other: Function = structs.replace(function, version="2")
    done = view.alter(structs.replace(view.definition, function=other, digest="2"))
    assert (done.mode, view.take_calls()) == ("incremental", ["", "a b", "c", "d e"])
    assert (done.rows_inserted, done.rows_updated, done.rows_deleted) == (0, 0, 0)
    assert (view.open().version, view.show("_rowid", "word")) == (version + 1, before)


def total(table: pa.Table) -> Any:
    numbers = table["number"].to_pylist()
    return [{"total": sum(numbers)}]


def test_partitions_that_have_the_same_rows_stay(tmp_path: Path) -> None:
    data = pa.table({"kind": ["a", "a", "b", "c"], "number": pa.array([1, 2, 3, 4], pa.int64())})
    view = make_view(
        *(tmp_path, data, total, "udtf", {"total": pa.int64()}),
        inputs=("kind", "number"), partition_by="kind", where="number < 4",
        show=lambda table: table["kind"][0].as_py(),
    )  # fmt: skip
    view.refresh()
    assert view.take_calls() == ["a", "b"]
    rows = view.definition.rows
    assert rows is not None
    view.alter(
        structs.replace(
            view.definition, rows=structs.replace(rows, filter="number > 1"), digest="2"
        )
    )
    assert view.take_calls() == ["a", "c"]
    assert view.show("total") == [(2,), (3,), (4,)]
    # The same partitions: a new version, and no call.
    version = view.open().version
    view.alter(
        structs.replace(
            view.definition, rows=structs.replace(rows, filter="number >= 2"), digest="3"
        )
    )
    assert (view.take_calls(), view.open().version) == ([], version + 1)
