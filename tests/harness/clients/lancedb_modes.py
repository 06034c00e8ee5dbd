"""lancedb's remote client in its two forms, sync and async, behind one way to call it."""

import asyncio
import inspect
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

import lancedb
import pyarrow as pa

T = TypeVar("T")

SYNC, ASYNC = "sync", "async"
# Which test exercises a method: by the kind of object and the method's name.
COVERED: dict[tuple[str, str], str] = {}


def covers(kind: str, *names: str) -> Callable[[T], T]:
    """Say that a test exercises these methods of a kind of object, in both forms of the client."""

    def mark(test: T) -> T:
        text = inspect.getsource(test)  # type: ignore[arg-type]
        for name in names:
            assert name in text, f"{test} does not call {name}"
            COVERED[kind, name] = getattr(test, "__name__", "")
        return test

    return mark


class Lake:
    """A connection of one form."""

    def __init__(self, mode: str, url: str, runner: "asyncio.Runner", **options: Any) -> None:
        self.mode = mode
        self._runner = runner
        connect: Any = lancedb.connect if mode == SYNC else lancedb.connect_async
        given = {"api_key": "k", "host_override": url, **options}
        self.database: Any = self.done(connect("db://x", **given))

    def done(self, value: Any) -> Any:
        """The value itself; of the async form, once it is there."""
        if not inspect.isawaitable(value):
            return value

        async def wait() -> Any:
            return await value

        return self._runner.run(wait())

    def get(self, thing: Any, name: str, *arguments: Any, **named: Any) -> Any:
        """What is a property in one form and a method in the other."""
        found = getattr(thing, name)
        return self.done(found(*arguments, **named) if callable(found) else found)

    def query(self, table: Any) -> Any:
        """A query of all rows."""
        return table.search() if self.mode == SYNC else table.query()

    def with_row_id(self, query: Any) -> Any:
        return query.with_row_id(True) if self.mode == SYNC else query.with_row_id()


@contextmanager
def event_loop() -> Iterator["asyncio.Runner"]:
    with asyncio.Runner() as runner:
        yield runner


def some_rows(*ids: int, dimensions: int = 4) -> pa.Table:
    """Rows with numbers, texts, labels and vectors."""
    vectors = [[float(id)] + [0.0] * (dimensions - 1) for id in ids]
    return pa.table(
        {
            "id": pa.array(ids, pa.int64()),
            "text": [f"{'hello' if id % 2 else 'world'} number {id}" for id in ids],
            "tags": pa.array([["odd" if id % 2 else "even"] for id in ids], pa.list_(pa.string())),
            "vector": pa.array(vectors, pa.list_(pa.float32(), dimensions)),
        }
    )
