"""Transforms of partition and sort fields, and which types each can be applied to."""

import re
from typing import Any

from penstock.errors import InvalidTable
from penstock.iceberg.checks import clip, show

VOID = "void"

_TIMES = {"timestamp", "timestamptz", "timestamp_ns", "timestamptz_ns"}
_DATES = {"date", *_TIMES}
_TRUNCATED = {"int", "long", "string", "binary", "decimal"}
_BUCKETED = {"int", "long", "time", "string", "binary", "uuid", "fixed", "decimal", *_DATES}
_TYPES = {
    "year": _DATES,
    "month": _DATES,
    "day": _DATES,
    "hour": _TIMES,
    "bucket": _BUCKETED,
    "truncate": _TRUNCATED,
}
_WITHOUT_ORDER = {"variant", "geometry", "geography"}
_WITH_WIDTH = ("bucket", "truncate")
_SPELLING = re.compile(r"([A-Za-z_]\w{0,63})(?:\[(\d{1,10})\])?", re.ASCII)
_PLAIN_TYPE = re.compile(r"\w+")


def check_transform(text: str, path: str) -> str:
    """Check how a transform is written; returns it as sent. Unknown ones are left to engines."""
    found = _SPELLING.fullmatch(text)
    if found is None or not _has_its_width(found[1].lower(), found[2]):
        raise InvalidTable(
            f"{clip(path)} is {show(text)}, which is no transform",
            detail="use identity, void, year, month, day, hour, bucket[N] or truncate[W]",
        )
    return text


def can_transform(transform: str, type: Any) -> bool:
    """Whether the transform can be applied to a primitive type."""
    name = transform.partition("[")[0].lower()
    found = _PLAIN_TYPE.match(type)
    plain = found[0] if found else ""
    if name in _TYPES:
        return plain in _TYPES[name]
    return name != "identity" or plain not in _WITHOUT_ORDER


def is_void(transform: str) -> bool:
    return transform.lower() == VOID


def _has_its_width(name: str, width: str | None) -> bool:
    if name in _WITH_WIDTH:
        return width is not None and 0 < int(width) < 2**31
    return width is None or name not in {*_TYPES, VOID, "identity"}
