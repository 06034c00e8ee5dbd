"""Somebody who writes to a table all the time: appends, updates, deletes and compacts at random."""

import contextlib
import random
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field

from tests.harness.jobs.filled_tables import some_rows
from tests.harness.jobs.function_tables import FunctionTable


@dataclass
class Writer:
    """What a writer has done so far."""

    table: FunctionTable
    chance: random.Random
    # Rows whose inputs it changed, rows that it added, and how often it compacted.
    changed: int = 0
    added: int = 0
    compacted: int = 0
    errors: list[Exception] = field(default_factory=list)
    _next: int = 100_000

    def write(self) -> None:
        dataset = self.table.open()
        ids = f"id % 23 = {self.chance.randrange(23)}"
        step = self.chance.choice(["append", "update", "other", "delete", "compact"])
        if step == "append":
            dataset.insert(some_rows(self._next, 3))
            self._next, self.added = self._next + 3, self.added + 3
        elif step == "update":
            found = dataset.update({"text": f"'u{self.chance.randrange(10**6)}'"}, where=ids)
            self.changed += int(found["num_rows_updated"])
        elif step == "other":
            dataset.update({"other": "other + 1"}, where=ids)
        elif step == "delete":
            dataset.delete(f"id % 97 = {self.chance.randrange(97)}")
        else:
            dataset.optimize.compact_files()
            self.compacted += 1


@contextlib.contextmanager
def writing(table: FunctionTable, seconds: float, seed: int = 1) -> Iterator[Writer]:
    """A writer at work, every so many seconds."""
    writer, stop = Writer(table, random.Random(seed)), threading.Event()

    def work() -> None:
        while not stop.wait(seconds):
            try:
                writer.write()
            # A commit of the job's was first: the writer tries something else.
            except (OSError, RuntimeError) as error:
                writer.errors.append(error)

    thread = threading.Thread(target=work)
    thread.start()
    try:
        yield writer
    finally:
        stop.set()
        thread.join()
