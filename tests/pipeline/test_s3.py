"""A backfill of a table on S3, on a local moto server."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import boto3
import lance
import pytest
from moto.server import ThreadedMotoServer

from penstock.datasets.remote import RemoteCatalog
from penstock.pipeline.spark.engine import Engine
from tests.harness import servers
from tests.harness.attempts import Computed, HeldAttempt, documents
from tests.harness.jobs import add_computed
from tests.harness.pylance import connect
from tests.harness.tables import new_name

BUCKET = "bucket"


@pytest.fixture
def options() -> Iterator[dict[str, str]]:
    """The options that lead to an S3 server with an empty bucket."""
    moto = ThreadedMotoServer("127.0.0.1", 0, verbose=False)
    moto.start()
    host, port = moto.get_host_and_port()
    found = {
        "aws_region": "us-east-1",
        "aws_endpoint": f"http://{host}:{port}",
        "allow_http": "true",
        "aws_access_key_id": "the-id",
        "aws_secret_access_key": "the-secret",
    }
    bucket(found).create()
    yield found
    moto.stop()


def bucket(options: dict[str, str]) -> Any:
    return boto3.resource(
        "s3",
        endpoint_url=options["aws_endpoint"],
        region_name=options["aws_region"],
        aws_access_key_id=options["aws_access_key_id"],
        aws_secret_access_key=options["aws_secret_access_key"],
    ).Bucket(BUCKET)


def test_a_column_on_s3_is_filled_and_nothing_is_left(
    engine: Engine, options: dict[str, str], tmp_path: Path
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
        table = Computed(
            catalog, namespace, id, engine, "value", "length(text) + id", ("text", "id")
        )
        attempt = HeldAttempt()
        done = table.fill(attempt)
        assert done.rows == attempt.told["rows_done"] == 40
        rows = lance.dataset(
            namespace_client=namespace, table_id=id, storage_options=options
        ).to_table(columns={"value": "value", "wanted": table.expression})
        assert rows["value"].to_pylist() == rows["wanted"].to_pylist()
        keys = [found.key for found in bucket(options).objects.all()]
        assert sum("/bf-" in key for key in keys) == 4
        assert not [key for key in keys if "/_jobs/" in key]
