"""Functions: what is learned from them, what is refused, and that they are still functions."""

import asyncio
import base64
import dataclasses
import datetime
import enum
import json
from collections.abc import AsyncIterator, Iterator
from typing import Annotated, Any, Optional, TypedDict

import pyarrow as pa
import pytest

import penstock
from penstock.errors import InvalidFunction, InvalidRequest
from penstock.sdk.functions.packing import udtf_spec
from penstock.sdk.functions.types import read_type, to_arrow
from penstock.sdk.functions.versions import find_version

FACTOR = 2


class Chunk(TypedDict):
    chunk: str
    start: int


@dataclasses.dataclass
class Tree:
    items: list["Tree"]


class Mixed(enum.Enum):
    A = 1
    B = "b"


@penstock.udf
def double(id: int) -> int:
    """Twice as much."""
    return id * FACTOR


@penstock.chunker
def split(text: str) -> Iterator[Chunk]:
    for start, word in enumerate(text.split()):
        yield {"chunk": word, "start": start}


@penstock.udtf(outputs={"kind": str, "rows": "int32"}, partition_by="kind")
def count(rows: pa.Table) -> Iterator[dict[str, Any]]:
    yield {"kind": rows["kind"][0].as_py(), "rows": rows.num_rows}


def test_a_decorated_function_is_called_as_before() -> None:
    assert double(21) == 42
    assert list(split("a b")) == [{"chunk": "a", "start": 0}, {"chunk": "b", "start": 1}]
    assert list(count(pa.table({"kind": ["x"]}))) == [{"kind": "x", "rows": 1}]
    assert (double.name, double.__doc__) == ("double", "Twice as much.")


def test_a_class_is_still_a_class() -> None:
    @penstock.udf
    class Embed:
        def __init__(self, scale: float = 2.0) -> None:
            self.scale = scale

        def __call__(self, text: str) -> Annotated[list[float], penstock.vector(2)]:
            return [self.scale, float(len(text))]

    assert Embed()("abc") == [2.0, 3.0]
    learned: Any = Embed
    assert (learned.inputs, learned.kind) == (("text",), "scalar")
    assert to_arrow(learned.data_type) == pa.list_(pa.float32(), 2)


def test_inputs_types_and_kinds_come_from_the_annotations() -> None:
    assert (double.inputs, double.kind, double.data_type) == (("id",), "scalar", {"type": "int64"})
    assert split.outputs == {"chunk": {"type": "utf8"}, "start": {"type": "int64"}}
    assert (count.inputs, count.partition_by) == (None, "kind")

    @penstock.udf(data_type="float32")
    def arrow(a: pa.Array, b: pa.Int64Array) -> pa.Array:
        return a

    @penstock.udf(outputs={"x": int, "y": str}, inputs=["a", "b"])
    def batch(rows: pa.RecordBatch) -> pa.RecordBatch:
        return rows

    @penstock.udf
    def maybe(a: str, b: str | None, c: int = 1) -> datetime.datetime | None:
        return None

    assert (arrow.kind, arrow.inputs) == ("arrow", ("a", "b"))
    assert (batch.kind, batch.inputs, list(batch.outputs or ())) == (
        "batch",
        ("a", "b"),
        ["x", "y"],
    )
    assert (maybe.inputs, maybe.data_type) == (("a", "b"), {"type": "timestamp[us]"})


@pytest.mark.parametrize(
    "kind",
    [
        *(pa.int8(), pa.float16(), pa.string(), pa.large_binary(), pa.date32(), pa.bool_()),
        *(pa.timestamp("ns", "UTC"), pa.timestamp("s"), pa.time64("ns"), pa.decimal128(20, 3)),
        *(pa.list_(pa.float32(), 4), pa.list_(pa.int64()), pa.struct([("a", pa.int32())])),
    ],
    ids=str,
)
def test_arrow_types_are_the_same_after_a_journey(kind: pa.DataType) -> None:
    assert to_arrow(read_type(kind)) == kind


@pytest.mark.parametrize(
    ("given", "wanted"),
    [
        (list[float], pa.list_(pa.float64())),
        (Chunk, pa.struct([("chunk", pa.string()), ("start", pa.int64())])),
        (int | None, pa.int64()),
        ("fixed_size_list:float:3", pa.list_(pa.float32(), 3)),
        ("timestamp", pa.timestamp("us")),
        (bytes, pa.binary()),
    ],
)
def test_types_may_be_written_in_python(given: Any, wanted: pa.DataType) -> None:
    assert to_arrow(read_type(given)) == wanted


def test_annotations_say_which_nulls_are_seen() -> None:
    def nulls(function: Any, decorator: Any = penstock.udf, **options: Any) -> tuple[Any, ...]:
        made = decorator(**options)(function)
        return made.on_null, made.may_be_null

    def plain(a: str, b: int) -> str:
        return a

    def some(a: str, b: str | None, c: Annotated[Optional[int], "int32"], d: Any = 1) -> str:  # noqa: UP045
        return a

    def unseen(a: "Unknown | None", b: "Unknown") -> str:  # type: ignore[name-defined]  # noqa: F821
        return str(b)

    def every(a: str | None, *more: object) -> str:
        return str(a)

    def arrays(a: pa.Array) -> pa.Array:
        return a

    assert nulls(plain) == nulls(lambda a: a, name="f") == ("null", ())
    assert nulls(some) == ("null", (1, 2, 3))
    assert nulls(unseen) == ("null", (0,))
    assert nulls(every) == nulls(arrays) == nulls(plain, on_null="call") == ("call", ())
    assert nulls(some, on_null="null") == nulls(arrays, on_null="null") == ("null", ())
    assert nulls(split.call, penstock.chunker) == ("null", ())
    assert nulls(count.call, penstock.udtf, outputs={"a": int}) == ("call", ())


def test_async_functions_are_declared_like_others() -> None:
    @penstock.udf(concurrency=16, timeout=5)
    async def ask(text: str) -> str:
        # A comment.
        return text

    @penstock.chunker
    async def spread(text: str) -> AsyncIterator[Chunk]:
        yield {"chunk": text, "start": 0}

    @penstock.udf(data_type=int)
    class Client:
        async def __call__(self, text: str) -> int:
            return len(text)

    learned: Any = Client
    assert asyncio.run(ask("a")) == "a"
    assert (ask.data_type, ask.concurrency, ask.inputs) == ({"type": "utf8"}, 16, ("text",))
    assert (list(spread.outputs), learned.inputs) == (["chunk", "start"], ("text",))
    version = find_version(ask.call)

    async def ask(text: str) -> str:  # type: ignore[no-redef]
        return text

    assert find_version(ask) == version
    assert json.loads(base64.b64decode(udtf_spec(spread)["udtf"]))["chunker_payload"]
    with pytest.raises(InvalidFunction, match="concurrency of ask is 0"):
        penstock.udf(concurrency=0)(ask)


def refuse(match: str, function: Any, decorator: Any = penstock.udf, **options: Any) -> None:
    with pytest.raises(InvalidRequest, match=match) as refused:
        (decorator(**options) if options else decorator)(function)
    assert refused.value.detail


def test_what_cannot_be_right_is_refused_at_once() -> None:
    class Silent:
        pass

    class Needy:
        def __init__(self, model: str) -> None:
            pass

        def __call__(self, a: int) -> int:
            return a

    def mixed(a: pa.Array, b: int) -> int:
        return b

    def many(a: int) -> Iterator[int]:
        yield a

    def named(*, a: int) -> int:
        return a

    def plain(a: int) -> int:
        return a

    def strange(a: set[int]) -> int:
        return len(a)

    def nested(a: "Tree | None") -> int:
        return 1

    def mixed_members(a: Mixed) -> int:
        return 1

    def made_of(a: int) -> Tree:
        return Tree([])

    def mostly(a: str, *more: str | None) -> str:
        return a

    def untold(a):  # type: ignore[no-untyped-def]
        return a

    refuse("plain has concurrency=3, and is no async function", plain, concurrency=3)
    refuse("only some of which may be None", mostly)
    refuse("cannot be called", Silent)
    refuse("needs 'model' to be made", Needy)
    refuse("mix Arrow and plain", mixed)
    refuse("returns several rows", many)
    refuse("needs a by name", named)
    refuse("has no name", lambda a: a)
    refuse("is no function", 5)
    refuse("takes no parameters", lambda: 1, name="f")
    refuse("is 'int33', which is no type", plain, data_type="int33")
    refuse("is object, which is no type", plain, data_type=object)
    refuse("takes 1 values, and inputs names 2", plain, inputs=["a", "b"])
    refuse("has a column twice", plain, inputs=["a", "a"])
    refuse("is the text 'a'", plain, inputs="a")
    refuse("on_error of plain is 'ignore'", plain, on_error="ignore")
    refuse("on_error of plain has 'max_rows'", plain, on_error={"max_rows": 1})
    refuse("retries of plain is -1", plain, retries=-1)
    refuse("timeout of plain is 0", plain, timeout=0)
    refuse("batch_size of plain is 0", plain, batch_size=0)
    refuse("num_gpus of plain is -1", plain, num_gpus=-1)
    refuse("on_null of plain is 'skip'", plain, on_null="skip")
    refuse("environment of plain has 'conda'", plain, environment={"conda": []})
    refuse("plain has outputs, and is of kind 'arrow'", plain, outputs={"a": int}, kind="arrow")
    refuse("plain has outputs and data_type", plain, outputs={"a": int}, data_type=int)
    refuse("parameter a of strange cannot be given: no column has values of type set", strange)
    refuse("parameter a of nested .*field items of Tree: Tree is inside itself", nested)
    refuse(
        "of mixed_members cannot be given: the values of Mixed are neither all texts nor",
        mixed_members,
    )
    refuse("the type of made_of is Tree, which is no type of a column: Tree is inside", made_of)
    refuse("the type of made_of is Mixed.*neither all texts", made_of, data_type=Mixed)
    refuse("plain has the option 'retry'", plain, retry=3)
    refuse("what untold makes is not known", untold, penstock.chunker)
    refuse(
        "partition_by and",
        plain,
        penstock.udtf,
        outputs={"a": int},
        partition_by="a",
        partition_by_indexed_column="b",
    )
    refuse("outputs of plain is", plain, penstock.chunker, outputs={})


def test_policies_say_what_they_mean() -> None:
    def policy(**options: Any) -> dict[str, Any] | None:
        return penstock.udf(**options)(lambda a: a).on_error

    assert policy(name="f") is None
    assert policy(name="f", on_error="skip") == {"action": "skip"}
    assert policy(name="f", retries=2) == {"action": "retry", "max_attempts": 3}
    assert policy(name="f", on_error="skip", retries=1) == {
        "action": "retry",
        "max_attempts": 2,
        "max_failed_fraction": 1.0,
    }
    assert policy(name="f", on_error={"action": "retry", "match": [ValueError, "Busy"]}) == {
        "action": "retry",
        "match": ["ValueError", "Busy"],
    }


def test_the_server_takes_what_is_packed(lake: penstock.Lake, table: penstock.Table) -> None:
    @penstock.udf(
        data_type="int32",
        on_error={"action": "retry", "max_failed_rows": 3},
        retries=2,
        timeout=9,
        batch_size=8,
        memory=2**30,
        environment={"pip": ["left-pad==1"], "env_vars": {"A": "b"}},
    )
    def size(text: str) -> int:
        return len(text)

    table.add_column("size", size).add_column("twice", computed="id * 2")
    told = table.computed_columns()
    assert (told["size"]["function"], told["size"]["inputs"]) == ("size", ["text"])
    assert told["size"]["version"] == size.version
    assert table.schema().field("size").type == pa.int32()
    table.alter_column("size", penstock.udf(data_type="int32", version="2")(size.call))
    assert table.computed_columns()["size"]["version"] == "2"
    metadata = table.schema().field("size").metadata or {}
    assert json.loads(metadata[b"penstock.function"])["on_null"] == "null"
    table.rename_column("size", "length").drop_columns("length", "twice")
    assert table.schema().names == ["id", "text"]

    @penstock.udf(outputs={"low": str, "high": str}, inputs=["text"])
    def cases(rows: pa.RecordBatch) -> pa.RecordBatch:
        return rows

    assert table.add_columns(cases).schema().names == ["id", "text", "low", "high"]


def test_a_column_needs_what_is_not_known(table: penstock.Table) -> None:
    bare = penstock.udf(name="f")(lambda text: text)
    with pytest.raises(InvalidFunction, match="type of what f returns is not known"):
        table.add_column("a", bare)
    table.add_column("a", bare, data_type=str)
    batch = penstock.udf(kind="batch", data_type=str, name="g")(lambda rows: rows)
    with pytest.raises(InvalidFunction, match="columns that g reads are not known"):
        table.add_column("b", batch)
    with pytest.raises(InvalidFunction, match="is no udf"):
        table.add_column("b", len)  # type: ignore[arg-type]


def test_functions_show_themselves() -> None:
    assert repr(double) == f"<udf double(id) -> int64, version {double.version}>"
    assert repr(split) == f"<chunker split(text) -> chunk, start, version {split.version}>"
    assert "count(…) -> kind, rows" in repr(count)


def test_specs_of_views_name_their_function() -> None:
    spec = udtf_spec(count)
    assert (spec["kind"], spec["partition_by"]) == ("udtf", "kind")
    assert "input_columns" not in spec
    assert "batch" not in spec
    assert udtf_spec(split)["batch"] is False
