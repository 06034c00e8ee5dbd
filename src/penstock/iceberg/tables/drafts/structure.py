"""Updates of schemas, partition specs and sort orders, each applied to a draft."""

from collections.abc import Collection

from penstock.errors import InvalidTable
from penstock.iceberg.metadata import Json
from penstock.iceberg.tables.drafts.draft import Draft
from penstock.iceberg.tables.parts import orders, schemas, specs


def add_schema(draft: Draft, schema: Json) -> None:
    """Add a schema, or find the one that is the same; its id is given here, whatever was sent."""
    schemas.check_format(schema, draft.format_version)
    if draft.schemas.find(schema) is None:
        draft.schemas.add(schema)
    draft.last_column = max(draft.last_column, schemas.highest_id(schema))


def set_current_schema(draft: Draft, wanted: int) -> None:
    draft.current_schema = draft.schemas.resolve(wanted, "current schema")


def remove_schemas(draft: Draft, ids: Collection[int]) -> None:
    if draft.current_schema in ids:
        raise InvalidTable(
            "Cannot remove the current schema", detail="set another one as current first"
        )
    draft.schemas.remove(ids)


def add_spec(draft: Draft, spec: Json) -> None:
    """Add a spec, or find the one that is the same; its id is given here, whatever was sent."""
    if draft.specs.find(spec) is not None:
        return
    specs.check_fit(spec, draft.columns)
    whole = specs.with_field_ids(spec, draft.field_ids, draft.last_partition)
    if draft.format_version == 1:
        specs.check_sequence(whole)
    draft.specs.add(whole)
    draft.field_ids |= specs.list_field_ids(whole)
    draft.last_partition = max(draft.last_partition, specs.last_field_id(whole))


def set_default_spec(draft: Draft, wanted: int) -> None:
    draft.default_spec = draft.specs.resolve(wanted, "default partition spec")


def remove_specs(draft: Draft, ids: Collection[int]) -> None:
    if draft.default_spec in ids:
        raise InvalidTable(
            "Cannot remove the default partition spec", detail="set another one as default first"
        )
    draft.specs.remove(ids)


def add_order(draft: Draft, order: Json) -> None:
    """Add an order, or find the one that is the same; its id is given here, whatever was sent."""
    if draft.orders.find(order) is not None:
        return
    orders.check_fit(order, draft.columns)
    # Who does not sort has the same order in every table.
    id = None if order["fields"] else orders.UNSORTED_ID
    draft.orders.add(order, id=id, first=orders.FIRST_ID)


def set_default_order(draft: Draft, wanted: int) -> None:
    draft.default_order = draft.orders.resolve(wanted, "default sort order")
