"""Stored bytes become functions, or an error that says why not."""

import base64
import hashlib
import json
import pickle
from typing import Any

import pyarrow as pa
import pytest

from penstock.errors import FunctionFailed
from penstock.jobs.functions.batches import MAX_BYTES, MAX_ROWS, BatchSize, cut, in_order
from penstock.jobs.functions.load import PYTHON, load
from penstock.jobs.functions.task import FunctionOptions, choose_size
from tests.harness.data.calls import pickled
from tests.harness.jobs.kernel import declare, seal


class Wrapped:
    """As another client pickles its functions: an object around one."""

    def __init__(self, func: Any) -> None:
        self.func = func


def foreign(made: Any, **more: Any) -> bytes:
    payload = pickled(made)
    document = {
        "udf_pickle": base64.b64encode(payload).decode(),
        "udf_checksum": hashlib.sha256(payload).hexdigest(),
    }
    return json.dumps(document | more).encode()


def test_our_envelope() -> None:
    content = seal(lambda n: n + 1, "arrow")
    loaded = load(content, declare(content, ["id"], kind=None))
    assert (loaded.kind, loaded.call(1)) == ("arrow", 2)


def test_a_bare_pickle_may_say_its_kind() -> None:
    def whole(batch: pa.RecordBatch) -> Any:
        return batch

    whole.penstock_kind = "batch"  # type: ignore[attr-defined]
    for function, kind in ((whole, "batch"), (len, "scalar")):
        content = pickled(function)
        assert load(content, declare(content, ["id"], kind=None, form="pickle")).kind == kind


def test_functions_of_other_clients() -> None:
    def scalar(n: int) -> int:
        return n + 1

    def arrays(n: pa.Array) -> pa.Array:
        return n

    def batch(rows: pa.RecordBatch) -> pa.Array:
        return rows

    for function, kind in ((scalar, "scalar"), (arrays, "arrow"), (batch, "batch")):
        content = foreign(Wrapped(function))
        loaded = load(content, declare(content, ["id"], kind=None, form="udf_pickle"))
        assert (loaded.kind, loaded.call.__name__) == (kind, function.__name__)


def test_a_missing_module_is_named() -> None:
    payload = b"cno_such_module\nThing\n."
    document = {"udf_pickle": base64.b64encode(payload).decode()}
    content = json.dumps(document).encode()
    with pytest.raises(FunctionFailed, match="no_such_module") as found:
        load(content, declare(content, ["id"], form="udf_pickle"))
    assert "pip" in found.value.detail


def test_other_pythons_are_named() -> None:
    content = seal(len)
    with pytest.raises(FunctionFailed, match=rf"Python 3\.8, and the workers run Python {PYTHON}"):
        load(content, declare(content, ["id"], python="3.8"))
    broken = pickle.dumps(None).replace(b"N", b"cmarshal\nloads\n(C\x03xyztR", 1)
    with pytest.raises(FunctionFailed, match=f"workers run Python {PYTHON}"):
        load(broken, declare(broken, ["id"], form="pickle"))


def test_checksums_are_checked() -> None:
    content = seal(len)
    with pytest.raises(FunctionFailed, match="sha256"):
        load(content + b" ", declare(content, ["other"]))
    wrong = foreign(Wrapped(len), udf_checksum="0" * 64)
    with pytest.raises(FunctionFailed, match=r"0{64} is expected"):
        load(wrong, declare(wrong, ["id"], form="udf_pickle"))


def test_what_cannot_be_called_is_refused() -> None:
    content = pickled({"a": 1})
    with pytest.raises(FunctionFailed, match="dict"):
        load(content, declare(content, ["id"], form="pickle"))


def test_batches_grow_and_shrink_between_bounds() -> None:
    size = BatchSize(1024, 100, 65_536)
    size.learn(1024, 0.001)
    size.learn(size.rows, 0.01)
    assert size.rows == 65_536
    size.learn(65_536, 10)
    assert size.rows == 6553
    size.learn(6553, 1000)
    assert size.rows == 100
    size.learn(30, 0.001)
    assert size.rows == 100


@pytest.mark.parametrize(
    ("batch_size", "knobs", "most"),
    [
        (4, FunctionOptions(), 4),
        (4, FunctionOptions(max_rows=1000, min_rows=10), 4),
        (None, FunctionOptions(batch_rows=10), 10),
        (None, FunctionOptions(batch_rows=10, max_rows=50), 50),
        (7, FunctionOptions(batch_rows=10), 7),
        (None, FunctionOptions(), MAX_ROWS),
    ],
)
def test_batches_never_outgrow_the_size_that_was_asked_for(
    batch_size: int | None, knobs: FunctionOptions, most: int
) -> None:
    size = choose_size("batch", batch_size, knobs)
    for _ in range(20):
        assert size.rows <= most
        size.learn(size.rows, 0.0001)
    assert size.rows == most


def test_rows_are_cut_by_number_and_by_bytes() -> None:
    size = BatchSize(30, 1, 30)
    rows = [pa.record_batch({"n": list(range(start, start + 50))}) for start in (0, 50)]
    found = [batch.column(0).to_pylist() for batch in cut(iter(rows), size)]
    assert [len(part) for part in found] == [30, 30, 30, 10]
    assert [n for part in found for n in part] == list(range(100))
    large = pa.record_batch({"b": [bytes(MAX_BYTES // 4)] * 10})
    assert max(part.num_rows for part in cut(iter([large]), BatchSize(1000))) <= 4


def test_batches_are_bounded_by_what_is_returned() -> None:
    size = BatchSize(1024)
    size.learn(1024, 0.001, 1024 * MAX_BYTES // 64)
    assert size.rows == 64
    # Narrow values between wide ones say nothing about the next.
    size.learn(64, 0.001, 64)
    assert size.rows == 64
    size.learn(64, 0.001, 64 * 2 * MAX_BYTES)
    assert size.rows == 1


def test_threads_keep_the_order() -> None:
    batches = [pa.record_batch({"n": [n]}) for n in range(50)]
    found = in_order(lambda batch: batch.column(0)[0].as_py(), iter(batches), 4)
    assert [result for _, result in found] == list(range(50))
