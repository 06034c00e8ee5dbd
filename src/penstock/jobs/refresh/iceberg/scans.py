"""How Spark reads the Iceberg tables of a view."""

from collections.abc import Mapping

import pyarrow as pa

from penstock.jobs.refresh.iceberg.versions import IcebergVersions
from penstock.jobs.spark.iceberg_source import IcebergScan
from penstock.lance.columns.fields import parse_path
from penstock.lance.columns.schemas import encode_schema


def make_iceberg_scan(
    table: IcebergVersions,
    options: Mapping[str, str],
    snapshots: tuple[int, ...] | None = None,
) -> IcebergScan:
    """How Spark reads the columns that a query needs, perhaps only of appended rows."""
    names = list(dict.fromkeys(parse_path(path)[0] for path in table.source.reads))
    # Spark has no tables without columns.
    schema = pa.schema([table.schema.field(name) for name in names or table.schema.names[:1]])
    state = table.state
    encoded = encode_schema(schema)
    return IcebergScan(state.file, state.folders, dict(options), encoded, snapshots)
