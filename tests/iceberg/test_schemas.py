"""Schemas: which ones are refused, and how the message names the place."""

from typing import Any

import pytest

from penstock.errors import InvalidRequest, InvalidView
from penstock.iceberg.requests import read_create
from tests.iceberg.views import column, create_body, schema


def check(value: object) -> dict[str, Any]:
    return read_create(create_body(schema=value)).schema


def list_of(element: Any, id: int = 10) -> dict[str, Any]:
    return {"type": "list", "element-id": id, "element": element, "element-required": False}


def map_of(key: Any, value: Any) -> dict[str, Any]:
    sides = {"key-id": 20, "key": key, "value-id": 21, "value": value}
    return {"type": "map", **sides, "value-required": True}


def struct(*fields: Any) -> dict[str, Any]:
    return {"type": "struct", "fields": list(fields)}


PRIMITIVES = [
    *("boolean", "int", "long", "float", "double", "date", "time", "string", "uuid", "binary"),
    *("timestamp", "timestamptz", "timestamp_ns", "timestamptz_ns", "unknown", "variant"),
    *("decimal(38,10)", "decimal( 9 , 2 )", "fixed[16]", "geometry", "geometry(srid:4326)"),
    "geography(srid:4326, spherical)",
]


@pytest.mark.parametrize("type", PRIMITIVES)
def test_every_primitive_type_is_accepted_as_sent(type: str) -> None:
    sent = schema(column(1, "a", type))
    assert check(sent) == sent


def test_nested_types_are_accepted_as_sent() -> None:
    nested = struct(column(5, "x", list_of("int")), column(6, "y", map_of("string", "long")))
    sent = schema(column(1, "a", nested), column(2, "b", list_of(list_of("int", 31), 30)))
    assert check(sent) == sent


def test_a_schema_may_be_empty_and_without_an_id() -> None:
    assert check({"type": "struct", "fields": []}) == {"type": "struct", "fields": []}


def test_null_for_an_optional_field_is_as_good_as_none() -> None:
    sent = schema(**{"identifier-field-ids": None}) | {"schema-id": None}
    assert check(sent) == {"type": "struct", "fields": schema()["fields"]}


def test_names_may_differ_in_case_alone() -> None:
    check(schema(column(1, "a"), column(2, "A")))


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ({}, "schema.type is null, not 'struct'"),
        ({"type": "list", "fields": []}, "schema.type is 'list', not 'struct'"),
        ({"type": "struct"}, "schema.fields is missing"),
        (schema("a"), "schema.fields[0] is 'a', not an object"),  # type: ignore[arg-type]
        (schema({"name": "a", "type": "int", "required": True}), "schema.fields[0].id is missing"),
        (schema(column(True, "a")), "schema.fields[0].id is true, not an integer"),
        (schema(column(2**31, "a")), "schema.fields[0].id is 2147483648"),
        (schema(column(1, 7)), "schema.fields[0].name is 7, not a string"),  # type: ignore[arg-type]
        (schema(column(1, "a", required=1)), "schema.fields[0].required is 1, not true or false"),
        (schema(column(1, "a", required=None)), "schema.fields[0].required is null"),
        (schema(column(1, "a", doc=5)), "schema.fields[0].doc is 5, not a string"),
        (schema(column(1, "a", None)), "schema.fields[0].type is null"),
        (schema(column(1, "a", ["int"])), "schema.fields[0].type is a list, not an object"),
        (schema(column(1, "a", {"type": 5})), "schema.fields[0].type.type is 5, not a string"),
        (schema(column(1, "a", {"type": "struct"})), "schema.fields[0].type.fields is missing"),
        (
            schema(column(1, "a", list_of("int", "x"))),  # type: ignore[arg-type]
            "schema.fields[0].type.element-id is 'x', not an integer",
        ),
        (
            schema(column(1, "a", {**map_of("int", "int"), "value-required": "no"})),
            "schema.fields[0].type.value-required is 'no', not true or false",
        ),
        (schema() | {"schema-id": "0"}, "schema.schema-id is '0', not an integer"),
        (schema(**{"identifier-field-ids": 1}), "schema.identifier-field-ids is 1, not a list"),
        (schema(**{"identifier-field-ids": [None]}), "schema.identifier-field-ids[0] is null, not"),
    ],
)
def test_a_wrong_shape_is_named_by_its_path(value: object, message: str) -> None:
    with pytest.raises(InvalidRequest) as error:
        check(value)
    assert error.value.message.startswith(message)
    assert type(error.value) is InvalidRequest


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (
            schema(column(1, "a"), column(1, "b")),
            "Invalid schema: schema.fields[1].id is 1, as another column's",
        ),
        (
            schema(column(1, "a", list_of("int", 1))),
            "Invalid schema: schema.fields[0].type.element-id is 1, as another column's",
        ),
        (
            schema(column(1, "a"), column(2, "a")),
            "Invalid schema: schema.fields has two columns named 'a'",
        ),
        (
            schema(column(1, "s", struct(column(2, "a"), column(3, "a")))),
            "Invalid schema: schema.fields[0].type.fields has two columns named 'a'",
        ),
        (
            schema(column(1, "a.b"), column(2, "a", struct(column(3, "b")))),
            "Invalid schema: schema: Invalid schema, multiple fields for name a.b",
        ),
        (
            schema(**{"identifier-field-ids": [9]}),
            "Invalid schema: schema.identifier-field-ids names 9, which is no column's id",
        ),
        (schema(**{"identifier-field-ids": [1]}), "Invalid schema: schema: Identifier field 1 inv"),
        (
            schema(column(1, "a", "float", required=True), **{"identifier-field-ids": [1]}),
            "Invalid schema: schema: Identifier field 1 invalid: must not be float or double",
        ),
        (schema(column(1, "a", "varchar")), "schema.fields[0].type is 'varchar', which is no type"),
        (schema(column(1, "a", "")), "schema.fields[0].type is '', which is no type"),
        (schema(column(1, "a", "decimal(39,2)")), "schema.fields[0].type is 'decimal(39,2)', whic"),
        (schema(column(1, "a", "decimal(9,2)x")), "schema.fields[0].type is 'decimal(9,2)x', whic"),
        (schema(column(1, "a", "fixed[-1]")), "schema.fields[0].type is 'fixed[-1]', which is no"),
        (schema(column(1, "a", "fixed[" + "9" * 5000 + "]")), "schema.fields[0].type is 'fixed[99"),
        (
            schema(column(1, "a", list_of("text"))),
            "schema.fields[0].type.element is 'text', which is no type",
        ),
        (
            schema(column(1, "a", {"type": "union"})),
            "schema.fields[0].type.type is 'union', which is no type",
        ),
        (
            schema(column(1, "a", "int", **{"initial-default": {"x": 1}})),
            "Invalid schema: schema.fields[0].initial-default",
        ),
        (
            schema(column(1, "a", "uuid", **{"write-default": "x"})),
            "Invalid schema: schema.fields[0].write-default: badly formed hexadecimal UUID string",
        ),
        (
            schema(column(1, "a", "decimal(9,2)", **{"initial-default": "x"})),
            "Invalid schema: schema has a default that is no value of its column's type",
        ),
        (
            schema(column(1, "a", "fixed[3]", **{"write-default": 3})),
            "Invalid schema: schema has a default that is no value of its column's type",
        ),
        (
            schema(column(1, "a", list_of("int"), **{"write-default": []})),
            "Invalid schema: schema has a default that is no value of its column's type",
        ),
    ],
)
def test_columns_that_contradict_each_other_or_iceberg_are_refused(
    value: object, message: str
) -> None:
    with pytest.raises(InvalidView) as error:
        check(value)
    assert error.value.message.startswith(message)
    assert "pydantic" not in error.value.message
    assert len(error.value.message) < 400


def test_a_default_of_a_type_that_pyiceberg_lacks_is_kept() -> None:
    sent = schema(column(1, "a", "variant", **{"initial-default": {"x": 1}}))
    assert check(sent) == sent


@pytest.mark.parametrize("name", ["self", "fields", "field_id", "name", "root", "__class__", "id"])
def test_a_field_we_do_not_know_may_have_any_name(name: str) -> None:
    sent = schema(column(1, "a", list_of("int") | {f"x-{name}": 1}))
    sent["fields"][0].setdefault(name, {"y": 1})
    sent.setdefault(name, 5)
    assert check(sent) == sent


def nested(kind: str, levels: int) -> dict[str, Any]:
    """A schema with types within types."""
    type: Any = "int"
    for id in range(levels - 1, 0, -1):
        if kind == "struct":
            type = struct(column(id, "s", type))
        elif kind == "list":
            type = list_of(type, id)
        else:
            type = {**map_of("int", type), "key-id": id, "value-id": 1000 + id}
    return schema(column(5000, "a", type))


@pytest.mark.parametrize("kind", ["struct", "list", "map"])
@pytest.mark.parametrize(("levels", "fits"), [(32, True), (33, False), (90, False), (400, False)])
def test_types_within_types_have_a_limit(kind: str, levels: int, fits: bool) -> None:
    sent = nested(kind, levels)
    if fits:
        assert check_below(300, sent) == sent
    else:
        with pytest.raises(InvalidRequest, match=r" more than (32|100) levels deep\n"):
            check(sent)


def check_below(frames: int, value: Any) -> dict[str, Any]:
    """Check with less room on the stack, as a server has it."""
    return check(value) if frames == 0 else check_below(frames - 1, value)
