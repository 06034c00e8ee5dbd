"""A table and a person who makes views of it."""

import uuid
from dataclasses import dataclass
from typing import Any

import httpx
import pyarrow as pa
import pytest

from tests.harness.data.arrow import people, send
from tests.harness.processes.access import GuardedServer, Person, person
from tests.harness.processes.servers import Server
from tests.harness.views.definitions import encode_schema, make_spec


@dataclass
class Place:
    """A table that is not ann's but may be read by her, and a namespace of her own."""

    gate: GuardedServer
    admin: Server
    data: str
    home: str
    ann: Person

    @property
    def view(self) -> str:
        return f"{self.home}$v"

    def create(self, **more: Any) -> httpx.Response:
        body = {"kind": "query", "source_query": f"SELECT id FROM {self.data}.t", **more}
        return self.ann.ask(f"materialized_view/{self.view}/create", body)

    def ask(self, who: Person, operation: str, body: Any = None, **params: Any) -> httpx.Response:
        return who.ask(f"materialized_view/{self.view}/{operation}", body, **params)


@pytest.fixture
def place(gate: GuardedServer) -> Place:
    return make_place(gate)


def make_place(gate: GuardedServer) -> Place:
    admin, ann = gate.admin(), person(gate)
    data, home = (f"n{uuid.uuid4().hex[:8]}" for _ in range(2))
    for ns in (data, home):
        admin.post(f"/v1/namespace/{ns}/create").raise_for_status()
    send(admin, f"/v1/table/{data}$t/create", people(1, 2)).raise_for_status()
    gate.grant(ann.name, "reader", "table", data, "t")
    gate.grant(ann.name, "owner", "namespace", home)
    return Place(gate, admin, data, home, ann)


def chunker() -> dict[str, Any]:
    makes = pa.schema([("word", pa.string())])
    spec = make_spec("chunker", makes, input_columns=["name"], batch=False)
    return {"kind": "chunker", "udtf_spec": spec, "output_schema": encode_schema(makes)}


def stack(place: Place) -> str:
    """A view of ann's, and another one that reads it, which is returned."""
    place.create().raise_for_status()
    upper = f"{place.home}$w"
    body = {"kind": "query", "source_query": f"SELECT id FROM {place.home}.v"}
    place.ann.ask(f"materialized_view/{upper}/create", body).raise_for_status()
    return upper
