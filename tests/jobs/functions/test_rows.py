"""Functions of views in a worker: what they are given, what may come back, and what is kept."""

import asyncio
import json
import os
import time
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from penstock.errors import FunctionFailed
from penstock.jobs.functions.children import flatten, made_schema
from penstock.jobs.functions.rows import PARTITION_ROWS, RowsRun
from penstock.jobs.functions.task import FunctionOptions, FunctionTask
from penstock.lance.storage.lake import Lake
from penstock.model.functions import Function
from tests.harness.data.calls import recorded
from tests.harness.jobs.kernel import declare
from tests.harness.views.function_views import pack

WORDS = (pa.field("word", pa.string()), pa.field("size", pa.int32()))


class Rows:
    """A function over a few texts, in a folder that could be a view's."""

    def __init__(
        self,
        folder: Path,
        function: Any,
        kind: str = "chunker",
        fields: Sequence[pa.Field] = WORDS,
        inputs: Sequence[str] = ("text",),
        **more: Any,
    ) -> None:
        content = pack(function, kind)
        self.function: Function = declare(
            content, inputs, [f.name for f in fields], kind=kind, form="udtf_spec", **more
        )
        self.folder, self.fields = folder, fields
        self.attempt, self.calls = 1, 0
        (folder / "_udfs").mkdir(exist_ok=True)
        (folder / "_udfs" / self.function.sha256).write_bytes(content)

    def run(
        self,
        items: "Iterator[pa.RecordBatch] | Sequence[pa.RecordBatch]",
        *,
        isolated: bool = False,
        **knobs: Any,
    ) -> dict[int, list[Any] | None]:
        """What was made by key, None of those that failed."""
        place = Lake(str(self.folder)).place(str(self.folder))
        task = FunctionTask(
            place,
            "job",
            self.attempt,
            self.function,
            made_schema(self.fields),
            FunctionOptions(**knobs),
            isolated=isolated,
        )
        run = RowsRun(task, iter(items), "_rowid")
        found: dict[int, list[Any] | None] = {}
        try:
            for keyed in run:
                children = flatten(keyed.values)
                rows = children.rows.to_pylist()
                for at, key in enumerate(keyed.keys.tolist()):
                    mine = [row for row, of in zip(rows, children.parents, strict=True) if of == at]
                    found[key] = None if keyed.failed[at] else mine
        finally:
            self.calls = run.calls
            task.close()
        return found

    @property
    def errors(self) -> list[dict[str, Any]]:
        files = sorted((self.folder / "_jobs" / "job").glob("errors-*.json"))
        return [error for file in files for error in json.loads(file.read_text())]


def texts(*values: str | None, start: int = 0) -> list[pa.RecordBatch]:
    ids = pa.array(range(start, start + len(values)), pa.uint64())
    return [pa.record_batch([pa.array(values, pa.string()), ids], ["text", "_rowid"])]


def words(text: str | None) -> Iterator[dict[str, Any]]:
    for word in (text or "").split():
        yield {"word": word, "size": len(word)}


def fail_on(word: str) -> Callable[[str], Iterator[dict[str, Any]]]:
    def split(text: str) -> Iterator[dict[str, Any]]:
        for each in text.split():
            if each == word:
                raise ValueError(f"no {each}")
            yield {"word": each, "size": 1}

    return split


def test_a_chunker_makes_rows_in_the_order_it_yields_them(tmp_path: Path) -> None:
    found = Rows(tmp_path, words).run(texts("a bb", "", None, "c"))
    a, bb, c = ({"word": w, "size": len(w)} for w in ("a", "bb", "c"))
    assert found == {0: [a, bb], 1: [], 2: [], 3: [c]}


async def words_later(text: str) -> AsyncIterator[dict[str, Any]]:
    for word in text.split():
        await asyncio.sleep(0.001)
        yield {"word": word, "size": len(word)}


async def list_words(text: str) -> list[dict[str, Any]]:
    return list(words(text))


@pytest.mark.parametrize("function", [words_later, list_words])
@pytest.mark.parametrize("isolated", [False, True])
def test_a_chunker_may_be_async(tmp_path: Path, function: Any, isolated: bool) -> None:
    found = Rows(tmp_path, function, concurrency=2).run(texts("a bb", "", "c"), isolated=isolated)
    a, bb, c = ({"word": w, "size": len(w)} for w in ("a", "bb", "c"))
    assert found == {0: [a, bb], 1: [], 2: [c]}


@pytest.mark.parametrize(
    ("returned", "expected"),
    [
        (None, []),
        ([], []),
        ({"word": "a", "size": 1}, [{"word": "a", "size": 1}]),
        ([{"word": None, "size": None, "more": 1}], [{"word": None, "size": None}]),
        (({"size": n, "word": "x"} for n in (1, 2)), [{"word": "x", "size": n} for n in (1, 2)]),
    ],
)
def test_nothing_one_dict_or_many_may_be_returned(
    tmp_path: Path, returned: Any, expected: list[Any]
) -> None:
    given = list(returned) if hasattr(returned, "send") else returned
    assert Rows(tmp_path, lambda _: given).run(texts("t")) == {0: expected}


@pytest.mark.parametrize(
    ("returned", "message"),
    [
        (5, "returned 5, and rows are expected"),
        ("ab", "returned 'ab', and rows are expected"),
        ([5], "row 0 of those it made is 5, and a dict with the fields word, size is expected"),
        ([{"word": "a", "size": 1}, {"size": 1}], "row 1 of those it made has no field word"),
        ([{"word": "a", "size": "x"}], "row 0 of those it made: returned 'x' for column size"),
        ([{"word": "a", "size": 1.5}], "row 0 of those it made: returned 1.5 for column size"),
        ([{"word": "a", "size": 2**40}], "for column size"),
    ],
)
def test_what_does_not_fit_the_schema_names_function_row_and_field(
    tmp_path: Path, returned: Any, message: str
) -> None:
    def split(text: str) -> Any:
        return returned if text == "bad" else []

    with pytest.raises(FunctionFailed) as failed:
        Rows(tmp_path, split).run(texts("good", "bad"))
    assert failed.value.message.startswith("function f (version 1) failed at row id 1: TypeError: ")
    assert message in failed.value.message


def test_a_field_that_is_not_nullable_takes_no_none(tmp_path: Path) -> None:
    fields = (pa.field("word", pa.string(), nullable=False),)
    rows = Rows(tmp_path, lambda text: [{"word": text}], fields=fields, on_error={"action": "skip"})
    assert rows.run(texts("a", None)) == {0: [{"word": "a"}], 1: None}
    assert "for column word, which is not nullable" in rows.errors[0]["message"]


def test_a_row_whose_generator_raises_midway_makes_nothing(tmp_path: Path) -> None:
    rows = Rows(tmp_path, fail_on("b"), on_error={"action": "skip"})
    assert rows.run(texts("a b", "c")) == {0: None, 1: [{"word": "c", "size": 1}]}
    (error,) = rows.errors
    assert (error["row_id"], error["exception"], error["message"]) == (0, "ValueError", "no b")
    assert "split" in error["traceback"]


def test_retries_are_made_before_a_row_is_given_up(tmp_path: Path) -> None:
    log = tmp_path / "calls"

    def split(text: str) -> list[Any]:
        recorded(log, text)
        if log.read_text().splitlines().count(text) < 3:
            raise ConnectionError("not yet")
        return [{"word": text, "size": 1}]

    rows = Rows(
        tmp_path, split, on_error={"action": "retry", "max_attempts": 3, "backoff_seconds": 0}
    )
    assert rows.run(texts("a")) == {0: [{"word": "a", "size": 1}]}
    assert rows.calls == 3


def by_batch(batch: pa.RecordBatch) -> Iterator[tuple[int, dict[str, Any]]]:
    # Backwards: the order within a row is what counts.
    for index in reversed(range(batch.num_rows)):
        for word in batch.column("text")[index].as_py().split():
            if word == "bad":
                raise ValueError("a bad word")
            yield index, {"word": word, "size": len(word)}


def test_a_chunker_of_batches_says_which_row_each_is_of(tmp_path: Path) -> None:
    rows = Rows(tmp_path, by_batch, "batch_chunker")
    found = rows.run(texts("a bb", "", "c"))
    assert {key: [w["word"] for w in made or ()] for key, made in found.items()} == {
        0: ["a", "bb"],
        1: [],
        2: ["c"],
    }
    assert rows.calls == 3


def test_a_batch_that_fails_is_divided_until_the_row_is_found(tmp_path: Path) -> None:
    rows = Rows(tmp_path, by_batch, "batch_chunker", on_error={"action": "skip"})
    found = rows.run(texts("a", "b", "bad", "c"))
    assert {key for key, made in found.items() if made is None} == {2}
    assert [error["row_id"] for error in rows.errors] == [2]


@pytest.mark.parametrize(
    ("item", "message"),
    [
        ((7, {}), "yielded the row index 7"),
        ((-1, {}), "yielded the row index -1"),
        (("0", {}), "yielded the row index '0'"),
        ({"word": "a"}, "and (row index, dict) is expected"),
        ((0, {"word": "a"}), "has no field size"),
    ],
)
def test_a_wrong_row_index_is_a_failure(tmp_path: Path, item: Any, message: str) -> None:
    rows = Rows(tmp_path, lambda batch: iter([item]), "batch_chunker")
    with pytest.raises(FunctionFailed, match="failed at row id 0") as failed:
        rows.run(texts("a"))
    assert message in failed.value.message


def partitions(*parts: Sequence[int]) -> list[pa.RecordBatch]:
    kind = pa.list_(pa.struct([("n", pa.int64())]))
    made = pa.array([[{"n": n} for n in part] for part in parts], kind)
    return [pa.record_batch([made, pa.array(range(len(parts)))], [PARTITION_ROWS, "_rowid"])]


TOTALS = (pa.field("total", pa.int64()),)


@pytest.mark.parametrize(
    "make",
    [
        lambda table: table.group_by([]).aggregate([("n", "sum")]).rename_columns(["total"]),
        lambda table: pa.table({"total": [sum(table["n"].to_pylist())]}).to_batches()[0],
        lambda table: [{"total": sum(table["n"].to_pylist())}],
        lambda table: iter([pa.table({"total": pa.array([sum(table["n"].to_pylist())], "int32")})]),
    ],
)
def test_a_udtf_is_given_each_partition_as_a_table(tmp_path: Path, make: Any) -> None:
    rows = Rows(tmp_path, make, "udtf", TOTALS, ("n",))
    assert rows.run(partitions([1, 2], [3], [4, 5, 6])) == {
        0: [{"total": 3}],
        1: [{"total": 3}],
        2: [{"total": 15}],
    }
    assert rows.calls == 3


def test_a_udtf_may_mix_tables_and_dicts(tmp_path: Path) -> None:
    def make(table: pa.Table) -> Iterator[Any]:
        yield {"total": 1}
        yield pa.table({"total": [2, 3], "more": ["a", "b"]})
        yield {"total": 4}

    found = Rows(tmp_path, make, "udtf", TOTALS, ("n",)).run(partitions([1]))
    assert found == {0: [{"total": n} for n in (1, 2, 3, 4)]}


def test_a_table_without_a_column_is_the_partitions_failure(tmp_path: Path) -> None:
    rows = Rows(
        tmp_path,
        lambda table: pa.table({"sum": [1]}),
        "udtf",
        TOTALS,
        ("n",),
        on_error={"action": "skip"},
    )
    assert rows.run(partitions([1])) == {0: None}
    assert "has the columns sum, and no total" in rows.errors[0]["message"]


def kill_at(word: str) -> Callable[[str], list[Any]]:
    def split(text: str) -> list[Any]:
        if text == word:
            os.kill(os.getpid(), 9)
        return [{"word": text, "size": 1}]

    return split


def test_a_function_that_kills_its_process_fails_that_row_only(tmp_path: Path) -> None:
    rows = Rows(tmp_path, kill_at("b"), on_error={"action": "skip"})
    found = rows.run(texts("a", "b", "c"), isolated=True)
    assert {key for key, made in found.items() if made is None} == {1}
    assert rows.errors[0]["exception"] == "WorkerDied"


def test_a_chunker_that_hangs_while_it_yields_is_interrupted(tmp_path: Path) -> None:
    def split(text: str) -> Iterator[dict[str, Any]]:
        yield {"word": text, "size": 1}
        while text == "b":
            time.sleep(0.01)

    rows = Rows(tmp_path, split, on_error={"action": "skip"}, timeout_seconds=2.0)
    found = rows.run(texts("a", "b", "c"))
    assert {key for key, made in found.items() if made is None} == {1}
    assert rows.errors[0]["exception"] == "TimeoutError"


def test_what_was_made_before_an_end_is_not_made_again(tmp_path: Path) -> None:
    log = tmp_path / "calls"

    def split(text: str) -> list[Any]:
        recorded(log, text)
        return [] if text == "d" else [{"word": text, "size": 1}] * 2

    def until_it_ends() -> Iterator[pa.RecordBatch]:
        yield from texts("a", "b", start=4)
        yield from texts("d", start=1)
        raise KeyboardInterrupt

    rows = Rows(tmp_path, split)
    with pytest.raises(KeyboardInterrupt):
        rows.run(until_it_ends(), batch_rows=1, max_rows=1, flush_seconds=0)
    assert log.read_text().split() == ["a", "b", "d"]
    rows.attempt = 2
    again = rows.run([*texts("d", "x", start=1), *texts("c", "a", start=3)], flush_seconds=0)
    assert log.read_text().split()[3:] == ["x", "c"]
    made = {key: [each["word"] for each in found or ()] for key, found in again.items()}
    assert made == {1: [], 2: ["x", "x"], 3: ["c", "c"], 4: ["a", "a"]}


def test_failed_rows_in_parts_stay_failed_in_the_same_job(tmp_path: Path) -> None:
    rows = Rows(tmp_path, fail_on("b"), on_error={"action": "skip"})
    knobs: Any = {"batch_rows": 1, "max_rows": 1, "flush_seconds": 0}
    rows.run(texts("b", "c"), **knobs)
    assert rows.run(texts("b", "c"), **knobs)[0] is None
    assert rows.calls == 0


def test_an_object_of_another_clients_is_called_by_its_function(tmp_path: Path) -> None:
    class Chunker:
        def __init__(self) -> None:
            self.func = words

    assert Rows(tmp_path, Chunker()).run(texts("a")) == {0: [{"word": "a", "size": 1}]}


def test_a_class_is_made_once_and_called(tmp_path: Path) -> None:
    class Splitter:
        def __init__(self) -> None:
            self.made = 0

        def __call__(self, text: str) -> list[Any]:
            self.made += 1
            return [{"word": text, "size": self.made}]

    found = Rows(tmp_path, Splitter).run(texts("a", "b"))
    assert found[1] == [{"word": "b", "size": 2}]
