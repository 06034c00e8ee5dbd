"""Each page of the console, on a real lake in a real browser."""

from functools import partial
from pathlib import Path
from xml.etree import ElementTree

import httpx
import pyarrow as pa
import pyarrow.parquet as pq
from selenium.webdriver.common.keys import Keys

from tests.console.conftest import LakeServer
from tests.harness.clients.browser import Page
from tests.harness.processes import servers
from tests.harness.processes.waiting import until

MAX_FIRST_LOAD = 200_000


def has_content(file: Path) -> bool:
    return file.exists() and file.stat().st_size > 0


def has_rows(page: Page, count: int) -> bool:
    return page.count("tbody tr") == count


def test_the_overview_counts_what_there_is_and_tells_which_views_are_behind(console: Page) -> None:
    console.open()
    assert "3" in console.see("Tables", "a.figure").text
    console.see("shop.largest", "td a")
    console.see("no runner has asked", "td")
    console.press("Materialized views").settle()
    assert console.address() == "/catalog?kinds=materialized_view"


def test_an_empty_lake_says_what_to_do_first(page: Page, tmp_path: Path) -> None:
    with servers.running(tmp_path) as server:
        page.url = server.url
        page.open()
        page.see("The lake is empty", "h2")
        page.see(f'penstock.connect("{server.url}")', ".command code")
        assert page.offers("Copy")
        page.open("/catalog")
        page.see("The catalog is empty")
        page.open("/jobs")
        page.see("No jobs yet")
        page.open("/lineage")
        page.see("There are no views yet")


def test_the_catalog_is_walked_by_its_tree_and_searched(console: Page) -> None:
    console.open("/catalog").see("media", ".tree a")
    console.press("media").settle()
    console.see("photos", "td a")
    console.see("frames", "td a")
    console.open("/catalog").write("Search names", "LARG")
    console.see("largest", "td a")
    console.miss("photos", "td a")
    assert "q=LARG" in console.address()
    console.press("shop.largest").settle()
    assert console.address() == "/view/shop/largest"


def test_a_slash_opens_the_search_from_anywhere(console: Page) -> None:
    console.open("/jobs").key("/")
    # The page's own field is nearer.
    assert console.driver.switch_to.active_element.get_attribute("aria-label") == "Table"
    console.open("/access").key("/")
    console.write("Search names", "photo")
    console.see("media.photos", "dialog li")
    console.key(Keys.ENTER).settle()
    assert console.address() == "/table/media/photos"


def test_lineage_is_drawn_and_goes_on_from_any_node(console: Page) -> None:
    console.open("/lineage/shop/orders?kind=table")
    assert "shop.orders" in str(console.see("orders", "a.node.root").get_attribute("aria-label"))
    console.see("largest", "a.node")
    console.see("doubled", "a.node.column")
    assert console.count("path.edge") >= 4
    console.driver.execute_script(
        """document.querySelector("a.node[aria-label^='Materialized view shop.largest']")
          .dispatchEvent(new MouseEvent("click", {bubbles: true, cancelable: true}))"""
    )
    console.see("largest", "a.node.root")
    assert console.address() == "/lineage/shop/largest?kind=table"


def test_the_rows_of_a_table_have_images_as_images_and_vectors_as_lines(console: Page) -> None:
    console.open("/table/media/photos")
    console.see("40 rows")
    assert console.count("table.grid tbody tr") == 40
    console.see("", "img.thumb")
    drawn = "return [...document.images].filter((each) => each.naturalWidth === 48).length"
    until(lambda: console.driver.execute_script(drawn), "no image was drawn")
    assert console.count("svg.sparkline") == 40
    assert console.count("th .column-type") == 6


def test_long_text_unfolds_to_all_of_it(console: Page) -> None:
    console.open("/table/media/photos")
    assert "characters" in console.see("characters", "button.unfold").text
    console.driver.execute_script(
        """[...document.querySelectorAll("button.unfold")].filter(
          (each) => each.textContent.includes("9,246 characters"))[0].click()"""
    )
    console.see("9,246 characters", "dialog")
    whole = "return document.querySelector('dialog pre.whole').textContent.length"
    assert console.driver.execute_script(whole) == 9246
    console.key(Keys.ESCAPE)
    until(lambda: console.count("dialog") == 0, "the dialog stays")


def test_rows_are_filtered_and_their_number_is_told(console: Page) -> None:
    console.open("/table/shop/orders").write("SQL, like", "amount > 80 AND customer = 'Ada'")
    console.press("Show").settle()
    console.see("that fit", "span")
    assert "where=amount" in console.address()
    console.open(console.address())
    console.see("that fit", "span")


def test_a_filter_that_cannot_be_right_is_told_in_the_servers_words(console: Page) -> None:
    console.open("/table/shop/orders").write("SQL, like", "amout > 80", enter=True).settle()
    assert "amout" in console.see("amout", "[role=alert]").text
    console.see("request", "[role=alert]")


def test_rows_are_found_by_words_and_by_the_vector_of_another_row(console: Page) -> None:
    console.open("/table/shop/orders?by=words&where=plum")
    console.see("plum", "td")
    assert console.count("table.grid tbody tr") == 1
    console.open("/table/media/photos").press("64 numbers").press("Find rows like this one")
    console.see("_distance", "th")


def test_columns_tell_their_types_and_where_they_come_from(console: Page) -> None:
    console.open("/table/shop/orders?tab=schema")
    console.see("amount * 2", "code")
    console.see("function ratio of amount", "td")
    console.see("float64", "code")


def test_versions_are_a_line_through_time_and_two_of_them_are_compared(console: Page) -> None:
    console.open("/table/shop/orders?tab=versions")
    console.see("launch", ".tag")
    console.see("", "figure.time-chart")
    for version in (1, 2):
        console.driver.execute_script(
            "document.querySelector(arguments[0]).click()",
            f"input[aria-label='Compare version {version}']",
        )
    console.see("From version 1 to version 2", "p")
    console.press("Version 1").settle()
    console.see("You look at version 1", ".travel")
    assert "version=1" in console.address()
    console.press("Back to the newest").settle()
    assert "version=" not in console.address()


def test_tags_branches_and_indexes_are_listed_made_and_removed(console: Page) -> None:
    console.open("/table/shop/prices?tab=refs").write("Name of a new tag", "autumn").press("Tag it")
    console.see("autumn", "td a")
    console.press("Remove tag autumn")
    console.see("Remove tag autumn", "dialog h2")
    console.press("Remove it")
    console.miss("autumn", "td a")
    console.open("/table/shop/orders?tab=refs")
    console.see("trial", "td a")
    console.see("id_idx", "td")
    console.see("all ", ".state")


def test_computed_columns_tell_their_rows_by_state_and_what_a_backfill_would_do(
    console: Page,
) -> None:
    console.open("/table/shop/orders?tab=columns")
    console.see("495 unfilled", ".state")
    console.press("Explain")
    console.see("everything is computed", ".plan")
    console.see("update", ".bar-label")


def test_jobs_are_listed_by_state_and_kind(console: Page, shown: LakeServer) -> None:
    shown.server.post("/v1/materialized_view/shop$largest/refresh").raise_for_status()
    console.open("/jobs")
    console.see("shop.largest", "td a")
    console.press("failed").settle()
    console.see("No job is like that")
    assert "state=FAILED" in console.address()
    console.press("all").settle()
    console.see("queued", "td .state")
    console.write("Table", "shop.orders", enter=True)
    console.miss("shop.largest", "td a")
    console.write("Table", "shop.largest", enter=True)
    console.see("shop.largest", "td a")


def test_sql_answers_as_a_table_and_is_remembered(console: Page) -> None:
    console.open("/sql").write("SQL", "SELECT name, price FROM shop.prices WHERE name <> 'pear'")
    console.press("Run")
    console.see("2 rows in", "span")
    console.see("apple", "td")
    console.open("/sql")
    console.see("FROM shop.prices WHERE", ".history code")


def test_sql_that_cannot_be_right_is_refused_in_its_place(console: Page) -> None:
    console.open("/sql").write("SQL", "SELECT nothing FROM shop.prices").press("Run")
    console.see("nothing", "[role=alert]")


def test_without_authentication_access_tells_how_to_switch_it_on(console: Page) -> None:
    console.open("/access")
    console.see("Authentication is off", "h2")
    console.see("enabled = true", "pre")


def test_what_is_not_there_is_told_and_the_frame_stays(console: Page) -> None:
    console.open("/table/shop/nothing")
    console.see("table shop$nothing does not exist", "[role=alert]")
    console.open("/nowhere")
    console.see("there is no such page", "[role=alert]")
    console.press("Overview").settle()
    console.see("Overview", "h1")


def test_the_first_load_is_small(shown: LakeServer, console: Page) -> None:
    console.open()
    loaded: list[str] = console.driver.execute_script(
        """return performance.getEntriesByType("resource").map((each) => each.name)
          .filter((each) => each.includes("/console/assets/"))"""
    )
    sizes = {each: len(httpx.get(each).content) for each in loaded}
    assert len(sizes) > 10
    assert sum(sizes.values()) < MAX_FIRST_LOAD
    # All of it is named by the page, so that no module is found only when another one has come.
    page_text = shown.server.get("/console").text
    assert [each for each in sizes if each.removeprefix(shown.url) not in page_text] == []


def test_the_first_page_is_there_within_a_second(console: Page) -> None:
    console.open("/jobs")
    seconds = []
    for _ in range(5):
        console.driver.get("about:blank")
        console.driver.get(f"{console.url}/console")
        console.see("Tables", "a.figure")
        seconds.append(float(console.driver.execute_script("return performance.now()")) / 1000)
    assert min(seconds) < 1, seconds


def test_two_hundred_objects_are_laid_out_without_lying_on_each_other(console: Page) -> None:
    console.open("/lineage/shop/orders?kind=table")
    overlaps, layers, backwards = console.driver.execute_async_script(
        """const done = arguments[arguments.length - 1];
        const home = document.querySelector("script[type=module]").src;
        import(home.replace("main.js", "parts/layers.js")).then(({layout, NODE}) => {
          const nodes = Array.from({length: 200}, (_, n) => ({key: `k${n}`}));
          const edges = nodes.slice(1).flatMap((_, n) => [
            {from: `k${Math.floor(n / 3)}`, to: `k${n + 1}`},
            ...(n % 5 ? [] : [{from: `k${Math.floor(n / 7)}`, to: `k${n + 1}`}])]);
          const circle = layout({nodes, edges: [...edges, {from: "k199", to: "k0"}]});
          const {boxes} = layout({nodes, edges});
          const all = [...boxes.values()];
          const over = all.filter((a, i) => all.some((b, j) => i < j && a.x === b.x
            && a.y < b.y + NODE.height && b.y < a.y + NODE.height));
          const back = edges.filter(({from, to}) => boxes.get(from).x >= boxes.get(to).x);
          const columns = new Set(all.map((box) => box.x)).size;
          done([over.length + 200 - circle.boxes.size, columns, back.length]);
        });"""
    )
    assert (overlaps, backwards) == (0, 0)
    assert 4 <= layers <= 12


def test_the_drawing_is_exported_as_svg_that_needs_no_style_sheet(console: Page) -> None:
    console.open("/lineage/shop/orders?kind=table")
    text = console.driver.execute_async_script(
        """const done = arguments[arguments.length - 1];
        const home = document.querySelector("script[type=module]").src;
        import(home.replace("main.js", "parts/graph.js")).then(async ({exportSvg}) =>
          done(await exportSvg(document.querySelector("svg.graph")).text()));"""
    )
    root = ElementTree.fromstring(text)
    assert root.tag == "{http://www.w3.org/2000/svg}svg"
    rects = root.iter("{http://www.w3.org/2000/svg}rect")
    assert any(each.get("fill", "").startswith("rgb") for each in rects)
    assert "class=" not in text


def test_all_rows_of_a_statement_are_downloaded(console: Page, tmp_path: Path) -> None:
    console.driver.execute_cdp_cmd(
        "Browser.setDownloadBehavior", {"behavior": "allow", "downloadPath": str(tmp_path)}
    )
    console.open("/sql").write("SQL", "SELECT id FROM shop.orders").press("Run")
    console.see("the first 200 rows", "span")
    for name in ("CSV", "Parquet", "Arrow"):
        console.press(name)
        file = tmp_path / f"result.{name.lower()}"
        until(partial(has_content, file), f"{name} never came")
    assert (tmp_path / "result.csv").read_text().count("\n") == 496
    assert pq.read_table(tmp_path / "result.parquet").num_rows == 495
    assert pa.ipc.open_file(tmp_path / "result.arrow").read_all().num_rows == 495


def test_a_drop_asks_names_what_depends_on_it_and_can_take_it_along(
    console: Page, shown: LakeServer
) -> None:
    lake = shown.lake
    lake.create_table("shop.gone", [{"id": 1}])
    lake.create_view("shop.follows", "SELECT id FROM shop.gone")
    console.open("/table/shop/gone").press("Drop")
    console.see("shop.follows", "dialog a.object")
    console.write("to confirm", "gone").press("Drop the table")
    console.see("follows", "dialog [role=alert]")
    console.driver.execute_script("document.querySelector('dialog [name=cascade]').click()")
    console.press("Drop the table")
    console.see("gone was dropped", ".toast")
    assert console.address() == "/catalog/shop"
    console.settle()
    assert not any(console.offers(each) for each in ("gone", "follows"))


def test_a_namespace_with_many_tables_comes_page_by_page(console: Page, shown: LakeServer) -> None:
    shown.lake.create_namespace("many", if_exists="ok")
    for each in range(250):
        shown.server.post(f"/v1/table/many$t{each:03}/declare").raise_for_status()
    console.open("/catalog/many")
    for expected in (100, 200, 250):
        until(partial(has_rows, console, expected), f"{expected} rows never came")
        if expected < 250:
            console.press("Show 100 more")
    assert not console.offers("Show 100 more")
    console.press("t249").settle()
    console.see("It has no rows yet")
    console.see("append", ".command code")
