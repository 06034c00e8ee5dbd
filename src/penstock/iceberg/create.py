"""The first metadata of a view."""

from penstock.iceberg.checks import check_location
from penstock.iceberg.history import history_limit
from penstock.iceberg.metadata import FORMAT_VERSION, Json
from penstock.iceberg.requests import CreateView

FIRST_SCHEMA = 0
FIRST_VERSION = 1


def create_metadata(request: CreateView, *, uuid: str, location: str, now_millis: int) -> Json:
    """The metadata of a new view; schema and version get their first ids, whatever was sent."""
    history_limit(request.properties)
    sent_millis = request.version.get("timestamp-ms")
    assigned = {
        "version-id": FIRST_VERSION,
        "schema-id": FIRST_SCHEMA,
        "timestamp-ms": now_millis if sent_millis is None else sent_millis,
    }
    metadata: Json = {
        "view-uuid": uuid,
        "format-version": FORMAT_VERSION,
        "location": check_location(location, "location"),
        "schemas": [{**request.schema, "schema-id": FIRST_SCHEMA}],
        "current-version-id": FIRST_VERSION,
        "versions": [{**request.version, **assigned}],
        "version-log": [{"timestamp-ms": assigned["timestamp-ms"], "version-id": FIRST_VERSION}],
    }
    return {**metadata, "properties": request.properties} if request.properties else metadata
