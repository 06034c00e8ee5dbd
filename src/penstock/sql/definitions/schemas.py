"""Schemas on the wire: base64 of an Arrow IPC schema message, or of a stream with no rows."""

import pyarrow as pa

from penstock.errors import InvalidRequest
from penstock.model.envelopes import from_base64


def read_schema(text: str, what: str = "output_schema") -> pa.Schema:
    """The schema that a client sent; raises InvalidRequest when it is none."""
    content = from_base64(what, text)
    try:
        schema = pa.ipc.read_schema(pa.py_buffer(content))
        names = [field.name for field in schema]
    except (pa.ArrowException, OSError, ValueError, TypeError, UnicodeError) as error:
        raise InvalidRequest(
            f"{what} is not an Arrow schema: {str(error)[:200]}",
            detail="send the base64 of schema.serialize()",
        ) from error
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise InvalidRequest(f"{what} has column {twice!r} twice", detail="name each column once")
    return schema
