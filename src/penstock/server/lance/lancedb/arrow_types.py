"""Arrow types as lancedb writes them in signatures: `list<float32>`, or JSON text for the rest."""

import re
from typing import Any

import msgspec

from penstock.errors import InvalidRequest, Unsupported

_LIST = re.compile(r"(list|large_list|fixed_size_list)<(.+?)(?:, *(\d{1,9}))?>")
# The protocol's names where lancedb's differ.
NAMES = {
    "string": "utf8",
    "large_string": "large_utf8",
    "halffloat": "float16",
    "float": "float32",
    "double": "float64",
    "boolean": "bool",
    "date32:day": "date32",
    "date64:ms": "date64",
}
MAX_DEPTH = 32


def read_arrow_type(text: str, depth: int = 0) -> dict[str, Any]:
    """The type in the protocol's JSON form."""
    text = text.strip()
    if text == "blob_v2" or '"lance.blob.v2"' in text:
        raise Unsupported(
            "functions of blobs are not served in lancedb's words",
            detail="take and return binary values",
        )
    if text.startswith("{"):
        try:
            return msgspec.json.decode(text, type=dict[str, Any])
        except (msgspec.MsgspecError, RecursionError) as error:
            raise InvalidRequest(
                f"arrow_type {text[:100]!r} is not JSON: {error}", detail="send the type as JSON"
            ) from error
    if (match := _LIST.fullmatch(text)) is None or depth > MAX_DEPTH:
        return {"type": text}
    name, item, length = match.groups()
    kind = read_arrow_type(item, depth + 1)
    fields = [{"name": "item", "type": kind, "nullable": False}]
    return {"type": name, "fields": fields} | ({"length": int(length)} if length else {})


def show_arrow_type(kind: dict[str, Any] | None) -> str:
    """The text of a type in the protocol's JSON form; that of null where it is not known."""
    if kind is None:
        return "null"
    named = _rename(kind)
    return _shorten(named) or msgspec.json.encode(named, order="sorted").decode()


def _shorten(kind: dict[str, Any]) -> str | None:
    """The short form of a type that has one."""
    fields = kind.get("fields") or []
    if not fields:
        return str(kind["type"]) if "length" not in kind else None
    if kind["type"] not in ("list", "large_list", "fixed_size_list"):
        return None
    item = fields[0]
    inner = _shorten(item["type"])
    if item["name"] != "item" or item["nullable"] or item.get("metadata") or inner is None:
        return None
    length = f", {kind['length']}" if "length" in kind else ""
    return f"{kind['type']}<{inner}{length}>"


def _rename(kind: dict[str, Any]) -> dict[str, Any]:
    name = str(kind["type"])
    found = {**kind, "type": NAMES.get(name, name)}
    if kind.get("fields"):
        found["fields"] = [
            {**each, "type": _rename(each["type"]), "nullable": each.get("nullable") is not False}
            for each in kind["fields"]
        ]
    return found
