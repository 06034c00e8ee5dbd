"""The source of a history: what writers do to the table, and to the model beside it."""

import copy
import random
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa

from penstock.lance.session.remote import Location, open_newest
from tests.harness.jobs.function_tables import FunctionTable, bound_field
from tests.harness.jobs.kernel import declare, seal
from tests.harness.jobs.local_engine import LOCAL_ENGINE, FolderLake
from tests.soak import functions
from tests.soak.model import KINDS, Model, Row
from tests.soak.views import log_of

ROWS, FRAGMENTS = 40, 4
# A compaction that loses so often is left out.
COMPACT_TRIES = 5


class Writers:
    """A table and its model, which writers change alike, one at a time."""

    def __init__(self, folder: Path, chance: random.Random, prints: int = 0) -> None:
        self.model = Model()
        self.chance = chance
        self.path = folder / "source"
        self.steps: list[str] = []
        self._turn = threading.Lock()
        rows = self.model.new_rows(ROWS, "t")
        dataset = lance.write_dataset(
            to_arrow(rows),
            str(self.path),
            max_rows_per_file=ROWS // FRAGMENTS,
            enable_stable_row_ids=True,
        )
        log = log_of(folder, "source")
        content = seal(functions.filling(str(log), prints))
        function = declare(content, ("id", "text"))
        (self.path / "_udfs").mkdir()
        (self.path / "_udfs" / function.sha256).write_bytes(content)
        dataset.add_columns(bound_field("value", function))
        catalog = FolderLake(self.path.parent)
        self.table = FunctionTable(self.path, catalog, LOCAL_ENGINE, function, log)
        self.model.now = {row.id: row for row in rows}
        self.model.note(dataset.version)

    def open(self) -> lance.LanceDataset:
        return open_newest(Location(str(self.path), ""))

    def write(self, names: tuple[str, ...]) -> None:
        """One random write of these."""
        with self._turn:
            name = self.chance.choice(names)
            self.steps.append(f"write {name}")
            dataset = getattr(self, f"do_{name}")(self.open())
            self.steps[-1] += f" -> {dataset.version}"
            self.model.note(dataset.version)

    def some(self) -> tuple[str, Callable[[int], bool]]:
        """A condition on ids, for Lance and for Python."""
        modulus = self.chance.choice([2, 3, 7, 20])
        rest = self.chance.randrange(modulus)
        self.steps[-1] += f" id % {modulus} = {rest}"
        return f"id % {modulus} = {rest}", lambda number: number % modulus == rest

    def do_append(self, dataset: lance.LanceDataset) -> lance.LanceDataset:
        rows = self.model.new_rows(self.chance.randrange(1, 9), "n")
        dataset.insert(to_arrow(rows))
        self.model.now |= {row.id: row for row in rows}
        return dataset

    def update(
        self, dataset: lance.LanceDataset, sql: str, column: str, change: Callable[[Row], Any]
    ) -> lance.LanceDataset:
        where, matches = self.some()
        dataset.update({column: sql}, where=where)
        for row in self.model.now.values():
            if matches(row.id):
                setattr(row, column, change(row))
        return dataset

    def do_update_text(self, dataset: lance.LanceDataset) -> lance.LanceDataset:
        text = self.chance.choice(["u v", "w", "-", "a b c"])
        return self.update(dataset, f"'{text}'", "text", lambda _: text)

    def do_update_filter(self, dataset: lance.LanceDataset) -> lance.LanceDataset:
        """By 5 nothing enters or leaves a view; by 1 something does."""
        by = self.chance.choice([5, 5, 1])
        self.steps[-1] += f" by {by}"
        return self.update(dataset, f"x + {by}", "x", lambda row: row.x + by)

    def do_update_kind(self, dataset: lance.LanceDataset) -> lance.LanceDataset:
        kind = self.chance.choice(KINDS)
        return self.update(dataset, f"'{kind}'", "kind", lambda _: kind)

    def do_update_other(self, dataset: lance.LanceDataset) -> lance.LanceDataset:
        return self.update(dataset, "other + 1", "other", lambda row: row.other + 1)

    def do_merge(self, dataset: lance.LanceDataset) -> lance.LanceDataset:
        ids = [id for id in self.model.now if self.chance.random() < 0.2]
        rows = pa.table({"id": pa.array(ids, pa.int64()), "text": ["merged"] * len(ids)})
        dataset.merge_insert("id").when_matched_update_all().execute(rows)
        for id in ids:
            self.model.now[id].text = "merged"
        return dataset

    def do_delete(self, dataset: lance.LanceDataset) -> lance.LanceDataset:
        where, matches = self.some()
        dataset.delete(f"{where} AND id % 5 = 1")
        for id in [id for id in self.model.now if matches(id) and id % 5 == 1]:
            del self.model.now[id]
        return dataset

    def do_compact(self, dataset: lance.LanceDataset) -> lance.LanceDataset:
        size = self.chance.choice([15, 30, 1000])
        for _ in range(COMPACT_TRIES):
            try:
                dataset.optimize.compact_files(target_rows_per_fragment=size)
                return dataset
            except OSError as error:
                # A job's commit came first.
                if "conflict" not in str(error):
                    raise
                dataset = self.open()
        return dataset

    def do_restore(self, dataset: lance.LanceDataset) -> lance.LanceDataset:
        version = self.chance.choice(sorted(self.model.past)[-6:])
        self.steps[-1] += f" of {version}"
        earlier: Any = dataset.checkout_version(version)
        earlier.restore()
        self.model.now = copy.deepcopy(self.model.past[version])
        newest = self.open()
        self.model.restored.append(newest.version)
        return newest


def to_arrow(rows: list[Row]) -> pa.Table:
    return pa.table(
        {
            "id": pa.array([row.id for row in rows], pa.int64()),
            "text": [row.text for row in rows],
            "x": pa.array([row.x for row in rows], pa.int64()),
            "kind": [row.kind for row in rows],
            "other": pa.array([row.other for row in rows], pa.int64()),
        }
    )
