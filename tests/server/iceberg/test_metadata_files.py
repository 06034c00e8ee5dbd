"""The files that replacing a view writes: where they are, how they are called, what they hold."""

import re

import pytest

from tests.harness.clients.iceberg import Iceberg, Namespace, View
from tests.harness.clients.iceberg_views import (
    Json,
    add_schema,
    add_version,
    local,
    new_version,
    read_metadata,
    remove_properties,
    set_current,
    set_location,
    set_properties,
    sql,
)

OTHER = sql(text="select 2")
CODEC = "write.metadata.compression-codec"
PATH = "write.metadata.path"


@pytest.fixture
def view(ns: Namespace) -> View:
    return ns.create_view(properties={"a": "b"})


@pytest.mark.parametrize(
    "updates",
    [
        [set_properties(a="c")],
        [remove_properties("a")],
        [add_schema()],
        [add_version(OTHER, version_id=2)],
        new_version(OTHER),
        [add_schema(), *new_version(OTHER, schema_id=-1)],
    ],
)
def test_every_change_writes_a_new_file(view: View, updates: list[Json]) -> None:
    known = view.load()
    changed = view.replace(*updates)
    assert changed.location != known.location
    assert changed.metadata != known.metadata
    assert read_metadata(changed.location) == changed.metadata == view.load().metadata
    # Whoever has read the catalog a moment ago may still read the file that it named.
    assert read_metadata(known.location) == known.metadata


def test_going_back_and_forth_makes_new_files_each_time(view: View) -> None:
    view.replace(*new_version(OTHER))
    locations = {view.replace(set_current(n)).location for n in (1, 2, 1, 2)}
    assert len(locations) == 4


def test_files_are_numbered_and_compressed(view: View) -> None:
    shape = re.compile(r"(\d{5})-[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}\.gz\.metadata\.json")
    loaded = [view.load(), *(view.replace(set_properties(n=str(n))) for n in range(3))]
    names = [shape.fullmatch(local(each.location).name) for each in loaded]
    assert [name and name[1] for name in names] == ["00000", "00001", "00002", "00003"]


def test_files_may_be_plain(ns: Namespace) -> None:
    view = ns.create_view(properties={CODEC: "none"})
    location = view.load().location
    assert location.endswith(".metadata.json")
    assert ".gz." not in location
    assert local(location).read_bytes().startswith(b"{")
    assert read_metadata(location) == view.load().metadata


def test_compression_can_be_changed(ns: Namespace) -> None:
    view = ns.create_view(properties={CODEC: "none"})
    packed = view.replace({"action": "set-properties", "updates": {CODEC: "GZIP"}})
    assert packed.location.endswith(".gz.metadata.json")
    plain = view.replace({"action": "set-properties", "updates": {CODEC: "none"}})
    assert ".gz." not in plain.location
    for loaded in (packed, plain):
        assert read_metadata(loaded.location) == loaded.metadata


def test_another_compression_is_refused(ns: Namespace, view: View) -> None:
    answer = view.try_replace({"action": "set-properties", "updates": {CODEC: "zstd"}})
    answer.refused(400, "BadRequestException", CODEC)
    ns.try_create_view("other", properties={CODEC: "zstd"}).refused(400, "BadRequestException")


def test_a_property_moves_the_files_and_the_numbers_go_on(iceberg: Iceberg, view: View) -> None:
    folder = f"file://{iceberg.server.lake}/{view.uuid}/custom"
    moved = view.replace({"action": "set-properties", "updates": {PATH: f"{folder}/"}})
    assert moved.location.startswith(f"{folder}/00001-")
    assert read_metadata(moved.location) == moved.metadata
    back = view.replace(remove_properties(PATH))
    assert back.location.startswith(f"{back.metadata['location']}/metadata/00002-")


def test_after_a_move_the_file_is_below_the_new_location(iceberg: Iceberg, view: View) -> None:
    known = view.load()
    location = f"{iceberg.server.lake}/{view.uuid}/moved"
    moved = view.replace(set_location(f"{location}/"))
    assert moved.metadata["location"] == location
    assert moved.location.startswith(f"{location}/metadata/00001-")
    assert read_metadata(moved.location) == moved.metadata
    assert local(known.location).is_file()


def test_the_numbers_begin_anew_after_a_name_without_one(iceberg: Iceberg, ns: Namespace) -> None:
    view = ns.create_view(location=str(iceberg.server.lake / ns.name))
    known = view.load()
    renamed = local(known.location).with_name("first.gz.metadata.json")
    local(known.location).rename(renamed)
    ns.try_register("registered", renamed.as_uri()).ok()
    changed = View(ns, "registered", view.uuid).replace(set_properties(x="y"))
    assert local(changed.location).name.startswith("00000-")


def test_a_view_whose_file_is_gone_can_be_loaded_and_replaced(view: View) -> None:
    known = view.load()
    local(known.location).unlink()
    assert view.load() == known
    changed = view.replace(set_properties(x="y"))
    assert read_metadata(changed.location) == changed.metadata


@pytest.mark.parametrize("place", ["file://{lake}/a?b#c", "file://{lake}/a%20b", "{lake}/é", "x/y"])
def test_metadata_is_where_its_location_says(ns: Namespace, place: str) -> None:
    where = place.format(lake=f"{ns.client.server.lake}/{ns.name}")
    answer = ns.try_create_view(location=where)
    if answer.status == 400:
        return  # As good: then nobody looks for it.
    location = answer.ok()["metadata-location"]
    assert local(location).is_absolute()
    assert read_metadata(location) == answer.json()["metadata"]


@pytest.mark.parametrize("where", ["/etc/penstock", "file:///etc/penstock", "s3://elsewhere/a"])
def test_files_stay_in_the_lake(view: View, where: str) -> None:
    known = view.load()
    view.try_replace(set_location(where)).refused(403, "ForbiddenException")
    path = {"action": "set-properties", "updates": {PATH: where}}
    view.try_replace(path).refused(403, "ForbiddenException")
    assert view.load() == known


def test_a_refused_change_leaves_no_file(ns: Namespace, view: View) -> None:
    folder = local(view.load().location).parent
    before = sorted(folder.iterdir())
    view.try_replace(set_properties(x="y"), set_current(9)).refused(400, "IllegalArgumentException")
    view.try_replace(*new_version(sql("trino"))).refused(400, "IllegalStateException")
    assert sorted(folder.iterdir()) == before


def test_a_refused_create_leaves_no_file(iceberg: Iceberg, ns: Namespace) -> None:
    folder = iceberg.server.lake / ns.name
    ns.create_view()
    ns.try_create_view(location=str(folder)).refused(409, "AlreadyExistsException")
    bad = [sql("trino"), sql("trino")]
    ns.try_create_view("other", location=str(folder), queries=bad).refused(
        400, "IllegalArgumentException"
    )
    assert not list(folder.rglob("*.metadata.json"))
