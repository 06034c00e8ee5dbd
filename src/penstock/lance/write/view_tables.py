"""The table of a new materialized view: no rows, and metadata that describes the view."""

import base64

from penstock.lance.doors import pa
from penstock.lance.write.uploads import WrittenFragments
from penstock.model.views import Definition

KIND_KEY = "penstock.view"
# Another client reads these; by the format it recognises views that follow their source by row ids,
# and those that a function makes.
FORMAT_KEY, QUERY_KEY = "geneva::view::version", "geneva::view::query"
# What all of these keys begin with.
VIEW_KEYS = ("penstock.", "geneva::view::")
FORMATS = {"query": "2", "udtf": "udtf", "chunker": "chunker"}
# Metadata is read whenever the table is opened, and queries with functions are long.
MAX_QUERY_CHARACTERS = 65_536


def plan_first(definition: Definition, source_query: str) -> WrittenFragments:
    """The first version of a view: its schema, and no fragment."""
    told = describe_view(definition.kind, source_query)
    metadata = {key: value for key, value in told.items() if value is not None}
    return WrittenFragments(read_schema(definition).with_metadata(metadata), [])


def describe_view(kind: str, source_query: str) -> dict[str, str | None]:
    """The metadata of a view's table; None for what is left out."""
    query = source_query if len(source_query) <= MAX_QUERY_CHARACTERS else None
    return {KIND_KEY: kind, FORMAT_KEY: FORMATS[kind], QUERY_KEY: query}


def read_schema(definition: Definition) -> "pa.Schema":
    return pa.ipc.read_schema(pa.BufferReader(base64.b64decode(definition.schema)))
