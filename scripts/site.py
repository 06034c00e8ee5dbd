"""Builds the documentation's site into .site/html, and refuses one with a dead link.

The pages of docs/ and the markdown files at the root go to .site/pages, with their links changed to
where they lie there; zensical.toml says how they are shown. `make docs` installs what this needs.
"""

import os
import re
import shutil
import subprocess
import sys
import tomllib
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

# Run as a file, Python looks for modules beside it, not beside its folder.
sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from scripts.links import CODE, ELSEWHERE
from scripts.site_html import dead_links, foreign_hosts, raw_markdown

ROOT = Path(__file__).resolve().parent.parent
LINKED = re.compile(r"\]\(<?([^)>\s]+)>?\)")
PROJECT = ("ARCHITECTURE.md", "CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md")


def list_sources(root: Path) -> Iterator[str]:
    """The markdown files that become pages, by their path in the repository."""
    yield from PROJECT
    for page in sorted(root.glob("docs/**/*.md")):
        yield page.relative_to(root).as_posix()


def site_path(source: str) -> str:
    """Where a file of the repository lies among the site's pages."""
    if source == "README.md":
        return "index.md"
    if source in PROJECT:
        return f"project/{source}"
    if source.startswith("examples/") and source.endswith(".py"):
        return f"{source}.md"
    return source.removeprefix("docs/")


def stage(root: Path, pages: Path) -> None:
    """Put everything where the site's links lead."""
    shutil.rmtree(pages, ignore_errors=True)
    for source in list_sources(root):
        text = (root / source).read_text(encoding="utf-8")
        _write(pages / site_path(source), with_site_links(root, source, text))
    for program in sorted(root.glob("examples/*.py")):
        code = program.read_text(encoding="utf-8")
        _write(pages / f"examples/{program.name}.md", f"# {program.name}\n\n```python\n{code}```\n")
    for file in (each for each in (root / "docs").rglob("*") if each.suffix in {".png", ".svg"}):
        target = pages / file.relative_to(root / "docs")
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(file, target)
    (pages / "site").mkdir(exist_ok=True)
    shutil.copyfile(root / "docs/site/extra.css", pages / "site/extra.css")


def with_site_links(root: Path, source: str, text: str) -> str:
    """The text with each relative link leading from and to places in the site."""
    here = os.path.dirname(source)

    def change(link: re.Match[str]) -> str:
        target, mark, heading = link[1].partition("#")
        if not target or ELSEWHERE.match(target):
            return link[0]
        found = os.path.normpath(os.path.join(here, target))
        there = os.path.relpath(site_path(found), os.path.dirname(site_path(source)) or ".")
        return f"]({there}{mark}{heading})"

    done, at = [], 0
    for code in CODE.finditer(text):
        done += [LINKED.sub(change, text[at : code.start()]), code[0]]
        at = code.end()
    return "".join([*done, LINKED.sub(change, text[at:])])


def misplaced_pages(root: Path) -> Iterator[str]:
    """One line for each page that the navigation lacks, has twice, or has without a file."""
    config = tomllib.loads((root / "zensical.toml").read_text(encoding="utf-8"))
    named = Counter(_nav_pages(config["project"]["nav"]))
    # The list of decisions leads to each of them.
    sources = (each for each in list_sources(root) if not each.startswith("docs/decisions/0"))
    pages = {site_path(each) for each in sources}
    for page in sorted(pages | set(named)):
        if page not in pages:
            yield f"zensical.toml names {page}, which does not exist"
        elif named[page] != 1:
            yield f"zensical.toml names {page} {named[page]} times; its nav should once"


def _nav_pages(nav: Any) -> Iterator[str]:
    match nav:
        case str():
            yield nav
        case dict() | list():
            for each in nav.values() if isinstance(nav, dict) else nav:
                yield from _nav_pages(each)


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")


def main() -> int:
    stage(ROOT, ROOT / ".site/pages")
    html = ROOT / ".site/html"
    shutil.rmtree(html, ignore_errors=True)
    built = subprocess.run(
        [sys.executable, "-m", "zensical", "build", "--strict"], cwd=ROOT, check=False
    )
    if built.returncode:
        return built.returncode
    problems = [
        *misplaced_pages(ROOT),
        *dead_links(html),
        *foreign_hosts(html),
        *raw_markdown(html),
    ]
    for problem in problems:
        print(problem, file=sys.stderr)
    print(f"{html}: {len(list(html.rglob('*.html')))} pages")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
