"""The first metadata of a table."""

from penstock.iceberg.metadata import Json
from penstock.iceberg.tables.drafts.draft import close_draft, new_draft
from penstock.iceberg.tables.parts import orders, schemas, specs
from penstock.iceberg.tables.properties import FORMAT_VERSION, read_format_version
from penstock.iceberg.tables.requests import CreateTable
from penstock.iceberg.tables.wording import check_location


def new_document(request: CreateTable, *, location: str, uuid: str, now_ms: int) -> Json:
    """The metadata of a new table; columns and fields get their first ids, whatever was sent."""
    draft = new_draft(read_format_version(request.properties), now_ms)
    schemas.check_format(request.schema, draft.format_version)
    schema, columns = schemas.with_fresh_ids(request.schema, 0)
    spec = specs.with_fresh_ids(request.spec or specs.UNPARTITIONED, columns)
    specs.check_fit(spec, schemas.Columns(schema))
    order = orders.with_fresh_ids(request.order or orders.UNSORTED, columns)
    draft.uuid, draft.location = uuid, check_location(location, "location")
    draft.schemas.add(schema)
    draft.last_column = len(columns)
    draft.specs.add(spec)
    draft.last_partition = specs.last_field_id(spec)
    draft.default_order = order["order-id"]
    draft.orders.add(order, id=draft.default_order)
    draft.properties = {k: v for k, v in request.properties.items() if k != FORMAT_VERSION}
    return close_draft(draft)
