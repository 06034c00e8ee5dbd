"""Schemas, partition specs and sort orders of a table, added, chosen and removed."""

import pytest

from penstock.errors import InvalidTable, NothingAdded
from penstock.iceberg.metadata import Json
from tests.iceberg.tables.tables import (
    add_order,
    add_schema,
    add_spec,
    committed,
    created,
    of_version,
    order,
    partition_field,
    sort_field,
    spec,
    update,
)
from tests.iceberg.views import column, schema

FIRST = [column(1, "a", "long"), column(2, "b")]
SECOND = [*FIRST, column(3, "c", "int")]
CURRENT = update("set-current-schema", schema_id=-1)
DEFAULT = update("set-default-spec", spec_id=-1)


def refused(document: Json | None, *updates: Json) -> str:
    with pytest.raises(InvalidTable) as error:
        committed(document, *updates)
    assert error.value.detail
    return error.value.message


def test_a_schema_is_added_and_becomes_current() -> None:
    table = committed(created(), add_schema(*SECOND, newer=1), CURRENT)
    assert table["current-schema-id"] == 1
    assert table["schemas"][1] == schema(*SECOND, newer=1) | {"schema-id": 1}
    assert table["last-column-id"] == 3


def test_the_same_schema_is_not_added_twice_and_still_counts_as_the_last_one() -> None:
    table = committed(created(), add_schema(*SECOND), CURRENT)
    again = committed(table, add_schema(*FIRST, schema_id=9), CURRENT)
    assert (len(again["schemas"]), again["current-schema-id"]) == (2, 0)


def test_an_id_that_a_client_sent_means_its_schema_though_another_one_took_it() -> None:
    table = committed(created(), add_schema(*SECOND), CURRENT)
    third = [*FIRST, column(4, "d", "int")]
    choose = update("set-current-schema", schema_id=1)
    table = committed(table, add_schema(*third, schema_id=1), choose)
    assert table["current-schema-id"] == 2
    assert table["schemas"][2]["fields"][2]["name"] == "d"


def test_a_last_column_id_never_goes_down() -> None:
    table = committed(created(), add_schema(*SECOND), CURRENT)
    table = committed(table, add_schema(FIRST[0]), CURRENT)
    assert table["last-column-id"] == 3
    nested = {"type": "list", "element-id": 50, "element": "int", "element-required": True}
    table = committed(table, update("add-schema", schema=schema(column(6, "l", nested))))
    assert table["last-column-id"] == 50


@pytest.mark.parametrize(
    ("choose", "told"),
    [("set-current-schema", "schema"), ("set-default-spec", "spec")],
)
def test_the_last_one_must_have_been_added_in_the_same_request(choose: str, told: str) -> None:
    with pytest.raises(NothingAdded, match=f"Cannot set last added {told}"):
        committed(created(), update(choose, schema_id=-1, spec_id=-1))


def test_unknown_ids_are_refused() -> None:
    table = created()
    told = refused(table, update("set-current-schema", schema_id=7))
    assert told == "Cannot set current schema to unknown schema: 7"
    assert "unknown spec: 7" in refused(table, update("set-default-spec", spec_id=7))
    assert "unknown sort order: 7" in refused(
        table, update("set-default-sort-order", sort_order_id=7)
    )


def test_schemas_and_specs_that_are_used_are_not_removed() -> None:
    table = created()
    assert "current schema" in refused(table, update("remove-schemas", schema_ids=[0]))
    assert "default partition" in refused(table, update("remove-partition-specs", spec_ids=[0]))
    table = committed(table, add_schema(*SECOND), CURRENT, add_spec(partition_field(3)), DEFAULT)
    table = committed(
        table,
        update("remove-schemas", schema_ids=[0, 5]),
        update("remove-partition-specs", spec_ids=[0, 5]),
    )
    assert [each["schema-id"] for each in table["schemas"]] == [1]
    assert [each["spec-id"] for each in table["partition-specs"]] == [1]


def test_what_was_removed_is_not_the_last_one_added() -> None:
    with pytest.raises(NothingAdded):
        committed(created(), add_schema(*SECOND), update("remove-schemas", schema_ids=[1]), CURRENT)


def test_a_schema_with_ids_that_no_column_can_have_is_refused() -> None:
    assert "the id 2147483500" in refused(created(), add_schema(column(2147483500, "a")))
    assert "the id -5" in refused(created(), add_schema(column(-5, "a")))


def test_newer_types_need_the_newer_version_which_one_request_may_bring() -> None:
    newer = add_schema(*FIRST, column(3, "v", "variant"))
    assert "Invalid schema for v2" in refused(created(), newer)
    table = committed(created(), update("upgrade-format-version", format_version=3), newer)
    assert len(table["schemas"]) == 2


def test_a_spec_is_added_with_ids_for_its_fields() -> None:
    table = created(partition_spec=spec(partition_field(1)))
    table = committed(
        table,
        add_spec(partition_field(2, name="q"), partition_field(1, name="renamed"), spec_id=4),
        DEFAULT,
    )
    made = table["partition-specs"][1]
    # One for what is new, the old one for what is made of the same.
    assert [each["field-id"] for each in made["fields"]] == [1001, 1000]
    assert (made["spec-id"], table["default-spec-id"]) == (1, 1)
    assert table["last-partition-id"] == 1001


def test_ids_that_were_sent_are_kept() -> None:
    table = committed(created(), add_spec(partition_field(1, field_id=1007)))
    assert table["partition-specs"][1]["fields"][0]["field-id"] == 1007
    assert table["last-partition-id"] == 1007
    table = committed(table, add_spec(partition_field(2, name="q")))
    assert table["partition-specs"][2]["fields"][0]["field-id"] == 1008


def test_the_same_spec_is_not_added_twice() -> None:
    table = committed(created(), add_spec(partition_field(1, field_id=1000)), DEFAULT)
    again = committed(table, add_spec(partition_field(1, field_id=1005)), DEFAULT)
    assert again is table


def test_fields_of_version_1_are_in_sequence() -> None:
    told = refused(of_version(1), add_spec(partition_field(1, field_id=1001)))
    assert told.startswith("Spec does not use sequential IDs that are required in v1")
    table = committed(of_version(1), add_spec(partition_field(1, field_id=1000)), DEFAULT)
    assert table["partition-spec"] == table["partition-specs"][1]["fields"]


def test_a_column_that_the_default_spec_needs_is_not_dropped() -> None:
    table = created(partition_spec=spec(partition_field(2)))
    drop = [add_schema(FIRST[0]), CURRENT]
    assert "Cannot find source column for partition field" in refused(table, *drop)
    table = committed(table, *drop, add_spec(), DEFAULT)
    assert table["current-schema-id"] == 1


def test_version_1_keeps_the_place_of_a_dropped_column_by_void() -> None:
    table = of_version(1, partition_spec=spec(partition_field(2)))
    void = add_spec(partition_field(2, "void", field_id=1000))
    table = committed(table, void, DEFAULT, add_schema(FIRST[0]), CURRENT)
    assert table["default-spec-id"] == 1


def test_a_column_that_the_default_order_needs_is_not_dropped() -> None:
    table = created(write_order=order(sort_field(2)))
    drop = [add_schema(FIRST[0]), CURRENT]
    assert "Cannot find source column for sort field" in refused(table, *drop)
    set_order = update("set-default-sort-order", sort_order_id=-1)
    table = committed(table, *drop, add_order(), set_order)
    assert table["default-sort-order-id"] == 0
    assert [each["order-id"] for each in table["sort-orders"]] == [1, 0]


def test_sort_orders_are_numbered_from_1_and_found_again() -> None:
    table = committed(created(), add_order(sort_field(1), order_id=8), add_order(sort_field(2)))
    assert [each["order-id"] for each in table["sort-orders"]] == [0, 1, 2]
    assert committed(table, add_order(sort_field(1)), add_order()) is table


def test_a_spec_that_does_not_fit_is_refused() -> None:
    assert "Invalid source type string" in refused(created(), add_spec(partition_field(2, "day")))
    assert "Cannot sort by" in refused(
        created(
            schema=schema(column(1, "s", {"type": "struct", "fields": [column(2, "x", "int")]}))
        ),
        add_order(sort_field(1)),
    )


def test_a_transform_that_nobody_here_knows_is_left_to_engines() -> None:
    table = committed(created(), add_spec(partition_field(1, "zorder[3]")))
    assert table["partition-specs"][1]["fields"][0]["transform"] == "zorder[3]"
