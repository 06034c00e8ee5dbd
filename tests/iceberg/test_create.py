"""The first metadata of a view, whatever ids the client sent."""

import uuid

import pytest
from pyiceberg.catalog.rest import CreateViewRequest
from pyiceberg.view.metadata import ViewMetadata

from penstock.errors import InvalidRequest, InvalidView
from penstock.iceberg.create import create_metadata
from penstock.iceberg.metadata import current_representations, current_schema, current_version
from penstock.iceberg.requests import read_create
from tests.iceberg.views import (
    LOCATION,
    NOW,
    UUID,
    column,
    create_body,
    created,
    schema,
    sql,
    version,
)


def test_a_new_view_has_format_one_and_the_uuid_and_location_it_is_given() -> None:
    metadata = created()
    assert metadata["view-uuid"] == UUID
    assert metadata["format-version"] == 1
    assert metadata["location"] == LOCATION


def test_the_schema_gets_id_0_and_keeps_its_field_ids_whatever_was_sent() -> None:
    metadata = created(schema=schema(column(7, "x"), column(3, "y")) | {"schema-id": 42})
    assert [each["schema-id"] for each in metadata["schemas"]] == [0]
    assert [field["id"] for field in current_schema(metadata)["fields"]] == [7, 3]


def test_the_version_gets_id_1_and_schema_0_whatever_was_sent() -> None:
    metadata = created(view_version=version(version_id=99, schema_id=-1))
    assert metadata["current-version-id"] == 1
    assert (current_version(metadata)["version-id"], current_version(metadata)["schema-id"]) == (
        1,
        0,
    )


def test_the_log_has_one_entry_with_the_versions_own_time() -> None:
    metadata = created(view_version=version(timestamp_ms=12345))
    assert metadata["version-log"] == [{"timestamp-ms": 12345, "version-id": 1}]


@pytest.mark.parametrize("missing", [{}, {"timestamp-ms": None}])
def test_a_version_without_a_time_gets_the_servers(missing: dict[str, None]) -> None:
    sent = {k: v for k, v in version().items() if k != "timestamp-ms"} | missing
    metadata = created(view_version=sent)
    assert current_version(metadata)["timestamp-ms"] == NOW
    assert metadata["version-log"][0]["timestamp-ms"] == NOW


def test_the_summary_is_kept_as_sent() -> None:
    metadata = created(view_version=version(summary={"engine-name": "x", "my": "own"}))
    assert current_version(metadata)["summary"] == {"engine-name": "x", "my": "own"}


@pytest.mark.parametrize("properties", [{}, None])
def test_empty_properties_are_left_out_of_the_metadata(properties: object) -> None:
    assert "properties" not in created(properties=properties)


def test_java_leaves_properties_out_when_they_are_empty() -> None:
    body = create_body()
    del body["properties"]
    assert read_create(body).properties == {}


def test_properties_are_kept() -> None:
    assert created(properties={"comment": "mine"})["properties"] == {"comment": "mine"}


def test_a_view_with_two_dialects_shows_both_in_their_order() -> None:
    metadata = created(view_version=version(sql("spark", "s"), sql("trino", "t")))
    assert current_representations(metadata) == [("spark", "s"), ("trino", "t")]


def test_a_default_namespace_may_be_empty_and_a_default_catalog_is_kept() -> None:
    metadata = created(view_version=version(default_namespace=[], default_catalog="cat"))
    assert current_version(metadata)["default-namespace"] == []
    assert current_version(metadata)["default-catalog"] == "cat"


def test_a_default_catalog_of_null_is_left_out() -> None:
    assert "default-catalog" not in current_version(
        created(view_version=version(default_catalog=None))
    )


@pytest.mark.parametrize(
    ("given", "stored"),
    [("s3://b/v/", "s3://b/v"), ("s3://b/v//", "s3://b/v"), ("file:///", "file://")],
)
def test_a_location_loses_the_slash_at_its_end(given: str, stored: str) -> None:
    assert created(location=given)["location"] == stored
    assert read_create(create_body(location=given)).location == stored


@pytest.mark.parametrize("location", ["", "/", "a\x00b", "a\nb"])
def test_a_location_that_names_no_place_is_refused(location: str) -> None:
    with pytest.raises(InvalidView, match=r"^Invalid location: "):
        created(location=location)
    with pytest.raises(InvalidView, match=r"^Invalid location: "):
        read_create(create_body(location=location))


def test_a_location_of_null_is_none() -> None:
    assert read_create(create_body(location=None)).location is None


@pytest.mark.parametrize("entries", ["0", "-3", "many", "", "1.5", "99999999999"])
def test_a_history_that_is_not_positive_is_refused(entries: str) -> None:
    with pytest.raises(InvalidView) as error:
        created(properties={"version.history.num-entries": entries})
    assert error.value.message == f"version.history.num-entries must be positive but was {entries}"


def test_fields_of_a_newer_client_survive_at_every_level() -> None:
    sent_schema = schema(column(1, "a", "long", flavour={"x": [1]}), note="s")
    sent_version = version(sql(hint=[None]), newer={"y": 1.5})
    metadata = created(schema=sent_schema, view_version=sent_version)
    assert metadata["schemas"][0] == {**sent_schema, "schema-id": 0}
    assert metadata["versions"][0] == sent_version


def test_a_body_of_pyiceberg_is_understood() -> None:
    sent = CreateViewRequest.model_validate(create_body(location=None, properties={"n": 3}))
    import msgspec

    request = read_create(msgspec.json.decode(sent.model_dump_json()))
    metadata = create_metadata(request, uuid=UUID, location=LOCATION, now_millis=NOW)
    assert ViewMetadata.model_validate(metadata).properties == {"n": "3"}


def test_what_is_created_is_read_by_pyiceberg() -> None:
    view = ViewMetadata.model_validate(created(properties={"a": "b"}))
    assert (view.view_uuid, view.current_version_id, len(view.schemas)) == (UUID, 1, 1)
    assert uuid.UUID(view.view_uuid)


@pytest.mark.parametrize("name", ["", ".", "a\x00", 5, None, "x" * 300])
def test_a_name_that_is_not_legal_is_refused(name: object) -> None:
    with pytest.raises(InvalidRequest):
        read_create(create_body(name=name))
