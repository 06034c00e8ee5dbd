"""A backfill of a table on S3, on a local moto server."""

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import lance
import pytest

from penstock.jobs.backfill.plan import Watermark
from penstock.jobs.backfill.run import run_backfill
from penstock.jobs.spark.tasks import Engine
from penstock.jobs.specs import BackfillSpec
from penstock.lance.session.remote import Location, RemoteCatalog, open_newest
from tests.harness.clients.pylance import connect
from tests.harness.data.tables import new_name
from tests.harness.jobs.computed_tables import ComputedTable, documents
from tests.harness.jobs.fake_runner import add_computed
from tests.harness.jobs.filled_tables import BINDING, some_rows
from tests.harness.jobs.function_tables import bound_field
from tests.harness.jobs.held_attempt import HeldAttempt
from tests.harness.jobs.kernel import declare, seal
from tests.harness.jobs.local_engine import LOCAL_ENGINE
from tests.harness.processes import servers
from tests.harness.processes.s3 import BUCKET, Store, running_store


@pytest.fixture
def store() -> Iterator[Store]:
    with running_store() as started:
        yield started


@pytest.fixture
def options(store: Store) -> dict[str, str]:
    """The options that lead to an S3 server with an empty bucket."""
    return store.options


def test_a_column_on_s3_is_filled_and_nothing_is_left(
    engine: Engine, store: Store, options: dict[str, str], tmp_path: Path
) -> None:
    environ = {
        "PENSTOCK__STORAGE__ROOT": f"s3://{BUCKET}/lake",
        "PENSTOCK__STORAGE__OPTIONS": json.dumps(options),
    }
    with servers.running(tmp_path, "--no-runner", environ=environ) as server:
        namespace, id = connect(server), [new_name(), "t"]
        server.post(f"/v1/namespace/{id[0]}/create").raise_for_status()
        lance.write_dataset(
            documents(0, 40),
            namespace_client=namespace,
            table_id=id,
            mode="create",
            max_rows_per_file=10,
            storage_options=options,
        )
        add_computed(server, "$".join(id), value="length(text) + id").raise_for_status()
        catalog = RemoteCatalog(server.url, options=options)
        table = ComputedTable(
            catalog, namespace, id, engine, "value", "length(text) + id", ("text", "id")
        )
        attempt = HeldAttempt()
        done = table.fill(attempt)
        assert done.rows == attempt.told["rows_done"] == 40
        rows = lance.dataset(
            namespace_client=namespace, table_id=id, storage_options=options
        ).to_table(columns={"value": "value", "wanted": table.expression})
        assert rows["value"].to_pylist() == rows["wanted"].to_pylist()
        keys = [found.key for found in store.bucket.objects.all()]
        assert sum("/bf-" in key for key in keys) == 4
        assert not [key for key in keys if "/_jobs/" in key]


class OnS3(RemoteCatalog):
    """One table by its address."""

    def __init__(self, options: dict[str, str]) -> None:
        self._s3 = options

    def locate(self, table: Sequence[str], branch: str) -> Location:
        return Location(f"s3://{BUCKET}/t", branch, self._s3)

    def open_latest(self, table: Sequence[str], branch: str) -> lance.LanceDataset:
        return open_newest(self.locate(table, branch))


def test_a_function_fills_rows_on_s3_and_on_a_branch_there(
    store: Store, options: dict[str, str]
) -> None:
    content = seal(lambda text, number: f"{text}:{number}")
    function = declare(content, ["text", "number"])
    store.bucket.put_object(Key=f"t/_udfs/{function.sha256}", Body=content)
    dataset = lance.write_dataset(
        some_rows(0, 20),
        f"s3://{BUCKET}/t",
        max_rows_per_file=10,
        enable_stable_row_ids=True,
        storage_options=options,
    )
    dataset.add_columns(bound_field("value", function))
    catalog, known = OnS3(options), list[Watermark]()

    def fill(**more: Any) -> int:
        spec = BackfillSpec(
            table=("n", "t"),
            column="value",
            columns=("value",),
            inputs=("text", "number"),
            function=function,
            binding=BINDING,
            watermarks=tuple(known),
            **more,
        )
        done = run_backfill(spec, catalog, lambda: LOCAL_ENGINE, HeldAttempt())
        assert done.watermark is not None
        known.insert(0, done.watermark)
        return done.function_calls

    assert fill(where="id < 15") == 15
    catalog.open_latest((), "").create_branch("dev")
    assert fill(branch="dev") == 5
    catalog.open_latest((), "dev").optimize.compact_files()
    assert fill(branch="dev") == 0
    found = catalog.open_latest((), "dev").to_table(columns=["value", "text", "number"])
    assert all(row["value"] == f"{row['text']}:{row['number']}" for row in found.to_pylist())
