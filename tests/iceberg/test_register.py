"""Metadata that somebody else wrote: all its parts must fit each other."""

import copy
from typing import Any

import pytest
from pyiceberg.view.metadata import ViewMetadata

from penstock.errors import InvalidView
from penstock.iceberg.register import check_metadata
from tests.iceberg.views import column, created, schema, sql, version, with_versions


def broken(*path: Any, to: Any) -> dict[str, Any]:
    """A view with two versions, with another value at a path."""
    metadata: dict[str, Any] = copy.deepcopy(with_versions(2))
    place: Any = metadata
    for key in path[:-1]:
        place = place[key]
    place[path[-1]] = to
    return metadata


def test_our_own_metadata_is_accepted_as_it_is() -> None:
    metadata = with_versions(5)
    assert check_metadata(metadata) == metadata


def test_the_uuid_the_history_and_unknown_fields_are_kept() -> None:
    metadata = {**with_versions(3), "newer": {"x": 1}}
    metadata["versions"] = [{**each, "y": 2} for each in metadata["versions"]]
    metadata["schemas"] = [{**each, "z": 3} for each in metadata["schemas"]]
    assert check_metadata(metadata) == metadata


def test_a_history_that_names_forgotten_versions_is_accepted() -> None:
    metadata = with_versions(3)
    metadata = {**metadata, "versions": metadata["versions"][1:]}
    assert check_metadata(metadata) == metadata


def test_null_properties_and_a_schema_without_an_id_are_read_by_pyiceberg() -> None:
    metadata = {**created(), "properties": None}
    metadata["schemas"] = [{**schema(), "schema-id": None}]
    accepted = check_metadata(metadata)
    assert "properties" not in accepted
    assert ViewMetadata.model_validate(accepted).schemas[0].schema_id == 0


@pytest.mark.parametrize(
    ("metadata", "message"),
    [
        ([], "Invalid view metadata: the file is a list, not an object"),
        ({}, "Invalid view metadata: format-version is missing"),
        (broken("format-version", to=2), "Unsupported format version: 2"),
        (broken("format-version", to=0), "Unsupported format version: 0"),
        (broken("format-version", to=True), "Invalid view metadata: format-version is true, not"),
        (broken("view-uuid", to=None), "Invalid view metadata: view-uuid is null"),
        (broken("view-uuid", to="x"), "Invalid view metadata: view-uuid is 'x', which is no UUID"),
        (broken("location", to=None), "Invalid location: null"),
        (broken("location", to=""), "Invalid location: ''"),
        (broken("properties", to={"a": 1}), "Invalid view metadata: properties.a is 1, not a str"),
        (broken("schemas", to=None), "Invalid view metadata: schemas is null"),
        (broken("schemas", to=[]), "Invalid view metadata: versions[0] has the unknown schema 0"),
        (
            broken("schemas", to=[schema(), schema()]),
            "Invalid view metadata: schemas has the id 0 twice",
        ),
        (
            broken("schemas", 0, "fields", to=[column(1, "a"), column(1, "b")]),
            "Invalid schema: schemas[0].fields[1].id is 1, as another column's",
        ),
        (broken("versions", to=[]), "Invalid view metadata: current-version-id is 2, which is in"),
        (
            broken("versions", 1, "version-id", to=1),
            "Invalid view metadata: versions has the id 1 twice",
        ),
        (
            broken("versions", 1, "schema-id", to=-1),
            "Invalid view metadata: versions[1] has the unknown schema -1",
        ),
        (
            broken("versions", 1, "timestamp-ms", to=None),
            "Invalid view metadata: versions[1].timestamp-ms is null",
        ),
        (
            broken("versions", 0, to=version(sql("a"), sql("A"))),
            "Invalid view version: Cannot add multiple queries for dialect a",
        ),
        (
            broken("versions", 0, "representations", 0, "type", to="x"),
            "Invalid view version: versions[0].representations[0].type is 'x', which is not known",
        ),
        (
            broken("current-version-id", to=3),
            "Invalid view metadata: current-version-id is 3, which is in none of the versions",
        ),
        (
            broken("current-version-id", to=1),
            "Invalid view metadata: version-log ends with 2, while current-version-id is 1",
        ),
        (broken("version-log", to=[]), "Invalid view metadata: version-log ends with null, while"),
        (
            broken("version-log", 0, "timestamp-ms", to="x"),
            "Invalid view metadata: version-log[0].timestamp-ms is 'x', not an integer",
        ),
        (broken("version-log", 0, to=4), "Invalid view metadata: version-log[0] is 4, not an obj"),
        (broken("more", to=2**70), "Invalid view metadata: more is a number of more than 64 bits"),
    ],
)
def test_metadata_that_contradicts_itself_is_refused(metadata: Any, message: str) -> None:
    with pytest.raises(InvalidView) as error:
        check_metadata(metadata)
    assert error.value.message.startswith(message)
    assert error.value.detail


def test_the_metadata_of_a_table_is_no_view() -> None:
    table = {"format-version": 2, "table-uuid": "x", "location": "s3://b", "schemas": []}
    with pytest.raises(InvalidView):
        check_metadata(table)
