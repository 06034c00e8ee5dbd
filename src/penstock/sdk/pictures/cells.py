"""Values of rows, as the server tells them to be looked at: long ones by their beginning."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

from penstock.sdk.pictures.bars import line
from penstock.sdk.pictures.markup import Markup, element, join, quiet, table

LONG = 80


def rows_table(
    title: str, told: Mapping[str, Any], fillers: Mapping[str, str], note: str
) -> Markup:
    """The first rows under the names, types and fillers of their columns."""
    head = [
        join(
            [
                each["name"],
                element("div", quiet(each["type"]), style="font-weight:normal"),
                _filler(fillers.get(each["name"], "")),
            ]
        )
        for each in told["columns"]
    ]
    rows = [[show_cell(cell) for cell in row] for row in told["rows"]]
    return table(title, rows, head, note)


def show_cell(cell: Any) -> Any:
    """One value."""
    if cell is None:
        return quiet("NULL")
    if not isinstance(cell, Mapping):
        return _cut(str(cell))
    if cell.get("kind") == "vector" and (numbers := _numbers(cell["value"])):
        return line(numbers, cell["length"])
    return _cut(str(_plain(cell)))


def _filler(text: str) -> Markup | None:
    return element("div", quiet(f"by {text}"), style="font-weight:normal") if text else None


def _plain(cell: Any) -> Any:
    """A nested value as Python would show it."""
    if not isinstance(cell, Mapping):
        return cell
    value = cell.get("value")
    match cell.get("kind"):
        case "bytes":
            what = cell.get("media") or "bytes"
            return f"{cell['length']:,} bytes{'' if what == 'bytes' else f', {what}'}"
        case "struct":
            return {name: _plain(each) for name, each in (value or {}).items()}
        case "map":
            return {str(_plain(key)): _plain(each) for key, each in value or ()}
        case "list" | "vector":
            return [_plain(each) for each in value or ()]
        case "text":
            return f"{value}…"
        case _:
            return value


def _numbers(values: Sequence[Any]) -> list[float]:
    """The numbers of a vector; none when one of them cannot be drawn."""
    found = [each for each in values if isinstance(each, int | float) and math.isfinite(each)]
    return [float(each) for each in found] if len(found) == len(values) else []


def _cut(text: str) -> str:
    return text if len(text) <= LONG else text[: LONG - 1] + "…"
