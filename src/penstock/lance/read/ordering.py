"""The order of a query's rows: by columns, instead of by place or by rank."""

from collections.abc import Iterator, Sequence

import lance
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
            detail="ask for fewer rows: k plus offset",
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


def drop_row_ids(reader: pa.RecordBatchReader) -> pa.RecordBatchReader:
    """The same rows without the ids that only sorting needed."""
    schema = reader.schema.remove(reader.schema.get_field_index("_rowid"))

    def batches() -> Iterator[pa.RecordBatch]:
        for batch in reader:
            yield batch.drop_columns(["_rowid"])

    return pa.RecordBatchReader.from_batches(schema, batches())
