"""pyiceberg as it is, on tables of a running server: everything that it does with a table."""

from collections.abc import Iterator

import pyarrow as pa
import pytest
from pyiceberg.catalog.rest import RestCatalog
from pyiceberg.exceptions import (
    CommitFailedException,
    NamespaceNotEmptyError,
    NoSuchTableError,
    TableAlreadyExistsError,
)
from pyiceberg.partitioning import PartitionField, PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.table.sorting import SortField, SortOrder
from pyiceberg.transforms import BucketTransform, DayTransform, IdentityTransform
from pyiceberg.types import LongType, NestedField, StringType, TimestampType

from tests.harness.processes.servers import Server

ROWS = pa.table({"id": pa.array([1, 2, 3], pa.int64()), "name": ["a", "b", "c"]})


@pytest.fixture(scope="module")
def rest(server: Server) -> Iterator[RestCatalog]:
    opened = RestCatalog("penstock", uri=f"{server.url}/iceberg")
    yield opened
    opened.close()


def ids(table: object, **options: object) -> list[int]:
    found = table.scan(**options).to_arrow()  # type: ignore[attr-defined]
    return sorted(found["id"].to_pylist())


def test_rows_are_appended_overwritten_deleted_and_read(rest: RestCatalog, namespace: str) -> None:
    table = rest.create_table(f"{namespace}.t", ROWS.schema)
    table.append(ROWS)
    first = table.current_snapshot()
    assert first is not None
    table.append(ROWS.slice(0, 1))
    assert ids(table) == [1, 1, 2, 3]
    table.overwrite(ROWS.slice(2), "id = 1")
    assert ids(table) == [2, 3, 3]
    table.delete("id = 3")
    assert ids(rest.load_table(f"{namespace}.t")) == [2]
    assert ids(table, snapshot_id=first.snapshot_id) == [1, 2, 3]
    result = table.upsert(ROWS, ["id"])
    assert (result.rows_updated, result.rows_inserted) == (0, 2)


def test_schemas_specs_orders_and_properties_evolve(rest: RestCatalog, namespace: str) -> None:
    schema = Schema(
        NestedField(1, "id", LongType(), required=True),
        NestedField(2, "at", TimestampType()),
        identifier_field_ids=[1],
    )
    spec = PartitionSpec(PartitionField(2, 1000, DayTransform(), "day"))
    order = SortOrder(SortField(1, IdentityTransform()))
    table = rest.create_table(
        f"{namespace}.t", schema, partition_spec=spec, sort_order=order, properties={"a": "1"}
    )
    assert (table.spec(), table.sort_order(), table.properties["a"]) == (spec, order, "1")
    with table.update_schema() as update:
        update.add_column("name", StringType(), "what it is called")
        update.rename_column("at", "happened")
    with table.update_spec() as update:
        update.add_field("id", BucketTransform(4), "part")
        update.remove_field("day")
    with table.transaction() as transaction:
        transaction.set_properties(b="2")
        transaction.remove_properties("a")
    with table.update_schema() as update:
        update.delete_column("name")
    found = rest.load_table(f"{namespace}.t")
    assert found.schema().column_names == ["id", "happened"]
    assert [field.name for field in found.spec().fields] == ["part"]
    assert len(found.specs()) == 2
    assert found.properties == {"b": "2"}
    assert found.metadata == table.metadata


def test_a_table_of_version_1_becomes_one_of_version_2(rest: RestCatalog, namespace: str) -> None:
    table = rest.create_table(f"{namespace}.t", ROWS.schema, properties={"format-version": "1"})
    table.append(ROWS)
    with table.transaction() as transaction:
        transaction.upgrade_table_version(2)
    table.append(ROWS)
    found = rest.load_table(f"{namespace}.t")
    assert (found.format_version, len(ids(found))) == (2, 6)


def test_branches_and_tags_keep_snapshots(rest: RestCatalog, namespace: str) -> None:
    table = rest.create_table(f"{namespace}.t", ROWS.schema)
    table.append(ROWS)
    snapshot = table.current_snapshot()
    assert snapshot is not None
    table.manage_snapshots().create_tag(snapshot.snapshot_id, "first").create_branch(
        snapshot.snapshot_id, "dev"
    ).commit()
    table.append(ROWS.slice(0, 1), branch="dev")
    assert len(ids(table)) == 3
    found = rest.load_table(f"{namespace}.t")
    assert {*found.refs()} == {"main", "first", "dev"}
    assert len(found.scan().use_ref("dev").to_arrow()) == 4
    found.manage_snapshots().remove_branch("dev").remove_tag("first").commit()
    assert {*rest.load_table(f"{namespace}.t").refs()} == {"main"}


def test_snapshots_expire(rest: RestCatalog, namespace: str) -> None:
    table = rest.create_table(f"{namespace}.t", ROWS.schema)
    for _ in range(3):
        table.append(ROWS)
    oldest = table.snapshots()[0]
    table.maintenance.expire_snapshots().by_id(oldest.snapshot_id).commit()
    left = rest.load_table(f"{namespace}.t").snapshots()
    assert len(left) == 2
    assert oldest not in left


def test_a_table_is_made_by_a_transaction_with_its_rows(rest: RestCatalog, namespace: str) -> None:
    with rest.create_table_transaction(f"{namespace}.t", ROWS.schema) as transaction:
        transaction.set_properties(a="b")
        transaction.append(ROWS)
        assert not rest.table_exists(f"{namespace}.t")
    table = rest.load_table(f"{namespace}.t")
    assert (ids(table), table.properties["a"]) == ([1, 2, 3], "b")
    late = rest.create_table_transaction(f"{namespace}.u", ROWS.schema)
    rest.create_table(f"{namespace}.u", ROWS.schema)
    with pytest.raises((CommitFailedException, TableAlreadyExistsError)):
        late.commit_transaction()


def test_an_append_to_what_has_changed_is_a_conflict(rest: RestCatalog, namespace: str) -> None:
    once = {"commit.retry.num-retries": "0"}
    table = rest.create_table(f"{namespace}.t", ROWS.schema, properties=once)
    stale = rest.load_table(f"{namespace}.t")
    table.append(ROWS)
    with pytest.raises(CommitFailedException, match="Requirement failed"):
        stale.append(ROWS)
    assert len(ids(rest.load_table(f"{namespace}.t"))) == 3


def test_tables_are_listed_renamed_registered_and_dropped(
    rest: RestCatalog, server: Server, namespace: str
) -> None:
    table = rest.create_table(f"{namespace}.t", ROWS.schema)
    table.append(ROWS)
    assert rest.list_tables(namespace) == [(namespace, "t")]
    with pytest.raises(TableAlreadyExistsError):
        rest.create_table(f"{namespace}.t", ROWS.schema)
    assert rest.create_table_if_not_exists(f"{namespace}.t", ROWS.schema).metadata == table.metadata
    with pytest.raises(NamespaceNotEmptyError):
        rest.drop_namespace(namespace)
    renamed = rest.rename_table(f"{namespace}.t", f"{namespace}.u")
    assert ids(renamed) == [1, 2, 3]
    with pytest.raises(NoSuchTableError):
        rest.load_table(f"{namespace}.t")
    rest.drop_table(f"{namespace}.u")
    assert not rest.table_exists(f"{namespace}.u")
    found = rest.register_table(f"{namespace}.v", renamed.metadata_location)
    assert ids(found) == [1, 2, 3]
    rest.purge_table(f"{namespace}.v")
    with pytest.raises(NoSuchTableError):
        rest.drop_table(f"{namespace}.v")
    rest.drop_namespace(namespace)


def test_a_place_of_its_own_is_honoured_in_the_lake_only(
    rest: RestCatalog, server: Server, namespace: str
) -> None:
    place = f"file://{server.lake.resolve()}/chosen-{namespace}"
    table = rest.create_table(f"{namespace}.t", ROWS.schema, location=place)
    table.append(ROWS)
    assert table.location() == place
    assert ids(rest.load_table(f"{namespace}.t")) == [1, 2, 3]
    with pytest.raises(Exception, match="outside the roots"):
        rest.create_table(f"{namespace}.u", ROWS.schema, location="file:///tmp/elsewhere")
