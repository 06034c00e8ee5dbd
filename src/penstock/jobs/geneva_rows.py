"""Jobs and failed rows as rows of the tables in which Geneva's client looks for them. Blocks."""

import json
import math
from collections.abc import Collection, Iterable
from functools import cache
from typing import Any

from penstock.jobs.specs import BACKFILL, REFRESH
from penstock.lance.doors import lance, pa, pc
from penstock.model.jobs import CANCELED, FAILED, PAUSED, QUEUED, RUNNING, SUCCEEDED, Job

MAX_OWN = 1_000
# The kinds of jobs that are told of.
KINDS = (BACKFILL, REFRESH)
STATES = {
    QUEUED: "PENDING",
    RUNNING: "RUNNING",
    # It goes on when it is resumed, so whoever waits for it goes on waiting.
    PAUSED: "PENDING",
    SUCCEEDED: "DONE",
    FAILED: "FAILED",
    CANCELED: "CANCELLED",
}
# Of progress: the client's name, what is done, of how much, and in words.
METRICS = (
    ("fragments", "fragments_done", "fragments_total", "fragments done"),
    ("rows_checkpointed", "rows_done", "rows_total", "rows computed"),
    ("rows_committed", "rows_done", "rows_total", "rows done"),
    ("udf_values_computed", "function_calls", None, "calls of the function"),
    ("rows_refreshed", "rows_refreshed", None, "rows that a refresh wrote"),
    ("rows_skipped", "rows_failed", None, "rows that the function failed on"),
)


@cache
def jobs_schema() -> "pa.Schema":
    """The columns of the table of jobs."""
    text, moment = pa.string(), pa.timestamp("us", "UTC")
    return pa.schema(
        [
            pa.field("table_name", text),
            pa.field("column_name", text),
            pa.field("job_id", text),
            pa.field("job_type", text),
            pa.field("object_ref", text),
            pa.field("status", text),
            pa.field("launched_at", moment),
            pa.field("completed_at", moment),
            pa.field("config", text),
            pa.field("launched_by", text),
            pa.field("manifest_id", text),
            pa.field("manifest_checksum", text),
            pa.field("metrics", pa.list_(text)),
            pa.field("events", pa.list_(text)),
            pa.field("updated_at", moment),
            pa.field("cluster_name", text),
            pa.field("input_columns", pa.list_(text)),
            pa.field("output_columns", pa.list_(text)),
        ]
    )


@cache
def errors_schema() -> "pa.Schema":
    """The columns of the table of failed rows."""
    text, number = pa.string(), pa.int64()
    return pa.schema(
        [
            pa.field("error_id", text),
            pa.field("error_type", text),
            pa.field("error_message", text),
            pa.field("error_trace", text),
            pa.field("job_id", text),
            pa.field("table_uri", text),
            pa.field("table_name", text),
            pa.field("table_version", number),
            pa.field("column_name", text),
            pa.field("udf_name", text),
            pa.field("udf_version", text),
            pa.field("input_columns", pa.list_(text)),
            pa.field("output_columns", pa.list_(text)),
            pa.field("actor_id", text),
            pa.field("fragment_id", number),
            pa.field("batch_index", number),
            pa.field("row_address", number),
            pa.field("attempt", number),
            pa.field("max_attempts", number),
            pa.field("bisect_depth", number),
            pa.field("timestamp", pa.timestamp("us", "UTC")),
        ]
    )


def make_jobs(jobs: Iterable[Job]) -> "pa.Table":
    """The rows of jobs, as they come."""
    return pa.Table.from_pylist([_tell_job(job) for job in jobs], jobs_schema())


def make_errors(entries: Iterable[dict[str, Any]]) -> "pa.Table":
    """The rows of the ledger's entries, as they come."""
    return pa.Table.from_pylist([_tell_error(entry) for entry in entries], errors_schema())


def read_own(dataset: "lance.LanceDataset", schema: "pa.Schema", job_id: str | None) -> "pa.Table":
    """The newest rows of such a table itself, in these columns: of work of the client's own."""
    condition = None if job_id is None else f"job_id = '{job_id}'"
    rows = dataset.count_rows(condition)
    there = [name for name in schema.names if name in dataset.schema.names]
    found = dataset.to_table(
        columns=there, filter=condition, offset=max(0, rows - MAX_OWN), limit=MAX_OWN
    )
    try:
        columns = [
            found.column(field.name).cast(field.type)
            if field.name in there
            else pa.nulls(len(found), field.type)
            for field in schema
        ]
    except pa.ArrowException:
        # It is a table of somebody else's.
        return schema.empty_table()
    return pa.table(columns, schema=schema)


def add_own(told: "pa.Table", own: "pa.Table", key: str, known: Collection[str]) -> "pa.Table":
    """What is told, and after it those rows that the server knows nothing of."""
    is_known = pc.is_in(own.column(key), pa.array(sorted(known), pa.string()))
    return pa.concat_tables([told, own.filter(pc.invert(is_known))])


def _tell_job(job: Job) -> dict[str, Any]:
    column = job.target.removeprefix(job.object).removeprefix(".")
    return {
        "table_name": _last(job.object),
        "column_name": column,
        "job_id": job.id,
        "job_type": job.kind.upper(),
        "status": STATES[job.state],
        "launched_at": job.created_at * 1000,
        "completed_at": None if job.finished_at is None else job.finished_at * 1000,
        "config": json.dumps({"table": job.object, "attempt": job.attempt}),
        "manifest_id": job.manifest,
        "metrics": list(_list_metrics(job)),
        # What the client tells of a job that did not succeed is the last of them.
        "events": [job.error] if job.error else ["canceled"] if job.state == CANCELED else [],
        "updated_at": (job.finished_at or job.started_at or job.created_at) * 1000,
        "cluster_name": job.cluster or None,
        "output_columns": [column] if column else None,
    }


def _list_metrics(job: Job) -> Iterable[str]:
    refreshed = [_number(job.result.get(key)) for key in ("rows_inserted", "rows_updated")]
    known = job.progress | {"rows_refreshed": sum(each or 0 for each in refreshed)}
    for name, done, total, words in METRICS:
        found = _number(known.get(done))
        if found is None:
            continue
        wanted = found if total is None else _number(known.get(total)) or found
        told = {"name": name, "n": found, "total": wanted, "done": found >= wanted, "desc": words}
        yield json.dumps(told)


def _tell_error(entry: dict[str, Any]) -> dict[str, Any]:
    return {
        "error_id": entry["error_id"],
        "error_type": entry["exception"],
        "error_message": entry["message"],
        "error_trace": entry["traceback"],
        "job_id": entry["job_id"],
        "table_uri": entry["table"],
        "table_name": _last(entry["table"]),
        "table_version": entry["table_version"],
        "column_name": entry["column"],
        "udf_name": entry["function"],
        "udf_version": entry["function_version"],
        "output_columns": entry["columns"],
        "fragment_id": entry["fragment"],
        "batch_index": 0,
        "row_address": _address(entry["fragment"], entry["offset"]),
        "attempt": entry["tries"],
        "max_attempts": entry["tries"],
        "timestamp": entry["at"] * 1000,
    }


def _address(fragment: int, offset: int) -> int | None:
    """Lance's address of a row; None where there is none for such a place."""
    return (fragment << 32) | offset if max(fragment >> 31, offset >> 32) == 0 else None


def _last(object: str) -> str:
    """A table's name without its namespace, which this client does not tell apart."""
    return object.rpartition("$")[2]


def _number(value: Any) -> int | None:
    return int(value) if isinstance(value, int | float) and math.isfinite(value) else None
