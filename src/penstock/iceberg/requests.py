"""Requests to create and replace views, as frozen data.

Every error that can be found without knowing the view is found here.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from penstock.errors import InvalidRequest
from penstock.iceberg import checks
from penstock.iceberg.checks import join, show
from penstock.iceberg.metadata import Json
from penstock.iceberg.schemas import check_schema
from penstock.iceberg.versions import check_version
from penstock.model.identifiers import Identifier, check_name

T = TypeVar("T")

# In place of an id, this means the last one that the same request added.
LAST_ADDED = -1


@dataclass(frozen=True, slots=True)
class CreateView:
    name: str
    location: str | None
    schema: Json
    version: Json
    properties: dict[str, str]


@dataclass(frozen=True, slots=True)
class AssertViewUuid:
    uuid: str


@dataclass(frozen=True, slots=True)
class AssignUuid:
    uuid: str


@dataclass(frozen=True, slots=True)
class UpgradeFormatVersion:
    format_version: int


@dataclass(frozen=True, slots=True)
class AddSchema:
    schema: Json


@dataclass(frozen=True, slots=True)
class SetLocation:
    location: str


@dataclass(frozen=True, slots=True)
class SetProperties:
    updates: dict[str, str]


@dataclass(frozen=True, slots=True)
class RemoveProperties:
    removals: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class AddViewVersion:
    version: Json


@dataclass(frozen=True, slots=True)
class SetCurrentViewVersion:
    version_id: int


Requirement = AssertViewUuid
Update = (
    AssignUuid
    | UpgradeFormatVersion
    | AddSchema
    | SetLocation
    | SetProperties
    | RemoveProperties
    | AddViewVersion
    | SetCurrentViewVersion
)


@dataclass(frozen=True, slots=True)
class ReplaceView:
    identifier: tuple[Identifier, str] | None
    requirements: tuple[Requirement, ...]
    updates: tuple[Update, ...]


def read_create(body: object) -> CreateView:
    """Read the body of POST views."""
    given = _read_body(body)
    location = given.get("location")
    return CreateView(
        name=check_name(checks.get_text(given, "name", ""), "name"),
        location=None if location is None else checks.check_location(location, "location"),
        schema=check_schema(checks.get(given, "schema", ""), "schema"),
        version=check_version(checks.get(given, "view-version", ""), "view-version"),
        properties=_read_properties(given),
    )


def read_replace(body: object) -> ReplaceView:
    """Read the body of POST views/{view}."""
    given = _read_body(body)
    return ReplaceView(
        identifier=_read_identifier(given),
        requirements=_read_choices(given, "requirements", "type", REQUIREMENTS)
        if given.get("requirements") is not None
        else (),
        updates=_read_choices(given, "updates", "action", UPDATES),
    )


def check_target(request: ReplaceView, namespace: Identifier, name: str) -> None:
    """Refuse a body that names another view than the path."""
    if request.identifier not in (None, (namespace, name)):
        raise InvalidRequest(
            "identifier names another view than the path",
            detail="leave identifier out, or repeat the namespace and the name of the path",
        )


UPDATES: dict[str, Callable[[Json, str], Update]] = {
    "assign-uuid": lambda given, path: AssignUuid(checks.get_text(given, "uuid", path)),
    "upgrade-format-version": lambda given, path: UpgradeFormatVersion(
        checks.get_integer(given, "format-version", path)
    ),
    "add-schema": lambda given, path: AddSchema(
        check_schema(checks.get(given, "schema", path), join(path, "schema"))
    ),
    "set-location": lambda given, path: SetLocation(
        checks.check_location(given.get("location"), join(path, "location"))
    ),
    "set-properties": lambda given, path: SetProperties(
        checks.get_string_map(given, "updates", path)
    ),
    "remove-properties": lambda given, path: RemoveProperties(
        tuple(checks.get_texts(given, "removals", path))
    ),
    "add-view-version": lambda given, path: AddViewVersion(
        check_version(checks.get(given, "view-version", path), join(path, "view-version"))
    ),
    "set-current-view-version": lambda given, path: SetCurrentViewVersion(
        checks.get_integer(given, "view-version-id", path)
    ),
}

REQUIREMENTS: dict[str, Callable[[Json, str], Requirement]] = {
    "assert-view-uuid": lambda given, path: AssertViewUuid(checks.get_text(given, "uuid", path)),
}


def _read_choices(
    body: Json, key: str, chooser: str, known: dict[str, Callable[[Json, str], T]]
) -> tuple[T, ...]:
    """A list of objects, each read according to its `action` or `type`."""
    found = []
    for position, each in enumerate(checks.get_objects(body, key, "")):
        path = f"{key}[{position}]"
        choice = checks.get_text(each, chooser, path)
        if (read := known.get(choice)) is None:
            raise InvalidRequest(
                f"{path}.{chooser} is {show(choice)}, which is unknown for a view",
                detail=f"known are {', '.join(known)}",
            )
        found.append(read(each, path))
    return tuple(found)


def _read_body(body: object) -> Json:
    given = checks.check_object(body, "the body")
    checks.check_json(given)
    return given


def _read_identifier(body: Json) -> tuple[Identifier, str] | None:
    if body.get("identifier") is None:
        return None
    given = checks.get_object(body, "identifier", "")
    namespace = checks.get_texts(given, "namespace", "identifier")
    return tuple(namespace), checks.get_text(given, "name", "identifier")


def _read_properties(body: Json) -> dict[str, str]:
    # Java omits them when they are empty, though the specification requires them.
    if body.get("properties") is None:
        return {}
    return checks.get_string_map(body, "properties", "")
