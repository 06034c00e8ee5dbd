"""Iceberg tables in a folder, written by pyiceberg without any catalog."""

import uuid
from typing import Any

import pyarrow as pa
from pyiceberg.catalog.noop import NoopCatalog
from pyiceberg.io import load_file_io
from pyiceberg.partitioning import UNPARTITIONED_PARTITION_SPEC
from pyiceberg.schema import Schema
from pyiceberg.serializers import ToOutputFile
from pyiceberg.table import CommitTableResponse, Table
from pyiceberg.table.metadata import TableMetadata, new_table_metadata
from pyiceberg.table.sorting import UNSORTED_SORT_ORDER
from pyiceberg.table.update import update_table_metadata
from pyiceberg.types import LongType, NestedField, StringType

ROWS = pa.table({"id": pa.array([1, 2, 3], pa.int64()), "name": ["a", "b", "c"]})
SCHEMA = Schema(NestedField(1, "id", LongType()), NestedField(2, "name", StringType()))


class FolderCatalog(NoopCatalog):
    """Knows one table, whose commits are files."""

    def commit_table(self, table: Table, requirements: Any, updates: Any) -> CommitTableResponse:
        metadata = update_table_metadata(table.metadata, updates)
        place = write_metadata(metadata, table.io.properties)
        return CommitTableResponse.model_validate(
            {"metadata": metadata, "metadata-location": place}
        )


def write_metadata(metadata: TableMetadata, options: Any) -> str:
    place = f"{metadata.location}/metadata/{uuid.uuid4()}.metadata.json"
    io = load_file_io(options, metadata.location)
    ToOutputFile.table_metadata(metadata, io.new_output(place))
    return place


def make_table(location: str, **options: str) -> Table:
    """An empty table; `options` are those of pyiceberg for the store, with underscores."""
    spelled = {key.replace("_", ".", 1).replace("_", "-"): each for key, each in options.items()}
    metadata = new_table_metadata(
        SCHEMA, UNPARTITIONED_PARTITION_SPEC, UNSORTED_SORT_ORDER, location
    )
    place = write_metadata(metadata, spelled)
    io = load_file_io(spelled, location)
    return Table(("n", "ice"), metadata, place, io, FolderCatalog("loose"))
