"""Registering views: metadata files that exist already, with their history."""

from pathlib import Path
from typing import Any

import pytest

from tests.harness.clients.iceberg import Iceberg, Namespace, View
from tests.harness.clients.iceberg_views import (
    Json,
    LoadedView,
    local,
    new_version,
    read_metadata,
    set_properties,
    sql,
    write_metadata,
)

OTHER = sql(text="select 2")


@pytest.fixture
def known(ns: Namespace) -> LoadedView:
    """A view with two versions, that is left to its own files."""
    view = ns.create_view("known", properties={"gc.enabled": "false"})
    loaded = view.replace(*new_version(OTHER))
    view.drop().done()
    return loaded


@pytest.fixture
def folder(iceberg: Iceberg, ns: Namespace) -> Path:
    return iceberg.server.lake.resolve() / ns.name


def test_a_registered_view_has_its_uuid_and_its_history(ns: Namespace, known: LoadedView) -> None:
    answer = ns.try_register("view", known.location).ok()
    assert answer["metadata-location"] == known.location
    assert answer["metadata"] == known.metadata == ns.view().load().metadata
    assert ns.view_names() == ["view"]


@pytest.mark.parametrize("name", ["v1.metadata.json", "00007-a.gz.metadata.json"])
def test_files_of_others_are_read_compressed_or_not(
    ns: Namespace, known: LoadedView, folder: Path, name: str
) -> None:
    location = write_metadata(folder / name, known.metadata)
    ns.try_register("view", location).ok()
    assert ns.view().load() == LoadedView(location, known.metadata)


@pytest.mark.parametrize("scheme", ["", "file:", "file://"])
def test_a_file_is_found_in_each_spelling(ns: Namespace, known: LoadedView, scheme: str) -> None:
    location = f"{scheme}{local(known.location)}"
    assert ns.try_register("view", location).ok()["metadata-location"] == location
    ns.view().try_load().ok()


def test_a_registered_view_goes_on_where_it_was(
    ns: Namespace, known: LoadedView, folder: Path
) -> None:
    location = write_metadata(folder / "00041-x.metadata.json", known.metadata)
    ns.try_register("view", location).ok()
    view = View(ns, "view", known.metadata["view-uuid"])
    changed = view.replace(*new_version(sql(text="select 3")))
    assert changed.version_ids == [1, 2, 3]
    assert Path(changed.location).name.startswith("00042-")
    assert read_metadata(changed.location) == changed.metadata


def test_fields_that_a_newer_catalog_wrote_are_kept(
    ns: Namespace, known: LoadedView, folder: Path
) -> None:
    newer = {**known.metadata, "max-staleness-ms": 1}
    location = write_metadata(folder / "v1.metadata.json", newer)
    assert ns.try_register("view", location).ok()["metadata"] == newer
    changed = View(ns, "view", known.metadata["view-uuid"]).replace(set_properties(a="b"))
    assert changed.metadata["max-staleness-ms"] == 1


def test_a_namespace_must_exist(iceberg: Iceberg, known: LoadedView) -> None:
    answer = iceberg.namespace("nowhere").try_register("view", known.location)
    answer.refused(404, "NoSuchNamespaceException", "Namespace does not exist: nowhere")


@pytest.mark.parametrize("missing", ["nothing.metadata.json", "no/such/folder.metadata.json", "."])
def test_a_file_must_exist(ns: Namespace, folder: Path, missing: str) -> None:
    folder.mkdir()
    answer = ns.try_register("view", f"{folder}/{missing}")
    answer.refused(404, "NotFoundException")
    assert not ns.view().exists()


@pytest.mark.parametrize("location", ["/etc/passwd", "file:///etc/passwd", "s3://bucket/v.json"])
def test_a_file_must_be_in_the_lake(ns: Namespace, location: str) -> None:
    message = ns.try_register("view", location).refused(403, "ForbiddenException")
    assert "root:" not in message


@pytest.mark.parametrize("location", ["http://127.0.0.1:1/v.json", "ftp://a/b", "jdbc:x://y/z"])
def test_no_other_scheme_is_followed(ns: Namespace, location: str) -> None:
    ns.try_register("view", location).refused(400, "BadRequestException")


def test_a_link_does_not_lead_out_of_the_lake(ns: Namespace, folder: Path) -> None:
    folder.mkdir()
    (folder / "out").symlink_to("/etc")
    ns.try_register("view", f"{folder}/out/passwd").refused(403, "ForbiddenException")
    (folder / "v.metadata.json").symlink_to("/etc/passwd")
    answer = ns.try_register("view", f"{folder}/v.metadata.json")
    assert answer.status in (403, 404)


def test_a_location_in_the_file_must_be_in_the_lake(
    ns: Namespace, known: LoadedView, folder: Path
) -> None:
    outside = {**known.metadata, "location": "/etc/penstock"}
    location = write_metadata(folder / "v1.metadata.json", outside)
    ns.try_register("view", location).refused(403, "ForbiddenException")


@pytest.mark.parametrize("raw", [b"", b"{", b"[]", b"\x1f\x8bnot gzip", b"\xff\xfe"])
def test_a_file_must_be_json(ns: Namespace, folder: Path, raw: bytes) -> None:
    folder.mkdir()
    (folder / "v1.metadata.json").write_bytes(raw)
    answer = ns.try_register("view", f"{folder}/v1.metadata.json")
    answer.refused(400, "IllegalArgumentException")


@pytest.mark.parametrize(
    "change",
    [
        {"view-uuid": None},
        {"view-uuid": "x"},
        {"format-version": 2},
        {"location": None},
        {"schemas": []},
        {"versions": []},
        {"current-version-id": 9},
        {"version-log": []},
        {"properties": {"a": 1}},
        {"table-uuid": "this is a table", "versions": None},
    ],
)
def test_a_file_must_hold_a_view(
    ns: Namespace, known: LoadedView, folder: Path, change: Json
) -> None:
    location = write_metadata(folder / "v1.metadata.json", {**known.metadata, **change})
    ns.try_register("view", location).refused(400, "IllegalArgumentException")
    assert not ns.view().exists()


@pytest.mark.parametrize(
    "body", [{}, {"name": "v"}, {"name": "v", "metadata-location": 1}, {"metadata-location": "x"}]
)
def test_a_request_needs_a_name_and_a_location(ns: Namespace, body: Any) -> None:
    ns.client.post(f"{ns.path}/register-view", body).refused(400, "BadRequestException")


def test_a_file_that_was_written_again_is_read_again(
    ns: Namespace, known: LoadedView, folder: Path
) -> None:
    kept = {**known.metadata, "properties": {"gc.enabled": "false"}}
    location = write_metadata(folder / "v1.metadata.json", kept)
    ns.try_register("view", location).ok()
    ns.view().load()
    ns.view().drop().done()
    newer = {**kept, "properties": {"gc.enabled": "false", "written": "again"}}
    write_metadata(folder / "v1.metadata.json", newer)
    assert ns.try_register("view", location).ok()["metadata"] == newer
    assert ns.view().load().metadata == newer
