"""`udtf_spec`: the function of a udtf or chunker view, read without looking into its pickle."""

from msgspec import Struct

from penstock.model.functions import Needs, OnError, RowsKind
from penstock.model.views import Kind


class Udtf(Struct, frozen=True, kw_only=True):
    """A function that makes a view's rows, as its client describes it."""

    kind: RowsKind
    name: str
    version: str
    # The JSON that is kept with the view, under its hash.
    content: bytes
    sha256: str
    # None is all columns of the query.
    input_columns: tuple[str, ...] | None = None
    partition_by: str | None = None
    partition_by_indexed_column: str | None = None
    # Base64 of the Arrow schema of what the function makes.
    output_schema: str | None = None
    on_error: OnError = OnError()
    needs: Needs = Needs()
    python: str | None = None
    manifest: str | None = None


def read_udtf(kind: str, spec: object) -> Udtf | None:
    """Read `udtf_spec` (decoded JSON, or None) of a view of this kind; None for kind `query`."""
    raise NotImplementedError


def read_kind(kind: str) -> Kind:
    """`query`, `udtf` or `chunker`, which is also called `scalar_udtf`."""
    raise NotImplementedError
