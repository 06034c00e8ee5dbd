"""Renaming and dropping views: what becomes of their names, and of their files."""

from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.harness.clients.iceberg import Iceberg, Namespace, View
from tests.harness.clients.iceberg_views import (
    local,
    new_version,
    set_location,
    set_properties,
    sql,
)
from tests.harness.processes.servers import Server

KEPT = {"gc.enabled": "false"}


def drop_all(server: Server, ns: Namespace) -> httpx.Response:
    """What Lance does to a namespace and to all that is in it."""
    return server.post(f"/v1/namespace/{ns.lance_id}/drop", {"behavior": "Cascade"})


def test_the_same_name_is_no_rename(iceberg: Iceberg, view: View) -> None:
    known = view.load()
    iceberg.rename(view, view).done()
    assert view.load() == known


def test_a_renamed_view_can_be_replaced(iceberg: Iceberg, ns: Namespace, view: View) -> None:
    known = view.load()
    target = View(ns, "a/b c", view.uuid)
    iceberg.rename(view, target).done()
    changed = target.replace(*new_version(sql(text="select 2")))
    assert changed.metadata["location"] == known.metadata["location"]
    assert local(changed.location).parent == local(known.location).parent


def test_a_name_that_was_left_is_free(iceberg: Iceberg, ns: Namespace, view: View) -> None:
    iceberg.rename(view, ns.view("other")).done()
    again = ns.create_view()
    assert again.uuid != view.uuid
    assert ns.view_names() == ["other", "view"]


def test_a_missing_target_namespace_is_told_before_a_missing_view(
    iceberg: Iceberg, ns: Namespace
) -> None:
    answer = iceberg.rename(ns.view("nothing"), iceberg.namespace("nowhere").view())
    answer.refused(404, "NoSuchNamespaceException", "Namespace does not exist: nowhere")


def test_a_missing_view_is_told_before_a_taken_name(
    iceberg: Iceberg, ns: Namespace, view: View
) -> None:
    iceberg.rename(ns.view("nothing"), view).refused(404, "NoSuchViewException")


@pytest.mark.parametrize(
    "destination", [None, {}, {"namespace": [], "name": "a"}, {"namespace": ["a"], "name": ""}]
)
def test_a_rename_needs_two_names(view: View, destination: Any) -> None:
    body = {"source": view.identifier, "destination": destination}
    view.client.post("views/rename", body).refused(400, "BadRequestException")
    assert view.exists()


def test_a_dropped_view_leaves_no_files(view: View) -> None:
    folder = local(view.load().metadata["location"])
    view.replace(set_properties(a="b"))
    view.drop().done()
    assert not folder.exists()
    view.drop().refused(404, "NoSuchViewException", f"View does not exist: {view.full_name}")
    view.try_load().refused(404, "NoSuchViewException")


def test_a_moved_view_leaves_no_files_either(iceberg: Iceberg, view: View) -> None:
    folder = local(view.load().metadata["location"])
    moved = view.replace(set_location(f"{iceberg.server.lake}/{view.uuid}"))
    view.drop().done()
    assert not folder.exists()
    assert not local(moved.location).exists()


def test_a_chosen_location_keeps_what_others_put_there(iceberg: Iceberg, ns: Namespace) -> None:
    folder = iceberg.server.lake / ns.name
    view = ns.create_view(location=str(folder))
    (folder / "data.txt").write_text("mine")
    location = view.load().location
    view.drop().done()
    assert not local(location).exists()
    assert (folder / "data.txt").read_text() == "mine"


@pytest.mark.parametrize("field", ["location", "write.metadata.path"])
def test_a_dropped_view_takes_no_file_of_another_along(
    ns: Namespace, view: View, field: str
) -> None:
    inside = f"{view.load().metadata['location']}/other"
    body = {"location": inside} if field == "location" else {"properties": {field: inside}}
    answer = ns.try_create_view("other", **body)
    if answer.status == 400:
        return  # As good: then there is no other.
    location = answer.ok()["metadata-location"]
    view.drop().done()
    assert local(location).is_file()


def test_a_view_may_keep_its_files(ns: Namespace) -> None:
    view = ns.create_view(properties=KEPT)
    locations = [view.load().location, view.replace(set_properties(a="b")).location]
    view.drop().done()
    assert all(local(location).is_file() for location in locations)


def test_a_view_whose_files_are_gone_can_be_dropped(iceberg: Iceberg, ns: Namespace) -> None:
    folder = iceberg.server.lake / ns.name
    view = ns.create_view(location=str(folder))
    local(view.load().location).unlink()
    view.drop().done()
    assert not view.exists()


def test_a_namespace_that_lance_drops_takes_its_views_along(ns: Namespace, view: View) -> None:
    child = ns.child("inner")
    child.create().ok()
    views = [view, child.create_view("deep")]
    folders = [local(each.load().metadata["location"]) for each in views]
    drop_all(ns.client.server, ns).raise_for_status()
    assert not any(each.exists() for each in views)
    assert not any(folder.exists() for folder in folders)
    assert not ns.exists()


def test_views_that_keep_their_files_keep_them_in_a_dropped_namespace(ns: Namespace) -> None:
    location = ns.create_view(properties=KEPT).load().location
    drop_all(ns.client.server, ns).raise_for_status()
    assert local(location).is_file()


def test_metadata_at_a_chosen_location_goes_with_its_namespace(
    iceberg: Iceberg, ns: Namespace
) -> None:
    folder: Path = iceberg.server.lake / ns.name
    location = ns.create_view(location=str(folder)).load().location
    (folder / "data.txt").write_text("mine")
    drop_all(iceberg.server, ns).raise_for_status()
    assert not local(location).exists()
    assert (folder / "data.txt").read_text() == "mine"


def test_lance_refuses_to_drop_a_namespace_with_a_view(ns: Namespace, view: View) -> None:
    answer = ns.client.server.post(f"/v1/namespace/{ns.lance_id}/drop", {})
    assert (answer.status_code, answer.json()["code"]) == (409, 3)
    assert view.exists()


def test_a_namespace_that_lance_overwrites_loses_its_views(ns: Namespace, view: View) -> None:
    folder = local(view.load().metadata["location"])
    body = {"mode": "Overwrite"}
    ns.client.server.post(f"/v1/namespace/{ns.lance_id}/create", body).raise_for_status()
    assert ns.view_names() == []
    assert not folder.exists()
