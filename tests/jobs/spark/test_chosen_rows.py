"""Chosen rows reach Spark with the query or by tasks, and are the same ones either way."""

import datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import lance
import numpy as np
import pyarrow as pa

from penstock.jobs.spark.chosen_rows import (
    MAX_SENT_BYTES,
    ChosenOrder,
    divide,
    load_chosen,
    read_few,
)
from penstock.jobs.spark.lance_source import load, make_scan
from penstock.jobs.spark.tasks import Engine
from penstock.lance.session.remote import Location

MOMENT = datetime.datetime(2024, 3, 1, 12, 30, 0, 123456)
UTC = MOMENT.replace(tzinfo=datetime.UTC)
VALUES: dict[str, tuple[list[Any], pa.DataType]] = {
    "whole": ([1, None, -3], pa.int16()),
    "unsigned": ([1, None, 2**32 - 1], pa.uint32()),
    "real": ([float("nan"), -0.0, None], pa.float64()),
    "half": ([1.5, None, -2.0], pa.float32()),
    "flag": ([True, None, False], pa.bool_()),
    "text": (["a", "", None], pa.string()),
    "long": (["a", "", None], pa.large_string()),
    "bytes": ([b"\0", b"", None], pa.binary()),
    "exact": ([Decimal("1.10"), None, Decimal("-7.00")], pa.decimal128(10, 2)),
    "day": ([datetime.date(2024, 1, 1), None, datetime.date(1900, 1, 1)], pa.date32()),
    "plain": ([MOMENT, None, MOMENT], pa.timestamp("us")),
    "zoned": ([UTC, None, UTC], pa.timestamp("us", "UTC")),
    "listed": ([["a", None], [], None], pa.list_(pa.string())),
    "vector": ([[1.0, 2.0], None, [3.0, 4.0]], pa.list_(pa.float32(), 2)),
    "nested": (
        [{"x": 1, "y": ["z"]}, None, {"x": None, "y": None}],
        pa.struct({"x": pa.int64(), "y": pa.list_(pa.string())}),
    ),
}


def write(folder: Path, table: pa.Table) -> tuple[lance.LanceDataset, Location]:
    path = str(folder / "t")
    return lance.write_dataset(table, path, enable_stable_row_ids=True), Location(path, "")


def places(*rows: int) -> Any:
    return np.array(rows, np.int64)


def test_rows_that_are_sent_are_those_that_tasks_read(engine: Engine, tmp_path: Path) -> None:
    dataset, location = write(
        tmp_path, pa.table({name: pa.array(*each) for name, each in VALUES.items()})
    )
    scan = make_scan(dataset, location, tuple(VALUES), "test", 2, "_id")
    sent = load_chosen(engine, scan, places(0, 1, 2), places(0, 1, 2))
    read = load(engine, scan)
    assert sent.schema == read.schema
    assert repr(sent.orderBy("_id").collect()) == repr(read.orderBy("_id").collect())


def test_large_rows_are_left_to_tasks(engine: Engine, tmp_path: Path) -> None:
    texts = pa.table({"text": ["a" * MAX_SENT_BYTES, "b"]})
    dataset, location = write(tmp_path, texts)
    scan = make_scan(dataset, location, ("text",), "test", 2)
    assert read_few(ChosenOrder(scan, divide(places(0), places(0), 2))) is None
    small = read_few(ChosenOrder(scan, divide(places(1), places(1), 2)))
    assert small is not None
    assert small.to_pydict() == {"text": ["b"]}
    frame = load_chosen(engine, scan, places(0), places(0))
    assert [len(row.text) for row in frame.collect()] == [MAX_SENT_BYTES]
