"""Locations of views: compared in one spelling, and nothing is written for one that is refused."""

import pytest

from tests.harness.clients.iceberg import Iceberg, Namespace
from tests.harness.clients.iceberg_views import local, set_location, set_properties
from tests.harness.data.locations import SPELLINGS, STEPS
from tests.harness.data.tables import declare

REFUSED = (400, "BadRequestException")


def listed(iceberg: Iceberg) -> list[str]:
    """Every file and every folder of the lake."""
    return sorted(str(path) for path in iceberg.server.lake.rglob("*"))


def attacks(iceberg: Iceberg) -> list[str]:
    root = str(iceberg.server.lake.resolve())
    found = [f"{root}/{step}/v" for step in STEPS] + [f"file://{root}/{step}/v" for step in STEPS]
    return found + [spelling.replace("{root}", root) for spelling in SPELLINGS]


def test_no_view_is_created_where_a_location_leads_elsewhere(
    iceberg: Iceberg, ns: Namespace
) -> None:
    before = listed(iceberg)
    for location in attacks(iceberg):
        answer = ns.try_create_view(location=location)
        assert answer.status in (400, 403), (location, answer.body)
    assert ns.view_names() == []
    assert listed(iceberg) == before


def test_no_view_is_moved_or_registered_where_a_location_leads_elsewhere(
    iceberg: Iceberg, ns: Namespace
) -> None:
    view = ns.create_view()
    before, known = listed(iceberg), view.load()
    for location in filter(None, attacks(iceberg)):
        moved = view.try_replace(set_location(location))
        pointed = view.try_replace(set_properties(**{"write.metadata.path": location}))
        registered = ns.try_register("other", location)
        answers = [moved, pointed, registered]
        assert {answer.status for answer in answers} <= {400, 403, 404}, location
    assert view.load() == known
    assert listed(iceberg) == before


@pytest.mark.parametrize("scheme", ["", "file:", "file://"])
def test_the_metadata_of_a_view_is_known_in_every_spelling(
    iceberg: Iceberg, ns: Namespace, scheme: str
) -> None:
    view = ns.create_view(location=str(iceberg.server.lake / ns.name))
    path = local(view.load().location)
    answer = ns.try_register("other", f"{scheme}{path}")
    assert f"{ns.lance_id}$view" in answer.refused(*REFUSED)


def test_a_link_to_the_metadata_of_a_view_is_not_registered(
    iceberg: Iceberg, ns: Namespace
) -> None:
    view = ns.create_view(location=str(iceberg.server.lake / ns.name))
    link = iceberg.server.lake / ns.name / "link.metadata.json"
    link.symlink_to(local(view.load().location))
    assert "is a link" in ns.try_register("other", str(link)).refused(*REFUSED)


def test_a_view_in_a_tables_folder_is_refused_before_anything_is_written(
    iceberg: Iceberg, ns: Namespace
) -> None:
    table = declare(iceberg.server, f"{ns.lance_id}$t").location
    view = ns.create_view("mine")
    before = listed(iceberg)
    for location in (f"{table}", f"{table}/v", f"file://{table}/v/"):
        ns.try_create_view(location=location).refused(*REFUSED)
        view.try_replace(set_location(location)).refused(*REFUSED)
        view.try_replace(set_properties(**{"write.metadata.path": location})).refused(*REFUSED)
    assert listed(iceberg) == before


@pytest.mark.parametrize("name", ["..", ".", "%2e%2e", "..;x", " ", "a/../b", "x\\..\\y"])
def test_a_name_that_leads_elsewhere_is_refused(ns: Namespace, name: str) -> None:
    ns.try_create_view(name).refused(*REFUSED)
    ns.try_register(name, "/x").refused(*REFUSED)
    ns.child(name).create().refused(*REFUSED)
    view = ns.create_view()
    ns.client.rename(view, ns.view(name)).refused(*REFUSED)
