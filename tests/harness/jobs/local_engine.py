"""Jobs in the test's own process: an engine without Spark, and tables by their paths."""

import itertools
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa

from penstock.jobs.spark.tasks import Engine
from penstock.lance.session.remote import Location, RemoteCatalog, open_newest


class InProcessTasks:
    """Runs numbered tasks one after the other, where Spark would."""

    def __init__(self) -> None:
        self._tasks: Callable[[], Iterator[Any]] = lambda: iter(())

    def range(self, start: int, end: int, step: int, partitions: int) -> "InProcessTasks":
        self._numbers = range(start, end, step)
        return self

    def mapInArrow(self, kernel: Any, schema: str, profile: Any = None) -> "InProcessTasks":  # noqa: N802
        made = InProcessTasks()
        batches = [pa.record_batch([[number]], ["id"]) for number in self._numbers]
        made._tasks = lambda: itertools.chain.from_iterable(kernel(iter([b])) for b in batches)
        return made

    def toArrow(self) -> pa.Table:  # noqa: N802
        return pa.Table.from_pylist([row for batch in self._tasks() for row in batch.to_pylist()])

    def addTag(self, tag: str) -> None:  # noqa: N802
        pass

    def interruptTag(self, tag: str) -> None:  # noqa: N802
        pass


LOCAL_ENGINE = Engine(InProcessTasks(), 2, is_connect=True)


class FolderLake(RemoteCatalog):
    """Tables in one folder, by the last part of their names."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def locate(self, table: Sequence[str], branch: str) -> Location:
        return Location(str(self._folder / table[-1]), branch)

    def open_latest(self, table: Sequence[str], branch: str) -> lance.LanceDataset:
        return open_newest(self.locate(table, branch))
