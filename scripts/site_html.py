"""What is wrong with the built site: dead links, files of other hosts, markdown shown raw."""

import re
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

# What a browser fetches by itself, by element; a link that people follow may lead anywhere.
FETCHED = {"script": "src", "img": "src", "iframe": "src", "source": "src", "link": "href"}
# Markdown that its reader did not take for what it was meant to be: lists, tables and fences.
RAW = re.compile(r"(^|\n)\s*(- |\d+\. |\| |```)")


class Page(HTMLParser):
    """The ids, links and fetched files of one page, and the texts of its paragraphs."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.ids: set[str] = set()
        self.links: list[str] = []
        self.fetched: list[str] = []
        self.paragraphs: list[str] = []
        self._in_paragraph = self._in_code = False
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        named = {name: value or "" for name, value in attrs}
        self.ids |= {named[each] for each in ("id", "name") if each in named}
        if tag == "a" and "href" in named:
            self.links.append(named["href"])
        elif FETCHED.get(tag) in named and named.get("rel") not in ("canonical", "prev", "next"):
            self.fetched.append(named[FETCHED[tag]])
        elif tag == "p":
            self._in_paragraph = True
            self.paragraphs.append("")
        self._in_code |= tag == "code"

    def handle_endtag(self, tag: str) -> None:
        if tag == "p":
            self._in_paragraph = False
        elif tag == "code":
            self._in_code = False

    def handle_data(self, data: str) -> None:
        if self._in_paragraph and not self._in_code:
            self.paragraphs[-1] += data


def _list_pages(site: Path) -> dict[Path, Page]:
    return {
        path: Page(path.read_text(encoding="utf-8"))
        for path in sorted(site.rglob("*.html"))
        if path.name != "404.html"
    }


def dead_links(site: Path) -> Iterator[str]:
    """One line for each link or file of a page that the site does not have."""
    pages = _list_pages(site)
    for path, page in pages.items():
        for target in {*page.links, *page.fetched}:
            parts = urlsplit(target)
            if parts.scheme or parts.netloc:
                continue
            found = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            if found.is_dir():
                found /= "index.html"
            if not found.exists():
                yield f"{path.relative_to(site)} leads to {target}, which does not exist"
            elif parts.fragment and found in pages and parts.fragment not in pages[found].ids:
                yield f"{path.relative_to(site)} leads to {target}, but nothing there has that id"


def foreign_hosts(site: Path) -> Iterator[str]:
    """One line for each file that a browser would fetch from somewhere else."""
    for path, page in _list_pages(site).items():
        for target in page.fetched:
            if urlsplit(target).netloc:
                yield f"{path.relative_to(site)} fetches {target}"
    for style in sorted(site.rglob("*.css")):
        for target in re.findall(r"(?:url\(|@import )[\"']?(\w+:?//[^\"')]+)", style.read_text()):
            yield f"{style.relative_to(site)} fetches {target}"


def raw_markdown(site: Path) -> Iterator[str]:
    """One line for each paragraph that should have been a list, a table or a block of code."""
    for path, page in _list_pages(site).items():
        for text in page.paragraphs:
            if RAW.search(text):
                yield f"{path.relative_to(site)} shows markdown as it is written: {text[:80]!r}"
