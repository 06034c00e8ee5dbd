"""The ledger's rows: the record of a failed row, and how to read it back.

Everything here blocks.
"""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from penstock.lance.doors import lance, pa, pc
from penstock.model.functions import RowError

# Longer values are cut: a traceback of thousands of lines helps nobody.
MAX_INPUTS, MAX_MESSAGE, MAX_TRACEBACK = 4_000, 8_000, 16_000
CUT = " …"


@dataclass(frozen=True, slots=True)
class FailureOrigin:
    """Where errors come from: the job, the attempt, and the columns that it fills."""

    table: str
    table_id: str
    table_version: int
    branch: str
    column: str
    columns: tuple[str, ...]
    binding: str
    function: str
    function_version: str
    job_id: str
    attempt: int


@dataclass(frozen=True, slots=True)
class LedgerFilter:
    """Which entries to list; None matches any."""

    table_id: str | None = None
    branch: str | None = None
    column: str | None = None
    job_id: str | None = None


@dataclass(frozen=True, slots=True)
class CutFragment:
    """A fragment with more entries than a listing shows."""

    job_id: str
    fragment: int
    rows: int
    rows_listed: int


@dataclass(frozen=True, slots=True)
class Listing:
    """Entries, newest first."""

    entries: list[dict[str, Any]]
    cut: list[CutFragment]
    is_truncated: bool
    # The ledger's version that they are from.
    version: int = 0


@cache
def schema() -> "pa.Schema":
    """The columns of the ledger."""
    text, number = pa.string(), pa.int64()
    return pa.schema(
        [
            ("error_id", text),
            ("table", text),
            ("table_id", text),
            ("table_version", number),
            ("branch", text),
            ("column", text),
            # All columns that the function fills, if there are several.
            ("columns", pa.list_(text)),
            ("binding", text),
            ("function", text),
            ("function_version", text),
            ("job_id", text),
            ("attempt", number),
            ("tries", number),
            ("row_id", pa.uint64()),
            ("fragment", number),
            ("offset", number),
            ("inputs", text),
            ("exception", text),
            ("message", text),
            ("traceback", text),
            ("at", pa.timestamp("ms", "UTC")),
        ]
    )


def make_id(failing: FailureOrigin, row_id: int) -> str:
    """An id that is the same for the same failure, so that duplicates are found."""
    text = f"{failing.job_id}\n{failing.table_id}\n{row_id}\n{failing.column}"
    return hashlib.sha256(text.encode()).hexdigest()[:32]


def encode(errors: Sequence[tuple[FailureOrigin, RowError]]) -> bytes:
    """Entries as an Arrow stream; of several about one row and column the last is kept."""
    rows = {row["error_id"]: row for row in (_entry(*each) for each in errors)}
    return _encode(list(rows.values()))


def encode_nothing() -> bytes:
    """The stream that an empty ledger is created from."""
    return _encode([])


def _encode(rows: list[dict[str, Any]]) -> bytes:
    table = pa.Table.from_pylist(rows, schema())
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return bytes(sink.getvalue().to_pybytes())


def find_ids(dataset: "lance.LanceDataset", ids: Sequence[str]) -> set[str]:
    """The ids that are in the ledger."""
    listed = ", ".join(_quote(id) for id in ids)
    found = dataset.to_table(columns=["error_id"], filter=f"error_id IN ({listed})")
    return set(found["error_id"].to_pylist())


def list_rows(dataset: "lance.LanceDataset", table_id: str, branch: str, binding: str) -> list[int]:
    """The ids of the rows that a column's function failed on."""
    condition = _join({"table_id": table_id, "branch": branch, "binding": binding})
    found = dataset.to_table(columns=["row_id"], filter=condition)
    return sorted(set(found["row_id"].to_pylist()))


def list_entries(
    dataset: "lance.LanceDataset", wanted: LedgerFilter, limit: int, after: int = 0
) -> Listing:
    """The newest entries after so many, and which fragments have more."""
    equal = {"table_id": wanted.table_id, "branch": wanted.branch, "job_id": wanted.job_id}
    terms = [_join({name: text}) for name, text in equal.items() if text is not None]
    if wanted.column is not None:
        terms.append(f"array_has(columns, {_quote(wanted.column)})")
    condition = " AND ".join(terms) or None
    keys = ["at", "job_id", "fragment", "row_id"]
    found = dataset.to_table(columns=keys, filter=condition, with_row_id=True)
    order = pc.sort_indices(
        found, sort_keys=[("at", "descending"), ("job_id", "ascending"), ("row_id", "ascending")]
    )
    chosen = found.take(order[after : after + limit])
    whole: Any = dataset
    entries = whole._take_rows(chosen["_rowid"].to_pylist()) if len(chosen) else chosen
    is_truncated = after + len(chosen) < len(found)
    cut = _count_cut(found, found.take(order[: after + limit])) if is_truncated else []
    told = [_to_millis(row) for row in entries.to_pylist()]
    return Listing(told, cut, is_truncated, dataset.version)


def has_before(dataset: "lance.LanceDataset", millis: int) -> bool:
    """Whether there are entries older than a moment."""
    return dataset.count_rows(_before(millis)) > 0


def delete_before(dataset: "lance.LanceDataset", millis: int) -> None:
    """Delete entries older than a moment, in one commit."""
    dataset.delete(_before(millis))


def _before(millis: int) -> str:
    return f"at < to_timestamp_millis({millis})"


def _entry(failing: FailureOrigin, error: RowError) -> dict[str, Any]:
    return {
        "error_id": make_id(failing, error.row_id),
        "table": failing.table,
        "table_id": failing.table_id,
        "table_version": failing.table_version,
        "branch": failing.branch,
        "column": failing.column,
        "columns": list(failing.columns),
        "binding": failing.binding,
        "function": failing.function,
        "function_version": failing.function_version,
        "job_id": failing.job_id,
        "attempt": failing.attempt,
        "tries": error.tries,
        "row_id": error.row_id,
        "fragment": error.fragment,
        "offset": error.offset,
        "inputs": _cut(error.inputs, MAX_INPUTS),
        "exception": error.exception[:200],
        "message": _cut(error.message, MAX_MESSAGE),
        "traceback": _cut(error.traceback, MAX_TRACEBACK),
        "at": error.at,
    }


def _count_cut(found: "pa.Table", chosen: "pa.Table") -> list[CutFragment]:
    def count(table: "pa.Table") -> dict[tuple[str, int], int]:
        grouped = table.group_by(["job_id", "fragment"]).aggregate([("row_id", "count")])
        columns = (grouped[name].to_pylist() for name in ("job_id", "fragment", "row_id_count"))
        return {(job, fragment): rows for job, fragment, rows in zip(*columns, strict=True)}

    listed = count(chosen)
    return [
        CutFragment(job, fragment, rows, listed.get((job, fragment), 0))
        for (job, fragment), rows in sorted(count(found).items())
        if rows > listed.get((job, fragment), 0)
    ]


def _to_millis(row: dict[str, Any]) -> dict[str, Any]:
    return row | {"at": round(row["at"].timestamp() * 1000)}


def _join(equal: dict[str, str]) -> str:
    return " AND ".join(f"{name} = {_quote(text)}" for name, text in equal.items())


def _quote(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def _cut(text: str, most: int) -> str:
    return text if len(text) <= most else text[:most] + CUT
