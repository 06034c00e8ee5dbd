"""Functions as another client pickles them: without its modules, and called as it calls them."""

import base64
import json
import pickletools
import sys
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pytest

from penstock.errors import FunctionFailed
from penstock.jobs.functions.load import load
from tests.harness.data.foreign_pickles import Named, dump, fill, wrap
from tests.harness.jobs.kernel import declare

PAYLOADS = {"udf_pickle": "udf_pickle", "chunker": "chunker_payload", "udtf": "udtf_payload"}


class Piece(NamedTuple):
    word: str
    number: int


def load_packed(payload: bytes, kind: Any = None, inputs: tuple[str, ...] = ("id",)) -> Any:
    part = PAYLOADS["udf_pickle" if kind is None else kind.removeprefix("batch_")]
    content = json.dumps({part: base64.b64encode(payload).decode()}).encode()
    form = "udf_pickle" if kind is None else "udtf_spec"
    return load(content, declare(content, inputs, ("word", "number"), kind=kind, form=form))


def test_its_classes_are_not_needed() -> None:
    loaded = load_packed(wrap(lambda n: n + 1))
    assert (loaded.kind, loaded.call(1)) == ("scalar", 2)
    assert "geneva" not in sys.modules


def test_nor_is_what_it_says_of_errors_and_environments() -> None:
    def make(named: Named) -> Any:
        wrapped = named("geneva.transformer", "UDF")()
        config = named("geneva.debug.error_store", "ErrorHandlingConfig")()
        stop = named("tenacity.stop", "stop_after_attempt")()
        stop.max_attempt_number = 3
        config.retry_config = {"stop": stop}
        manifest = named("geneva.manifest.mgr", "GenevaManifest")()
        wrapped.__dict__.update(func=len, error_handling=config, manifest=manifest)
        return wrapped

    assert load_packed(dump(make)).call([1, 2]) == 2


def test_a_module_that_code_names_in_passing_is_missed_only_when_it_is_used() -> None:
    def make(named: Named) -> Any:
        named("geneva.transformer", "UDF")
        geneva = sys.modules["geneva"]

        def double(n: int, use: bool = False) -> Any:
            return geneva.anything if use else n * 2

        return fill(named("geneva.transformer", "UDF"), func=double)

    loaded = load_packed(dump(make))
    assert loaded.call(2) == 4
    with pytest.raises(AttributeError, match="module geneva is not there"):
        loaded.call(2, True)


def test_its_copy_of_cloudpickle_is_read_by_the_real_one() -> None:
    ours = wrap(lambda n: n * 3)
    own = b"cloudpickle.cloudpickle"
    theirs = b"geneva." + own
    # A pickle has the length of such a text before it.
    packed = ours.replace(
        b"\x8c" + bytes([len(own)]) + own, b"\x8c" + bytes([len(theirs)]) + theirs
    )
    assert packed != ours
    assert load_packed(_unframed(packed)).call(2) == 6


def test_modules_of_the_users_own_are_still_named() -> None:
    payload = dump(lambda named: named("no_such_module", "Thing")())
    with pytest.raises(FunctionFailed, match="no_such_module"):
        load_packed(payload)


def test_lists_come_as_arrays_where_the_function_says_so() -> None:
    def total(vector: np.ndarray, factor: int) -> float:
        return float(vector.sum()) * factor

    loaded = load_packed(wrap(total), inputs=("vector", "factor"))
    assert (loaded.kind, loaded.call([1.0, 2.0], 2)) == ("scalar", 6.0)


def test_a_chunker_may_yield_tuples() -> None:
    def split(text: str) -> Iterator[Any]:
        yield Piece(text, 0)
        yield {"word": text, "number": 1}
        yield text, 2

    loaded = load_packed(wrap(split, "Chunker"), "chunker", ("text",))
    assert loaded.call("a") == [{"word": "a", "number": n} for n in range(3)]


def test_a_chunker_of_batches_says_which_row_each_of_its_rows_is_of() -> None:
    def split(text: pa.Array, __source_row_id: pa.Array) -> pa.RecordBatch:
        given = zip(text.to_pylist(), __source_row_id.to_pylist(), strict=True)
        found = [(word, id) for text, id in given for word in text.split()]
        words, rows = zip(*found, strict=True)
        return pa.record_batch({"word": pa.array(words), "__source_row_id": pa.array(rows)})

    loaded = load_packed(wrap(split, "Chunker"), "batch_chunker", ("text",))
    batch = pa.record_batch({"text": ["a b", "c"]})
    assert loaded.call(batch) == [(0, {"word": "a"}), (0, {"word": "b"}), (1, {"word": "c"})]


def test_such_a_chunker_that_does_not_say_is_told_what_is_expected() -> None:
    loaded = load_packed(wrap(lambda text: [text], "Chunker"), "batch_chunker", ("text",))
    with pytest.raises(TypeError, match="__source_row_id"):
        loaded.call(pa.record_batch({"text": ["a"]}))


def test_a_function_of_partitions_asks_for_its_rows() -> None:
    def count(source: Any) -> Iterator[dict[str, Any]]:
        rows = source.to_arrow().num_rows
        assert source.num_rows == rows == sum(each.num_rows for each in source.to_batches())
        yield {"word": "rows", "number": rows}

    loaded = load_packed(wrap(count, "UDTF"), "udtf")
    assert loaded.call(pa.table({"id": [1, 2]})) == [{"word": "rows", "number": 2}]


def _unframed(packed: bytes) -> bytes:
    """The same pickle without the lengths of its frames, which were those before a change."""
    found = bytearray()
    places = [(op, place) for op, _, place in pickletools.genops(packed)]
    ends = [place for _, place in places[1:]] + [len(packed)]
    for (op, place), end in zip(places, ends, strict=True):
        if op.name != "FRAME":
            found += packed[place:end]
    return bytes(found)
