"""Compare a udtf's view with what its function makes now of the partitions of its query.

Only the function can tell what such a view holds, so it is called again: for all partitions, or for
some of them. Rows are compared by their digests, in any order.
"""

import hashlib
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
from lance import LanceDataset

from penstock.errors import FunctionFailed, Unavailable
from penstock.jobs.engine.finished import FinishedRows
from penstock.jobs.engine.waiting import wait_for_tasks
from penstock.jobs.refresh.chunks.kernel import cast_columns
from penstock.jobs.refresh.context import Work
from penstock.jobs.refresh.udtf import spark_partitions
from penstock.jobs.refresh.udtf.making import UdtfOrder
from penstock.jobs.refresh.udtf.partitions import divide, number_of
from penstock.jobs.refresh.udtf.plan import count_partitions, is_sparks, to_partitioning
from penstock.jobs.refresh.udtf.run import Start, count_rows, make_order, start_tasks
from penstock.jobs.refresh.verify import Sample, describe_compared
from penstock.jobs.refresh.view_notes import read_failed
from penstock.jobs.spark.sql_sessions import open_sql
from penstock.lance.diff.digests import digest_rows
from penstock.lance.diff.fragments import has_blobs
from penstock.lance.errors import translated
from penstock.model.views import PARTITION, Watermark

SCAN_ROWS = 65_536


def verify_udtf(work: Work, view: LanceDataset, watermark: Watermark) -> dict[str, Any]:
    """The certificate of a version of the view; counts the calls that it took."""
    work = replace(work, view=view)
    sample = _choose_sample(work, view)
    if not is_sparks(work.definition):
        (source,) = work.sources.values()
        how = to_partitioning(work.definition)
        counts = count_partitions(divide(source.dataset_now, how))
        order = make_order(work, _choose(work, counts, sample, watermark), how, is_check=True)
        return _compare(work, view, order, sample, start_tasks)
    with open_sql(work.get_engine(), count_rows(work)) as sql:
        opened = replace(work, get_engine=lambda: sql)
        found = spark_partitions.find_partitions(opened, sql)
        counts = {label: each.rows for label, each in found.items()}
        order = make_order(opened, _choose(work, counts, sample, watermark), None, is_check=True)
        return _compare(opened, view, order, sample, partial(spark_partitions.start, opened))


def _choose(
    work: Work, counts: Mapping[str, int], sample: Sample, watermark: Watermark
) -> dict[str, int]:
    """The partitions to compare: those that failed have no rows in the view."""
    failed = read_failed(work.place, watermark.failed, watermark.failed_rows)
    numbers = np.array([number_of(label) for label in counts], np.int64)
    taken = (numbers % sample.one_in == sample.remainder) & ~failed.contains(numbers)
    return {label: rows for (label, rows), is_taken in zip(counts.items(), taken, strict=True)
            if is_taken}  # fmt: skip


def _compare(
    work: Work, view: LanceDataset, order: UdtfOrder, sample: Sample, start: Start
) -> dict[str, Any]:
    expected, calls, error = np.empty(0, np.uint64), 0, ""
    try:
        expected, calls = _call(work, order, start)
    except FunctionFailed as failed:
        error = failed.message
    kept = [name for name in order.written if not has_blobs(_field(view, name))]
    found = _digest_view(view, order, kept, sample)
    missing, extra = _count_differing(found, expected)
    digest = hashlib.sha256(np.sort(found).tobytes()).hexdigest()
    told = describe_compared(work, view, kept, sample)
    return told | {
        "partitions": sum(map(len, order.tasks)),
        "function_calls": calls,
        "rows": len(found),
        "rows_expected": len(expected),
        "rows_missing": missing,
        "rows_extra": extra,
        "is_equal": not (missing or extra or error),
        "digest": digest,
        **({"error": error} if error else {}),
    }


def _call(work: Work, order: UdtfOrder, start: Start) -> tuple[Any, int]:
    """Digests of the rows that the function makes now, and how many partitions it was given."""
    numbers = range(len(order.tasks))
    if not numbers:
        return np.empty(0, np.uint64), 0
    work.attempt.log(f"calling the function for {sum(map(len, order.tasks))} partitions to compare")
    wait_for_tasks(work.attempt, work.place, start(order, numbers, work.get_engine()))
    finished = FinishedRows(work.location, work.attempt)
    finished.look()
    keys = [order.key(number) for number in numbers]
    if lost := [key for key in keys if key not in finished.by_key]:
        raise Unavailable(f"the results of {len(lost)} tasks are not there")
    notes = [finished.by_key[key] for key in keys]
    digests = np.frombuffer(b"".join(note.digests for note in notes), np.uint64)
    return digests, sum(note.calls for note in notes)


def _digest_view(view: LanceDataset, order: UdtfOrder, names: list[str], sample: Sample) -> Any:
    """Digests of the view's rows in the partitions of the sample, whether the query has them."""
    schema = pa.schema([view.schema.field(name) for name in names])
    parts = [np.empty(0, np.uint64)]
    numbers: dict[str, int] = {}
    with translated():
        for batch in view.scanner(columns=names, batch_size=SCAN_ROWS).to_batches():
            taken = batch
            if PARTITION in names and sample.one_in > 1:
                labels = batch.column(PARTITION).to_pylist()
                numbers |= {each: number_of(each) for each in {*labels} - numbers.keys()}
                taken = batch.filter(
                    pa.array([numbers[each] % sample.one_in == sample.remainder for each in labels])
                )
            columns = cast_columns([taken.column(name) for name in names], schema)
            parts.append(digest_rows(columns, taken.num_rows))
    return np.concatenate(parts)


def _count_differing(found: Any, expected: Any) -> tuple[int, int]:
    """How many expected rows the view lacks, and how many it has besides."""
    values, places = np.unique(np.concatenate([found, expected]), return_inverse=True)
    here = np.bincount(places[: len(found)], minlength=len(values))
    there = np.bincount(places[len(found) :], minlength=len(values))
    return int(np.maximum(there - here, 0).sum()), int(np.maximum(here - there, 0).sum())


def _choose_sample(work: Work, view: LanceDataset) -> Sample:
    """About as many of the view's rows as requested, by whole partitions."""
    definition, wanted = work.definition, work.spec.verify_rows
    is_whole = definition.partition_by is None and definition.partition_by_indexed_column is None
    if wanted is None or is_whole:
        return Sample()
    return Sample.one_of(max(1, view.count_rows() // max(1, wanted)), work.attempt.job)


def _field(view: LanceDataset, name: str) -> Any:
    return next(each for each in view.lance_schema.fields() if each.name() == name)
