"""What a worker can write reaches the driver as values: nothing of it is unpickled there."""

import functools
import json
import os
import pickle
import pstats
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, cast

import pyarrow as pa
import pytest
from pyspark import cloudpickle

from penstock.errors import InvalidRequest, Unavailable
from penstock.jobs.spark.tasks import Engine, Tasks, rows_of

SCHEMA = "version string"
OVER_CONNECT = "PENSTOCK_TEST_REMOTE" in os.environ
NOTE = "import os; open({path!r}, 'a').write(f'{{os.getpid()}} ')"
Batches = Iterator[pa.RecordBatch]


class Bomb:
    """Notes down which process unpickles it."""

    def __init__(self, path: Path) -> None:
        self.path = str(path)

    def __reduce__(self) -> tuple[Any, ...]:
        return exec, (NOTE.format(path=self.path),)


class Opens(Bomb):
    """Statistics of a profiler, which are read from a file."""

    def __reduce__(self) -> tuple[Any, ...]:
        return pstats.Stats, (self.path,)


class RaisedError(Exception):
    """An error that is a bomb."""

    def __reduce__(self) -> tuple[Any, ...]:
        return exec, (NOTE.format(path=self.args[0]),)


def fine() -> Batches:
    yield pa.record_batch([["fine"]], ["version"])


def by_accumulator(path: Path, numbers: Batches) -> Batches:
    """The registry's values are sent at the end of each task."""
    from pyspark.accumulators import INT_ACCUMULATOR_PARAM, Accumulator

    list(numbers)
    bomb: Any = Bomb(path)
    for id in (0, -1, -2, 77):
        Accumulator(id, bomb, INT_ACCUMULATOR_PARAM)
    yield from fine()


def by_statistics(path: Path, numbers: Batches) -> Batches:
    """The profiler's, which Spark Connect lets through, open the file that they are told."""
    from pyspark.accumulators import INT_ACCUMULATOR_PARAM, Accumulator

    list(numbers)
    opens: Any = Opens(path)
    Accumulator(-2, opens, INT_ACCUMULATOR_PARAM)
    yield from fine()


def by_result(path: Path, numbers: Batches) -> Batches:
    """Whatever the task yields, its bytes are a pickle's."""
    from pyspark.serializers import CloudPickleSerializer, NoOpSerializer

    list(numbers)
    evil = pickle.dumps([Bomb(path)])
    kinds: list[Any] = [CloudPickleSerializer, NoOpSerializer]
    plain = [kind.dumps for kind in kinds]
    for kind in kinds:
        kind.dumps = lambda *_: evil
    yield from fine()
    # A row is written before the next one is asked for; the next task may be another test's.
    for kind, dumps in zip(kinds, plain, strict=True):
        kind.dumps = dumps


def by_value(path: Path, numbers: Batches) -> Batches:
    """A text that would be a pickle, if anybody took it for one."""
    list(numbers)
    yield pa.record_batch([[pickle.dumps(Bomb(path), 0).decode()]], ["version"])


def by_metadata(path: Path, numbers: Batches) -> Batches:
    """Arrow's own name for a type that is a pickle."""
    list(numbers)
    extension = {
        "ARROW:extension:name": "arrow.py_extension_type",
        "ARROW:extension:metadata": pickle.dumps(Bomb(path), 0),
    }
    field = pa.field("version", pa.string(), metadata=extension)
    yield pa.record_batch([["fine"]], schema=pa.schema([field], {"pandas": b"\x80"}))


def by_error(path: Path, numbers: Batches) -> Batches:
    list(numbers)
    yield from fine()
    raise RaisedError(str(path))


def by_output(path: Path, numbers: Batches) -> Batches:
    list(numbers)
    for handle in (1, 2):
        os.write(handle, pickle.dumps(Bomb(path)))
    yield from fine()


def by_broadcast(ballast: bytes, path: Path, numbers: Batches) -> Batches:
    """A function of more than a megabyte comes by a file, which others may write to."""
    from pyspark.core.broadcast import _broadcastRegistry

    list(numbers)
    for known in _broadcastRegistry.values():
        if getattr(known, "_path", None):
            Path(known._path).write_bytes(pickle.dumps(Bomb(path)))
    yield from fine()


WAYS: dict[str, Callable[..., Batches]] = {
    "accumulator": by_accumulator,
    "result": by_result,
    "value": by_value,
    "metadata": by_metadata,
    "error": by_error,
    "output": by_output,
    "broadcast": functools.partial(by_broadcast, os.urandom(2_000_000)),
}

# What a job is told whose tasks do such a thing, if it is not just as well.
FAILURES = {"result": "", "error": "RaisedError: "}


def forget(numbers: Batches) -> Batches:
    import time

    from pyspark.accumulators import _accumulatorRegistry

    list(numbers)
    _accumulatorRegistry.clear()
    # So that each worker gets one.
    time.sleep(0.2)
    yield from fine()


@pytest.fixture(scope="module", autouse=True)
def calm(engine: Engine) -> Iterator[None]:
    """What is here goes to workers by value; afterwards their registries are empty again."""
    module, packing = sys.modules[__name__], cast(Any, cloudpickle)
    packing.register_pickle_by_value(module)
    yield
    Tasks(engine, forget, 2 * engine.slots, SCHEMA).result()
    packing.unregister_pickle_by_value(module)


def pass_on(frame: Any) -> Any:
    return frame.filter("version IS NOT NULL")


@pytest.mark.parametrize("then", [None, pass_on], ids=["tasks", "query"])
@pytest.mark.parametrize("way", WAYS)
def test_the_driver_unpickles_nothing(engine: Engine, tmp_path: Path, way: str, then: Any) -> None:
    path = tmp_path / "boom"
    path.touch()
    running = Tasks(engine, functools.partial(WAYS[way], path), 1, SCHEMA, then)
    try:
        assert len(running.result()) == 1
    except Unavailable as error:
        assert FAILURES[way] in error.message  # noqa: PT017
    # What one worker writes another may read.
    assert str(os.getpid()) not in path.read_text().split()


def test_statistics_of_a_worker_open_no_file(engine: Engine, tmp_path: Path) -> None:
    running = Tasks(engine, functools.partial(by_statistics, tmp_path / "gone"), 1, SCHEMA)
    assert [row.version for row in running.result()] == ["fine"]


@pytest.mark.skipif(OVER_CONNECT, reason="there are no tasks without a query")
def test_a_result_that_is_no_row_fails_its_job(engine: Engine, tmp_path: Path) -> None:
    running = Tasks(engine, functools.partial(by_result, tmp_path / "boom"), 1, SCHEMA)
    with pytest.raises(Unavailable, match="Spark could not finish the tasks"):
        running.result()


@pytest.mark.skipif(OVER_CONNECT, reason="the accumulators of Spark Connect are its server's")
def test_nobody_listens_for_accumulators(engine: Engine) -> None:
    assert engine.spark.sparkContext._accumulatorServer is None
    assert engine.spark.sparkContext._javaAccumulator is None
    assert not [each for each in threading.enumerate() if "serve_forever" in each.name]


def test_a_schema_in_a_query_imports_nothing(engine: Engine) -> None:
    kind = {"type": "udt", "pyClass": "antigravity.X", "serializedClass": "", "sqlType": "integer"}
    field = {"name": "a", "type": kind, "nullable": True, "metadata": {}}
    schema = json.dumps({"type": "struct", "fields": [field]})
    # Of a classic session as PySpark's own error, which is a ValueError.
    with pytest.raises((ValueError, InvalidRequest), match="has a column of the type 'antigravity"):
        rows_of(engine.spark.sql(f"SELECT from_json('{{}}', '{schema}') AS x"))()
    assert "antigravity" not in sys.modules
