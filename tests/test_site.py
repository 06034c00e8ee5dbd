"""The documentation's site: links lead where the repository's do, and its checks find faults."""

from pathlib import Path

from scripts.site import ROOT, misplaced_pages, site_path, with_site_links
from scripts.site_html import dead_links, foreign_hosts, raw_markdown


def test_every_page_has_one_place_in_the_navigation() -> None:
    assert list(misplaced_pages(ROOT)) == []


def test_a_page_without_a_place_and_a_place_without_a_page_are_found(tmp_path: Path) -> None:
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs/new.md").write_text("# New")
    nav = ["gone.md", *(site_path(each) for each in ("SECURITY.md", "CHANGELOG.md"))]
    twice = {"More": [{"A": "project/ARCHITECTURE.md"}, {"B": "project/ARCHITECTURE.md"}]}
    listed = ", ".join([*(f'"{each}"' for each in nav), _toml(twice)])
    (tmp_path / "zensical.toml").write_text(f"[project]\nnav = [{listed}]\n")
    assert list(misplaced_pages(tmp_path)) == [
        "zensical.toml names gone.md, which does not exist",
        "zensical.toml names new.md 0 times; its nav should once",
        "zensical.toml names project/ARCHITECTURE.md 2 times; its nav should once",
        "zensical.toml names project/CONTRIBUTING.md 0 times; its nav should once",
    ]


def _toml(nested: dict[str, list[dict[str, str]]]) -> str:
    [(name, pages)] = nested.items()
    inside = ", ".join(
        f'{{ "{title}" = "{page}" }}' for each in pages for title, page in each.items()
    )
    return f'{{ "{name}" = [{inside}] }}'


def test_links_lead_to_where_things_lie_in_the_site() -> None:
    text = (
        "[a](../reference/cli.md#x) [b](../../SECURITY.md) [`c`](../../examples/rag.py) "
        "[e](#here) [f](https://example.org/a.md) `[g](../h.md)` "
        "[i](../../README.md)"
    )
    assert with_site_links(ROOT, "docs/guides/jobs.md", text) == (
        "[a](../reference/cli.md#x) [b](../project/SECURITY.md) [`c`](../examples/rag.py.md) "
        "[e](#here) [f](https://example.org/a.md) `[g](../h.md)` "
        "[i](../index.md)"
    )


def test_dead_links_foreign_hosts_and_raw_markdown_are_found(tmp_path: Path) -> None:
    (tmp_path / "b").mkdir()
    (tmp_path / "b/index.html").write_text('<h1 id="one">B</h1><p>text\n- no list</p>')
    (tmp_path / "index.html").write_text(
        '<script src="https://example.org/x.js"></script><img src="gone.png">'
        '<a href="https://example.org/">out</a><a href="b/#one">in</a><a href="b/#two">?</a>'
        "<p><code>\n- code</code> text</p>"
    )
    (tmp_path / "a.css").write_text("@import 'https://example.org/a.css'; a { src: url(a.woff) }")
    assert sorted(dead_links(tmp_path)) == [
        "index.html leads to b/#two, but nothing there has that id",
        "index.html leads to gone.png, which does not exist",
    ]
    assert list(foreign_hosts(tmp_path)) == [
        "index.html fetches https://example.org/x.js",
        "a.css fetches https://example.org/a.css",
    ]
    assert list(raw_markdown(tmp_path)) == [
        "b/index.html shows markdown as it is written: 'text\\n- no list'"
    ]
