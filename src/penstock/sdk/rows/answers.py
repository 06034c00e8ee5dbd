"""Rows in answers, as Arrow."""

from typing import TYPE_CHECKING

from penstock.sdk.connection.wire import Wire
from penstock.sdk.rows.doors import pa

if TYPE_CHECKING:
    import pyarrow


def ask_rows(wire: Wire, path: str, body: object, timeout: float | None = None) -> "pyarrow.Table":
    """The rows that answer a request."""
    # First, because nothing is asked without it.
    ipc = pa.ipc
    return ipc.open_file(pa.BufferReader(wire.read_bytes(path, body, timeout))).read_all()
