"""Text that means something to SQL, to paths or to us, in every field that takes text."""

import uuid
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from penstock.catalog.access import grants
from penstock.catalog.access.grants import Target
from penstock.database.connect import open_catalog
from penstock.model.origins import NOBODY
from penstock.model.rights import NAMESPACE, TABLE
from penstock.server.lance.extensions import EXTENSIONS
from penstock.server.lance.operations import OPERATIONS
from tests.harness.clients.lance_paths import fill_path
from tests.harness.data.arrow import people, send
from tests.harness.processes.access import GuardedServer
from tests.harness.processes.servers import Server

PIECES = [
    *("'", '"', ";", "--", "\\", "%", "_", "$1", "$", "/", "..", "\x1f", "\x00", "\n", " ", "`"),
    *("' OR '1'='1", "'; DROP TABLE grants; --", "secret", "a", "group:", "oidc:", "é", "\ud83d"),
    *("{}", "${jndi:x}", "%1F", "%00", "<script>", "🦆", "NULL", "owner", "*", "?", "#"),
]
texts = st.lists(st.sampled_from(PIECES), min_size=1, max_size=4).map("".join)
# Half of a pair is no text that can be sent.
sendable = texts.map(lambda text: text.encode("utf-8", "replace").decode())
FEW = settings(max_examples=8, deadline=None, suppress_health_check=list(HealthCheck))
MANY = settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck))


@pytest.fixture(scope="module")
def narrow(gate: GuardedServer) -> tuple[Server, str]:
    """Somebody who reads one namespace; another one holds what they must not see."""
    admin, name, ns = gate.admin(), f"p{uuid.uuid4().hex[:8]}", f"n{uuid.uuid4().hex[:8]}"
    for each in (ns, f"secret{ns}"):
        admin.post(f"/v1/namespace/{each}/create").raise_for_status()
        send(admin, f"/v1/table/{each}$t/create", people(1)).raise_for_status()
    gate.grant(name, "owner", "namespace", ns)
    return gate.as_(gate.key(name)), ns


def check(server: Server, ns: str, method: str, path: str, body: Any) -> None:
    answer = server.client.request(method, path, json=body)
    assert answer.status_code < 500 or answer.status_code == 503, (path, body, answer.text)
    assert f"secret{ns}" not in answer.text, (path, body, answer.text)
    assert "apsw" not in answer.text
    assert "syntax" not in answer.text or "SQL" not in answer.text


def try_all(narrow: tuple[Server, str], text: str) -> None:
    server, ns = narrow
    segment = quote(text, safe="")
    for operation in (*OPERATIONS, *EXTENSIONS):
        if operation.name in ("LeaseJobs", "StreamJob"):
            continue
        path = fill_path(operation.path, segment, segment)
        body = {"id": None, "job_id": text, "principal": text, "role": text, "object": text}
        # Creating things with odd names in the root is not this caller's.
        check(server, ns, operation.method, f"/v1/{path}", body)
    bodies: tuple[dict[str, Any], ...] = (
        {"principal": text, "role": "reader", "namespace": [ns]},
        {"principal": "x", "role": "reader", "table": [ns, text]},
        {"principal": "x", "role": text, "namespace": [text]},
        {"principal": text},
    )
    for grant in bodies:
        for verb in ("create", "list", "revoke"):
            check(server, ns, "POST", f"/v1/grants/{verb}", grant)
    check(server, ns, "GET", f"/iceberg/v1/namespaces/{segment}", None)
    check(server, ns, "GET", f"/iceberg/v1/namespaces/{segment}/views/{segment}", None)
    rename = {"source": {"namespace": [text], "name": text}}
    rename["destination"] = rename["source"]
    check(server, ns, "POST", "/iceberg/v1/views/rename", rename)


@FEW
@given(text=sendable)
def test_no_text_breaks_a_query_or_shows_what_is_hidden(
    narrow: tuple[Server, str], text: str
) -> None:
    if len(text) > 2:
        try_all(narrow, text)


@pytest.mark.slow
@MANY
@given(text=sendable)
def test_much_text_breaks_nothing(narrow: tuple[Server, str], text: str) -> None:
    try_all(narrow, text)


@FEW
@given(text=texts)
def test_odd_credentials_are_refused(gate: GuardedServer, text: str) -> None:
    for shown in (text, f"pstk_{text}", f"pstk_{'0' * 16}_{text}", f"{text}.{text}.{text}"):
        raw = shown.encode("latin-1", "replace").translate(None, b"\r\n\x00\x1f").strip()
        answer = gate.server.client.get("/v1/table", headers=[(b"x-api-key", raw or b"x")])
        assert answer.status_code in (400, 401), shown


names = sendable.filter(lambda text: "\x00" not in text and "\x1f" not in text and len(text) < 50)


@pytest.mark.anyio
async def test_a_grant_counts_below_its_namespace_and_nowhere_else(tmp_path: Path) -> None:
    database = await open_catalog(f"sqlite:///{tmp_path}/catalog")

    async def look(own: str, other: list[str]) -> None:
        await database.write(_empty)
        await database.write(_insert_namespace, own)
        await database.write(grants.create_in, "ann", "reader", Target(NAMESPACE, (own,)), NOBODY)
        for kind in (NAMESPACE, TABLE):
            below = await grants.find_standing(database, ["ann"], kind, (own, *other))
            assert below.has(1)
            if other[0] != own:
                beside = await grants.find_standing(database, ["ann"], kind, tuple(other))
                assert not beside.rights
                assert not beside.sees
        stranger = await grants.find_standing(database, ["bob"], TABLE, (own, *other))
        assert not stranger.sees

    import itertools

    odd = ["a", "a ", "a'", 'a"', "a%", "a_", "a$b", "a\\", "", "é", "a\x20b", "aa", "A"]
    for own, other in itertools.product(filter(None, odd), repeat=2):
        await look(own, [other, "x"])
    await database.close()


async def _empty(tx: Any) -> None:
    await tx.fetch("DELETE FROM grants")
    await tx.fetch("DELETE FROM namespaces WHERE path <> ''")


async def _insert_namespace(tx: Any, path: str) -> None:
    await tx.fetch(
        "INSERT INTO namespaces (path, parent, name, properties, created_at) "
        "VALUES ($1, '', $1, '{}', 0)",
        path,
    )
