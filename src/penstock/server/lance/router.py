"""Find the operation of a path: a dictionary, keyed by the path with blank variable parts."""

from dataclasses import dataclass

from penstock.server.lance.extensions import EXTENSIONS
from penstock.server.lance.operation import LanceOperation
from penstock.server.lance.operations import OPERATIONS

Key = tuple[str, ...]
ByKey = dict[Key, LanceOperation]


@dataclass(frozen=True, slots=True)
class Match:
    """An operation, and the still encoded id and names in its path."""

    operation: LanceOperation
    id: str | None
    names: tuple[str, ...] = ()


def find(segments: list[str]) -> Match | None:
    """The operation of `/v1/…`; None when there is none, whatever the method."""
    if not segments or segments[0] != "v1":
        return None
    rest = tuple(segments[1:])
    if (operation := _FIXED.get(rest)) is not None:
        return Match(operation, None)
    if len(rest) < 3:
        return None
    key = (rest[0], *rest[2:])
    # An empty part of a path is an empty name, not the blank that stands for any name.
    if "" not in key and (operation := _BY_ID.get(key)) is not None:
        return Match(operation, rest[1])
    if len(rest) == 4 and (operation := _DEEPER.get((*rest[:2], rest[3]))) is not None:
        return Match(operation, rest[2])
    names = key[2:-1]
    deep = (*key[:2], *("" for _ in names), key[-1])
    if names and (operation := _BY_ID.get(deep)) is not None:
        return Match(operation, rest[1], names)
    return None


def _build() -> tuple[
    dict[Key, LanceOperation], dict[Key, LanceOperation], dict[Key, LanceOperation]
]:
    fixed: dict[Key, LanceOperation] = {}
    by_id: dict[Key, LanceOperation] = {}
    deeper: dict[Key, LanceOperation] = {}
    for operation in (*OPERATIONS, *EXTENSIONS):
        parts = operation.path.split("/")
        if "{id}" not in parts:
            fixed[tuple(parts)] = operation
            continue
        key = tuple("" if p.startswith("{") else p for p in parts if p != "{id}")
        (by_id if parts[1] == "{id}" else deeper)[key] = operation
    return fixed, by_id, deeper


_FIXED, _BY_ID, _DEEPER = _build()
