"""What objects show in a notebook: rows and pictures, well formed, escaped, and with no scripts."""

import datetime
import itertools
from typing import Any
from xml.etree import ElementTree

import pytest

import penstock
from penstock.sdk.pictures.graph import BOX_WIDTH, GAP_X, Node, draw_graph
from penstock.sdk.views.certificate import Certificate
from penstock.sdk.views.freshness import Freshness
from penstock.sdk.views.lineage import Lineage

HOSTILE = "</td><script>alert(1)</script>\" onload='x' &amp;"
NOW = datetime.datetime(2026, 1, 2, tzinfo=datetime.UTC)


def read(page: str) -> ElementTree.Element:
    """The page as elements, of which none can do anything."""
    root = ElementTree.fromstring(f"<div>{page}</div>")
    for each in root.iter():
        assert each.tag not in ("script", "iframe", "object", "foreignObject", "a", "image")
        assert not any(name.startswith("on") or "href" in name for name in each.attrib)
    return root


def texts(page: str) -> list[str]:
    return [text.strip() for text in read(page).itertext() if text.strip()]


@pytest.fixture
def rich(lake: penstock.Lake, space: str) -> penstock.Table:
    """Rows of every sort, the worst of them first."""
    rows: list[dict[str, Any]] = [
        {
            "id": n,
            "text": HOSTILE if n == 0 else None if n == 1 else "x" * 2_000,
            "vector": [float(n), 2.0, float("nan") if n == 2 else 1.0],
            "bytes": b"\x00" * (n + 5_000),
            "parts": [{"word": HOSTILE}],
        }
        for n in range(7)
    ]
    types = {"vector": penstock.vector(3), "bytes": bytes}
    return lake.create_table(f"{space}.rich", rows, schema=types)


def test_a_table_shows_its_first_rows(rich: penstock.Table) -> None:
    rich.add_column("size", computed="length(text)")
    page = rich._repr_html_()
    root, shown = read(page), texts(page)
    assert len(list(root.iter("tr"))) == 6
    assert f"Table {rich.name}" in shown
    assert "version 2, 7 rows, of which 5 are shown" in shown
    assert {"by SQL", "fixed_size_list<item: float>[3]", HOSTILE, "NULL", "5,000 bytes"} <= {*shown}
    assert len(page) < 12_000
    # Vectors are lines, but for one that holds what cannot be drawn.
    assert len(list(root.iter("polyline"))) == 4
    assert any("NaN" in each for each in shown)
    old = texts(rich.at(1)._repr_html_())
    assert "version 1, 7 rows, of which 5 are shown" in old


def test_a_query_and_a_branch_show_their_rows(rich: penstock.Table) -> None:
    shown = texts(rich.select("id").where("id > 3")._repr_html_())
    assert [each for each in shown if each.isdigit()] == ["4", "5", "6"]
    trial = rich.create_branch("trial")
    trial.delete("id > 0")
    assert {f"Table {rich.name} on trial", "version 2, 1 row"} <= {*texts(trial._repr_html_())}


def test_a_view_shows_rows_query_and_freshness(
    lake: penstock.Lake, space: str, rich: penstock.Table
) -> None:
    view = lake.create_view(f"{space}.v", f"SELECT id, '<b>' AS mark FROM {space}.rich")
    page = view._repr_html_()
    assert "<b>" not in page
    assert {"stale", "this view", "query"} <= {*texts(page)}
    lineage = texts(view.lineage()._repr_html_())
    assert {rich.name, "table, not read yet", view.name, "view (query)"} <= {*lineage}


def test_a_plan_draws_its_rows(rich: penstock.Table) -> None:
    rich.add_column("size", computed="length(text)")
    page = rich.explain_backfill("size")._repr_html_()
    rects = [each.findtext("title") for each in read(page).iter("rect")]
    assert rects == ["7 to update", "7 unfilled"]


def test_a_certificate_says_at_a_glance_whether_they_are_equal() -> None:
    equal = Certificate("a.v", True, 9, 9, 0, 0, {"digest": HOSTILE})
    assert (str(equal), bool(equal)) == ("a.v is its query: 9 rows", True)
    assert {"equal", HOSTILE} <= {*texts(equal._repr_html_())}
    page = Certificate(HOSTILE, False, 10, 12, 4, 2, {})._repr_html_()
    rects = [each.findtext("title") for each in read(page).iter("rect")]
    assert rects == ["8 rows as expected", "4 missing", "2 too many"]
    assert "different" in texts(page)


def test_freshness_is_a_picture_of_what_is_newer() -> None:
    found = Freshness(
        True,
        NOW,
        {"a.t": 3, HOSTILE: 1},
        {"a.t": 2},
        through={"a.w": {"a.u": 4}},
        lag_seconds=75.0,
        late=True,
    )
    shown = texts(found._repr_html_())
    assert {"late", "version 3 seen, 2 newer", "version 1 seen", "4 newer", "a.w"} <= {*shown}
    fresh = texts(Freshness(False, NOW, {"a.t": 3}, {})._repr_html_())
    assert "fresh" in fresh


def test_a_graph_has_what_is_made_right_of_what_it_is_made_of() -> None:
    below = Lineage("b", "query", "", {"t": 1, HOSTILE: None}, {})
    found = Lineage("top", "chunker", "", {"b": 2, "t": 5}, {}, {"b": below})
    root = read(found._repr_html_())
    left = {}
    for each in root.iter("g"):
        name = (each.findtext("title") or "").rpartition(": ")[0]
        left[name] = int(each.attrib["transform"].removeprefix("translate(").partition(",")[0])
    assert left == {"t": 0, HOSTILE: 0, "b": BOX_WIDTH + GAP_X, "top": 2 * (BOX_WIDTH + GAP_X)}
    assert len(list(root.iter("path"))) == 4


def test_a_long_chain_is_drawn() -> None:
    names = [f"n{n}" for n in range(200)]
    drawn = draw_graph([Node(each, "") for each in names], itertools.pairwise(names), "chain")
    assert len(list(read(drawn).iter("g"))) == 200


def test_a_lake_lists_tables_and_views(
    lake: penstock.Lake, space: str, rich: penstock.Table
) -> None:
    view = lake.create_view(f"{space}.v", rich.select("id"))
    assert {rich.name, view.name, "table", "view"} <= {*texts(lake._repr_html_())}
