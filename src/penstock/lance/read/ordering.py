"""The order of a query's rows: by columns, or at random, instead of by place or by rank."""

from collections.abc import Iterator, Sequence
from typing import Any

import lance
import numpy as np
import pyarrow as pa
from lance.dataset import ColumnOrdering

from penstock.errors import InvalidRequest
from penstock.lance.columns.fields import get_field

# A column's path, whether ascending, and whether nulls come first.
Order = tuple[str, bool, bool]

# A sort holds its rows in memory.
MAX_SORTED = 100_000


def to_lance_order(
    dataset: lance.LanceDataset, wanted: Sequence[Order], most: int
) -> list[ColumnOrdering]:
    """The order in Lance's form, if the first `most` rows in it can be found in bounded memory."""
    if most > MAX_SORTED < dataset.count_rows():
        raise InvalidRequest(
            f"order_by sorts at most {MAX_SORTED} rows, and this query asks for more",
            detail="ask for fewer rows with a limit (k), to which the offset counts",
        )
    return [
        ColumnOrdering(_find_path(dataset, column), ascending, nulls_first)
        for column, ascending, nulls_first in wanted
    ]


def _find_path(dataset: lance.LanceDataset, column: str) -> str:
    field = get_field(dataset, column)
    if field.path != field.short_path:
        raise InvalidRequest(
            f"order_by names {column}, of which a row has several",
            detail="sort by a column, or by a field of a struct",
        )
    return field.path


def sample_ids(dataset: lance.LanceDataset, filter: str | None, rows: int, seed: int) -> list[int]:
    """The ids of so many rows at random, in random order: those whose hashes are the lowest."""
    ids = np.empty(0, np.uint64)
    for batch in dataset.scanner(columns=[], filter=filter, with_row_id=True).to_batches():
        ids = np.concatenate([ids, batch.column("_rowid").to_numpy()])
        if len(ids) > rows:
            ids = ids[np.argpartition(_hash(ids, seed), rows - 1)[:rows]] if rows else ids[:0]
    found: list[int] = ids[np.argsort(_hash(ids, seed))].tolist()
    return found


def _hash(ids: Any, seed: int) -> Any:
    """Numbers of 64 bits that look random, as SplitMix64 makes them."""
    with np.errstate(over="ignore"):
        mixed = ids + np.uint64(seed) * np.uint64(0x9E3779B97F4A7C15)
        mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        return mixed ^ (mixed >> np.uint64(31))


def drop_row_ids(reader: pa.RecordBatchReader) -> pa.RecordBatchReader:
    """The same rows without the ids that only sorting needed."""
    schema = reader.schema.remove(reader.schema.get_field_index("_rowid"))

    def batches() -> Iterator[pa.RecordBatch]:
        for batch in reader:
            yield batch.drop_columns(["_rowid"])

    return pa.RecordBatchReader.from_batches(schema, batches())
