"""Branch and tag names, as Lance allows them."""

import re

from penstock.errors import InvalidRequest
from penstock.model.identifiers import check_name
from penstock.model.tables import MAIN

MAX_BRANCH = 400

_SEGMENT = re.compile(r"[A-Za-z0-9._-]{1,100}")


def check_branch(name: str | None) -> str:
    """The stored form of a branch: '' is main."""
    if name is None or name in ("", "main"):
        return MAIN
    segments = check_name(name, "branch", MAX_BRANCH).split("/")
    if len(name) > MAX_BRANCH or not all(_SEGMENT.fullmatch(s) and s.strip(".") for s in segments):
        raise InvalidRequest(
            f"branch {name!r} is not a legal name",
            detail="use letters, digits, '.', '_' and '-', in parts separated by '/'",
        )
    return name


def check_tag(name: str) -> str:
    if not _SEGMENT.fullmatch(check_name(name, "tag")) or not name.strip("."):
        raise InvalidRequest(
            f"tag {name!r} is not a legal name", detail="use letters, digits, '.', '_' and '-'"
        )
    return name


def show_branch(branch: str) -> str:
    return branch or "main"
