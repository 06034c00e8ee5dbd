"""The documents of the demo."""

from importlib.resources import files
from typing import Any


def read_corpus() -> list[dict[str, Any]]:
    """Each document with its number, title, kind and text."""
    text = files("penstock.cli.demo").joinpath("corpus.txt").read_text(encoding="utf-8")
    found = []
    for number, part in enumerate(text.removeprefix("# ").split("\n# "), 1):
        title, kind, body = part.strip().split("\n", 2)
        found.append(
            {"id": number, "title": title, "kind": kind.removeprefix("kind: "), "text": body}
        )
    return found
