"""The table of a materialized view as it begins: no rows, and metadata that tells what it is."""

import base64
from typing import TYPE_CHECKING

from penstock.lance.write.uploads import Written
from penstock.model.views import Definition

if TYPE_CHECKING:
    import pyarrow as pa

KIND_KEY = "penstock.view"
# Another client reads these; by the format it knows views that follow their source by row ids, and
# those that a function makes.
FORMAT_KEY, QUERY_KEY = "geneva::view::version", "geneva::view::query"
FORMATS = {"query": "2", "udtf": "udtf", "chunker": "chunker"}
# Metadata is read whenever the table is opened, and queries with functions in them are long.
MAX_QUERY_CHARACTERS = 65_536


def plan_first(definition: Definition, source_query: str) -> Written:
    """The first version of a view: its schema, and no fragment."""
    metadata = {KIND_KEY: definition.kind, FORMAT_KEY: FORMATS[definition.kind]}
    if len(source_query) <= MAX_QUERY_CHARACTERS:
        metadata[QUERY_KEY] = source_query
    return Written(read_schema(definition).with_metadata(metadata), [])


def read_schema(definition: Definition) -> "pa.Schema":
    import pyarrow as pa

    return pa.ipc.read_schema(pa.BufferReader(base64.b64decode(definition.schema)))
