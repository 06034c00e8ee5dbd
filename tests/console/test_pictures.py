"""A tour of the console over a lake at work, with a real runner; the docs show its pictures.

PENSTOCK_PICTURES=docs/images keeps them there.
"""

import os
import re
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

import penstock
from tests.console.lakes import fill_lake
from tests.harness.clients.browser import Page
from tests.harness.processes import servers
from tests.harness.processes.runners import Team
from tests.harness.processes.servers import Server
from tests.harness.root import ROOT

SPARK = {"PENSTOCK__CLUSTERS": '{"local": {"master": "local[2]"}}'}
PICTURES = ROOT / "docs" / "images"
PAGES = ("docs/guides/console.md", "README.md")
MOST_BYTES = 150_000
WIDE, TALL = (1280, 720), (1280, 860)


@penstock.udf(on_error="skip")
def per_unit(amount: float) -> float:
    if amount < 1:
        raise ValueError(f"amount {amount} is too small to divide by")
    return 100 / amount


@penstock.udf
def sharpness(photo: bytes) -> float:
    time.sleep(0.25)  # a model would look at it here
    return float(len(photo) % 97) / 97


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with servers.running(tmp_path_factory.mktemp("data"), environ=SPARK) as found:
        yield found


@pytest.fixture(scope="module")
def team(served: Server, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Team]:
    found = Team(served, tmp_path_factory.mktemp("runner"), SPARK)
    found.at_least(1)
    yield found
    found.stop()


@pytest.fixture(scope="module")
def worked(served: Server, team: Team) -> penstock.Lake:
    """A lake in which jobs have run, some rows have failed, and a view is behind again."""
    lake = penstock.connect(served.url)
    fill_lake(lake)
    orders = lake.table("shop.orders")
    orders.add_column("per_unit", per_unit, inputs=["amount"])
    lake.create_view(
        "shop.by_product",
        "SELECT product, count(*) AS n, sum(amount) AS total FROM shop.orders GROUP BY product",
    )
    lake.create_view(
        "shop.report",
        "SELECT b.product, b.total, p.price FROM shop.by_product b "
        "JOIN shop.prices p ON b.product = p.name",
    )
    lake.create_view("shop.spenders", "SELECT customer, amount FROM shop.largest")
    lake.create_view(
        "shop.recent",
        "SELECT id, customer, amount FROM shop.orders WHERE id > 250",
        target_lag_seconds=3600,
    )
    orders.backfill("per_unit")
    orders.backfill("doubled")
    with pytest.raises(penstock.errors.PenstockError):
        orders.backfill("ratio")
    for view in ("large", "largest", "by_product", "report", "spenders", "recent"):
        lake.view(f"shop.{view}").refresh()
    orders.append([{"id": 1000, "customer": "Grace", "product": "pear", "amount": 88.0}])
    for view in ("by_product", "recent"):
        lake.view(f"shop.{view}").refresh()
    melon = {"customer": "Ada", "product": "melon", "amount": 93.0}
    orders.append([{"id": 1001 + each, **melon} for each in range(12)])
    orders.update({"amount": 4.0}, where="id > 440 AND id < 450")
    orders.delete("id > 495 AND id < 500")
    lake.view("shop.by_product").refresh()
    lake.table("media.photos").add_column("sharpness", sharpness, inputs=["photo"])
    return lake


@pytest.fixture
def album(tmp_path: Path) -> Path:
    """Where the pictures go."""
    kept = os.environ.get("PENSTOCK_PICTURES")
    return tmp_path if kept is None else ROOT / kept


def take(page: Page, album: Path, name: str) -> None:
    path = album / f"{name}.png"
    page.photograph(path)
    assert 5_000 < path.stat().st_size < MOST_BYTES, f"{name} has {path.stat().st_size} bytes"


@pytest.mark.slow
def test_a_tour_of_a_lake_at_work(
    page: Page, served: Server, worked: penstock.Lake, album: Path
) -> None:
    page.url = served.url
    job = worked.table("media.photos").backfill("sharpness", wait=False)
    page.look(*WIDE, dark=True).open(f"/job/{job.id}")
    page.see("left, about", ".figure")
    page.see("computing", ".log > div")
    take(page, album, "job")
    page.look(*WIDE).open()
    page.see("media.photos.sharpness", ".running-job")
    page.see("too small", ".failed-job")
    take(page, album, "overview")
    page.open("/table/media/photos")
    page.see("40 rows")
    time.sleep(0.5)  # images are drawn when they are near
    take(page, album, "table")
    page.open("/table/shop/orders?tab=columns")
    page.see("failed", ".state-bar .state")
    take(page, album, "columns")
    page.look(*TALL).open("/view/shop/recent")
    page.see("insert", ".bar-label")
    page.see("target", "figcaption")
    page.see("succeeded", "td .state")
    take(page, album, "view")
    page.look(*WIDE, dark=True).open("/lineage/shop/orders?kind=table")
    page.see("spenders", "a.node")
    take(page, album, "lineage")
    page.look(*WIDE).open("/catalog/shop")
    page.see("by_product", "td")
    take(page, album, "catalog")
    job.wait()


@pytest.mark.slow
def test_what_the_pages_do_is_done(page: Page, served: Server, worked: penstock.Lake) -> None:
    page.url = served.url
    page.open("/view/shop/by_product").press("Refresh")
    page.see("succeeded", ".marks .state")
    page.see("inserted", "dd")
    page.open("/view/shop/by_product")
    page.see("fresh", ".marks .state")
    page.press("Verify").press("Verify")
    page.see("succeeded", ".marks .state")
    page.see("The view is its query", ".certificate")
    page.open("/sql").write("SQL", "SELECT customer, sum(amount) AS s FROM shop.orders GROUP BY 1")
    page.press("Run")
    page.see("4 rows in", "span")


def test_the_pictures_that_pages_show_are_there_and_small() -> None:
    named = {
        Path(found).name
        for each in PAGES
        for found in re.findall(r"\]\(([\w./]*images/[\w.-]+\.png)\)", (ROOT / each).read_text())
    }
    kept = {path.name: path.stat().st_size for path in PICTURES.glob("*.png")}
    assert named <= kept.keys()
    assert all(size < MOST_BYTES for size in kept.values())
