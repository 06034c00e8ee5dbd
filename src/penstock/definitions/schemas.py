"""Schemas on the wire: base64 of an Arrow IPC schema message, or of a stream with no rows."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pyarrow as pa


def read_schema(text: str, what: str = "output_schema") -> "pa.Schema":
    """The schema that a client sent; raises InvalidRequest when it is none."""
    raise NotImplementedError


def write_schema(schema: "pa.Schema") -> str:
    """A schema as `Definition.schema` has it."""
    raise NotImplementedError
