"""Iceberg tables through the SDK: listed and told as what they are, and left to engines."""

import pytest

import penstock
from penstock.errors import InvalidRequest, TableNotFound
from tests.harness.clients import iceberg_tables as tables
from tests.harness.processes.servers import Server


def test_tables_of_both_kinds_are_listed_each_with_its_kind(
    lake: penstock.Lake, server: Server, space: str, table: penstock.Table
) -> None:
    made = tables.make(server, space, "i")
    assert lake.tables(space, kind="iceberg") == [f"{space}.i"]
    assert lake.tables(space) == [table.name]
    assert f"{space}.i" in lake.tables(kind="iceberg")
    with pytest.raises(InvalidRequest, match="kind is 'delta'"):
        lake.tables(space, kind="delta")  # type: ignore[arg-type]
    found = lake.iceberg_table(f"{space}.i")
    assert isinstance(found, penstock.IcebergTable)
    assert repr(found) == f"<IcebergTable {space}.i>"
    assert found.describe()["metadata_location"] == made["metadata-location"]
    assert made["metadata"]["location"] in found._repr_html_()
    with pytest.raises(TableNotFound, match="is an Iceberg table, not a Lance table"):
        lake.table(f"{space}.i")
    with pytest.raises(TableNotFound, match="does not exist"):
        lake.iceberg_table(table.name)
    assert f"{space}.i" in lake
    assert isinstance(lake.open(f"{space}.i"), penstock.IcebergTable)


def test_its_rows_are_pyicebergs(lake: penstock.Lake, space: str) -> None:
    import pyarrow as pa

    rows = pa.table({"id": [1, 2, 3]})
    catalog = lake.iceberg_catalog()
    catalog.create_table(f"{space}.i", rows.schema).append(rows)
    told = lake.iceberg_table(f"{space}.i").describe()
    assert (told["rows"], told["snapshots"], told["branches"]) == (3, 1, ["main"])
    assert not lake.iceberg_table(f"{space}.i").dependents()
