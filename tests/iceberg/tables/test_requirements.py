"""What a commit asserts of the table."""

import pytest

from penstock.errors import RequirementFailed
from penstock.iceberg.metadata import Json
from penstock.iceberg.tables.requests import read_commit
from penstock.iceberg.tables.requirements import check
from tests.iceberg.tables.tables import UUID, commit_body, committed, set_ref, with_snapshots

TABLE = committed(with_snapshots(2), set_ref(1, "t", "tag"))
OTHER = UUID.replace("5", "6")
NUMBERS = {
    "last-assigned-field-id": ("last assigned field id", 2),
    "current-schema-id": ("current schema", 0),
    "last-assigned-partition-id": ("last assigned partition id", 999),
    "default-spec-id": ("default partition spec", 0),
    "default-sort-order-id": ("default sort order", 0),
}


def check_one(document: Json | None, requirement: Json) -> None:
    check(document, read_commit(commit_body(requirements=(requirement,))).requirements)


def ref(name: str, id: int | None) -> Json:
    return {"type": "assert-ref-snapshot-id", "ref": name, "snapshot-id": id}


@pytest.mark.parametrize(
    "requirement",
    [
        {"type": "assert-table-uuid", "uuid": UUID.upper()},
        ref("main", 2),
        ref("t", 1),
        ref("new", None),
        *({"type": f"assert-{name}", name: right} for name, (_, right) in NUMBERS.items()),
    ],
    ids=repr,
)
def test_what_holds_passes(requirement: Json) -> None:
    check_one(TABLE, requirement)


@pytest.mark.parametrize(
    ("requirement", "message"),
    [
        ({"type": "assert-create"}, "table already exists"),
        (
            {"type": "assert-table-uuid", "uuid": OTHER},
            f"UUID does not match: expected {UUID} != {OTHER}",
        ),
        (ref("main", None), "branch main was created concurrently"),
        (ref("t", None), "tag t was created concurrently"),
        (ref("main", 1), "branch main has changed: expected id 1 != 2"),
        (ref("t", 2), "tag t has changed: expected id 2 != 1"),
        (ref("new", 2), "branch or tag new is missing, expected 2"),
        *(
            ({"type": f"assert-{name}", name: 7}, f"{told} changed: expected id 7 != {right}")
            for name, (told, right) in NUMBERS.items()
        ),
    ],
    ids=str,
)
def test_what_does_not_hold_is_told_in_words_that_clients_know(
    requirement: Json, message: str
) -> None:
    with pytest.raises(RequirementFailed) as error:
        check_one(TABLE, requirement)
    assert error.value.message == f"Requirement failed: {message}"


@pytest.mark.parametrize(
    "requirement",
    [
        {"type": "assert-create"},
        ref("main", None),
        {"type": "assert-last-assigned-field-id", "last-assigned-field-id": 5},
        {"type": "assert-last-assigned-partition-id", "last-assigned-partition-id": 5},
    ],
    ids=repr,
)
def test_what_a_table_that_is_not_there_yet_can_fulfil(requirement: Json) -> None:
    check_one(None, requirement)


@pytest.mark.parametrize(
    "requirement",
    [
        {"type": "assert-table-uuid", "uuid": UUID},
        ref("main", 1),
        {"type": "assert-current-schema-id", "current-schema-id": 0},
        {"type": "assert-default-spec-id", "default-spec-id": 0},
    ],
    ids=repr,
)
def test_a_table_that_is_not_there_fulfils_nothing_else(requirement: Json) -> None:
    with pytest.raises(RequirementFailed):
        check_one(None, requirement)


def test_all_requirements_are_checked() -> None:
    body = commit_body(requirements=(ref("main", 2), ref("main", 1)))
    with pytest.raises(RequirementFailed):
        check(TABLE, read_commit(body).requirements)
