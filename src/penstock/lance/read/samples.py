"""Sample rows of a table, and values shown to people. Everything here blocks."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
from lance import LanceDataset

from penstock.lance.errors import translated
from penstock.lance.read.outside_blobs import check_blobs
from penstock.lance.read.scans import quote_path

MAX_NUMBERS, MAX_ITEMS, MAX_TEXT = 16, 100, 1024
MAX_INPUT = 200


@dataclass(frozen=True, slots=True)
class SampledRow:
    """A sampled row, by its id and its place."""

    row_id: int
    fragment: int
    offset: int


def take_sample(
    dataset: LanceDataset, paths: Sequence[str], where: str | None, rows: int
) -> tuple[list[SampledRow], pa.RecordBatch]:
    """The first rows that match, in the table's order, with the given fields."""
    return sample_expressions(dataset, [(path, quote_path(path)) for path in paths], where, rows)


def sample_expressions(
    dataset: LanceDataset, outputs: Sequence[tuple[str, str]], where: str | None, rows: int
) -> tuple[list[SampledRow], pa.RecordBatch]:
    """The first rows that match, with named expressions; a name may be there twice."""
    # By number: the same field may be wanted twice, and Lance need not know the names.
    columns = {str(number): text for number, (_, text) in enumerate(outputs)}
    chosen: dict[str, Any] = {"filter": where, "limit": rows, "scan_in_order": True}
    with translated():
        check_blobs(dataset, columns.values(), **chosen)
        found = dataset.scanner(
            columns=columns,
            with_row_id=True,
            with_row_address=True,
            blob_handling="all_binary",
            **chosen,
        ).to_table()
    ids, addresses = found["_rowid"].to_pylist(), found["_rowaddr"].to_pylist()
    sampled = [
        SampledRow(id, address >> 32, address & 0xFFFF_FFFF)
        for id, address in zip(ids, addresses, strict=True)
    ]
    (batch,) = found.combine_chunks().to_batches() or [pa.RecordBatch.from_pylist([], found.schema)]
    # Selected rather than rebuilt: without a field it still has its row count.
    return sampled, batch.select(list(columns)).rename_columns([name for name, _ in outputs])


def evaluate(dataset: LanceDataset, expression: str, row_ids: Sequence[int]) -> list[Any]:
    """An expression for some rows."""
    out: Any = dataset
    with translated():
        return list(out._take_rows(list(row_ids), columns={"v": expression})["v"].to_pylist())


def show_inputs(names: Sequence[str], values: Sequence[Any]) -> str:
    """The inputs of one row in a line."""
    return ", ".join(
        f"{name}={_cut(repr(show_value(value)), MAX_INPUT)}"
        for name, value in zip(names, values, strict=True)
    )


def show_value(value: Any) -> Any:
    """A value as JSON: shortens long texts and vectors, only counts bytes."""
    match value:
        case None | bool() | int():
            return value
        case float():
            return value if math.isfinite(value) else str(value)
        case str():
            return _cut(value, MAX_TEXT)
        case bytes() | bytearray() | memoryview():
            return {"bytes": len(value)}
        case Mapping():
            return {str(key): show_value(part) for key, part in value.items()}
        case list() | tuple():
            return _show_list(value)
        case _:
            # Times, decimals and the like, in Python's notation.
            return _cut(str(value), MAX_TEXT)


def _show_list(values: Sequence[Any]) -> Any:
    is_vector = bool(values) and isinstance(values[0], int | float)
    most = MAX_NUMBERS if is_vector else MAX_ITEMS
    shown = [show_value(value) for value in values[:most]]
    return shown if len(values) <= most else {"first": shown, "length": len(values)}


def _cut(text: str, most: int) -> str:
    return text if len(text) <= most else f"{text[:most]}… ({len(text)} characters)"
