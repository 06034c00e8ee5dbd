"""Replace a view's metadata: check requirements, apply updates in order, check the result.

A draft holds the view while one request changes it. It reads the stored metadata once, so neither a
long history nor a long list of updates makes a request slow.
"""

from dataclasses import dataclass, field
from typing import assert_never

from penstock.errors import DialectLost, InvalidView, NothingAdded, RequirementFailed
from penstock.iceberg import schemas, versions
from penstock.iceberg.checks import INT32, clip
from penstock.iceberg.history import expire_versions, history_limit, trim_log
from penstock.iceberg.lookup import Lookup
from penstock.iceberg.metadata import FORMAT_VERSION, Json, properties
from penstock.iceberg.requests import (
    LAST_ADDED,
    AddSchema,
    AddViewVersion,
    AssertViewUuid,
    AssignUuid,
    RemoveProperties,
    ReplaceView,
    SetCurrentViewVersion,
    SetLocation,
    SetProperties,
    Update,
    UpgradeFormatVersion,
)

DROP_DIALECT_ALLOWED = "replace.drop-dialect.allowed"


def replace_metadata(metadata: Json, request: ReplaceView, now_millis: int) -> Json:
    """The metadata after the request; the same object when nothing changes."""
    for requirement in request.requirements:
        _check_requirement(metadata, requirement)
    draft = _open(metadata, now_millis)
    for update in request.updates:
        _apply(draft, update)
    return _build(metadata, draft)


@dataclass(slots=True)
class _Draft:
    uuid: str
    location: str
    properties: dict[str, str]
    schemas: dict[int, Json]
    versions: dict[int, Json]
    current: int
    now_millis: int
    added: dict[int, Json] = field(default_factory=dict)
    last_schema: int | None = None
    last_version: int | None = None
    # The ids that versions were sent with, and the ids that they got.
    sent_as: dict[int, int] = field(default_factory=dict)
    highest_schema: int = -1
    highest_version: int = 0
    # Created when the first one is added.
    schema_lookup: Lookup | None = None
    version_lookup: Lookup | None = None


def _open(metadata: Json, now_millis: int) -> _Draft:
    return _Draft(
        uuid=metadata["view-uuid"],
        location=metadata["location"],
        properties=dict(properties(metadata)),
        schemas={each.get("schema-id", 0): each for each in metadata["schemas"]},
        versions={each["version-id"]: each for each in metadata["versions"]},
        current=metadata["current-version-id"],
        now_millis=now_millis,
    )


def _check_requirement(metadata: Json, requirement: AssertViewUuid) -> None:
    if requirement.uuid.lower() != metadata["view-uuid"].lower():
        raise RequirementFailed(
            "Requirement failed: view UUID does not match: "
            f"expected {metadata['view-uuid']} != {clip(requirement.uuid)}",
            detail="perhaps the view was dropped and made anew; load it again",
        )


def _apply(draft: _Draft, update: Update) -> None:
    match update:
        case AssignUuid(uuid):
            if uuid.lower() != draft.uuid.lower():
                raise InvalidView(
                    f"Cannot reassign uuid {draft.uuid}", detail="leave assign-uuid out"
                )
        case UpgradeFormatVersion(wanted):
            _check_format_version(wanted)
        case AddSchema(schema):
            _add_schema(draft, schema)
        case SetLocation(location):
            draft.location = location
        case SetProperties(updates):
            draft.properties.update(updates)
        case RemoveProperties(removals):
            for key in removals:
                draft.properties.pop(key, None)
        case AddViewVersion(version):
            _add_version(draft, version)
        case SetCurrentViewVersion(version_id):
            _set_current(draft, version_id)
        case other:
            assert_never(other)


def _check_format_version(wanted: int) -> None:
    if wanted < FORMAT_VERSION:
        raise InvalidView(
            f"Cannot downgrade v{FORMAT_VERSION} view to v{wanted}",
            detail="leave upgrade-format-version out",
        )
    if wanted > FORMAT_VERSION:
        raise InvalidView(
            f"Unsupported format version: {wanted}",
            detail=f"the newest format of views here is {FORMAT_VERSION}",
        )


def _add_schema(draft: _Draft, schema: Json) -> None:
    if (lookup := draft.schema_lookup) is None:
        stored = draft.schemas.values()
        lookup = draft.schema_lookup = Lookup(stored, schemas.fingerprint, schemas.content)
        draft.highest_schema = max(draft.schemas, default=-1)
    if (same := lookup.find(schema)) is None:
        draft.highest_schema = _next_id(draft.highest_schema, "schema")
        same = draft.schemas[draft.highest_schema] = {**schema, "schema-id": draft.highest_schema}
        lookup.add(same)
    # Also when it existed before: two clients may add the same schema at the same time.
    draft.last_schema = same.get("schema-id", 0)


def _add_version(draft: _Draft, sent: Json) -> None:
    version = {**sent, "schema-id": _find_schema_id(draft, sent["schema-id"])}
    if (lookup := draft.version_lookup) is None:
        stored = draft.versions.values()
        lookup = draft.version_lookup = Lookup(stored, versions.fingerprint, versions.content)
        draft.highest_version = max(draft.versions, default=0)
    if (same := lookup.find(version)) is not None:
        draft.last_version = draft.sent_as[sent["version-id"]] = same["version-id"]
        return
    if version["version-id"] <= draft.highest_version:
        version["version-id"] = _next_id(draft.highest_version, "version")
    if version.get("timestamp-ms") is None:
        version["timestamp-ms"] = draft.now_millis
    draft.last_version = draft.highest_version = version["version-id"]
    draft.sent_as[sent["version-id"]] = draft.last_version
    draft.versions[draft.last_version] = draft.added[draft.last_version] = version
    lookup.add(version)


def _find_schema_id(draft: _Draft, wanted: int) -> int:
    if wanted == LAST_ADDED:
        if draft.last_schema is None:
            raise NothingAdded(
                "Cannot set last added schema: no schema has been added",
                detail="put add-schema before add-view-version, or name a schema of the view",
            )
        return draft.last_schema
    if wanted not in draft.schemas:
        raise InvalidView(
            f"Cannot add version with unknown schema: {wanted}",
            detail="add the schema first, and send -1 as schema-id",
        )
    return wanted


def _set_current(draft: _Draft, wanted: int) -> None:
    if wanted == LAST_ADDED:
        if draft.last_version is None:
            raise NothingAdded(
                "Cannot set last version id: no current version id has been set",
                detail="put add-view-version before it, or name a version of the view",
            )
        wanted = draft.last_version
    # An id from this request means the version that it became, even if others had taken that id.
    wanted = draft.sent_as.get(wanted, wanted)
    if wanted not in draft.versions:
        raise InvalidView(
            f"Cannot set current version to unknown version: {wanted}",
            detail="load the view to see its versions; old ones are forgotten",
        )
    draft.current = wanted


def _build(metadata: Json, draft: _Draft) -> Json:
    moved = draft.current != metadata["current-version-id"]
    if not (
        moved
        or draft.added
        or len(draft.schemas) != len(metadata["schemas"])
        or draft.location != metadata["location"]
        or draft.properties != properties(metadata)
    ):
        return metadata
    limit = history_limit(draft.properties)
    if moved:
        _check_dialects(draft, metadata["current-version-id"])
    log = metadata["version-log"]
    if moved:
        millis = draft.added.get(draft.current, {}).get("timestamp-ms", draft.now_millis)
        log = [*log, {"timestamp-ms": millis, "version-id": draft.current}]
    everything = list(draft.versions.values())
    kept = expire_versions(everything, draft.current, draft.added, limit)
    if kept is not everything:
        log = trim_log(log, kept)
    changed = {
        **metadata,
        "location": draft.location,
        "schemas": list(draft.schemas.values()),
        "current-version-id": draft.current,
        "versions": kept,
        "version-log": log,
        "properties": draft.properties,
    }
    if not draft.properties:
        del changed["properties"]
    return changed


def _check_dialects(draft: _Draft, previous: int) -> None:
    if draft.properties.get(DROP_DIALECT_ALLOWED, "").lower() == "true":
        return
    before = versions.dialects(draft.versions[previous])
    after = versions.dialects(draft.versions[draft.current])
    if not before <= after:
        raise DialectLost(
            f"Cannot replace view due to loss of view dialects ({DROP_DIALECT_ALLOWED}=false):\n"
            f"Previous dialects: [{', '.join(sorted(before))}]\n"
            f"New dialects: [{', '.join(sorted(after))}]",
            detail=f"send a query for each, or set the property {DROP_DIALECT_ALLOWED} to true",
        )


def _next_id(highest: int, what: str) -> int:
    if highest + 1 not in INT32:
        raise InvalidView(
            f"no {what} id is left after {highest}", detail="create the view again under a new name"
        )
    return highest + 1
