"""Tables with a column that a function fills, and backfills of it by hand: no Spark, no server.

What is planned and how files are named and committed is the product's own; only the computation
stands here, so that calls can be counted.
"""

import uuid
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import lance
import numpy as np
import pyarrow as pa
from lance.file import LanceFileWriter

from penstock.jobs.backfill import watermarks as marks
from penstock.jobs.backfill.freshness import Freshness
from penstock.jobs.backfill.plan import (
    BackfillOptions,
    Fill,
    UpToDate,
    Watermark,
)
from penstock.jobs.backfill.plan_rows import codes_of, plan_rows
from penstock.jobs.backfill.selection import Scope, find_left
from penstock.jobs.backfill.watermarks import BoundFunction
from penstock.jobs.engine.fragment_work import FragmentWork, file_name
from penstock.jobs.kept.store import name_column
from penstock.lance import refs
from penstock.lance.commit.replacement import ColumnFile, commit_files
from penstock.lance.commit.transaction import transaction_of
from penstock.lance.diff.fragments import leaf_ids
from penstock.lance.diff.masks import pack, unpack
from penstock.lance.session.remote import Location, open_newest

BINDING = "0123456789abcdef0123456789abcdef"


@dataclass
class FilledTable:
    """A table on disk whose column `value` is f(text, number) in some version."""

    path: Path
    version: str = "1"
    inputs: tuple[str, ...] = ("text", "number")
    columns: tuple[str, ...] = ("value",)
    compute: Callable[..., Any] = lambda text, number: f"{text}:{number}"
    # What the catalog remembers, by branch.
    watermarks: dict[str, list[Watermark]] = field(default_factory=dict)
    calls: int = 0

    def open(self, branch: str = "") -> lance.LanceDataset:
        return open_newest(self.location(branch))

    def location(self, branch: str = "") -> Location:
        return Location(str(self.path), branch)

    def freshness(self, branch: str = "") -> Freshness:
        bound = BoundFunction(self.columns, self.inputs, self.version)
        known = self.watermarks.get(branch) or self.watermarks.get("", [])
        return Freshness(bound, known, self.location(branch))

    def plan(self, branch: str = "", scope: Scope | None = None, **options: Any) -> UpToDate | Fill:
        snapshot = self.freshness(branch).snapshot(self.open(branch), scope)
        return plan_rows(snapshot, BackfillOptions(function=self.version, **options))

    def fill(self, branch: str = "", scope: Scope | None = None, **options: Any) -> int:
        """Backfill; returns how many rows were computed."""
        job = str(uuid.uuid4())
        freshness = self.freshness(branch)
        dataset = self.open(branch)
        plan = plan_rows(
            freshness.snapshot(dataset, scope),
            BackfillOptions(function=self.version, job=job, **options),
        )
        if isinstance(plan, Fill):
            files = {work.id: self._write(dataset, branch, work, job) for work in plan.work}
            commit_files(dataset, files, {})
            dataset = self.open(branch)
        self._remember(dataset, branch, freshness, job)
        self.calls += plan.function_calls
        return plan.function_calls

    def _remember(
        self, dataset: lance.LanceDataset, branch: str, freshness: Freshness, job: str
    ) -> None:
        rows = find_left(dataset, freshness.snapshot(dataset).fragments)
        place, folder = self.location(branch).place(), name_column(BINDING, branch)
        name = marks.write_left(place, folder, f"{dataset.version}-{job}.rows", rows)
        mark = Watermark(
            dataset.version,
            self.version,
            name,
            len(rows),
            branch,
            transaction_of(dataset),
            self.inputs,
            self.columns,
        )
        refs.hold_version(dataset, marks.tag_of(BINDING, branch), branch, dataset.version)
        known = self.watermarks.get(branch) or self.watermarks.get("", [])
        self.watermarks[branch] = [mark, *known][:3]

    def _write(
        self, dataset: lance.LanceDataset, branch: str, work: FragmentWork, job: str
    ) -> ColumnFile:
        fragment: Any = dataset.get_fragment(work.id)
        rows = fragment.scanner(
            columns=[*self.inputs, *self.columns], with_row_address=True
        ).to_table()
        offsets = np.asarray(rows["_rowaddr"]).astype(np.int64) & 0xFFFF_FFFF
        need = np.ones(work.physical_rows, bool)
        if work.need is not None:
            need = unpack(work.need, work.physical_rows)
        fields = [dataset.schema.field(name) for name in self.columns]
        values: dict[str, list[Any]] = {f.name: [None] * work.physical_rows for f in fields}
        for row, offset in zip(rows.to_pylist(), offsets.tolist(), strict=True):
            found = {name: row[name] for name in self.columns}
            if need[offset]:
                result = self.compute(*(row[name] for name in self.inputs))
                several = result if isinstance(result, tuple) else (result,)
                found = dict(zip(self.columns, several, strict=True))
            for name, value in found.items():
                values[name][offset] = value
        unique = uuid.uuid4().hex[:8]
        name = file_name(work.key, job, 1, unique, partial=work.left is not None)
        return self._store(dataset, branch, name, values, work)

    def _store(
        self,
        dataset: lance.LanceDataset,
        branch: str,
        name: str,
        values: dict[str, list[Any]],
        work: FragmentWork,
    ) -> ColumnFile:
        location = self.location(branch)
        schema = pa.schema([pa.field(c, dataset.schema.field(c).type) for c in self.columns])
        version = dataset.data_storage_version
        path = f"{location.uri}/{location.data_folder}/{name}"
        writer = LanceFileWriter(path, schema, version=version)
        writer.write_batch(
            pa.record_batch([pa.array(values[f.name], f.type) for f in schema], schema=schema)
        )
        if work.left is not None:
            left = unpack(work.left, work.physical_rows)
            told = marks.describe_left(left, codes_of(work), ())
            for key, text in told.items():
                writer.add_schema_metadata(key, text)
        count = writer.close() or 0
        by_name = {f.name(): f for f in dataset.lance_schema.fields()}
        ids = [id for column in self.columns for id in leaf_ids(by_name[column])]
        major, minor = (int(part) for part in version.split("."))
        size = writer.size_bytes or 0
        return ColumnFile(name, tuple(ids), tuple(range(len(ids))), major, minor, size, count)

    def values(self, branch: str = "") -> dict[int, Any]:
        rows = self.open(branch).to_table(columns=["id", *self.columns]).to_pylist()
        return {row["id"]: tuple(row[c] for c in self.columns) for row in rows}

    def expected(self, branch: str = "") -> dict[int, Any]:
        rows = self.open(branch).to_table(columns=["id", *self.inputs]).to_pylist()
        found = {}
        for row in rows:
            result = self.compute(*(row[name] for name in self.inputs))
            found[row["id"]] = result if isinstance(result, tuple) else (result,)
        return found


def some_rows(start: int, count: int) -> pa.Table:
    ids = range(start, start + count)
    return pa.table(
        {
            "id": pa.array(ids, pa.int64()),
            "text": [f"t{n % 5}" for n in ids],
            "number": pa.array([n % 7 for n in ids], pa.int64()),
            "other": pa.array([0] * count, pa.int64()),
        }
    )


def make_filled(
    path: Path,
    *,
    rows: int = 40,
    fragments: int = 4,
    data: pa.Table | None = None,
    fields: Sequence[pa.Field] = (pa.field("value", pa.string()),),
    stable: bool = True,
    **given: Any,
) -> FilledTable:
    """A new table with an empty column."""
    data = some_rows(0, rows) if data is None else data
    dataset = lance.write_dataset(
        data,
        str(path),
        max_rows_per_file=-(-len(data) // fragments),
        enable_stable_row_ids=stable,
    )
    dataset.add_columns(pa.schema(list(fields)))
    return FilledTable(path, columns=tuple(f.name for f in fields), **given)


def packed(offsets: Sequence[int], length: int) -> bytes:
    mask = np.zeros(length, bool)
    mask[list(offsets)] = True
    return pack(mask)
