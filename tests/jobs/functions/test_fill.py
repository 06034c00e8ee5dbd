"""Functions of each kind fill columns of a table."""

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from penstock.lance.commit.replacement import Computation
from tests.harness.jobs.kernel import bench


def rows(count: int = 100) -> pa.Table:
    ids = range(count)
    return pa.table({"id": pa.array(ids, pa.int64()), "text": ["x" * (n % 17) for n in ids]})


def expected(count: int = 100) -> list[int]:
    return [n % 17 + n for n in range(count)]


@pytest.mark.parametrize("threads", [1, 3])
def test_a_scalar_function_is_given_python_values(tmp_path: Path, threads: int) -> None:
    table = bench(tmp_path, rows(), lambda t, n: len(t) + n, ["text", "id"], {"value": pa.int64()})
    assert table.run(threads=threads, batch_rows=7, max_rows=7) is None
    assert table.values() == expected()
    assert [(note.computed, note.calls, note.failed) for note in table.notes()] == [(50, 50, 0)] * 2


def test_an_arrow_function_is_given_arrays(tmp_path: Path) -> None:
    def add(text: pa.Array, ids: pa.Array) -> pa.Array:
        return pc.add(pc.utf8_length(text), ids)

    table = bench(tmp_path, rows(), add, ["text", "id"], {"value": pa.int64()}, kind="arrow")
    assert table.run() is None
    assert table.values() == expected()


def test_a_batch_function_fills_several_columns(tmp_path: Path) -> None:
    def split(batch: pa.RecordBatch) -> pa.RecordBatch:
        return pa.record_batch({"b": batch["text"], "a": pc.negate(batch["id"])})

    outputs = {"a": pa.int32(), "b": pa.large_string()}
    table = bench(tmp_path, rows(), split, ["id", "text"], outputs, kind="batch")
    table.open().delete("id % 7 = 3")
    assert table.run() is None
    kept = [n for n in range(100) if n % 7 != 3]
    assert table.values("a") == [-n for n in kept]
    assert table.values("b") == ["x" * (n % 17) for n in kept]


def test_a_class_is_made_once(tmp_path: Path) -> None:
    log = tmp_path / "log"

    class Model:
        def __init__(self) -> None:
            with open(log, "a") as file:
                file.write("made\n")

        def __call__(self, n: int) -> int:
            return n + 1

    table = bench(tmp_path, rows(), Model, ["id"], {"value": pa.int64()})
    assert table.run(batch_rows=10, max_rows=10) is None
    assert table.values() == list(range(1, 101))
    assert log.read_text() == "made\n"


def test_nested_values_and_names_that_need_quotes(tmp_path: Path) -> None:
    inner = [{"b c": {"d.e": n}} if n % 3 else None for n in range(20)]
    data = pa.table({"A": inner, "id": range(20)})
    table = bench(
        tmp_path, data, lambda v, n: (v or 0) + n, ["A.b c.`d.e`", "id"], {"the Value": pa.int64()}
    )
    assert table.run() is None
    assert table.values("the Value") == [2 * n if n % 3 else n for n in range(20)]


@pytest.mark.parametrize("kind", ["scalar", "arrow", "batch"])
def test_vectors(tmp_path: Path, kind: str) -> None:
    def one(n: int) -> Any:
        return np.full(4, n, np.float64) if n % 2 else [float(n)] * 4

    def all_of_them(given: Any) -> Any:
        ids = given.column(0) if isinstance(given, pa.RecordBatch) else given
        return np.repeat(ids.to_numpy()[:, None], 4, axis=1)

    function = one if kind == "scalar" else all_of_them
    outputs = {"value": pa.list_(pa.float32(), 4)}
    table = bench(tmp_path, rows(), function, ["id"], outputs, kind=kind)
    table.open().delete("id = 50")
    assert table.run() is None
    assert table.values() == [[float(n)] * 4 for n in range(100) if n != 50]


def test_only_the_rows_in_need_are_computed(tmp_path: Path) -> None:
    log = tmp_path / "log"

    def double(n: int) -> int:
        with open(log, "a") as file:
            file.write(f"{n}\n")
        return 2 * n

    table = bench(tmp_path, rows(), double, ["id"], {"value": pa.int64()})
    table.open().update({"value": "id"})
    table.open().delete("id % 10 = 4")
    first = [n for n in range(100) if n % 10 != 4]
    before = dict(zip(table.values("id"), table.values(), strict=True))
    assert table.run(need=lambda offsets: offsets % 3 == 0) is None
    called = [int(line) for line in log.read_text().split()]
    assert len(called) == len(set(called)) == sum(note.calls for note in table.notes())
    after = dict(zip(table.values("id"), table.values(), strict=True))
    assert sorted(after) == first
    assert after == {n: 2 * n if n in called else before[n] for n in first}


def test_few_rows_are_read_alone(tmp_path: Path) -> None:
    count = 60_000
    table = bench(tmp_path, rows(count), lambda n: n, ["id"], {"value": pa.int64()}, fragments=1)
    table.open().delete("id in (5, 30000)")
    assert table.run(need=lambda offsets: (offsets % 20_000 == 7) | (offsets == 5)) is None
    filled = {id: v for id, v in zip(table.values("id"), table.values(), strict=True) if v}
    assert filled == {7: 7, 20_007: 20_007, 40_007: 40_007}


def test_rows_that_stay_unfilled_are_named_in_the_file(tmp_path: Path) -> None:
    import base64

    from lance.file import LanceFileReader

    from penstock.lance.diff.masks import unpack

    table = bench(tmp_path, rows(), lambda n: n, ["id"], {"value": pa.int64()}, fragments=1)
    need = lambda offsets: offsets < 10  # noqa: E731
    assert table.run(need=need, left=lambda offsets: offsets >= 90) is None
    path = table.notes()[0].file.path
    assert path.startswith("bp-")
    found = LanceFileReader(f"{table.root}/data/{path}").metadata().schema.metadata
    mask = unpack(base64.b64decode(found[b"penstock.unfilled"]), 100)
    assert mask.nonzero()[0].tolist() == list(range(90, 100))


@pytest.mark.parametrize("storage", ["2.0", "2.1", "2.2"])
def test_blobs_in_and_out(tmp_path: Path, storage: str) -> None:
    blob = {"lance-encoding:blob": "true"}
    schema = pa.schema([("id", pa.int64()), pa.field("b", pa.large_binary(), metadata=blob)])
    contents = [None if n == 3 else b"x" * n for n in range(40)]
    data = pa.table([pa.array(range(40)), pa.array(contents, pa.large_binary())], schema=schema)
    table = bench(
        tmp_path,
        data,
        lambda b: None if b is None else b + b"!",
        ["b"],
        {"value": pa.field("value", pa.large_binary(), metadata=blob)},
        storage=storage,
    )
    wanted = [None if b is None else b + b"!" for b in contents]
    assert table.run() is None
    assert table.values() == wanted
    stored = table.open().take_blobs("value", indices=[9])[0]
    assert stored is not None
    assert stored.read() == wanted[9]
    table.open().delete("id = 4")
    table.job = "again"
    assert table.run(need=lambda offsets: offsets % 2 == 0) is None
    del wanted[4]
    assert table.values() == wanted
    table.open().optimize.compact_files()
    assert table.values() == wanted


def test_expressions_go_the_same_way(tmp_path: Path) -> None:
    table = bench(tmp_path, rows(), len, ["text"], {"value": pa.int64()}, fragments=1)
    table.function = None
    table.open().delete("id = 99 or id = 0")
    assert table.run(what=Computation("value", "id * 2", "id % 3 = 0")) is None
    assert table.values() == [n * 2 if n % 3 == 0 else None for n in range(1, 99)]
