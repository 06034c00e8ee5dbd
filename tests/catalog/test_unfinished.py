"""What killed writers had begun is swept up once nobody can own it."""

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from penstock.catalog import maintenance
from penstock.catalog.catalog import Catalog
from penstock.catalog.jobs import jobs, leases
from penstock.catalog.names import tables
from penstock.database.interface import Transaction
from penstock.jobs.specs import BackfillSpec
from penstock.lance.storage.lake import Lake
from penstock.lance.storage.unfinished_files import UNFINISHED_SECONDS, sweep_unfinished
from penstock.model.jobs import NewJob
from penstock.model.slots import Slot
from penstock.model.tables import MAIN
from tests.harness.processes.waiting import until

WRITER = """
import os, sys, lance, pyarrow as pa
def rows():
    while True:
        yield pa.record_batch({"a": [os.urandom(100_000).hex() for _ in range(20)]})
schema = pa.schema([("a", pa.string())])
lance.write_dataset(pa.RecordBatchReader.from_batches(schema, rows()), sys.argv[1])
"""
DAY = 24 * 3600


def test_the_file_of_a_killed_writer_goes_when_it_is_old(tmp_path: Path) -> None:
    lake = Lake(str(tmp_path / "lake"))
    place = lake.place(f"{lake.root}/t.lance")
    writer = subprocess.Popen([sys.executable, "-c", WRITER, place.location])
    root = Path(place.location)
    until(lambda: any(root.glob("data/.tmp*")))
    writer.kill()
    writer.wait()
    (root / "data" / "whole.lance").write_bytes(b"x")
    assert sweep_unfinished(place, int((time.time() - DAY) * 1000))
    assert len(list(root.glob("data/*"))) == 2
    assert not sweep_unfinished(place, int((time.time() + 9) * 1000))
    assert [path.name for path in root.glob("data/*")] == ["whole.lance"]


@pytest.mark.anyio
async def test_nothing_goes_while_a_runner_works_on_the_table(catalog: Catalog) -> None:
    new = tables.plan_table(catalog, ("a",), None, {}, managed=True)
    await tables.declare(catalog, new)
    table = new.table
    file = Path(table.location) / "data" / ".tmpAb12Cd"
    file.parent.mkdir(parents=True)
    file.touch()
    os.utime(file, (long_ago := time.time() - UNFINISHED_SECONDS - 60, long_ago))
    spec = BackfillSpec(table=("a",), table_id=table.id, column="c")
    job = NewJob("backfill", "a", "a.c", Slot(table.id, "c"), spec, "local")
    await catalog.database.write(jobs.enqueue_in, job, 3)
    assert len(await leases.lease(catalog, "r", None, 9)) == 1
    for left in (True, False):
        catalog.visits[(table.id, MAIN)] = table, 0.0
        await maintenance.run_round(catalog)
        assert file.exists() is left
        await catalog.database.write(end_jobs)


async def end_jobs(tx: Transaction) -> None:
    await tx.fetch("UPDATE jobs SET state = 'FAILED'")
