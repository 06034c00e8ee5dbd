"""Commits to Iceberg tables: what they change, what they assert, and what comes again."""

import httpx
import pytest

from tests.harness.clients import iceberg_tables as tables
from tests.harness.processes.servers import Server

Change = tuple[str, str, list[tables.Json], list[tables.Json]]


def refused(answer: httpx.Response, status: int, kind: str) -> str:
    """The message of an answer that must be this error."""
    assert answer.status_code == status, answer.text
    error = answer.json()["error"]
    assert error["type"] == kind, error
    message: str = error["message"]
    return message


def test_a_commit_writes_the_next_file(server: Server, namespace: str) -> None:
    made = tables.make(server, namespace)
    answer = tables.append_to(namespace, "t", made["metadata"]).send(server).raise_for_status()
    told = answer.json()
    assert told.keys() == {"metadata-location", "metadata"}
    metadata = told["metadata"]
    assert len(metadata["snapshots"]) == 1
    assert metadata["metadata-log"][-1]["metadata-file"] == made["metadata-location"]
    assert [name[:5] for name in tables.files(told["metadata-location"])] == ["00000", "00001"]
    assert tables.load(server, namespace)["metadata"] == metadata


def test_a_commit_that_changes_nothing_writes_nothing(server: Server, namespace: str) -> None:
    made = tables.make(server, namespace, properties={"a": "b"})
    for request in (
        tables.commit(namespace, "t"),
        tables.set_property(namespace, a="b"),
        tables.commit(
            namespace, "t", {"action": "assign-uuid", "uuid": made["metadata"]["table-uuid"]}
        ),
    ):
        answer = request.send(server).raise_for_status().json()
        assert answer["metadata-location"] == made["metadata-location"]
    assert len(tables.files(made["metadata-location"])) == 1


def test_what_does_not_hold_fails_the_commit(server: Server, namespace: str) -> None:
    metadata = tables.make(server, namespace)["metadata"]
    wrong = {"type": "assert-table-uuid", "uuid": "00000000-0000-0000-0000-000000000000"}
    update = {"action": "set-properties", "updates": {"a": "b"}}
    answer = tables.commit(namespace, "t", update, requires=[wrong]).send(server)
    refused(answer, 409, "CommitFailedException")
    old = tables.append_to(namespace, "t", metadata)
    tables.append_to(namespace, "t", metadata).send(server).raise_for_status()
    message = refused(old.send(server), 409, "CommitFailedException")
    assert message.startswith("Requirement failed: ")
    assert len(tables.load(server, namespace)["metadata"]["snapshots"]) == 1


def test_an_append_without_assertions_to_an_old_state_is_a_conflict(
    server: Server, namespace: str
) -> None:
    made = tables.make(server, namespace)["metadata"]
    metadata = tables.append_to(namespace, "t", made).send(server).json()["metadata"]
    _, updates = tables.append(metadata)
    tables.append_to(namespace, "t", metadata).send(server).raise_for_status()
    answer = tables.commit(namespace, "t", *updates).send(server)
    refused(answer, 409, "CommitFailedException")


def test_an_append_that_comes_again_is_done_once(server: Server, namespace: str) -> None:
    metadata = tables.make(server, namespace)["metadata"]
    request = tables.append_to(namespace, "t", metadata)
    first = request.send(server).raise_for_status().json()
    assert request.send(server).raise_for_status().json() == first
    # Also after others have committed.
    newer = tables.append_to(namespace, "t", first["metadata"]).send(server).json()
    assert request.send(server).raise_for_status().json() == newer
    assert len(newer["metadata"]["snapshots"]) == 2


def test_a_change_of_the_schema_that_comes_again_is_done_once(
    server: Server, namespace: str
) -> None:
    tables.make(server, namespace)
    requires = [{"type": "assert-current-schema-id", "current-schema-id": 0}]
    updates = [
        {"action": "add-schema", "schema": tables.schema("a", "b", "c"), "last-column-id": 3},
        {"action": "set-current-schema", "schema-id": -1},
    ]
    request = tables.commit(namespace, "t", *updates, requires=requires)
    first = request.send(server).raise_for_status().json()
    assert first["metadata"]["current-schema-id"] == 1
    assert request.send(server).raise_for_status().json() == first
    tables.set_property(namespace, a="b").send(server).raise_for_status()
    refused(request.send(server), 409, "CommitFailedException")


def test_a_table_that_is_made_again_by_the_same_commit_is_made_once(
    server: Server, namespace: str
) -> None:
    staged = tables.make(server, namespace, stage=True)["metadata"]
    request = tables.finish(namespace, "t", staged)
    first = request.send(server).raise_for_status().json()
    assert request.send(server).raise_for_status().json() == first
    other = tables.make(server, namespace, "u", stage=True)["metadata"]
    late = tables.finish(namespace, "t", other).send(server)
    message = refused(late, 409, "CommitFailedException")
    assert message.startswith("Requirement failed: table already exists")


def test_a_staged_table_cannot_take_the_name_of_something_else(
    server: Server, namespace: str
) -> None:
    staged = tables.make(server, namespace, stage=True)["metadata"]
    server.post(f"/v1/table/{namespace}$t/declare").raise_for_status()
    answer = tables.finish(namespace, "t", staged).send(server)
    message = refused(answer, 409, "AlreadyExistsException")
    assert message.startswith(f"Table with same name already exists: {namespace}.t")


@pytest.mark.parametrize(
    ("update", "status", "kind"),
    [
        ({"action": "do-something"}, 400, "BadRequestException"),
        ({"action": "set-current-schema", "schema-id": 7}, 400, "IllegalArgumentException"),
        ({"action": "set-current-schema", "schema-id": -1}, 400, "ValidationException"),
        (
            {"action": "upgrade-format-version", "format-version": 1},
            400,
            "IllegalArgumentException",
        ),
        ({"action": "set-location", "location": "s3://elsewhere/x"}, 403, "ForbiddenException"),
        ({"action": "add-snapshot"}, 400, "BadRequestException"),
    ],
)
def test_an_update_that_cannot_be_is_refused(
    server: Server, namespace: str, update: tables.Json, status: int, kind: str
) -> None:
    made = tables.make(server, namespace)
    answer = tables.commit(
        namespace, "t", {"action": "set-properties", "updates": {"a": "b"}}, update
    )
    refused(answer.send(server), status, kind)
    assert tables.load(server, namespace)["metadata"] == made["metadata"]
    assert len(tables.files(made["metadata-location"])) == 1


def test_an_unknown_requirement_is_refused(server: Server, namespace: str) -> None:
    tables.make(server, namespace)
    answer = tables.commit(namespace, "t", requires=[{"type": "assert-luck"}]).send(server)
    refused(answer, 400, "BadRequestException")


def test_the_body_names_the_table_of_the_path_or_none(server: Server, namespace: str) -> None:
    tables.make(server, namespace)
    request = tables.set_property(namespace, a="b")
    request.body["identifier"] = {"namespace": [namespace], "name": "other"}
    refused(request.send(server), 400, "BadRequestException")
    request.body["identifier"]["name"] = "t"
    request.send(server).raise_for_status()


def test_old_metadata_files_are_removed_when_the_table_says_so(
    server: Server, namespace: str
) -> None:
    properties = {
        "write.metadata.delete-after-commit.enabled": "true",
        "write.metadata.previous-versions-max": "2",
    }
    tables.make(server, namespace, properties=properties)
    tables.make(server, namespace, "kept", properties=dict(list(properties.items())[1:]))
    for number in range(5):
        tables.set_property(namespace, n=str(number)).send(server).raise_for_status()
        tables.set_property(namespace, "kept", n=str(number)).send(server).raise_for_status()
    found = tables.load(server, namespace)
    assert [name[:5] for name in tables.files(found["metadata-location"])] == [
        *("00003", "00004", "00005")
    ]
    assert len(found["metadata"]["metadata-log"]) == 2
    kept = tables.load(server, namespace, "kept")
    assert len(tables.files(kept["metadata-location"])) == 6


def test_a_table_can_move_to_a_place_of_its_own_only(server: Server, namespace: str) -> None:
    made = tables.make(server, namespace)
    other = tables.make(server, namespace, "other")
    lake = server.lake.resolve()
    for place in (
        other["metadata"]["location"],
        f"{other['metadata']['location']}/data",
        str(lake),
    ):
        update = {"action": "set-location", "location": place}
        answer = tables.commit(namespace, "t", update).send(server)
        assert answer.status_code in (400, 403), answer.text
    place = f"{lake}/moved-{namespace}"
    update = {"action": "set-location", "location": place}
    told = tables.commit(namespace, "t", update).send(server).raise_for_status().json()
    assert told["metadata-location"].startswith(f"{place}/metadata/00001-")
    assert tables.load(server, namespace)["metadata"]["location"] == place
    assert len(tables.files(made["metadata-location"])) == 1
    # What it left still belongs to it.
    again = tables.create(namespace, "third", location=made["metadata"]["location"]).send(server)
    refused(again, 400, "BadRequestException")


def test_metadata_goes_where_the_property_says(server: Server, namespace: str) -> None:
    tables.make(server, namespace)
    place = f"{server.lake.resolve()}/logs-{namespace}"
    request = tables.set_property(namespace, **{"write.metadata.path": place})
    told = request.send(server).raise_for_status().json()
    assert told["metadata-location"].startswith(f"{place}/00001-")
    other = tables.make(server, namespace, "other")["metadata"]["location"]
    request = tables.set_property(namespace, **{"write.metadata.path": f"{other}/metadata"})
    refused(request.send(server), 400, "BadRequestException")


# Several tables at once


def test_a_transaction_commits_to_all_tables_or_to_none(server: Server, namespace: str) -> None:
    first, second = (tables.make(server, namespace, name)["metadata"] for name in "ab")
    staged = tables.make(server, namespace, "c", stage=True)["metadata"]
    changes = [
        (namespace, "a", *tables.append(first)),
        (namespace, "b", *tables.append(second)),
        (namespace, "c", *tables.created(staged)),
    ]
    wrong: Change = (
        namespace,
        "a",
        [{"type": "assert-table-uuid", "uuid": staged["table-uuid"]}],
        [],
    )
    answer = tables.transaction(*changes[1:], wrong).send(server)
    refused(answer, 409, "CommitFailedException")
    assert (
        "snapshots" not in tables.load(server, namespace, "b")["metadata"]
        or not (tables.load(server, namespace, "b")["metadata"]["snapshots"])
    )
    assert server.get(tables.path(namespace, "c")).status_code == 404
    files = [
        tables.files(tables.load(server, namespace, name)["metadata-location"]) for name in "ab"
    ]
    assert [len(each) for each in files] == [1, 1]
    request = tables.transaction(*changes)
    assert request.send(server).status_code == 204
    assert [len(tables.load(server, namespace, n)["metadata"]["snapshots"]) for n in "ab"] == [1, 1]
    assert tables.load(server, namespace, "c")["metadata"]["table-uuid"] == staged["table-uuid"]
    # Its answer was lost.
    assert request.send(server).status_code == 204
    assert [len(tables.load(server, namespace, n)["metadata"]["snapshots"]) for n in "ab"] == [1, 1]


def test_a_transaction_names_tables_that_are_there_each_once(
    server: Server, namespace: str
) -> None:
    metadata = tables.make(server, namespace)["metadata"]
    change = (namespace, "t", *tables.append(metadata))
    missing: Change = (namespace, "x", [], change[3])
    message = refused(tables.transaction(change, missing).send(server), 404, "NoSuchTableException")
    assert message == f"Table does not exist: {namespace}.x"
    refused(tables.transaction(change, change).send(server), 400, "BadRequestException")
    refused(tables.transaction().send(server), 400, "BadRequestException")
    unnamed = tables.transaction(change)
    del unnamed.body["table-changes"][0]["identifier"]
    refused(unnamed.send(server), 400, "BadRequestException")
    assert not tables.load(server, namespace)["metadata"].get("snapshots")
