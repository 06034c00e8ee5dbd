"""Requests to create, change and register tables, as frozen data.

Every error that can be found without knowing the table is found here.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from penstock.errors import InvalidRequest
from penstock.iceberg import checks
from penstock.iceberg.checks import join, show
from penstock.iceberg.metadata import Json
from penstock.iceberg.tables.parts.orders import check_order
from penstock.iceberg.tables.parts.schemas import check_schema
from penstock.iceberg.tables.parts.specs import check_spec
from penstock.iceberg.tables.properties import FORMAT_VERSION, check_names, check_values
from penstock.iceberg.tables.requirements import REQUIREMENTS, AssertCreate, Requirement
from penstock.iceberg.tables.update_kinds import UPDATES, Update
from penstock.iceberg.tables.wording import check_location
from penstock.model.identifiers import Identifier, check_name

T = TypeVar("T")

# Each has a file to write, and all are swapped while others wait.
MAX_CHANGES = 1_000


@dataclass(frozen=True, slots=True)
class CreateTable:
    name: str
    location: str | None
    schema: Json
    spec: Json | None
    order: Json | None
    properties: dict[str, str]
    stage: bool


@dataclass(frozen=True, slots=True)
class CommitTable:
    identifier: tuple[Identifier, str] | None
    requirements: tuple[Requirement, ...]
    updates: tuple[Update, ...]

    @property
    def creates(self) -> bool:
        return any(isinstance(each, AssertCreate) for each in self.requirements)


@dataclass(frozen=True, slots=True)
class RegisterTable:
    name: str
    metadata_location: str
    overwrite: bool


def read_create(body: object) -> CreateTable:
    """Read the body of POST tables."""
    given = _read_body(body)
    location = given.get("location")
    properties = _read_properties(given)
    spec, order = given.get("partition-spec"), given.get("write-order")
    return CreateTable(
        name=check_name(checks.get_text(given, "name", ""), "name"),
        location=None if location is None else check_location(location, "location"),
        schema=check_schema(checks.get(given, "schema", ""), "schema"),
        spec=None if spec is None else check_spec(spec, "partition-spec"),
        order=None if order is None else check_order(order, "write-order"),
        properties=properties,
        stage=_read_flag(given, "stage-create"),
    )


def read_commit(body: object) -> CommitTable:
    """Read the body of POST tables/{table}."""
    return _read_commit(_read_body(body), "")


def read_transaction(body: object) -> tuple[CommitTable, ...]:
    """Read the body of POST transactions/commit: changes of tables, each named once."""
    given = _read_body(body)
    found = []
    seen: set[tuple[Identifier, str]] = set()
    changes = checks.get_objects(given, "table-changes", "")
    if len(changes) > MAX_CHANGES:
        raise InvalidRequest(
            f"table-changes has {len(changes)} changes",
            detail=f"commit to at most {MAX_CHANGES} tables at once",
        )
    for position, each in enumerate(changes):
        path = f"table-changes[{position}]"
        change = _read_commit(each, path)
        if change.identifier is None:
            raise InvalidRequest(
                f"Invalid commit: {path}.identifier is missing", detail="name the table in it"
            )
        if change.identifier in seen:
            raise InvalidRequest(
                f"{path}.identifier names the table of an earlier change",
                detail="put all updates of a table into one change",
            )
        seen.add(change.identifier)
        found.append(change)
    if not found:
        raise InvalidRequest("table-changes is empty", detail="send at least one change")
    return tuple(found)


def read_register(body: object) -> RegisterTable:
    """Read the body of POST register."""
    given = _read_body(body)
    return RegisterTable(
        name=check_name(checks.get_text(given, "name", ""), "name"),
        metadata_location=check_location(
            checks.get(given, "metadata-location", ""), "metadata-location"
        ),
        overwrite=_read_flag(given, "overwrite"),
    )


def check_target(request: CommitTable, namespace: Identifier, name: str) -> None:
    """Refuse a body that names another table than the path."""
    if request.identifier not in (None, (namespace, name)):
        raise InvalidRequest(
            "identifier names another table than the path",
            detail="leave identifier out, or repeat the namespace and the name of the path",
        )


def _read_commit(given: Json, path: str) -> CommitTable:
    return CommitTable(
        identifier=_read_identifier(given, path),
        requirements=_read_choices(given, "requirements", "type", REQUIREMENTS, path)
        if given.get("requirements") is not None
        else (),
        updates=_read_choices(given, "updates", "action", UPDATES, path),
    )


def _read_choices(
    body: Json, key: str, chooser: str, known: dict[str, Callable[[Json, str], T]], path: str
) -> tuple[T, ...]:
    """A list of objects, each read according to its `action` or `type`."""
    found = []
    inner = join(path, key)
    for position, each in enumerate(checks.get_objects(body, key, path)):
        place = f"{inner}[{position}]"
        choice = checks.get_text(each, chooser, place)
        if (read := known.get(choice)) is None:
            raise InvalidRequest(
                f"{place}.{chooser} is {show(choice)}, which is unknown for a table",
                detail=f"known are {', '.join(known)}",
            )
        found.append(read(each, place))
    return tuple(found)


def _read_body(body: object) -> Json:
    given = checks.check_object(body, "the body")
    checks.check_json(given)
    return given


def _read_identifier(body: Json, path: str) -> tuple[Identifier, str] | None:
    if body.get("identifier") is None:
        return None
    given, inner = checks.get_object(body, "identifier", path), join(path, "identifier")
    namespace = checks.get_texts(given, "namespace", inner)
    return tuple(namespace), checks.get_text(given, "name", inner)


def _read_properties(body: Json) -> dict[str, str]:
    if body.get("properties") is None:
        return {}
    found = checks.get_string_map(body, "properties", "")
    # How a client says which format it wants, though it is no property of the table afterwards.
    check_names([name for name in found if name != FORMAT_VERSION], "properties")
    check_values(found)
    return found


def _read_flag(body: Json, key: str) -> bool:
    return body.get(key) is not None and checks.get_flag(body, key, "")
