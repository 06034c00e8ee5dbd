"""Whatever JSON a client sends is accepted whole, or refused with an error of ours."""

import copy
from collections.abc import Callable
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyiceberg.view.metadata import ViewMetadata

from penstock.errors import PenstockError
from penstock.iceberg.create import create_metadata
from penstock.iceberg.files import next_metadata_path
from penstock.iceberg.history import HISTORY_ENTRIES as HISTORY
from penstock.iceberg.metadata import Json, properties
from penstock.iceberg.register import check_metadata
from penstock.iceberg.replace import DROP_DIALECT_ALLOWED as DROP
from penstock.iceberg.replace import replace_metadata
from penstock.iceberg.requests import UPDATES, read_create, read_replace
from tests.iceberg.views import (
    LOCATION,
    NOW,
    UUID,
    column,
    create_body,
    remove_properties,
    schema,
    set_current,
    set_location,
    set_properties,
    sql,
    version,
    with_versions,
)

names = st.sampled_from(
    [
        *("type", "fields", "id", "name", "required", "doc", "element", "element-id", "key"),
        *("initial-default", "identifier-field-ids", "schema-id", "self", "schema", "properties"),
        *("version-id", "timestamp-ms", "summary", "representations", "default-namespace"),
        *("action", "uuid", "updates", "removals", "location", "view-version", "requirements"),
    ]
)
scalars = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.sampled_from([0, 1, -1, 2**31, -(2**63) - 1, 10**4000]),
    st.floats(),
    st.text(st.characters(codec=None), max_size=10),
    st.sampled_from(["struct", "list", "map", "int", "sql", "decimal(9,2)", "fixed[3]", "uuid"]),
    st.sampled_from([*UPDATES, "assert-view-uuid", "\ud800", ""]),
)
keys = names | st.text(st.characters(codec=None), max_size=5)
anything = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(keys, inner, max_size=5),
    max_leaves=15,
)


def places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """The path of every value within a value."""
    found = [path] if path else []
    if isinstance(value, dict | list):
        inner = value.items() if isinstance(value, dict) else enumerate(value)
        for key, each in inner:
            found += places(each, (*path, key))
    return found


def put(value: Any, path: tuple[Any, ...], new: Any) -> Any:
    """The value with something else at a path."""
    if not path:
        return new
    copied = copy.copy(value)
    copied[path[0]] = put(value[path[0]], path[1:], new)
    return copied


FULL_SCHEMA = schema(
    column(1, "a", "long", required=True, doc="d", **{"initial-default": 1}),
    column(
        2,
        "b",
        {
            "type": "struct",
            "fields": [
                column(
                    3,
                    "l",
                    {"type": "list", "element-id": 4, "element": "int", "element-required": True},
                ),
                column(
                    5,
                    "m",
                    {
                        "type": "map",
                        "key-id": 6,
                        "key": "string",
                        "value-id": 7,
                        "value": "decimal(9,2)",
                        "value-required": False,
                    },
                ),
            ],
        },
    ),
    **{"identifier-field-ids": [1]},
)
FULL_VERSION = version(sql("spark"), sql("trino"), default_catalog="c")
CREATE = create_body(
    schema=FULL_SCHEMA, view_version=FULL_VERSION, location="s3://b", properties={"a": "b"}
)
REPLACE: Json = {
    "identifier": {"namespace": ["a"], "name": "v"},
    "requirements": [{"type": "assert-view-uuid", "uuid": UUID}],
    "updates": [
        {"action": "assign-uuid", "uuid": UUID},
        {"action": "upgrade-format-version", "format-version": 1},
        {"action": "add-schema", "schema": FULL_SCHEMA},
        {"action": "add-view-version", "view-version": {**FULL_VERSION, "schema-id": -1}},
        set_current(),
        set_properties({HISTORY: "3", DROP: "true"}, a="b"),
        remove_properties("c"),
        set_location("s3://b"),
    ],
}
STORED = with_versions(3)
PLACES = {
    "create": (CREATE, places(CREATE)),
    "replace": (REPLACE, places(REPLACE)),
    "register": (STORED, places(STORED)),
}


def create(body: Any) -> Json:
    request = read_create(body)
    location = request.location or LOCATION
    return create_metadata(request, uuid=UUID, location=location, now_millis=NOW)


def replace(body: Any) -> Json:
    return replace_metadata(STORED, read_replace(body), NOW)


RUN: dict[str, Callable[[Any], Json]] = {
    "create": create,
    "replace": replace,
    "register": check_metadata,
}


def run(what: str, body: Any) -> Json | None:
    """Do what the server does with a body; None is a refusal that a client can be told."""
    try:
        metadata = RUN[what](body)
        next_metadata_path(metadata["location"], properties(metadata), None, UUID)
        return metadata
    except PenstockError as error:
        message = error.message
    message.encode()
    assert len(message) < 1000
    assert "pydantic" not in message
    return None


@settings(max_examples=300, deadline=None)
@given(st.sampled_from([*PLACES]), anything)
def test_arbitrary_json_is_refused_politely(what: str, body: Any) -> None:
    assert run(what, body) is None


@settings(max_examples=500, deadline=None)
@given(st.sampled_from([*PLACES]), st.data())
def test_a_good_body_with_anything_anywhere_is_accepted_whole_or_refused_politely(
    what: str, data: st.DataObject
) -> None:
    body, known = PLACES[what]
    metadata = run(what, put(body, data.draw(st.sampled_from(known)), data.draw(anything)))
    if metadata is not None:
        assert msgspec.json.decode(msgspec.json.encode(metadata)) == metadata
        ViewMetadata.model_validate(metadata)
        assert check_metadata(metadata) == metadata


@pytest.mark.parametrize("what", [*PLACES])
def test_the_good_bodies_are_good(what: str) -> None:
    assert run(what, PLACES[what][0]) is not None


@pytest.mark.parametrize("what", [*PLACES])
def test_every_field_may_be_missing_and_every_entry_doubled_without_a_crash(what: str) -> None:
    body, known = PLACES[what]
    for *parents, last in known:
        changed = copy.deepcopy(body)
        place: Any = changed
        for key in parents:
            place = place[key]
        if isinstance(last, str):
            del place[last]
        else:
            place.append(place[last])
        run(what, changed)
