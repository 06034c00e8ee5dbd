"""The documentation's checks find what they are for."""

from pathlib import Path

from penstock.settings.keys import list_keys
from scripts.docs import broken_links, settings_page, stale_pages, write_pages


def test_every_setting_is_on_the_settings_page() -> None:
    page = settings_page()
    assert all(f"`{key.env}`" in page for key in list_keys())


def test_a_page_is_stale_until_it_is_written(tmp_path: Path) -> None:
    assert any("docs/settings.md is out of date" in line for line in stale_pages(tmp_path))
    write_pages(tmp_path)
    assert list(stale_pages(tmp_path)) == []


def test_a_relative_link_must_lead_to_a_file(tmp_path: Path) -> None:
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "a.md").write_text("[b](b.md) [up](../README.md#top) `[c](c.md)`")
    (tmp_path / "README.md").write_text(
        "[a](docs/a.md) [web](https://example.org/x.md) [here](#top)\n"
        "```\n[code](code.md)\n```\n[gone](gone.md)"
    )
    assert list(broken_links(tmp_path)) == [
        "README.md links to gone.md, which does not exist",
        "docs/a.md links to b.md, which does not exist",
    ]
