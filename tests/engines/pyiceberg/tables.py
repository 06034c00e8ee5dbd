"""pyiceberg makes Iceberg tables, changes their rows and looks, and keeps them in order."""

import datetime
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet
from pyiceberg.catalog.rest import RestCatalog
from pyiceberg.partitioning import PartitionField, PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.table import Table
from pyiceberg.table.sorting import SortDirection
from pyiceberg.transforms import IdentityTransform
from pyiceberg.types import IntegerType, LongType, NestedField, StringType

from tests.engines.checks import Check, expect
from tests.engines.pyiceberg.catalog import FIELDS, people, seen

ONE, TWO, THREE = (1, "one"), (2, "two"), (3, "three")


def list_operations(catalog: RestCatalog, outside: Path) -> list[Check]:
    """All of them; files that a table is given lie in that folder."""
    made = Tables(catalog, outside)
    return [
        Check("namespaces", made.namespaces),
        Check("create a table", made.create),
        Check("insert", made.append),
        Check("create a table by a query", made.create_with_rows),
        Check("overwrite", made.overwrite),
        Check("delete (copy-on-write)", made.delete),
        Check("merge (copy-on-write)", made.upsert),
        Check("columns", made.columns),
        Check("partitions", made.partitions),
        Check("sort order", made.sort_order),
        Check("properties", made.properties),
        Check("format version 1", made.format_1),
        Check(
            "format version 3",
            made.format_3,
            limit="Cannot write manifest for table version: 3",
            reason="pyiceberg makes and loads tables of version 3, and writes no rows to them",
        ),
        Check("branches", made.branches),
        Check("tags", made.tags),
        Check("time travel by snapshot", made.time_travel),
        Check("metadata tables", made.inspect),
        Check("roll back", made.roll_back),
        Check("several changes in one commit", made.transaction),
        Check("take files in", made.add_files),
        Check("expire snapshots", made.expire),
        Check("a location of its own", made.location),
        Check("drop a table", made.drop),
        Check("register a table", made.register),
        Check("rename a table", made.rename),
        Check("drop a table and its files", made.purge),
    ]


class Tables:
    """The operations, which share a namespace and its tables."""

    def __init__(self, catalog: RestCatalog, outside: Path) -> None:
        self.catalog, self.outside = catalog, outside
        self.dropped = ""

    def load(self, name: str) -> Table:
        table: Table = self.catalog.load_table(f"shop.{name}")
        return table

    def make(self, name: str, *pairs: tuple[int, str], **options: str) -> Table:
        table: Table = self.catalog.create_table(f"shop.{name}", FIELDS, properties=options)
        if pairs:
            table.append(people(*pairs))
        return table

    def namespaces(self) -> None:
        self.catalog.create_namespace("shop", {"owner": "ann"})
        self.catalog.create_namespace("shop.inner")
        self.catalog.update_namespace_properties("shop", {"owner"}, {"more": "1"})
        expect(self.catalog.list_namespaces("shop"), [("shop", "inner")])

    def create(self) -> None:
        table = self.make("items")
        expect(seen(table), [])
        expect(self.catalog.list_tables("shop"), [("shop", "items")])

    def append(self) -> None:
        self.load("items").append(people(ONE, TWO))
        self.load("items").append(people(THREE))
        expect(seen(self.load("items")), [[*ONE], [*TWO], [*THREE]])

    def create_with_rows(self) -> None:
        with self.catalog.create_table_transaction("shop.copies", FIELDS) as transaction:
            transaction.append(people(ONE, TWO))
        expect(seen(self.load("copies")), [[*ONE], [*TWO]])

    def overwrite(self) -> None:
        table = self.load("copies")
        table.overwrite(people((1, "x")), overwrite_filter="id = 1")
        expect(seen(self.load("copies")), [[1, "x"], [*TWO]])
        table.overwrite(people(THREE))
        expect(seen(self.load("copies")), [[*THREE]])

    def delete(self) -> None:
        table = self.make("fewer", ONE, TWO, THREE)
        table.delete("id = 2")
        expect(seen(self.load("fewer")), [[*ONE], [*THREE]])

    def upsert(self) -> None:
        table = self.load("fewer")
        done = table.upsert(people((1, "ONE"), TWO), join_cols=["id"])
        expect((done.rows_updated, done.rows_inserted), (1, 1))
        expect(seen(self.load("fewer")), [[1, "ONE"], [*TWO], [*THREE]])

    def columns(self) -> None:
        table = self.catalog.create_table(
            "shop.grown",
            pa.schema([("id", pa.int32()), ("name", pa.string()), ("gone", pa.int8())]),
        )
        table.append(
            pa.table(
                {
                    "id": pa.array([1], pa.int32()),
                    "name": ["one"],
                    "gone": pa.array([1], pa.int32()),
                }
            )
        )
        with table.update_schema() as change:
            change.add_column("more", StringType(), doc="later")
            change.add_column("number", IntegerType())
            change.rename_column("name", "title")
            change.update_column("id", LongType())
            change.delete_column("gone")
            change.move_first("more")
        expect(self.load("grown").schema().column_names, ["more", "id", "title", "number"])
        expect(seen(self.load("grown"), "id", "title", "more"), [[None, 1, "one"]])

    def partitions(self) -> None:
        spec = PartitionSpec(PartitionField(2, 1000, IdentityTransform(), "name"))
        schema = Schema(NestedField(1, "id", LongType()), NestedField(2, "name", StringType()))
        table = self.catalog.create_table("shop.split", schema, partition_spec=spec)
        table.append(people(ONE, TWO))
        table.dynamic_partition_overwrite(people((9, "two")))
        with table.update_spec() as change:
            change.remove_field("name")
            change.add_field("id", IdentityTransform(), "number")
        table.append(people(THREE))
        expect(seen(self.load("split")), [[*ONE], [*THREE], [9, "two"]])
        expect(len(self.load("split").specs()), 2)

    def sort_order(self) -> None:
        with self.load("split").update_sort_order() as change:
            change.desc("name", IdentityTransform())
        [field] = self.load("split").sort_order().fields
        expect(field.direction, SortDirection.DESC)

    def properties(self) -> None:
        with self.load("split").transaction() as transaction:
            transaction.set_properties(a="1", b="2")
        with self.load("split").transaction() as transaction:
            transaction.remove_properties("a")
        expect(self.load("split").properties.get("b"), "2")

    def format_1(self) -> None:
        table = self.make("old", ONE, **{"format-version": "1"})
        with table.transaction() as transaction:
            transaction.upgrade_table_version(2)
        self.load("old").append(people(TWO))
        expect((self.load("old").format_version, len(seen(self.load("old")))), (2, 2))

    def format_3(self) -> None:
        table = self.make("young", **{"format-version": "3"})
        expect((table.format_version, self.load("young").format_version), (3, 3))
        table.append(people(ONE))

    def branches(self) -> None:
        table = self.load("items")
        snapshot = table.current_snapshot()
        assert snapshot is not None
        table.manage_snapshots().create_branch(snapshot.snapshot_id, "trial").commit()
        table.append(people((4, "four")), branch="trial")
        table = self.load("items")
        on_branch = table.scan().use_ref("trial").to_arrow().num_rows
        expect((on_branch, len(seen(table))), (4, 3))

    def tags(self) -> None:
        table = self.load("items")
        snapshot = table.current_snapshot()
        assert snapshot is not None
        table.manage_snapshots().create_tag(snapshot.snapshot_id, "whole").commit()
        table.manage_snapshots().remove_branch("trial").commit()
        table.append(people((4, "four")))
        expect(self.load("items").scan().use_ref("whole").to_arrow().num_rows, 3)

    def time_travel(self) -> None:
        table = self.load("items")
        first = table.history()[0].snapshot_id
        expect(seen(table, snapshot_id=first), [[*ONE], [*TWO]])

    def inspect(self) -> None:
        expect(self.load("items").inspect.snapshots()["operation"].to_pylist()[0], "append")
        expect(sorted(self.load("items").inspect.refs()["name"].to_pylist()), ["main", "whole"])

    def roll_back(self) -> None:
        table = self.load("items")
        table.manage_snapshots().rollback_to_snapshot(table.history()[0].snapshot_id).commit()
        expect(seen(self.load("items")), [[*ONE], [*TWO]])

    def transaction(self) -> None:
        with self.load("items").transaction() as transaction:
            with transaction.update_schema() as change:
                change.add_column("more", StringType())
            transaction.append(people(THREE).append_column("more", pa.array(["m"])))
            transaction.set_properties(both="yes")
        expect(seen(self.load("items"), "id", "more")[-1], [3, "m"])

    def add_files(self) -> None:
        path = self.outside / "given.parquet"
        pyarrow.parquet.write_table(people(ONE, TWO), path)
        self.make("given").add_files([f"file://{path}"])
        expect(seen(self.load("given")), [[*ONE], [*TWO]])

    def expire(self) -> None:
        table = self.make("kept", ONE)
        table.append(people(TWO))
        later = datetime.datetime.now() + datetime.timedelta(days=1)
        table.maintenance.expire_snapshots().older_than(later).commit()
        expect((len(self.load("kept").snapshots()), len(seen(self.load("kept")))), (1, 2))

    def location(self) -> None:
        where = f"file://{self.outside}/placed"
        table = self.catalog.create_table("shop.placed", FIELDS, location=where)
        table.append(people(ONE))
        expect(self.load("placed").location(), where)

    def drop(self) -> None:
        self.dropped = self.load("kept").metadata_location
        self.catalog.drop_table("shop.kept")
        expect(self.catalog.table_exists("shop.kept"), False)

    def register(self) -> None:
        self.catalog.register_table("shop.known", self.dropped)
        expect(len(seen(self.load("known"))), 2)

    def rename(self) -> None:
        self.catalog.rename_table("shop.known", "shop.inner.held")
        expect(len(seen(self.catalog.load_table("shop.inner.held"))), 2)

    def purge(self) -> None:
        self.catalog.purge_table("shop.inner.held")
        expect(self.catalog.list_tables("shop.inner"), [])
        self.catalog.drop_namespace("shop.inner")
