"""Write new rows of a table into files of their own. All of it blocks.

A commit that names the files makes them fragments. Columns that are not written are null there.
Rows that the table has already keep their ids in a new fragment, which says so itself.
"""

import json
import uuid
from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from lance import LanceDataset
from lance.file import LanceFileWriter
from lance.fragment import DataFile, FragmentMetadata, RowIdSequence

from penstock.jobs.engine.fragment_work import rows_file_name
from penstock.lance.diff.row_sets import Ids
from penstock.lance.errors import translated
from penstock.lance.session.remote import Location
from penstock.lance.write.column_files import get_targets, store_batch

# A fragment of a view has no more rows than one that Lance makes by itself.
MAX_ROWS = 1_048_576


class RowFiles:
    """One task's files, each with as many rows as a fragment may have."""

    def __init__(
        self,
        dataset: LanceDataset,
        location: Location,
        columns: Sequence[str],
        job: str,
        attempt: int,
        max_rows: int | None = None,
    ) -> None:
        targets = get_targets(dataset, columns)
        self._version = dataset.data_storage_version
        self._location = location
        # The schema of batches, and its form in files.
        self.schema = pa.schema([pa.field(target.name, target.kind) for target in targets])
        self._stored = pa.schema([target.stored for target in targets])
        self._ids = [id for target in targets for id in target.ids]
        self._job, self._attempt = job, attempt
        self._max_rows = max_rows or MAX_ROWS
        self._writer: Any = None
        self._name = ""
        self._rows = 0
        self._row_ids: list[Ids] = []
        self._fragments: list[str] = []

    def write(self, batch: pa.RecordBatch, row_ids: Ids | None = None) -> None:
        """Add rows with the columns of `schema`; with ids, always or never, rows that move."""
        at = 0
        while at < batch.num_rows:
            taken = batch.slice(at, self._max_rows - self._rows)
            if row_ids is not None:
                self._row_ids.append(row_ids[at : at + taken.num_rows])
            if self._writer is None:
                self._open()
            with translated():
                self._writer.write_batch(store_batch(taken, self._stored))
            at += taken.num_rows
            self._rows += taken.num_rows
            if self._rows == self._max_rows:
                self._finish()

    def close(self) -> tuple[str, ...]:
        """Finish the last file; returns all fragments, as JSON of Lance's metadata."""
        if self._writer is not None:
            self._finish()
        return tuple(self._fragments)

    def _open(self) -> None:
        self._name = rows_file_name(self._job, self._attempt, uuid.uuid4().hex[:16])
        with translated():
            self._writer = LanceFileWriter(
                f"{self._location.uri}/{self._location.data_folder}/{self._name}",
                self._stored,
                version=self._version,
                storage_options=dict(self._location.options) or None,
            )

    def _finish(self) -> None:
        with translated():
            self._writer.close()
        major, minor = (int(part) for part in self._version.split("."))
        file = DataFile(
            self._name,
            self._ids,
            list(range(len(self._ids))),
            major,
            minor,
            self._writer.size_bytes or 0,
        )
        made = FragmentMetadata(id=0, files=[file], physical_rows=self._rows)
        if self._row_ids:
            ids = np.concatenate(self._row_ids).astype(np.uint64)
            made.row_id_meta = RowIdSequence(pa.array(ids)).to_inline_metadata()
        self._fragments.append(json.dumps(made.to_json()))
        self._writer, self._rows, self._row_ids = None, 0, []
