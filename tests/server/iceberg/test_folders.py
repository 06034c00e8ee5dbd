"""Folders of views: nothing that goes with a view belongs to somebody else, nor the other way."""

from pathlib import Path

import pytest

from tests.harness.clients.iceberg import Iceberg, Namespace, View
from tests.harness.clients.iceberg_views import create_body, local, set_properties, sql
from tests.harness.data import arrow
from tests.harness.data.tables import declare
from tests.harness.processes import servers


@pytest.mark.parametrize("below", ["", "/data.lance", "/metadata"])
def test_no_table_lies_in_the_folder_of_a_view(ns: Namespace, view: View, below: str) -> None:
    where = f"{local(view.load().metadata['location'])}{below}"
    path = f"/v1/table/{ns.lance_id}$t/declare"
    answer = ns.client.server.post(path, {"location": where})
    assert (answer.status_code, answer.json()["code"]) == (409, 5)


def test_no_view_goes_where_a_namespace_points_into_a_table(
    iceberg: Iceberg, ns: Namespace
) -> None:
    table = declare(iceberg.server, f"{ns.lance_id}$t").location
    other = iceberg.new_namespace(location=f"{table}/views")
    other.try_create_view().refused(400, "BadRequestException")
    assert not list(Path(table).rglob("*.json"))


def test_no_view_goes_where_a_namespace_points_into_another_view(
    iceberg: Iceberg, view: View
) -> None:
    folder = local(view.load().metadata["location"])
    other = iceberg.new_namespace(location=str(folder))
    other.try_create_view().refused(400, "BadRequestException")


def test_the_metadata_of_a_view_is_not_registered_again(iceberg: Iceberg, ns: Namespace) -> None:
    view = ns.create_view(location=str(iceberg.server.lake / ns.name))
    answer = ns.try_register("other", view.load().location)
    assert f"{ns.lance_id}$view" in answer.refused(400, "BadRequestException")


def test_a_file_too_large_for_metadata_is_not_read(iceberg: Iceberg, ns: Namespace) -> None:
    folder = iceberg.server.lake / ns.name
    folder.mkdir()
    big = folder / "big.metadata.json"
    with big.open("wb") as file:
        file.truncate(1 << 30)
    ns.try_register("view", str(big)).refused(400, "IllegalArgumentException")
    big.unlink()


def test_a_file_in_the_place_of_a_folder_is_a_bad_location(iceberg: Iceberg, ns: Namespace) -> None:
    folder = iceberg.server.lake / ns.name
    folder.mkdir()
    (folder / "metadata").write_text("in the way")
    ns.try_create_view(location=str(folder)).refused(400, "BadRequestException")


def test_a_view_whose_folder_became_a_file_can_be_dropped(iceberg: Iceberg, ns: Namespace) -> None:
    folder = iceberg.server.lake / ns.name
    view = ns.create_view(location=str(folder))
    (folder / "metadata").rename(folder / "elsewhere")
    (folder / "metadata").write_text("in the way")
    view.drop().done()


@pytest.mark.slow
@pytest.mark.parametrize("name", ["my läke", "100% lake", "a?b#c"])
def test_views_live_in_a_lake_with_any_path(tmp_path: Path, name: str) -> None:
    data = tmp_path / name
    with servers.running(data) as server:
        ns = Iceberg(server).new_namespace("ns")
        location = ns.create_view().load().location
        assert Path(location.removeprefix("file://")).is_file()


def test_dropping_a_namespace_cancels_the_jobs_of_its_tables(
    iceberg: Iceberg, ns: Namespace
) -> None:
    server, table = iceberg.server, f"/v1/table/{ns.lance_id}$t"
    arrow.send(server, f"{table}/create", arrow.people(1)).raise_for_status()
    column = {"new_columns": [{"name": "double", "computed": "id * 2"}]}
    server.post(f"{table}/add_columns", column).raise_for_status()
    job = server.post(f"{table}/backfill_column", {"column": "double"}).json()["job_id"]
    body = {"behavior": "Cascade"}
    server.post(f"/v1/namespace/{ns.lance_id}/drop", body).raise_for_status()
    assert server.post(f"/v1/transaction/{job}/describe").json()["status"] == "CANCELED"


def test_a_change_of_properties_keeps_the_marks(ns: Namespace) -> None:
    body = create_body("v", queries=[sql("spark", "SELEC nothing")])
    ns.client.post(f"{ns.path}/views", body).ok()
    view = View(ns, "v", View(ns, "v").load().metadata["view-uuid"])
    marks = view.load().properties
    assert view.replace(set_properties(a="b")).properties == {**marks, "a": "b"}
