"""One value of one row, whole: bytes, text, or anything else as JSON. Everything blocks."""

import base64
from dataclasses import dataclass
from typing import Any

import lance
import msgspec
import pyarrow as pa

from penstock.errors import InvalidRequest
from penstock.lance.columns.fields import get_field
from penstock.lance.read import blobs
from penstock.lance.read.cells import is_blob, show_cell
from penstock.lance.read.scans import quote_path

MAX_BYTES = 64 * 1024 * 1024
BYTES, TEXT, JSON = "bytes", "text", "json"


@dataclass(frozen=True, slots=True)
class WholeValue:
    """What a row has in a column; None for a null."""

    kind: str
    content: bytes | None


def read_value(dataset: "lance.LanceDataset", column: str, row_id: int) -> WholeValue:
    """The value of a column in the row with this id."""
    path = get_field(dataset, column).path
    columns = {"value": quote_path(path), "_rowid": "_rowid"}
    found = dataset._take_rows(pa.array([row_id], pa.uint64()), columns=columns)
    if found["_rowid"].to_pylist() != [row_id]:
        raise InvalidRequest(
            f"version {dataset.version} has no row with the id {row_id}",
            detail="take row ids from a query with_row_id of the same version",
        )
    if is_blob(found.schema.field("value")):
        _, file = blobs.open_blob(dataset, column, row_id)
        if file is None:
            return WholeValue(BYTES, None)
        _check_size(column, file.size())
        return WholeValue(BYTES, file.read())
    value: Any = found["value"][0]
    return _to_whole(column, value.value if isinstance(value, pa.ExtensionScalar) else value)


def _to_whole(column: str, value: Any) -> WholeValue:
    if not value.is_valid:
        return WholeValue(JSON, None)
    if isinstance(value, pa.StringScalar | pa.LargeStringScalar | pa.StringViewScalar):
        return WholeValue(TEXT, _read_buffer(column, value))
    if isinstance(value, pa.BinaryScalar | pa.LargeBinaryScalar | pa.BinaryViewScalar):
        return WholeValue(BYTES, _read_buffer(column, value))
    try:
        encoded = msgspec.json.encode(value.as_py(), enc_hook=_to_plain)
    except (ValueError, OverflowError):
        # Python has no such moment.
        encoded = msgspec.json.encode(show_cell(value))
    _check_size(column, len(encoded))
    return WholeValue(JSON, encoded)


def _read_buffer(column: str, value: Any) -> bytes:
    buffer = value.as_buffer()
    _check_size(column, buffer.size)
    content: bytes = buffer.to_pybytes()
    return content


def _check_size(column: str, size: int) -> None:
    if size > MAX_BYTES:
        raise InvalidRequest(
            f"the value of {column} has {size} bytes, and at most {MAX_BYTES} are sent",
            detail="read it with a client of Lance, or a blob in ranges",
        )


def _to_plain(value: Any) -> Any:
    return base64.b64encode(value).decode() if isinstance(value, bytes) else str(value)
