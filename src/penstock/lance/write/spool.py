"""Spools: a long stream of rows as a temporary dataset, which can be read more than once."""

import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from penstock.lance.doors import lance, pa
from penstock.lance.session.handles import Datasets
from penstock.lance.storage import files
from penstock.lance.storage.lake import Place
from penstock.lance.write.uploads import FOLDER, RowStream, below

BLOB = "lance.blob.v2"


@dataclass(frozen=True, slots=True)
class Spool:
    """Rows of a schema in a dataset that has their blobs as plain structs.

    As blobs, a scan would give their descriptions, which no merge takes.
    """

    dataset: "lance.LanceDataset"
    schema: "pa.Schema"

    def read(self) -> "lance.LanceDataset | pa.RecordBatchReader":
        """All rows, as they came."""
        if not any(_is_blob(field) for field in self.schema):
            return self.dataset
        scanned = self.dataset.scanner().to_batches()
        batches = (_convert(batch, self.schema) for batch in scanned)
        return pa.RecordBatchReader.from_batches(self.schema, batches)


@contextmanager
def spooled(place: Place, datasets: Datasets, rows: RowStream) -> Iterator[Spool]:
    """Write a stream into a folder inside the table, which goes at the end."""
    aside = below(place, f"{FOLDER}/{uuid.uuid4().hex}")
    fields = [_to_plain_field(field) for field in rows.schema]
    plain = pa.schema(fields, rows.schema.metadata)
    batches = (_convert(batch, plain) for batch in rows.reader())
    try:
        with rows.telling():
            dataset = lance.write_dataset(
                pa.RecordBatchReader.from_batches(plain, batches),
                aside.location,
                schema=plain,
                **datasets.write_options(),
            )
        yield Spool(dataset, rows.schema)
    finally:
        files.remove_all(aside)
        files.remove_if_empty(place, FOLDER)


def _is_blob(typed: Any) -> bool:
    return getattr(typed.type, "extension_name", "") == BLOB


def _to_plain_field(field: Any) -> Any:
    if not _is_blob(field):
        return field
    return pa.field(field.name, field.type.storage_type, field.nullable)


def _convert(batch: Any, schema: "pa.Schema") -> "pa.RecordBatch":
    """The same rows, with blobs as such or as plain structs, as the schema has them."""
    columns = []
    for column, field in zip(batch.columns, schema, strict=True):
        if _is_blob(field) and not _is_blob(column):
            column = pa.ExtensionArray.from_storage(field.type, column)
        elif _is_blob(column) and not _is_blob(field):
            column = column.storage
        columns.append(column)
    return pa.RecordBatch.from_arrays(columns, schema=schema)
