"""What is asked of a server: one namespace of tables, and the requests of each operation."""

import os
import random

import msgspec

from benchmarks.load import Job, Measured, measure, prepare
from benchmarks.manifests import StagedManifest, stage
from benchmarks.servers import Server
from penstock.catalog.catalog import Catalog
from penstock.catalog.names import namespaces, tables
from penstock.catalog.names.tables import NewTable
from penstock.database.connect import open_catalog
from penstock.database.interface import Transaction
from penstock.lance.storage.lake import Lake
from penstock.model.origins import NOBODY
from penstock.settings.places import database_url, lake_root
from penstock.settings.sections import Settings
from penstock.settings.storage_sections import StorageSettings

DESCRIBE, EXISTS, LIST = "describe", "exists", "list 100"
CREATE_VERSION, CREATE_NAMESPACE = "version/create", "create namespace"
OPERATIONS = (DESCRIBE, EXISTS, LIST, CREATE_VERSION, CREATE_NAMESPACE)

PAGE = 100
LIST_PATH = f"/v1/namespace/ns/table/list?limit={PAGE}"
# More than any server here can use up in a second.
NAMESPACES_PER_SECOND = 20_000


class Workload:
    """The requests for one server; versions and namespaces are never asked for twice."""

    def __init__(self, server: Server, count: int) -> None:
        self.server = server
        server.call("POST", "/v1/namespace/ns/create", {})
        self._locations = [
            server.call("POST", _table(n, "declare"), {})["location"] for n in range(count)
        ]
        self._versions = self._namespaces = 0
        # The first version of each table is not measured: it makes folders, later ones don't.
        first = self._create_versions(16, 600, count)
        self._versions_per_second = first.rate
        self._check()

    def run(self, operation: str, connections: int, seconds: float) -> Measured:
        """Measure one operation for a while."""
        if operation == CREATE_VERSION:
            # Twice of what the first versions led to expect.
            count = int(self._versions_per_second * 2 * seconds) + connections
            return self._create_versions(connections, seconds, count)
        if operation == CREATE_NAMESPACE:
            start, count = self._namespaces, int(NAMESPACES_PER_SECOND * seconds)
            requests = [
                prepare("POST", f"/v1/namespace/made{n:07d}/create", b"{}")
                for n in range(start, start + count)
            ]
            done = self._measure(connections, seconds, requests)
            self._namespaces += done.count
            return done
        return self._measure(connections, seconds, self.requests(operation), repeat=True)

    def requests(self, operation: str) -> list[bytes]:
        """The requests of an operation that changes nothing."""
        if operation == LIST:
            return [prepare("GET", LIST_PATH)]
        return [prepare("POST", _table(n, operation), b"{}") for n in range(len(self._locations))]

    def describe_reply(self) -> bytes:
        return self.server.fetch("POST", _table(0, "describe"), b"{}")

    def _create_versions(self, connections: int, seconds: float, count: int) -> Measured:
        staged = [self._stage(n) for n in range(self._versions, self._versions + count)]
        done = self._measure(connections, seconds, [request for request, _ in staged])
        self._versions += done.count
        # Staged again for the next time, so that each is as fresh as a writer's.
        for _, manifest in staged[done.count :]:
            os.remove(f"/{manifest.path}")
        return done

    def _stage(self, number: int) -> tuple[bytes, StagedManifest]:
        """The tables take turns, so two versions of one are never in flight together."""
        version, table = divmod(number, len(self._locations))
        manifest = stage(self._locations[table], version + 1)
        body = {
            "version": version + 1,
            "manifest_path": manifest.path,
            "manifest_size": manifest.size,
            "naming_scheme": "V2",
        }
        request = prepare("POST", _table(table, "version/create"), msgspec.json.encode(body))
        return request, manifest

    def _measure(
        self, connections: int, seconds: float, requests: list[bytes], repeat: bool = False
    ) -> Measured:
        return measure(Job(self.server.port, connections, requests, seconds, repeat))

    def _check(self) -> None:
        """What is fast must also be right."""
        count = len(self._locations)
        described = msgspec.json.decode(self.describe_reply())
        assert described["location"] == self._locations[0], described
        assert described["managed_versioning"] is True, described
        listed = self.server.call("GET", LIST_PATH)["tables"]
        assert listed == [f"t{n:06d}" for n in range(min(PAGE, count))], listed
        versions = self.server.call("POST", _table(count - 1, "version/list"))["versions"]
        assert [v["version"] for v in versions] == [1], versions


async def seed(data: str, count: int) -> None:
    """Fill a catalog that no server has open with one namespace of tables."""
    settings = Settings(storage=StorageSettings(data=data))
    database = await open_catalog(database_url(settings))
    catalog = Catalog(database, Lake(lake_root(settings)))
    await namespaces.create(catalog, ("ns",), {}, "create")
    new = [
        tables.plan_table(catalog, ("ns", f"t{n:06d}"), None, {}, managed=True)
        for n in range(count)
    ]
    await database.write(_declare_all, new)
    await catalog.close()


def seeded_requests(server: Server, count: int, most: int = 20_000) -> dict[str, list[bytes]]:
    """Describes of tables all over the namespace, and every page of its list."""
    order = random.Random(1).sample(range(count), min(count, most))
    pages, path = [], LIST_PATH
    while True:
        reply = server.call("GET", path)
        if len(reply["tables"]) == PAGE:
            pages.append(prepare("GET", path))
        if not reply.get("page_token"):
            break
        path = f"{LIST_PATH}&page_token={reply['page_token']}"
    random.Random(1).shuffle(pages)
    return {
        DESCRIBE: [prepare("POST", _table(n, "describe"), b"{}") for n in order],
        LIST: pages,
    }


async def _declare_all(tx: Transaction, new: list[NewTable]) -> None:
    for each in new:
        await tables.declare_in(tx, each, NOBODY)


def _table(number: int, verb: str) -> str:
    return f"/v1/table/ns%24t{number:06d}/{verb}"
