"""What a commit asserts of the table: read from JSON, and checked, in the words clients expect."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import NamedTuple, assert_never

from penstock.errors import RequirementFailed
from penstock.iceberg import checks
from penstock.iceberg.checks import INT64, clip
from penstock.iceberg.metadata import Json
from penstock.iceberg.tables.parts.snapshots import check_ref_name


class _Number(NamedTuple):
    sent: str
    stored: str
    told: str
    # Whether it says nothing of a table that does not exist yet.
    of_existing: bool = False


_NUMBERS = {
    "assert-last-assigned-field-id": _Number(
        "last-assigned-field-id", "last-column-id", "last assigned field id", of_existing=True
    ),
    "assert-current-schema-id": _Number("current-schema-id", "current-schema-id", "current schema"),
    "assert-last-assigned-partition-id": _Number(
        "last-assigned-partition-id",
        "last-partition-id",
        "last assigned partition id",
        of_existing=True,
    ),
    "assert-default-spec-id": _Number(
        "default-spec-id", "default-spec-id", "default partition spec"
    ),
    "assert-default-sort-order-id": _Number(
        "default-sort-order-id", "default-sort-order-id", "default sort order"
    ),
}
_AGAIN = "load the table and try again"


@dataclass(frozen=True, slots=True)
class AssertCreate:
    pass


@dataclass(frozen=True, slots=True)
class AssertTableUuid:
    uuid: str


@dataclass(frozen=True, slots=True)
class AssertRef:
    name: str
    # None when the reference must not be there.
    snapshot_id: int | None


@dataclass(frozen=True, slots=True)
class AssertNumber:
    kind: str
    expected: int


Requirement = AssertCreate | AssertTableUuid | AssertRef | AssertNumber


def check(document: Json | None, requirements: Iterable[Requirement]) -> None:
    """Refuse a commit whose requirements do not hold; None is a table that does not exist."""
    for requirement in requirements:
        match requirement:
            case AssertCreate():
                if document is not None:
                    raise _failed("table already exists")
            case AssertTableUuid(uuid):
                _check_uuid(_existing(document), uuid)
            case AssertRef(name, snapshot_id):
                _check_ref(document, name, snapshot_id)
            case AssertNumber(kind, expected):
                _check_number(document, _NUMBERS[kind], expected)
            case other:
                assert_never(other)


def _existing(document: Json | None) -> Json:
    if document is None:
        raise _failed("table does not exist")
    return document


def _check_uuid(document: Json, expected: str) -> None:
    if expected.lower() != document["table-uuid"].lower():
        raise _failed(
            f"UUID does not match: expected {document['table-uuid']} != {clip(expected)}",
            "perhaps the table was dropped and made anew; load it again",
        )


def _check_ref(document: Json | None, name: str, expected: int | None) -> None:
    found: Json | None = ((document or {}).get("refs") or {}).get(name)
    told = clip(name)
    if found is None:
        if expected is not None:
            raise _failed(f"branch or tag {told} is missing, expected {expected}")
    elif expected is None:
        raise _failed(f"{found['type']} {told} was created concurrently")
    elif expected != found["snapshot-id"]:
        raise _failed(
            f"{found['type']} {told} has changed: expected id {expected} != {found['snapshot-id']}"
        )


def _check_number(document: Json | None, number: _Number, expected: int) -> None:
    if document is None and number.of_existing:
        return
    if expected != (found := _existing(document)[number.stored]):
        raise _failed(f"{number.told} changed: expected id {expected} != {found}")


def _failed(reason: str, detail: str = _AGAIN) -> RequirementFailed:
    return RequirementFailed(f"Requirement failed: {reason}", detail=detail)


def _read_ref(given: Json, path: str) -> AssertRef:
    name = check_ref_name(given, "ref", path)
    # Some clients leave null out.
    if given.get("snapshot-id") is None:
        return AssertRef(name, None)
    return AssertRef(name, checks.get_integer(given, "snapshot-id", path, INT64))


def _read_number(kind: str) -> Callable[[Json, str], Requirement]:
    sent = _NUMBERS[kind].sent
    return lambda given, path: AssertNumber(kind, checks.get_integer(given, sent, path))


REQUIREMENTS: dict[str, Callable[[Json, str], Requirement]] = {
    "assert-create": lambda _given, _path: AssertCreate(),
    "assert-table-uuid": lambda given, path: AssertTableUuid(checks.get_text(given, "uuid", path)),
    "assert-ref-snapshot-id": _read_ref,
    **{kind: _read_number(kind) for kind in _NUMBERS},
}
