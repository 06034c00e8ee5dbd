"""Functions of partitions over queries that only Spark computes."""

from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pytest
from msgspec import structs

from penstock.errors import FunctionFailed, LeaseLost
from penstock.jobs.refresh.udtf.spark_kernel import (
    DIGEST,
    LABEL,
    UNIT,
    Labelling,
    _Runs,
    label_kernel,
)
from penstock.jobs.spark.tasks import Engine
from penstock.model.views import CheckedSql
from tests.harness.data.sources import SourceHistory
from tests.harness.jobs.held_attempt import HeldAttempt
from tests.harness.views.function_views import FunctionView, make_view

OUTPUTS = {"kind": pa.string(), "total": pa.int64()}


def items(*pairs: tuple[str | None, int]) -> pa.Table:
    return pa.table(
        {
            "id": pa.array(range(len(pairs)), pa.int64()),
            "kind": pa.array([kind for kind, _ in pairs], pa.string()),
            "number": pa.array([number for _, number in pairs], pa.int64()),
        }
    )


def total(table: pa.Table) -> Any:
    numbers = table["number"].to_pylist()
    if 13 in numbers:
        raise ValueError("unlucky")
    return [{"kind": table["kind"][0].as_py(), "total": sum(numbers)}]


def show(table: pa.Table) -> str:
    return f"{table['kind'][0].as_py()}:{table['number'].to_pylist()}"


def by_rows(folder: Path, engine: Engine, *pairs: tuple[str | None, int], **more: Any) -> Any:
    """Over the rows of one table, with expressions that only Spark has."""
    given: dict[str, Any] = {"partition_by": "kind"} | more
    return make_view(
        folder,
        items(*pairs),
        total,
        "udtf",
        OUTPUTS,
        inputs=("kind", "number"),
        columns={"kind": "upper(kind)", "number": "number + 0"},
        where="number % 7 <> 3",
        language="spark",
        engine=engine,
        show=show,
        **given,
    )


def by_query(
    folder: Path, engine: Engine, sql: str, *pairs: tuple[str | None, int], **more: Any
) -> Any:
    """Over any query."""
    view = by_rows(folder, engine, *pairs, reads=("id", "kind", "number"), **more)
    view.definition = structs.replace(
        view.definition, shape="whole", rows=None, sql=CheckedSql(sql)
    )
    return view


def test_only_partitions_with_other_rows_are_made_again(engine: Engine, tmp_path: Path) -> None:
    view = by_rows(tmp_path, engine, ("a", 1), ("A", 2), ("b", 5), (None, 4), ("b", 3))
    assert view.explain()["unknown"]["function_calls"].startswith("only Spark")
    done = view.refresh()
    assert (done.mode, done.function_calls) == ("full", 3)
    assert view.take_calls() == ["A:[1, 2]", "B:[5]", "None:[4]"]
    assert view.show("__partition", "kind", "total") == [
        ('"A"', "A", 3), ('"B"', "B", 5), ("null", None, 4),
    ]  # fmt: skip
    # Outside of the filter, and a row that only seems to change.
    view.source.update({"number": "10"}, where="id = 4")
    view.source.update({"kind": "'a'"}, where="id = 1")
    done = view.refresh()
    assert (done.mode, done.function_calls) == ("incremental", 0)
    assert view.source.version == done.source_versions["n$source"]
    # One row that changes, one that moves, one that goes.
    view.source.update({"number": "6"}, where="id = 0")
    done = view.refresh()
    assert (view.take_calls(), done.rows_updated) == (["A:[6, 2]"], 1)
    view.source.update({"kind": "'c'"}, where="id = 2")
    view.source.delete("id = 3")
    done = view.refresh()
    assert (view.take_calls(), done.rows_inserted, done.rows_deleted) == (["C:[5]"], 1, 2)
    assert view.refresh().mode == "none"
    assert view.refresh(mode="full").function_calls == 2


def test_any_query_may_have_partitions(engine: Engine, tmp_path: Path) -> None:
    sql = (
        "SELECT a.kind, sum(b.number) OVER (PARTITION BY a.id) AS number FROM source a "
        "JOIN source b ON a.kind = b.kind UNION ALL SELECT 'all', count(*) FROM source"
    )
    view = by_query(tmp_path, engine, sql, ("a", 1), ("a", 2), ("b", 5))
    assert view.refresh().function_calls == 3
    assert view.take_calls() == ["a:[3, 3, 3, 3]", "all:[3]", "b:[5]"]
    view.source.update({"number": "7"}, where="id = 2")
    done = view.refresh(verify=True)
    assert (done.mode, done.function_calls) == ("incremental", 1)
    assert view.take_calls()[-1] == "b:[7]"
    assert done.certificate is not None
    told = [done.certificate[name] for name in ("is_equal", "rows", "rows_expected", "partitions")]
    assert told == [True, 3, 3, 3]


def test_without_a_partitioning_all_rows_are_one_table(engine: Engine, tmp_path: Path) -> None:
    sql = "SELECT kind, number FROM source UNION ALL SELECT kind, number FROM source"
    view = by_query(tmp_path, engine, sql, ("a", 1), ("a", 2), partition_by=None)
    assert view.refresh().function_calls == 1
    assert view.show("total") == [(6,)]
    lance.dataset(view.source.uri).delete("true")
    done = view.refresh()
    assert (done.function_calls, done.rows_deleted, view.show("total")) == (0, 1, [])


def test_a_failed_partition_is_left_out_and_tried_again(engine: Engine, tmp_path: Path) -> None:
    skip = {"action": "skip"}
    view = by_rows(tmp_path, engine, ("a", 13), ("b", 1), on_error=skip)
    assert view.refresh(verify=True).rows_failed == 1
    assert view.show("kind") == [("B",)]
    again = view.refresh()
    assert (again.mode, again.function_calls, again.rows_failed) == ("incremental", 1, 1)
    view.source.update({"number": "12"}, where="id = 0")
    assert view.refresh().rows_failed == 0
    assert view.show("kind") == [("A",), ("B",)]
    failing = by_rows(tmp_path, engine, ("a", 13), ("b", 1))
    with pytest.raises(FunctionFailed, match='partition kind = "A"'):
        failing.refresh()


def test_another_attempt_takes_what_is_finished(engine: Engine, tmp_path: Path) -> None:
    def lose() -> None:
        raise LeaseLost("the lease is gone")

    view = by_rows(tmp_path, engine, ("a", 1), ("b", 2))
    with pytest.raises(LeaseLost):
        view.refresh(HeldAttempt(job="one", on_fence=lose))
    assert len(view.take_calls()) == 2
    done = view.refresh(HeldAttempt(job="one", number=2))
    assert (view.take_calls(), done.function_calls) == ([], 2)
    assert view.show("total") == [(1,), (2,)]


def test_an_altered_filter_costs_the_partitions_that_it_changes(
    engine: Engine, tmp_path: Path
) -> None:
    view = by_rows(tmp_path, engine, ("a", 1), ("a", 10), ("b", 2), ("c", 3))
    view.refresh()
    assert view.take_calls() == ["A:[1]", "B:[2]"]
    query = view.definition.rows
    wider = structs.replace(query, filter="number % 7 >= 0 AND number > 1")
    view.alter(structs.replace(view.definition, rows=wider, digest="2"))
    assert (view.take_calls(), view.show("total")) == (["A:[10]", "C:[3]"], [(10,), (2,), (3,)])
    # Who computes the partitions names them: all are made again.
    columns = tuple(structs.replace(c, expression=c.name, path=c.name) for c in query.columns)
    by_lance = structs.replace(query, engine="lance", filter="number > 2", columns=columns)
    view.alter(structs.replace(view.definition, rows=by_lance, digest="3"))
    assert (len(view.take_calls()), view.show("kind")) == (2, [("a",), ("c",)])
    view.alter(structs.replace(view.definition, rows=wider, digest="4"))
    assert (len(view.take_calls()), view.show("kind")) == (3, [("A",), ("B",), ("C",)])


def test_digests_that_are_gone_are_made_anew(engine: Engine, tmp_path: Path) -> None:
    view = by_rows(tmp_path, engine, ("a", 1), ("b", 2))
    view.refresh()
    (kept,) = (view.path / "_refresh").glob("partitions-*")
    kept.unlink()
    done = view.refresh()
    assert (done.mode, done.function_calls) == ("full", 2)
    assert "list of partitions" in done.reason


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
def test_partitions_follow_whatever_happens(engine: Engine, tmp_path: Path, seed: int) -> None:
    history = SourceHistory(tmp_path / "source", seed)
    view: FunctionView = make_view(
        tmp_path,
        None,
        lambda table: [{"total": sum(table["id"].to_pylist())}],
        "udtf",
        {"total": pa.int64()},
        inputs=("id",),
        columns={"a": "a + 0", "id": "id"},
        reads=("a", "id"),
        partition_by="a",
        language="spark",
        engine=engine,
        show=lambda table: str(len(table)),
    )
    (view.folder / "source").symlink_to(history.path)
    for _ in range(6):
        view.refresh()
        found: dict[Any, int] = {}
        for row in history.open().to_table(columns=["a", "id"]).to_pylist():
            found[row["a"]] = found.get(row["a"], 0) + row["id"]
        assert sorted(total for (total,) in view.show("total")) == sorted(found.values())
        history.step()


def labelled(rows: list[tuple[str, int]]) -> pa.RecordBatch:
    labels, units = zip(*rows, strict=True)
    return pa.record_batch(
        {LABEL: list(labels), UNIT: pa.array(units, pa.int32()), "n": range(len(rows))}
    )


def test_tasks_are_told_apart_however_rows_are_batched() -> None:
    batches = [
        labelled([("a", 0), ("a", 0)]),
        labelled([("a", 0), ("b", 0), ("c", 2)]),
        labelled([("c", 2)]),
        labelled([("d", 3), ("e", 4)]),
    ]
    runs, found = _Runs(iter(batches)), {}
    for number in runs.numbers():
        if number == 3:
            # One that failed leaves its rows.
            continue
        taken = [batch.column(LABEL).to_pylist() for batch in runs.take(number)]
        found[number] = [label for each in taken for label in each]
    assert found == {0: ["a", "a", "a", "b"], 2: ["c", "c"], 4: ["e"]}


def test_labels_and_digests_are_those_of_values() -> None:
    values = [0.0, -0.0, float("nan"), None, 1.5]
    batch = pa.record_batch(
        {
            "f": pa.array(values, pa.float64()),
            LABEL: pa.nulls(5, pa.string()),
            DIGEST: pa.nulls(5, pa.int64()),
            UNIT: pa.nulls(5, pa.int32()),
        }
    )
    (made,) = label_kernel(Labelling(("f",), "f"))(iter([batch]))
    assert made.column(LABEL).to_pylist() == ["0.0", "-0.0", "NaN", "null", "1.5"]
    assert len(set(made.column(DIGEST).to_pylist())) == 5
    (some,) = label_kernel(Labelling(("f",), "f", {"null": 7}))(iter([batch]))
    assert some.column(UNIT).to_pylist() == [7]
