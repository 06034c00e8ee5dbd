"""Servers that need credentials, on each kind of database."""

from collections.abc import Iterator

import pytest

from tests.harness.access import Guarded, Issuer, guarded, issuing
from tests.harness.databases import KINDS, new_postgres_database


@pytest.fixture(scope="package")
def issuer() -> Iterator[Issuer]:
    with issuing() as found:
        yield found


@pytest.fixture(scope="package", params=KINDS)
def gate(
    request: pytest.FixtureRequest,
    issuer: Issuer,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Guarded]:
    """One server for all tests of this folder, which know keys and tokens of an issuer."""
    database = ""
    if request.param == "postgresql":
        database = new_postgres_database(request.getfixturevalue("postgres"))
    data = tmp_path_factory.mktemp("data")
    with guarded(data, database=database, environ=issuer.environ()) as found:
        yield found
