"""Tables as pylance sees them through a server."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

import lance
import pyarrow as pa

from tests.harness.processes.servers import Server

# It takes a second to load, also in processes that never connect.
if TYPE_CHECKING:
    from lance.namespace import RestNamespace


@dataclass(frozen=True)
class Client:
    """A table as pylance sees it through the server."""

    namespace: "RestNamespace"
    id: list[str]
    storage_options: dict[str, str] | None = None

    @property
    def target(self) -> dict[str, Any]:
        return {
            "namespace_client": self.namespace,
            "table_id": self.id,
            "storage_options": self.storage_options,
        }

    def write(self, *numbers: int, mode: str = "append", **options: Any) -> lance.LanceDataset:
        return lance.write_dataset(rows(*numbers), mode=mode, **self.target, **options)

    def open(self, **options: Any) -> lance.LanceDataset:
        return lance.dataset(**self.target, **options)

    def numbers(self) -> list[int]:
        return sorted(self.open().to_table()["n"].to_pylist())

    def versions(self, branch: str | None = None) -> list[int]:
        from lance_namespace import ListTableVersionsRequest

        request = ListTableVersionsRequest(id=self.id, branch=branch)
        found = self.namespace.list_table_versions(request).versions
        return sorted(version.version for version in found)


def connect(server: Server) -> "RestNamespace":
    """pylance's client of a server, with the key that the server's own one has."""
    from lance.namespace import RestNamespace

    open_namespace: Any = RestNamespace
    key = server.client.headers.get("authorization")
    shown = {} if key is None else {"header.Authorization": key}
    return cast("RestNamespace", open_namespace(uri=server.url, **shown))


def make_branched(server: Server, namespace: str) -> Client:
    """A table with the versions 1 and 2 on main, 2 and 3 on the branch `dev`."""
    client = Client(connect(server), [namespace, "t"])
    client.write(1, 2, 3, mode="create")
    client.write(4)
    client.open().create_branch("dev").delete("n = 1")
    return client


def rows(*numbers: int) -> pa.Table:
    vectors = pa.array([[float(n)] * 8 for n in numbers], pa.list_(pa.float32(), 8))
    return pa.table({"n": pa.array(numbers, pa.int64()), "vector": vectors})
