"""How long keys are known, and that they are forgotten afterwards."""

from dataclasses import replace
from pathlib import Path

import pytest

from penstock.catalog import maintenance
from penstock.catalog.catalog import Catalog
from penstock.catalog.names import idempotency
from penstock.catalog.names.idempotency import GRACE_SECONDS
from penstock.database.interface import Transaction
from penstock.model.origins import IdempotencyKey, Origin
from tests.harness.clients import iceberg_requests as views
from tests.harness.clients.idempotency_keys import new_key, query
from tests.harness.processes import servers
from tests.harness.processes.databases import KINDS, new_postgres_database
from tests.harness.processes.waiting import until

HOUR = 3600


async def age(tx: Transaction, value: str, seconds: int) -> None:
    sql = "UPDATE idempotency_keys SET created_at = created_at - $2 WHERE value = $1"
    await tx.fetch(sql, value, seconds * 1000)


async def note(catalog: Catalog, seconds: int, *, answered: bool = True) -> IdempotencyKey:
    """A key that was used so long ago."""
    key = IdempotencyKey("", new_key())
    await catalog.database.write(idempotency.use, Origin(keys=(key,)), "some transaction")
    if answered:
        await idempotency.record_answer(catalog, key, 200, "{}")
    await catalog.database.write(age, key.value, seconds)
    return key


async def is_known(catalog: Catalog, key: IdempotencyKey) -> bool:
    return await idempotency.find(catalog.database, key) is not None


@pytest.mark.anyio
@pytest.mark.parametrize("answered", [True, False])
async def test_keys_are_known_for_their_lifetime_and_a_grace(
    catalog: Catalog, answered: bool
) -> None:
    patient = replace(catalog, idempotency_seconds=HOUR)
    fresh = await note(patient, 0, answered=answered)
    promised = await note(patient, HOUR + 1, answered=answered)
    late = await note(patient, HOUR + GRACE_SECONDS - 60, answered=answered)
    old = await note(patient, HOUR + GRACE_SECONDS + 1, answered=answered)
    await idempotency.purge(patient)
    found = [await is_known(catalog, key) for key in (fresh, promised, late, old)]
    assert found == [True, True, True, False]


@pytest.mark.anyio
async def test_a_round_of_maintenance_forgets_old_keys(catalog: Catalog) -> None:
    lifetime = catalog.idempotency_seconds
    kept, old = await note(catalog, lifetime), await note(catalog, lifetime + GRACE_SECONDS + 1)
    await maintenance.run_round(catalog)
    assert (await is_known(catalog, kept), await is_known(catalog, old)) == (True, False)


@pytest.mark.anyio
async def test_a_key_that_was_forgotten_can_be_used_again(catalog: Catalog) -> None:
    old = await note(catalog, catalog.idempotency_seconds + GRACE_SECONDS + 1)
    await idempotency.purge(catalog)
    again = IdempotencyKey("", old.value)
    await catalog.database.write(idempotency.use, Origin(keys=(again,)), "another transaction")
    found = await idempotency.find(catalog.database, again)
    assert found is not None
    assert found.transaction_id == "another transaction"


@pytest.mark.parametrize("kind", KINDS)
def test_a_server_tells_the_lifetime_and_forgets_after_it(
    request: pytest.FixtureRequest, tmp_path: Path, kind: str
) -> None:
    database = f"sqlite:///{tmp_path / 'catalog.sqlite'}"
    if kind == "postgresql":
        database = new_postgres_database(request.getfixturevalue("postgres"))
    environ = {
        "PENSTOCK__CATALOG__IDEMPOTENCY_SECONDS": "60",
        "PENSTOCK__CATALOG__MAINTAIN_SECONDS": "1",
    }
    with servers.running(tmp_path, database=database, environ=environ) as server:
        told = server.get("/iceberg/v1/config").json()["idempotency-key-lifetime"]
        assert told == "PT60S"
        server.post("/v1/namespace/ns/create").raise_for_status()
        key, other = new_key(), views.create("ns", "w")
        views.create("ns").send(server, key).raise_for_status()
        assert other.send(server, key).status_code == 422
        query(database, [f"UPDATE idempotency_keys SET created_at = created_at - {400_000}"])
        until(
            lambda: not query(database, ["SELECT 1 FROM idempotency_keys"])[0],
            "the key is still known",
        )
        assert other.send(server, key).status_code == 200
