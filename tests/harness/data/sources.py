"""A table that random things happen to, as others may do them to the source of a view."""

import random
from pathlib import Path
from typing import Any, cast

import lance
import pyarrow as pa


def some_rows(start: int, count: int) -> pa.Table:
    ids = range(start, start + count)
    return pa.table(
        {
            "id": pa.array(ids, pa.int64()),
            "a": pa.array([None if n % 6 == 0 else n % 3 for n in ids], pa.int64()),
            "s": pa.array([{"x": f"x{n % 2}", "y": n} for n in ids]),
            "b": pa.array([0] * count, pa.int64()),
        }
    )


class SourceHistory:
    """A table that random things happen to."""

    def __init__(self, path: Path, seed: int) -> None:
        self.path = str(path)
        self.chance = random.Random(seed)
        self.next = 40
        self.steps: list[str] = []
        # Between two steps; some take several commits.
        self.versions = [1]
        lance.write_dataset(
            some_rows(0, 40), self.path, max_rows_per_file=10, enable_stable_row_ids=True
        )

    def open(self, version: int | None = None) -> lance.LanceDataset:
        return lance.dataset(self.path, version=version)

    def where(self) -> str:
        modulus = self.chance.choice([2, 3, 7, 20])
        return f"id % {modulus} = {self.chance.randrange(modulus)}"

    def step(self) -> None:
        name = self.chance.choice([name for name in dir(self) if name.startswith("do_")])
        self.steps.append(name)
        getattr(self, name)()
        self.versions.append(self.open().version)

    def do_append(self) -> None:
        count = self.chance.randrange(1, 9)
        self.open().insert(some_rows(self.next, count))
        self.next += count

    def do_update_read(self) -> None:
        self.open().update({"a": str(self.chance.randrange(3))}, where=self.where())

    def do_update_other(self) -> None:
        self.open().update({"b": "b + 1"}, where=self.where())

    def do_delete(self) -> None:
        self.open().delete(self.where() + " AND id % 5 < 2")

    def do_merge(self) -> None:
        start = self.chance.randrange(self.next)
        rows = some_rows(start, 9)
        self.next = max(self.next, start + 9)
        builder = self.open().merge_insert("id")
        builder.when_matched_update_all().when_not_matched_insert_all().execute(rows)

    def do_merge_column(self) -> None:
        ids = [n for n in range(self.next) if self.chance.random() < 0.1]
        rows = pa.table({"id": pa.array(ids, pa.int64()), "a": pa.array([9] * len(ids))})
        self.open().merge_insert("id").when_matched_update_all().execute(rows)

    def do_compact(self) -> None:
        size = self.chance.choice([15, 30, 1000])
        self.open().optimize.compact_files(target_rows_per_fragment=size)

    def do_change_columns(self) -> None:
        dataset = self.open()
        if "more" in dataset.schema.names:
            dataset.drop_columns(["more"])
        else:
            dataset.add_columns({"more": "id * 2"})

    def do_make_read_column_anew(self) -> None:
        self.open().add_columns({"other_a": "a + (id % 2)"})
        self.open().drop_columns(["a"])
        self.open().alter_columns(cast(Any, {"path": "other_a", "name": "a"}))

    def do_restore(self) -> None:
        self.open(self.chance.choice(self.versions)).restore()  # type: ignore[no-untyped-call]

    def do_overwrite(self) -> None:
        if self.chance.random() < 0.3:
            count = self.chance.randrange(10, 40)
            lance.write_dataset(
                some_rows(0, count),
                self.path,
                mode="overwrite",
                max_rows_per_file=10,
                enable_stable_row_ids=True,
            )

    def do_swap(self) -> None:
        for old, new in (("a", "temp"), ("b", "a"), ("temp", "b")):
            self.open().alter_columns(cast(Any, {"path": old, "name": new}))
