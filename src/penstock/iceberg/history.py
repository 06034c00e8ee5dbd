"""How many versions a view keeps, and which log entries are dropped with them."""

import re
from collections.abc import Collection

from penstock.errors import InvalidView
from penstock.iceberg.checks import clip
from penstock.iceberg.metadata import Json

HISTORY_ENTRIES = "version.history.num-entries"
DEFAULT_ENTRIES = 10
_LIMITS = range(1, 2**31)
_INTEGER = re.compile(r"[+-]?[0-9]{1,10}")


def history_limit(properties: dict[str, str]) -> int:
    """How many versions the properties allow."""
    if (text := properties.get(HISTORY_ENTRIES)) is None:
        return DEFAULT_ENTRIES
    if not _INTEGER.fullmatch(text) or (limit := int(text)) not in _LIMITS:
        raise InvalidView(
            f"{HISTORY_ENTRIES} must be positive but was {clip(text)}",
            detail="set it to a whole number from 1 to 2147483647, or remove it",
        )
    return limit


def expire_versions(
    versions: list[Json], current_id: int, added: Collection[int], limit: int
) -> list[Json]:
    """The versions to keep: the current one, then those with the highest ids.

    Versions added by one commit are kept even beyond the limit. Within the limit, the given list is
    returned.
    """
    keep = max(limit, len({current_id, *added}))
    if len(versions) <= keep:
        return versions
    current = [each for each in versions if each["version-id"] == current_id]
    others = [each for each in versions if each["version-id"] != current_id]
    others.sort(key=lambda each: int(each["version-id"]), reverse=True)
    return current + others[: keep - 1]


def trim_log(log: list[Json], versions: list[Json]) -> list[Json]:
    """The log after its last entry about a dropped version, because a log must not have gaps."""
    kept = {version["version-id"] for version in versions}
    for position in range(len(log) - 1, -1, -1):
        if log[position]["version-id"] not in kept:
            return log[position + 1 :]
    return log
