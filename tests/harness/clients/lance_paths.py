"""Paths of Lance operations, with what they name filled in."""

import re


def fill_path(template: str, id: str, within: str = "i") -> str:
    """An operation's path: the object's id, and a name for whatever it names within."""
    return re.sub(r"\{\w+\}", lambda _: within, template.replace("{id}", id))


def names_within(template: str) -> bool:
    """Whether a path names something within its object."""
    return bool(re.search(r"\{(?!id\})", template))
