"""Iceberg tables in the console: found, looked at, followed to their views, and dropped."""

from pathlib import Path

import pytest
from pyiceberg.catalog.rest import RestCatalog
from pyiceberg.table import Table

from tests.console.conftest import LakeServer
from tests.harness.clients import iceberg_tables
from tests.harness.clients.browser import Page

PAGE = "/iceberg-table/ice/events"


@pytest.fixture
def events(shown: LakeServer) -> Table:
    found: Table = RestCatalog("lake", uri=f"{shown.url}/iceberg").load_table("ice.events")
    return found


def test_it_is_counted_listed_and_found_by_its_kind(console: Page) -> None:
    console.open().see("Iceberg table", "a.figure")
    console.press("Iceberg table").settle()
    assert console.address() == "/catalog?kinds=iceberg_table"
    console.open("/catalog/ice").see("clicks", "td a")
    console.press("Iceberg tables").settle()
    console.miss("clicks", "td a")
    console.press("events").settle()
    assert console.address() == PAGE
    console.open("/access").key("/")
    console.write("Search names", "vent").see("Iceberg table", "dialog li")
    assert console.count("dialog li svg.icon") == 1


def test_its_schema_has_ids_and_what_is_required(console: Page) -> None:
    console.open(PAGE)
    console.see("format 2", ".marks")
    console.see("Catalog", ".side a[aria-current=page]")
    console.see("5 rows", ".marks")
    shown = [console.see(each, "tbody tr").text for each in ("long", "string")]
    assert shown[0].split() == ["1", "id", "long", "required,", "key"]
    assert shown[1].split() == ["2", "kind", "What", "happened.", "string"]


def test_its_snapshots_stand_in_a_line_with_their_refs_and_rows(
    console: Page, events: Table
) -> None:
    console.open(f"{PAGE}?tab=snapshots")
    lines = console.driver.find_elements("css selector", ".versions li")
    snapshots = sorted(events.snapshots(), key=lambda each: each.sequence_number or 0)[::-1]
    # To the last digit, which JSON's reader in a browser would lose.
    assert [each.get_attribute("data-snapshot") for each in lines] == [
        str(each.snapshot_id) for each in snapshots
    ]
    texts = [each.text for each in lines]
    assert "current" in texts[0]
    assert "branch" in texts[0]
    assert "main" in texts[0]
    assert "append" in texts[-1]
    assert "+6 rows" in texts[-1]
    assert "launch" in texts[-1]
    assert "trial" in texts[-1]
    assert any("\N{MINUS SIGN}" in each and "rows" in each for each in texts[:-1])


def test_its_layout_has_partitions_order_properties_and_files(console: Page, events: Table) -> None:
    console.open(f"{PAGE}?tab=layout")
    console.see("bucket[4](id)", "td code")
    console.see("id_bucket", "td")
    console.see("asc", "td")
    console.see("the tests", "td code")
    console.see(events.location(), "dd code")
    console.see(events.metadata_location, "dd code")


def test_the_views_that_read_it_are_told_and_drawn(console: Page) -> None:
    console.open(f"{PAGE}?tab=readers")
    console.see("ice.clicks", "td a")
    way = str(console.see("Lineage", ".page-title a").get_attribute("href"))
    assert way == f"{console.url}/console/lineage/ice/events?kind=iceberg_table"
    console.open(way.removeprefix(f"{console.url}/console"))
    console.see("events", "a.node.root.iceberg_table")
    console.see("clicks", "a.node.materialized_view")
    assert console.count("path.edge") == 1
    console.open("/lineage/ice/clicks?kind=table")
    node = console.see("events", "a.node.iceberg_table")
    assert node.get_attribute("aria-label") == "Iceberg table ice.events"
    assert str(node.get_dom_attribute("href")).endswith("ice/events?kind=iceberg_table")


def test_a_drop_names_what_reads_the_table_and_is_refused(console: Page, events: Table) -> None:
    console.open(PAGE).press("Drop")
    console.see("ice.clicks", "dialog a.object")
    assert console.count("dialog [name=cascade]") == 0
    console.write("to confirm", "events").press("Drop the table")
    console.see("clicks", "dialog [role=alert]")
    assert events.refresh().metadata.current_snapshot_id is not None


@pytest.mark.parametrize("purge", [False, True])
def test_files_go_with_a_drop_only_when_that_is_ticked(
    console: Page, shown: LakeServer, purge: bool
) -> None:
    name = f"gone{purge}"
    made = iceberg_tables.make(shown.server, "ice", name)
    folder = Path(made["metadata"]["location"].removeprefix("file://"))
    console.open(f"/iceberg-table/ice/{name}").press("Drop")
    console.see("Nothing depends on it", "dialog")
    console.see(made["metadata"]["location"], "dialog code")
    if purge:
        console.driver.execute_script("document.querySelector('dialog [name=purge]').click()")
    console.write("to confirm", name).press("Drop the table")
    console.see(f"{name} was dropped", ".toast")
    assert console.address() == "/catalog/ice"
    assert folder.exists() is not purge


def test_a_table_that_may_not_be_purged_is_not_offered_to_be(
    console: Page, shown: LakeServer
) -> None:
    iceberg_tables.make(shown.server, "ice", "kept", properties={"gc.enabled": "false"})
    console.open("/iceberg-table/ice/kept").press("Drop")
    console.see("its files are not deleted", "dialog")
    assert console.count("dialog [name=purge]") == 0


def test_one_that_is_not_there_is_told_in_the_servers_words(console: Page) -> None:
    console.open("/iceberg-table/ice/nothing")
    console.see("does not exist: ice.nothing", "[role=alert]")
