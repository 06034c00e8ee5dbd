"""Names and values that somebody chose to do harm, or that are larger than anybody expects."""

from collections.abc import Iterator
from urllib.parse import quote

import pyarrow as pa
import pytest

import penstock
from tests.console.conftest import LakeServer
from tests.harness.clients import iceberg_tables
from tests.harness.clients.browser import Page
from tests.harness.processes import servers

SCRIPT = "<script>window.harmed = 1</script>"
# Without a dot, which Lance does not take in names of columns.
IMAGE = "<img src=x onerror='harmed=1'>"
BIDI = "report\u202egnp.exe"
ICE = "ice/%2F..<i>berg</i>\u202e"
LONG = 10_000_000
WIDE = 2000


@pytest.fixture(scope="module")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LakeServer]:
    with servers.running(tmp_path_factory.mktemp("data")) as server:
        lake = penstock.connect(server.url)
        lake.create_namespace([SCRIPT])
        rows = [{"id": 1, IMAGE: SCRIPT, "name": BIDI}, {"id": 2, IMAGE: IMAGE, "name": "x"}]
        lake.create_table([SCRIPT, IMAGE], rows)
        lake.create_table([SCRIPT, BIDI], [{"id": 1}])
        lake.create_table([SCRIPT, "a/b%2F..c"], [{"id": 1}])
        lake.create_table([SCRIPT, "long"], [{"id": 1, "text": "é" * LONG}])
        lake.create_table(
            [SCRIPT, "wide"], pa.table({f"column_{each}": [each] for each in range(WIDE)})
        )
        svg = b"<svg xmlns='http://www.w3.org/2000/svg' onload='window.harmed=1'></svg>"
        lake.create_table([SCRIPT, "bytes"], pa.table({"blob": [svg, b"\x00" * 5000]}))
        iceberg_tables.create(
            quote(SCRIPT, safe=""),
            ICE,
            schema=iceberg_tables.schema(IMAGE),
            properties={IMAGE: SCRIPT},
        ).send(server).raise_for_status()
        yield LakeServer(server, lake)


@pytest.fixture
def pit(page: Page, hostile: LakeServer) -> Iterator[Page]:
    page.url = hostile.url
    yield page
    assert page.driver.execute_script("return window.harmed") is None


def test_names_that_are_markup_are_names(pit: Page) -> None:
    pit.open("/catalog").see(SCRIPT, ".tree a")
    pit.press(SCRIPT).settle()
    pit.see(SCRIPT, "h1")
    pit.see(IMAGE, "td a")
    pit.press(IMAGE).settle()
    pit.see(IMAGE, "h1")
    pit.see(SCRIPT, "td .text")
    assert pit.count("main script, main img:not(.thumb)") == 0
    assert SCRIPT in pit.driver.title or IMAGE in pit.driver.title
    pit.press("Schema").see(IMAGE, "td")
    pit.open(pit.address().replace("/table/", "/lineage/"))
    pit.see("<img", "a.node text")


def test_text_that_turns_direction_turns_nothing_around_it(pit: Page) -> None:
    pit.open("/catalog").press(SCRIPT).settle()
    assert pit.see("U+202E", ".hidden-char").text == "U+202E"
    pit.press("gnp.exe").settle()
    pit.see("U+202E", "h1")
    isolated = "return getComputedStyle(document.querySelector('h1 bdi')).unicodeBidi"
    assert "isolate" in pit.driver.execute_script(isolated)


def test_names_with_slashes_and_percents_have_addresses(pit: Page) -> None:
    pit.open("/catalog").press(SCRIPT).settle()
    pit.press("a/b%2F..c").settle()
    pit.see("1 row", ".marks")
    pit.open(pit.address())
    pit.see("a/b%2F..c", "h1")


def test_ten_million_characters_are_cut_and_come_whole_when_asked_for(pit: Page) -> None:
    pit.open("/catalog").press(SCRIPT).settle().press("long").settle()
    pit.see("10,000,000 characters", "td")
    assert len(pit.text()) < 10_000
    pit.press("10,000,000 characters")
    pit.see("the first 1,000,000 of 10,000,000 characters", "dialog")


def test_two_thousand_columns_come_some_at_a_time(pit: Page) -> None:
    pit.open("/catalog").press(SCRIPT).settle().press("wide").settle()
    pit.see("40 of 2,000 columns", ".toolbar span")
    assert pit.count("table.grid th") == 40
    pit.press("Columns after").settle()
    pit.see("column_41", "th")
    pit.write("Find columns", "column_1999")
    pit.see("1 of 1 columns", ".toolbar span")
    pit.see("column_1999", "th")
    pit.press("Schema").see("Show more columns", "button")
    assert pit.count("table.list tbody tr") == 200


def test_bytes_that_could_run_are_only_downloaded(pit: Page) -> None:
    pit.open("/catalog").press(SCRIPT).settle().press("bytes").settle()
    pit.see("5.0 KB", "td a.blob")
    assert pit.count("td img") == 0
    assert pit.count("td a.blob[download]") == 2


def test_what_others_wrote_into_an_iceberg_table_is_text(pit: Page) -> None:
    pit.open("/catalog").press(SCRIPT).settle().press("Iceberg tables").settle()
    pit.press("ice/%2F..<i>berg</i>").settle()
    assert "<i>berg</i>" in pit.see("U+202E", "h1").text
    pit.see(IMAGE, "td")
    pit.press("Snapshots").see("No snapshots yet")
    pit.press("Layout").see(IMAGE, "td")
    pit.see(SCRIPT, "td code")
    pit.press("Read by").settle().see("No view reads it")
    assert pit.count("main script, main img, main i") == 0
    # What the question asks to be typed has to be what can be typed or pasted.
    pit.press("Drop").see("Nothing depends on it", "dialog")
    assert "<i>berg</i>" in pit.see("berg", "dialog h2").text
    pit.press("Keep").open(pit.address().replace("/iceberg-table/", "/lineage/"))
    pit.see("berg", "a.node.root")
