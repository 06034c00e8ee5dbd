"""The world that is attacked: one server with authentication, and a small catalog in it."""

import json
import time
import uuid
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pyarrow as pa

from penstock.catalog.access.tokens import RUNNER
from penstock.database.interface import Database, Transaction
from penstock.model.rights import FUNCTIONS, OWN, WRITE
from tests.attack.place import ABSENT, CALLERS, HIDDEN, MINE, PIT, SECRET, THEIRS, Place
from tests.harness.clients import iceberg_requests as views
from tests.harness.clients import iceberg_tables
from tests.harness.data.arrow import send
from tests.harness.data.functions import pack
from tests.harness.processes import servers
from tests.harness.processes.access import AUTH, GuardedServer, Issuer, Link
from tests.harness.processes.databases import sqlite_url
from tests.harness.processes.s3 import BUCKET, Store
from tests.harness.processes.servers import Server

REMOTE_ROOT = f"s3://{BUCKET}/lake"
ROLE = "arn:aws:iam::123456789012:role/tables"
CLUSTER = "crew"
PATIENT = {
    # Who holds connections open is let go soon, so that nobody waits for it.
    "PENSTOCK__SERVER__HEAD_SECONDS": "2",
    "PENSTOCK__SERVER__READ_SECONDS": "2",
    "PENSTOCK__AUTH__MAX_QUERIES": "0",
    "PENSTOCK__AUTH__MAX_UPLOADS": "0",
    "PENSTOCK__CLUSTERS": f'{{"{CLUSTER}": {{"master": "local[1]"}}}}',
}


@dataclass
class World:
    """A server, its database and its stores; started again when an attack has ended it."""

    gate: GuardedServer
    store: Store
    place: Place
    database: str
    environ: Mapping[str, str]
    output: list[str] = field(default_factory=list)
    admin_key: str = ""

    @property
    def server(self) -> Server:
        return self.gate.server

    @property
    def is_alive(self) -> bool:
        return self.server.process.poll() is None

    def credentials(self, who: str) -> tuple[tuple[str, str], ...]:
        key = self.place.keys.get(who, "")
        return (("Authorization", f"Bearer {key}"),) if key else ()

    def dig(self) -> None:
        """Make the pit anew, whatever attackers have left of it."""
        admin = self.gate.as_(self.place.keys["admin"])
        for name in admin.get(f"/v1/namespace/{PIT}/table/list").json().get("tables", []):
            admin.post(f"/v1/table/{quote(f'{PIT}${name}', safe='')}/drop", cascade="true")
        admin.client.delete(iceberg_tables.path(f"{MINE}%1Fpit", "i"))
        _dig(admin)

    def revive(self) -> None:
        """Start the server again; whoever ended it has been told of."""
        self.output.append(self.server.output())
        started = servers.start(
            self.server.data, database=self.database, environ={**AUTH, **self.environ}
        )
        self.gate = GuardedServer(started, self.gate.database, self.gate.link)


def environ_of(store: Store, issuer: Issuer) -> dict[str, str]:
    return {
        **PATIENT,
        **issuer.environ(),
        "PENSTOCK__STORAGE__ALLOWED_ROOTS": json.dumps([REMOTE_ROOT]),
        "PENSTOCK__STORAGE__OPTIONS": json.dumps(store.options),
        "PENSTOCK__STORAGE__VEND_ROLE": ROLE,
        "PENSTOCK__STORAGE__VEND_ENDPOINT": store.options["aws_endpoint"],
    }


@contextmanager
def standing(
    folder: Path, database: str, store: Store, issuer: Issuer, **more: str
) -> Iterator[World]:
    """A world for the length of a block."""
    data, outside = folder / "data", folder / "outside"
    outside.mkdir(parents=True)
    (outside / "note").write_text(SECRET)
    environ = {**environ_of(store, issuer), **more}
    started = servers.start(data, database=database, environ={**AUTH, **environ})
    url = database or sqlite_url(data)
    gate = GuardedServer(started, url, Link(url))
    world = World(gate, store, _build(gate, store, outside, issuer), database, environ)
    try:
        yield world
    finally:
        if world.is_alive:
            world.server.stop()
        world.gate.link.close()


def _build(gate: GuardedServer, store: Store, outside: Path, issuer: Issuer) -> Place:
    admin = gate.admin()
    jobs = {ns: _fill(admin, ns) for ns in (MINE, THEIRS, HIDDEN)}
    jobs[ABSENT] = str(uuid.uuid4())
    _dig(admin)
    _put_remote(admin, store)
    # The key that tokens are signed with is made with the first of them.
    gate.client_token(_key_of(admin))
    tables = {
        ns: admin.post(f"/v1/table/{ns}$t/describe").json()["location"]
        for ns in (MINE, THEIRS, HIDDEN)
    }
    metadata = {
        ns: admin.get(iceberg_tables.path(ns, "i")).json()["metadata-location"]
        for ns in (MINE, THEIRS, HIDDEN)
    }
    return Place(
        jobs=jobs,
        metadata={**metadata, ABSENT: f"{gate.server.lake}/gone.iceberg/metadata/0.json"},
        tables={**tables, ABSENT: f"{gate.server.lake}/gone.lance"},
        root=str(gate.server.lake),
        remote_root=REMOTE_ROOT,
        outside=str(outside),
        canary=str(outside.parent / "canary"),
        issuer=issuer,
        keys={**_make_callers(gate, issuer), "admin": _key_of(admin)},
    )


def _dig(admin: Server) -> None:
    admin.post(f"/v1/namespace/{PIT}/create")
    send(admin, f"/v1/table/{PIT}$t/create", rows("pit")).raise_for_status()
    views.create(f"{MINE}%1Fpit", "v", "select 1 as a, 2 as b").send(admin)
    iceberg_tables.create(f"{MINE}%1Fpit", "i").send(admin)
    view = {"kind": "query", "source_query": f"SELECT id FROM {PIT.replace('$', '.')}.t"}
    admin.post(f"/v1/materialized_view/{PIT}$m/create", view).raise_for_status()


def _key_of(server: Server) -> str:
    return str(server.client.headers["authorization"].removeprefix("Bearer "))


def rows(word: str) -> pa.Table:
    texts = [f"{word}-{SECRET if word == HIDDEN else number}" for number in range(3)]
    return pa.table({"id": pa.array(range(3), pa.int64()), "name": texts})


def _fill(admin: Server, ns: str) -> str:
    """A namespace with a table, views and a job that waits; returns the job."""
    word = SECRET if ns == HIDDEN else "plain"
    properties: dict[str, Any] = {"properties": {"word": word}}
    admin.post(f"/v1/namespace/{ns}/create", properties).raise_for_status()
    send(admin, f"/v1/table/{ns}$t/create", rows(ns)).raise_for_status()
    column = {"new_columns": [{"name": "double", "computed": "id * 2"}]}
    admin.post(f"/v1/table/{ns}$t/add_columns", column).raise_for_status()
    wanted = {"column": "double", "cluster": CLUSTER}
    job = admin.post(f"/v1/table/{ns}$t/backfill_column", wanted).raise_for_status().json()
    iceberg_tables.make(admin, ns, "i", properties={"word": word})
    views.create(ns, "v", f"select 1 as {word}, 2 as b").send(admin).raise_for_status()
    view = {"kind": "query", "source_query": f"SELECT id AS {word} FROM {ns}.t"}
    admin.post(f"/v1/materialized_view/{ns}$m/create", view).raise_for_status()
    source = {"entrypoint": word, "files": {"user_function.py": f"{word} = len"}}
    made = {"udf": pack({"format": "penstock/1", "source": source})}
    admin.post(f"/v1/function/{ns}$f/create", made).raise_for_status()
    return str(job["job_id"])


def _put_remote(admin: Server, store: Store) -> None:
    """A hidden table on the object store, and an object beside the root."""
    store.bucket.put_object(Key="beside/note", Body=SECRET.encode())
    body = {"location": f"{REMOTE_ROOT}/veil.lance"}
    admin.post(f"/v1/table/{HIDDEN}$far/declare", body).raise_for_status()
    body = {"location": f"{REMOTE_ROOT}/mine.lance"}
    admin.post(f"/v1/table/{MINE}$far/declare", body).raise_for_status()


def _make_callers(gate: GuardedServer, issuer: Issuer) -> dict[str, str]:
    keys = {"wrong": f"pstk_{'0' * 16}_{'0' * 64}"}
    for name, caller in CALLERS.items():
        if name in ("", "wrong"):
            continue
        principal = "oidc:ann" if name == "guest" else f"the-{name}"
        more: dict[str, Any] = {}
        if caller.is_runner:
            more["kind"] = RUNNER
        if name == "guest":
            keys[name] = issuer.sign(exp=int(time.time()) + 7200)
        else:
            token, keys[name] = gate.make_key(principal, **more)
            if name == "revoked":
                gate.revoke(token.id)
            if name == "expired":
                gate.work(partial(_end_key, id=token.id))
        if not caller.is_runner:
            _grant(gate, principal, caller.rights, caller.on)
    return keys


async def _end_key(database: Database, id: str) -> None:
    """Let a key have ended in the past."""

    async def end(tx: Transaction) -> None:
        await tx.fetch("UPDATE tokens SET expires_at = 1 WHERE id = $1", id)

    await database.write(end)


def _grant(gate: GuardedServer, principal: str, rights: int, on: str) -> None:
    below = {"namespace": (MINE,), "table": (MINE, "t"), "view": (MINE, "v")}[on]
    if rights & FUNCTIONS:
        gate.grant(principal, "functions", on, *below)
    if rights & ~FUNCTIONS:
        role = "owner" if rights & OWN else "writer" if rights & WRITE else "reader"
        gate.grant(principal, role, on, *below)
        gate.grant(principal, "reader", "namespace", THEIRS)
