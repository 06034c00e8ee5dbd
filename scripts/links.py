"""Finds relative links of markdown files that lead to no file, or to no heading of it."""

import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

CODE = re.compile(r"^(```|~~~).*?^\1|`[^`\n]*`", re.DOTALL | re.MULTILINE)
BLOCK = re.compile(r"^(```|~~~).*?^\1", re.DOTALL | re.MULTILINE)
LINK = re.compile(r"\]\(<?([^)>\s]+)")
ELSEWHERE = re.compile(r"[a-z][a-z0-9+.-]*:", re.IGNORECASE)


def broken_links(root: Path) -> Iterator[str]:
    """One line for each relative link that leads nowhere."""
    for page in sorted([*root.glob("*.md"), *root.glob("docs/**/*.md")]):
        name = page.relative_to(root)
        for target in relative_links(page.read_text(encoding="utf-8")):
            path, _, heading = target.partition("#")
            file = page.parent / path if path else page
            if not file.exists():
                yield f"{name} links to {target}, which does not exist"
            elif heading and file.suffix == ".md" and heading not in list_anchors(file):
                yield f"{name} links to {target}, but {file.name} has no such heading"


def relative_links(text: str) -> Iterator[str]:
    """What the links of a markdown text lead to within the repository."""
    for target in LINK.findall(CODE.sub("", text)):
        if not ELSEWHERE.match(target):
            yield target


@cache
def list_anchors(page: Path) -> frozenset[str]:
    """What a link may name after `#`: the headings, as forges and the site spell them."""
    text = BLOCK.sub("", page.read_text(encoding="utf-8"))
    return frozenset(anchor_of(each) for each in re.findall(r"^#+ (.*)$", text, re.MULTILINE))


def anchor_of(heading: str) -> str:
    """Letters, digits, `-` and `_` in lower case, with `-` for spaces; a link is its label."""
    shown = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading)
    return re.sub(r"[^\w\- ]", "", shown.strip().lower()).replace(" ", "-")
