"""Change rows through pylance: commit written fragments, merge, update, delete.

Everything here blocks, and every commit goes through the bridge to the catalog.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from penstock.errors import ColumnNotFound, InvalidRequest
from penstock.lance import doors
from penstock.lance.columns.bindings import check_update
from penstock.lance.doors import lance, pa
from penstock.lance.errors import translated
from penstock.lance.expressions.check import check_expression, check_expressions
from penstock.lance.write.spool import Spool
from penstock.lance.write.uploads import RowStream, WrittenFragments


@dataclass(frozen=True, slots=True)
class Merge:
    """How incoming rows are merged with existing ones."""

    on: list[str]
    update_matched: bool = False
    update_filter: str | None = None
    insert_new: bool = False
    delete_missing: bool = False
    delete_filter: str | None = None
    timeout_seconds: float | None = None
    use_index: bool = True


@dataclass(frozen=True, slots=True)
class MergeResult:
    version: int
    inserted: int
    updated: int
    deleted: int


def commit_append(
    dataset: "lance.LanceDataset",
    fragments: "list[lance.FragmentMetadata]",
    bridge: "doors.bridge.Bridge",
    table_id: list[str],
) -> "lance.LanceDataset":
    """Add written fragments to a table; rebased when others commit at the same time."""
    with translated(bridge):
        return lance.LanceDataset.commit(
            dataset,
            lance.LanceOperation.Append(fragments),
            read_version=dataset.version,
            **_managed(bridge, table_id),
        )


def commit_overwrite(
    base: "lance.LanceDataset | str",
    written: WrittenFragments,
    bridge: "doors.bridge.Bridge",
    table_id: list[str],
    options: dict[str, str],
    transaction: str = "",
) -> "lance.LanceDataset":
    """Replace a table's content by written fragments; at a path, make the table's first version.

    A first version may name its transaction, so that its file can be found.
    """
    is_first = isinstance(base, str)
    operation: Any = lance.LanceOperation.Overwrite(written.schema, written.fragments)
    if transaction:
        operation = lance.Transaction(0, operation, transaction)
    with translated(bridge):
        return lance.LanceDataset.commit(
            base,
            operation,
            read_version=None if isinstance(base, str) else base.version,
            storage_options=options or None,
            enable_v2_manifest_paths=True,
            enable_stable_row_ids=True,
            # A first version that comes second must not replace the first.
            max_retries=0 if is_first else 20,
            **_managed(bridge, table_id),
        )


def merge(dataset: "lance.LanceDataset", rows: RowStream | Spool, how: Merge) -> MergeResult:
    """Merge rows into a table by key."""
    check_keys(dataset.schema, how.on)
    _check_quotes(how.on)
    update_filter = _check_given("when_matched_update_all_filt", how.update_filter)
    delete_filter = _check_given("when_not_matched_by_source_delete_filt", how.delete_filter)
    builder = dataset.merge_insert(how.on)
    if how.update_matched:
        builder = builder.when_matched_update_all(update_filter)
    if how.insert_new:
        builder = builder.when_not_matched_insert_all()
    if how.delete_missing:
        builder = builder.when_not_matched_by_source_delete(delete_filter)
    if how.timeout_seconds is not None:
        builder = builder.retry_timeout(timedelta(seconds=how.timeout_seconds))
    builder = builder.use_index(how.use_index)
    source: Any = rows.reader().read_all() if isinstance(rows, RowStream) else rows.read()
    keys = source if isinstance(rows, RowStream) else rows.dataset.to_table(how.on)
    _check_repeated(keys, how.on)
    if not keys.num_rows and not how.delete_missing:
        # Lance would commit a version that is the one before.
        return MergeResult(dataset.version, 0, 0, 0)
    done = builder.execute(source)
    return MergeResult(
        dataset.version,
        done["num_inserted_rows"],
        done["num_updated_rows"],
        done["num_deleted_rows"],
    )


def check_keys(schema: "pa.Schema", names: Sequence[str]) -> None:
    """Refuse key columns that the table does not have."""
    for name in names:
        if schema.get_field_index(name) < 0:
            raise ColumnNotFound(f"the key column {name!r} does not exist", detail="check 'on'")


def _check_quotes(names: Sequence[str]) -> None:
    """Refuse key columns that Lance quotes twice, and then does not find."""
    for name in names:
        if '"' in name:
            raise InvalidRequest(
                f"Lance cannot merge by the key column {name!r}, whose name holds a double quote",
                detail="rename the column",
            )


def _check_repeated(rows: "pa.Table", keys: Sequence[str]) -> None:
    """Refuse duplicate keys: nobody knows which row counts, and Lance would join every pair."""
    wanted = rows.select(list(keys)).drop_null()
    try:
        counted = wanted.group_by(list(keys)).aggregate([([], "count_all")])
    except pa.ArrowNotImplementedError:
        # Arrow cannot group by values of this type.
        shown = pa.table({"key": [str(row) for row in wanted.to_pylist()]})
        counted = shown.group_by(["key"]).aggregate([([], "count_all")])
    if counted.num_rows < wanted.num_rows:
        first = next(row for row in counted.to_pylist() if row["count_all"] > 1)
        key = ", ".join(f"{name} = {first[name]!r}"[:80] for name in first if name != "count_all")
        raise InvalidRequest(
            f"{first['count_all']} of the rows have one key: {key}",
            detail="send one row for each key",
        )


def update(
    dataset: "lance.LanceDataset", values: dict[str, str], predicate: str | None
) -> tuple[int, int]:
    """Set columns to SQL expressions; returns how many rows changed, and the version."""
    checked = check_expressions("updates", values)
    where = _check_given("predicate", predicate)
    check_update(dataset.schema, values)
    done = dataset.update(checked, where=where)
    return done["num_rows_updated"], dataset.version


def count_updated(dataset: "lance.LanceDataset") -> int:
    """How many rows an update changed, from its version: they were all rewritten."""
    made: Any = dataset.read_transaction(dataset.version)
    return sum(fragment.physical_rows or 0 for fragment in made.operation.new_fragments)


def delete(dataset: "lance.LanceDataset", predicate: str) -> tuple[int, int]:
    """Delete the rows that match; returns how many there were, and the version."""
    if not predicate.strip():
        raise InvalidRequest("predicate is empty", detail="use 'true' to delete all rows")
    done = dataset.delete(check_expression("predicate", predicate))
    return done["num_deleted_rows"], dataset.version


def _check_given(name: str, sql: str | None) -> str | None:
    return None if sql is None else check_expression(name, sql)


def _managed(bridge: "doors.bridge.Bridge", table_id: list[str]) -> dict[str, Any]:
    return {
        "namespace_client": bridge,
        "table_id": table_id,
        "namespace_client_managed_versioning": True,
    }
