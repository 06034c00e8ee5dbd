"""Loading views: what comes back, in which form, and what is ignored on the way."""

import gzip
import json

import pytest

from tests.harness.clients.iceberg import NOBODY, Iceberg, Namespace, View
from tests.harness.clients.iceberg_views import (
    SPARK,
    LoadedView,
    new_version,
    read_metadata,
    set_properties,
    sql,
    version,
)

LONG = "select '" + "long " * 5_000 + "'"


@pytest.fixture
def long(ns: Namespace) -> View:
    """A view whose answer is worth compressing."""
    return ns.create_view(queries=[sql(text=LONG)])


def test_a_loaded_view_is_what_its_metadata_file_holds(ns: Namespace) -> None:
    answer = ns.create_view(properties={"a": "b"}).try_load()
    found = answer.ok()
    assert set(found) <= {"metadata-location", "metadata", "config"}
    assert read_metadata(found["metadata-location"]) == found["metadata"]
    assert answer.headers["content-length"] == str(len(answer.body))


def test_metadata_has_the_keys_of_the_specification(ns: Namespace) -> None:
    metadata = ns.create_view(properties={"a": "b"}).load().metadata
    assert set(metadata) == {
        *("view-uuid", "format-version", "location", "schemas", "current-version-id"),
        *("versions", "version-log", "properties"),
    }
    assert metadata["format-version"] == 1
    assert set(metadata["version-log"][0]) == {"timestamp-ms", "version-id"}


def test_each_view_has_a_uuid_of_its_own(ns: Namespace) -> None:
    one, two = ns.create_view("one"), ns.create_view("two")
    assert NOBODY not in (one.uuid, two.uuid)
    assert one.uuid != two.uuid


def test_a_new_view_gets_the_first_ids_whatever_was_sent(ns: Namespace) -> None:
    sent = version(SPARK, version_id=7, schema_id=5, timestamp_ms=1_234_567_890_123)
    loaded = ns.create_view(view_version=sent).load()
    assert loaded.current == {**sent, "version-id": 1, "schema-id": 0}
    assert loaded.metadata["version-log"] == [{"timestamp-ms": 1_234_567_890_123, "version-id": 1}]
    assert loaded.schema_ids == [0]
    assert [each["id"] for each in loaded.metadata["schemas"][0]["fields"]] == [3, 4]


def test_a_default_namespace_may_be_empty(ns: Namespace) -> None:
    loaded = ns.create_view(view_version=version(SPARK, default_namespace=[])).load()
    assert loaded.current["default-namespace"] == []


def test_fields_of_a_newer_client_are_kept(ns: Namespace) -> None:
    sent = version(sql(hint="x"), default_catalog="c", **{"storage-table": {"name": "t"}})
    loaded = ns.create_view(view_version=sent).load()
    assert loaded.current["storage-table"] == {"name": "t"}
    assert loaded.current["representations"][0]["hint"] == "x"
    assert read_metadata(loaded.location) == loaded.metadata


def test_a_view_goes_to_a_folder_of_its_own_in_the_lake(iceberg: Iceberg, ns: Namespace) -> None:
    one, two = ns.create_view("one").load(), ns.create_view("two").load()
    lake = iceberg.server.lake.resolve().as_uri()
    assert one.metadata["location"] != two.metadata["location"]
    for loaded in (one, two):
        assert loaded.metadata["location"].startswith(f"{lake}/")
        assert loaded.location.startswith(f"{loaded.metadata['location']}/metadata/00000-")


@pytest.mark.parametrize("scheme", ["", "file:", "file://"])
def test_a_namespace_may_say_where_its_views_go(iceberg: Iceberg, scheme: str) -> None:
    folder = f"{iceberg.server.lake.resolve()}/below"
    ns = iceberg.new_namespace(location=f"{scheme}{folder}")
    location = ns.create_view().load().metadata["location"]
    assert location.startswith(f"file://{folder}/")


@pytest.mark.parametrize("scheme", ["", "file:", "file://"])
def test_a_location_loses_its_last_slash(iceberg: Iceberg, ns: Namespace, scheme: str) -> None:
    location = f"{scheme}{iceberg.server.lake}/{ns.name}"
    loaded = ns.create_view(location=f"{location}/").load()
    assert loaded.metadata["location"] == location
    assert read_metadata(loaded.location) == loaded.metadata


def test_a_long_answer_is_compressed_for_those_who_can_read_it(long: View) -> None:
    plain = long.try_load()
    answer = long.client.ask("GET", long.path, headers={"Accept-Encoding": "deflate, gzip"})
    assert (plain.headers["content-encoding"], answer.headers["content-encoding"]) == (None, "gzip")
    assert len(answer.body) < len(plain.body) / 10
    assert json.loads(gzip.decompress(answer.body)) == plain.ok()
    assert plain.headers["vary"].lower() == answer.headers["vary"].lower() == "accept-encoding"


@pytest.mark.parametrize("accepted", ["gzip;q=0", "identity", "deflate, gzip;q=0, br"])
def test_a_long_answer_is_plain_for_those_who_cannot(long: View, accepted: str) -> None:
    # Once before, so that a compressed one is there to be given.
    long.client.ask("GET", long.path, headers={"Accept-Encoding": "gzip"})
    answer = long.client.ask("GET", long.path, headers={"Accept-Encoding": accepted})
    assert answer.headers["content-encoding"] is None
    assert answer.ok()["metadata"]["view-uuid"] == long.uuid


def test_a_short_answer_is_never_compressed(ns: Namespace) -> None:
    view = ns.create_view()
    answer = view.client.ask("GET", view.path, headers={"Accept-Encoding": "gzip"})
    assert answer.headers["content-encoding"] is None
    assert answer.ok()["metadata"]["view-uuid"] == view.uuid


def test_a_changed_view_is_loaded_changed_in_either_form(long: View) -> None:
    gzipped = {"Accept-Encoding": "gzip"}
    long.client.ask("GET", long.path, headers=gzipped)
    long.try_load().ok()
    changed = long.replace(set_properties(a="b"))
    answer = long.client.ask("GET", long.path, headers=gzipped)
    found = json.loads(gzip.decompress(answer.body))
    assert LoadedView(found["metadata-location"], found["metadata"]) == changed == long.load()


def test_a_view_of_many_versions_is_loaded_whole(ns: Namespace) -> None:
    view = ns.create_view(properties={"version.history.num-entries": "100"})
    for number in range(2, 31):
        view.replace(*new_version(sql(text=f"select {number}")))
    loaded = view.load()
    assert loaded.version_ids == loaded.logged_ids == list(range(1, 31))
    assert loaded.location.rpartition("/")[2].startswith("00029-")


def test_existence_is_told_without_a_body(ns: Namespace) -> None:
    view = ns.create_view()
    found, missing = view.client.head(view.path), view.client.head(ns.view("nothing").path)
    assert (found.status, found.body, missing.status, missing.body) == (204, b"", 404, b"")


def test_what_is_not_about_the_view_is_ignored(ns: Namespace) -> None:
    view = ns.create_view()
    headers = {"X-Iceberg-Access-Delegation": "vended-credentials", "If-None-Match": "*"}
    answer = view.client.ask("GET", view.path, headers=headers, **{"referenced-by": "a\x1fb,c"})
    assert answer.ok() == view.try_load().ok()


def test_names_are_case_sensitive(ns: Namespace) -> None:
    ns.create_view("View")
    ns.view("view").try_load().refused(404, "NoSuchViewException")
    assert ns.create_view("view").load().version_ids == [1]
