"""Bodies that cannot be right are refused with the field's path and what is wrong with it."""

from typing import Any

import pytest

from penstock.errors import InvalidRequest, InvalidView
from penstock.iceberg.requests import (
    UPDATES,
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
    check_target,
    read_create,
    read_replace,
)
from tests.iceberg.views import create_body, schema, sql, version

ALL_UPDATES: list[tuple[dict[str, Any], Update]] = [
    ({"action": "assign-uuid", "uuid": "u"}, AssignUuid("u")),
    ({"action": "upgrade-format-version", "format-version": 1}, UpgradeFormatVersion(1)),
    ({"action": "add-schema", "schema": schema(), "last-column-id": 9}, AddSchema(schema())),
    ({"action": "set-location", "location": "s3://b/"}, SetLocation("s3://b")),
    ({"action": "set-properties", "updates": {"a": "b"}}, SetProperties({"a": "b"})),
    ({"action": "remove-properties", "removals": ["a"]}, RemoveProperties(("a",))),
    ({"action": "add-view-version", "view-version": version()}, AddViewVersion(version())),
    ({"action": "set-current-view-version", "view-version-id": -1}, SetCurrentViewVersion(-1)),
]


def refused(body: object, read: Any = read_create) -> InvalidRequest:
    with pytest.raises(InvalidRequest) as error:
        read(body)
    return error.value


def update(**fields: Any) -> dict[str, Any]:
    return {"updates": [{name.replace("_", "-"): value for name, value in fields.items()}]}


def test_every_update_is_read_as_data() -> None:
    request = read_replace({"updates": [given for given, _ in ALL_UPDATES]})
    assert request == ReplaceView(None, (), tuple(read for _, read in ALL_UPDATES))
    assert [given["action"] for given, _ in ALL_UPDATES] == list(UPDATES)


def test_the_requirement_and_the_identifier_are_read_as_data() -> None:
    body = {
        "identifier": {"namespace": ["a", "b"], "name": "v"},
        "requirements": [{"type": "assert-view-uuid", "uuid": "u"}],
        "updates": [],
    }
    assert read_replace(body) == ReplaceView((("a", "b"), "v"), (AssertViewUuid("u"),), ())


def test_null_is_no_identifier_and_no_requirement() -> None:
    body: dict[str, Any] = {"identifier": None, "requirements": None, "updates": []}
    assert read_replace(body) == ReplaceView(None, (), ())


def test_an_identifier_must_be_that_of_the_path() -> None:
    request = ReplaceView((("a", "b"), "v"), (), ())
    check_target(request, ("a", "b"), "v")
    check_target(ReplaceView(None, (), ()), ("x",), "y")
    with pytest.raises(InvalidRequest, match=r"^identifier names another view than the path"):
        check_target(request, ("a",), "v")


@pytest.mark.parametrize("action", ["add-snapshot", "set-current-schema", "ADD-SCHEMA", ""])
def test_an_action_that_views_do_not_know_is_refused_with_the_known_ones(action: str) -> None:
    error = refused(update(action=action), read_replace)
    assert error.message == f"updates[0].action is {action!r}, which is unknown for a view"
    assert error.detail == f"known are {', '.join(UPDATES)}"
    assert type(error) is InvalidRequest


@pytest.mark.parametrize("kind", ["assert-table-uuid", "assert-create", "x"])
def test_a_requirement_that_views_do_not_know_is_refused(kind: str) -> None:
    error = refused({"requirements": [{"type": kind}], "updates": []}, read_replace)
    assert error.message == f"requirements[0].type is {kind!r}, which is unknown for a view"
    assert error.detail == "known are assert-view-uuid"


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ({}, "updates is missing"),
        ({"updates": None}, "updates is null"),
        ({"updates": {}}, "updates is an object, not a list"),
        ({"updates": [3]}, "updates[0] is 3, not an object"),
        (update(), "updates[0].action is missing"),
        (update(action=True), "updates[0].action is true, not a string"),
        (update(action="assign-uuid"), "updates[0].uuid is missing"),
        (update(action="add-schema"), "updates[0].schema is missing"),
        (update(action="set-properties", updates=[]), "updates[0].updates is a list, not an objec"),
        (update(action="set-properties", updates={"a": 1}), "updates[0].updates.a is 1, not a str"),
        (update(action="set-properties", updates={"": 1}), "updates[0].updates.'' is 1, not a str"),
        (update(action="remove-properties", removals=["a", 2]), "updates[0].removals[1] is 2, not"),
        (update(action="remove-properties", removals="a"), "updates[0].removals is 'a', not a li"),
        (update(action="set-location", location=["x"]), "updates[0].location is a list, not a str"),
        (update(action="add-view-version"), "updates[0].view-version is missing"),
        (
            update(action="set-current-view-version", view_version_id="1"),
            "updates[0].view-version-id is '1', not an integer",
        ),
        (
            update(action="set-current-view-version", view_version_id=True),
            "updates[0].view-version-id is true, not an integer",
        ),
        (
            update(action="set-current-view-version", view_version_id=2**31),
            "updates[0].view-version-id is 2147483648",
        ),
        (
            update(action="upgrade-format-version", format_version=1.0),
            "updates[0].format-version is 1.0, not an integer",
        ),
        ({"updates": [], "requirements": [{}]}, "requirements[0].type is missing"),
        (
            {"updates": [], "requirements": [{"type": "assert-view-uuid", "uuid": 5}]},
            "requirements[0].uuid is 5, not a string",
        ),
        ({"updates": [], "identifier": "ns.v"}, "identifier is 'ns.v', not an object"),
        ({"updates": [], "identifier": {"name": "v"}}, "identifier.namespace is missing"),
        ([], "the body is a list, not an object"),
        (None, "the body is null, not an object"),
    ],
)
def test_a_replace_names_the_field_that_is_wrong(body: object, message: str) -> None:
    error = refused(body, read_replace)
    assert error.message.startswith(message)
    assert error.detail


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ({}, "name is missing"),
        (create_body(location=5), "location is 5, not a string"),
        (create_body(schema=[]), "schema is a list, not an object"),
        (create_body(view_version=None), "view-version is null"),
        (create_body(properties=[]), "properties is a list, not an object"),
        (create_body(properties={"a": None}), "properties.a is null, not a string"),
        (create_body(view_version={}), "view-version.version-id is missing"),
        (create_body(view_version=version(version_id=None)), "view-version.version-id is null"),
        (create_body(view_version=version(schema_id=2**31)), "view-version.schema-id is 21474836"),
        (create_body(view_version=version(timestamp_ms="5")), "view-version.timestamp-ms is '5'"),
        (create_body(view_version=version(summary={"a": 1})), "view-version.summary.a is 1, not a"),
        (create_body(view_version=version(summary=None)), "view-version.summary is null"),
        (create_body(view_version=version(default_namespace=None)), "view-version.default-namesp"),
        (create_body(view_version=version(default_namespace="a")), "view-version.default-namesp"),
        (create_body(view_version=version(default_catalog=5)), "view-version.default-catalog is 5"),
        (create_body(view_version=version(representations={})), "view-version.representations is"),
        (create_body(view_version=version(sql(sql=None))), "view-version.representations[0].sql i"),
        (
            create_body(view_version=version(sql(), {"type": "sql", "sql": "s"})),
            "view-version.representations[1].dialect is missing",
        ),
    ],
)
def test_a_create_names_the_field_that_is_wrong(body: object, message: str) -> None:
    error = refused(body)
    assert error.message.startswith(message)
    assert type(error) is InvalidRequest


@pytest.mark.parametrize("spelling", ["version_id", "schema_id", "default_namespace"])
def test_pythons_spelling_of_a_field_does_not_stand_for_icebergs(spelling: str) -> None:
    sent = version()
    del sent[spelling.replace("_", "-")]
    sent[spelling] = 1
    assert refused(create_body(view_version=sent)).message.endswith("is missing")


@pytest.mark.parametrize(("first", "second"), [("trino", "trino"), ("trino", "TriNo")])
def test_two_queries_for_one_dialect_are_refused(first: str, second: str) -> None:
    wanted = "Invalid view version: Cannot add multiple queries for dialect trino"
    sent = version(sql(first), sql("spark"), sql(second))
    for error in (
        refused(create_body(view_version=sent)),
        refused(update(action="add-view-version", view_version=sent), read_replace),
    ):
        assert error.message == wanted
        assert isinstance(error, InvalidView)


@pytest.mark.parametrize(
    ("representations", "message"),
    [
        ([], "Invalid view version: view-version.representations is empty"),
        (
            [sql(type="substrait")],
            "Invalid view version: view-version.representations[0].type is 'substrait', which",
        ),
        ([sql(dialect="")], "Invalid view version: view-version.representations[0].dialect is emp"),
        ([sql(text=" ")], "Invalid view version: view-version.representations[0].sql is empty"),
    ],
)
def test_representations_that_no_engine_could_use_are_refused(
    representations: list[Any], message: str
) -> None:
    error = refused(create_body(view_version=version(representations=representations)))
    assert error.message.startswith(message)
    assert isinstance(error, InvalidView)


def nested(depth: int) -> list[Any]:
    value: list[Any] = []
    for _ in range(depth):
        value = [value]
    return value


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (2**63, "x is a number of more than 64 bits"),
        pytest.param(-(10**5000), "x is a number of more than 64 bits", id="5000 digits"),
        (float("nan"), "x is nan"),
        (float("inf"), "x is inf"),
        ("\ud800", "x holds half of a surrogate pair"),
        ({"\udfff": 1}, r"x.'\udfff' holds half of a surrogate pair"),
        ([{"y": float("-inf")}], "x[0].y is -inf"),
        (nested(100), "x[0]"),
        (nested(100_000), "x[0]"),
    ],
)
def test_what_cannot_be_stored_is_refused_even_in_fields_we_do_not_know(
    value: object, message: str
) -> None:
    for error in (
        refused(create_body(x=value)),
        refused({"updates": [], "x": value}, read_replace),
    ):
        assert error.message.startswith(message)
        assert len(error.message) < 400
        error.message.encode()


def test_fields_we_do_not_know_may_be_deep_within_reason() -> None:
    read_create(create_body(x=nested(90)))


def test_a_message_stays_short_and_printable() -> None:
    error = refused(create_body(properties={"k" * 10_000 + "\n": "\x00", "é" * 5000: 5}))
    assert len(error.message) < 400
    assert error.message.isprintable()
