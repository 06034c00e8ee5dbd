"""Tables of a running server, as tests speak of them."""

import uuid
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import lance

from penstock.lance.commit.manifest import manifest_name, versions_folder
from tests.harness.data import manifests
from tests.harness.processes.servers import Server
from tests.harness.processes.waiting import until


def code(response: httpx.Response) -> tuple[int, int]:
    """An error's status and number."""
    return response.status_code, response.json()["code"]


@dataclass(frozen=True)
class Table:
    """A table that was declared: what a client asks of it, and where its files are."""

    server: Server
    id: str
    location: Path

    @property
    def parts(self) -> list[str]:
        return self.id.split("$")

    def ask(self, operation: str, body: Any = None, **params: Any) -> httpx.Response:
        return self.server.post(f"/v1/table/{self.id}/{operation}", body, **params)

    def stage(
        self, version: int, branch: str = "", scheme: str = "V2", content: bytes | None = None
    ) -> str:
        """Write a staged manifest; returns its path as the SDK names it."""
        path = manifests.stage(self.location, version, branch, scheme)
        if content is not None:
            Path(f"/{path}").write_bytes(content)
        return path

    def create(self, version: int, path: str | None = None, **fields: Any) -> httpx.Response:
        """Ask for a version, by default with a freshly staged manifest."""
        if path is None:
            path = self.stage(version, fields.get("branch", ""), fields.get("naming_scheme", "V2"))
        return self.ask("version/create", {"version": version, "manifest_path": path} | fields)

    def entry(self, version: int, **fields: Any) -> dict[str, Any]:
        """What a batch says of a version, with a freshly staged manifest."""
        path = self.stage(version, fields.get("branch", ""))
        return {"id": self.parts, "version": version, "manifest_path": path} | fields

    def commit(self, *versions: int, **fields: Any) -> None:
        """Create these versions, which must work."""
        for version in versions:
            answer = self.create(version, **fields)
            assert answer.status_code == 200, answer.text

    def settle(self) -> None:
        """Wait until the catalog has noted that its commits are complete."""
        gauge = 'penstock_catalog_work{kind="unsettled_versions"} 0.0'
        until(lambda: gauge in self.server.get("/metrics").text, "the commits never settled")

    def describe(self, version: int | None = None, **fields: Any) -> httpx.Response:
        return self.ask("version/describe", {"version": version} | fields)

    def listed(self, **params: Any) -> list[int]:
        """The numbers of its versions, in the order in which they are listed."""
        answer = self.ask("version/list", **params)
        assert answer.status_code == 200, answer.text
        return [version["version"] for version in answer.json()["versions"]]

    def file(self, version: int, branch: str = "", scheme: str = "V2") -> Path:
        """Where a version's manifest lies when it is committed."""
        return self.location / versions_folder(branch) / manifest_name(version, scheme)

    def staged_files(self, branch: str = "") -> list[Path]:
        return list((self.location / versions_folder(branch)).glob("*.manifest-*"))


def declare(server: Server, id: str, **body: Any) -> Table:
    """Declare a table, which must work."""
    answer = server.post(f"/v1/table/{id}/declare", body)
    assert answer.status_code == 200, answer.text
    return Table(server, id, Path(answer.json()["location"]))


def get_table(server: Server, id: str) -> Table:
    """A table that somebody made."""
    answer = server.post(f"/v1/table/{id}/describe").raise_for_status()
    return Table(server, id, Path(answer.json()["location"]))


def ask(server: Server, table: str, operation: str, body: Any = None) -> Any:
    return server.post(f"/v1/table/{table}/{operation}", body)


def open_by_path(server: Server, table: str, branch: str = "") -> lance.LanceDataset:
    """The newest version of a table or a branch of it, past the server."""
    dataset = lance.dataset(ask(server, table, "describe").json()["location"])
    return dataset.checkout_version((branch, None)) if branch else dataset


def metadata(server: Server, table: str, name: str) -> dict[str, str]:
    """What a field of a table carries, in its newest version."""
    found = open_by_path(server, table).schema.field(name).metadata or {}
    return {key.decode(): value.decode() for key, value in found.items()}


def new_name(prefix: str = "n") -> str:
    return f"{prefix}{uuid.uuid4().hex[:10]}"


def pages(server: Server, path: str, field: str, **params: Any) -> list[list[Any]]:
    """Follow a listing from page to page; returns what each page held."""
    found, token = [], ""
    while True:
        chosen = params | ({"page_token": token} if token else {})
        answer = server.get(path, **chosen).raise_for_status().json()
        found.append(answer[field])
        token = answer.get("page_token") or ""
        if not token:
            return found
