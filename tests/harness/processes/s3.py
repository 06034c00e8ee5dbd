"""A lake on S3: a local moto server, and a Penstock whose tables lie on it."""

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import boto3
from moto.server import ThreadedMotoServer

from tests.harness.processes import servers
from tests.harness.processes.servers import Server

SECRETS = {"aws_access_key_id": "the-id", "aws_secret_access_key": "the-secret"}
BUCKET = "bucket"


@dataclass(frozen=True)
class Store:
    """An S3 server, and the options that lead to it."""

    options: dict[str, str]

    @property
    def bucket(self) -> Any:
        return boto3.resource(
            "s3",
            endpoint_url=self.options["aws_endpoint"],
            region_name=self.options["aws_region"],
            aws_access_key_id="the-id",
            aws_secret_access_key="the-secret",
        ).Bucket(BUCKET)

    def objects(self) -> dict[str, str]:
        """Every object of the bucket, with its digest."""
        return {found.key: found.e_tag for found in self.bucket.objects.all()}

    def keys(self, prefix: str) -> list[str]:
        return sorted(found.key for found in self.bucket.objects.filter(Prefix=prefix))


@contextlib.contextmanager
def running_store() -> Iterator[Store]:
    """A store with an empty bucket, for the length of a block."""
    moto = ThreadedMotoServer("127.0.0.1", 0, verbose=False)
    moto.start()
    host, port = moto.get_host_and_port()
    public = {
        "aws_region": "us-east-1",
        "aws_endpoint": f"http://{host}:{port}",
        "allow_http": "true",
    }
    found = Store(public | SECRETS)
    found.bucket.create()
    try:
        yield found
    finally:
        # All stores of a process share what they hold.
        found.bucket.objects.delete()
        moto.stop()


@contextlib.contextmanager
def serving(store: Store, data: Path, root: str = "lake", database: str = "") -> Iterator[Server]:
    """A server whose lake is on that store; one of another catalog has another root."""
    config = data / "penstock.toml"
    options = "\n".join(f'{name} = "{value}"' for name, value in store.options.items())
    config.write_text(f'[storage]\nroot = "s3://{BUCKET}/{root}"\n\n[storage.options]\n{options}\n')
    with servers.running(data, "--config", str(config), database=database) as started:
        yield started
