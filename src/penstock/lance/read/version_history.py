"""What versions did, and how two of them differ, as their files tell. Everything here blocks."""

import contextlib
from collections.abc import Sequence
from typing import Any

import msgspec
from lance import LanceDataset

from penstock.lance.commit.transaction import read_transaction
from penstock.lance.diff import row_diff

# Comparing rows reads those that changed; beyond so many nobody waits for it.
MAX_CHANGED = 2_000_000
# Lance's words for what a commit is, and ours where they differ.
WORDS = {
    "BaseOperation": "reserve",
    "Rewrite": "compact",
    "CreateIndex": "index",
    "DataReplacement": "replace_data",
    "UpdateConfig": "update_metadata",
    "Project": "change_schema",
    "Merge": "change_columns",
}


class Step(msgspec.Struct, frozen=True, omit_defaults=True):
    """A version: what its commit was, and how many rows the table has in it."""

    version: int
    operation: str
    rows: int | None = None


class ShownColumn(msgspec.Struct, frozen=True):
    name: str
    type: str


class ChangedColumn(msgspec.Struct, frozen=True, omit_defaults=True):
    """A column that has another name or type."""

    name: str
    type: str
    old_name: str = ""
    old_type: str = ""


class SchemaChange(msgspec.Struct, frozen=True):
    added: list[ShownColumn]
    removed: list[ShownColumn]
    changed: list[ChangedColumn]


class RowChange(msgspec.Struct, frozen=True):
    inserted: int
    updated: int
    deleted: int


class VersionChange(msgspec.Struct, frozen=True, omit_defaults=True):
    """What differs between two versions; without `rows` it says why they were not compared."""

    schema: SchemaChange
    rows: RowChange | None = None
    why: str = ""


def read_steps(dataset: LanceDataset, versions: Sequence[int]) -> list[Step]:
    """What each of some versions did, as far as its files are still there."""
    return [_read_step(dataset, version) for version in versions]


def compare_versions(now: LanceDataset, then: LanceDataset) -> VersionChange:
    """What a later version has that an earlier one had not."""
    schema, paths, paths_then = _compare_schemas(now, then)
    if not (now.has_stable_row_ids and then.has_stable_row_ids):
        return VersionChange(schema, why="the table's rows have no lasting ids")
    if row_diff.count_changed(now, then, paths, paths_then) > MAX_CHANGED:
        return VersionChange(schema, why=f"more than {MAX_CHANGED} rows may have changed")
    found = row_diff.compare(now, then, paths, paths_then)
    rows = RowChange(len(found.inserted.ids), len(found.changed.ids), len(found.deleted.ids))
    return VersionChange(schema, rows)


def _read_step(dataset: LanceDataset, version: int) -> Step:
    operation, rows = "unknown", None
    with contextlib.suppress(OSError, ValueError):
        transaction = read_transaction(dataset, version)
        if transaction is not None:
            word = type(transaction.operation).__name__
            operation = WORDS.get(word, word.lower())
    with contextlib.suppress(OSError, ValueError):
        rows = dataset.checkout_version(version).count_rows()
    return Step(version, operation, rows)


def _compare_schemas(
    now: LanceDataset, then: LanceDataset
) -> tuple[SchemaChange, list[str], list[str]]:
    """The difference, and the paths of what can be compared, in both versions."""
    here, there = _list_columns(now), _list_columns(then)
    added = [ShownColumn(*here[id]) for id in here if id not in there]
    removed = [ShownColumn(*there[id]) for id in there if id not in here]
    changed, same = list[ChangedColumn](), list[int]()
    for id in here.keys() & there.keys():
        (name, kind), (old_name, old_kind) = here[id], there[id]
        if (name, kind) != (old_name, old_kind):
            names = (old_name if old_name != name else "", old_kind if old_kind != kind else "")
            changed.append(ChangedColumn(name, kind, *names))
        if kind == old_kind:
            same.append(id)
    changed.sort(key=lambda each: each.name)
    paths, paths_then = (
        [_quote(columns[id][0]) for id in sorted(same)] for columns in (here, there)
    )
    return SchemaChange(added, removed, changed), paths, paths_then


def _list_columns(dataset: LanceDataset) -> dict[int, tuple[str, str]]:
    """The names and types of the columns, by the ids of their fields."""
    types = {field.name: str(field.type) for field in dataset.schema}
    fields: Any = dataset.lance_schema.fields()
    return {field.id(): (field.name(), types[field.name()]) for field in fields}


def _quote(name: str) -> str:
    return "`" + name.replace("`", "``") + "`" if set(name) & {".", "`"} else name
