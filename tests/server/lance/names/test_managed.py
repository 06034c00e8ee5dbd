"""Who manages the versions of a table: the catalog by default, not if told otherwise."""

from pathlib import Path

import pytest

from tests.harness.data.tables import code, declare
from tests.harness.processes.servers import Server, running

PROPERTY = "penstock.managed_versioning"


def is_managed(server: Server, id: str) -> bool:
    return bool(server.post(f"/v1/table/{id}/describe").json().get("managed_versioning"))


def test_a_declared_table_is_managed(server: Server, namespace: str) -> None:
    declare(server, f"{namespace}$t")
    assert is_managed(server, f"{namespace}$t")


@pytest.mark.parametrize(("word", "managed"), [("false", False), ("False", False), ("true", True)])
def test_a_property_decides(server: Server, namespace: str, word: str, managed: bool) -> None:
    body = {"properties": {PROPERTY: word}}
    answer = server.post(f"/v1/table/{namespace}$t/declare", body).json()
    assert bool(answer.get("managed_versioning")) is managed
    assert is_managed(server, f"{namespace}$t") is managed


def test_a_property_that_says_neither_is_refused(server: Server, namespace: str) -> None:
    body = {"properties": {PROPERTY: "maybe"}}
    assert code(server.post(f"/v1/table/{namespace}$t/declare", body)) == (400, 13)


def test_a_setting_decides_for_all_tables(tmp_path: Path) -> None:
    off = {"PENSTOCK__CATALOG__MANAGED_VERSIONS": "false"}
    with running(tmp_path, environ=off) as server:
        declare(server, "plain")
        declare(server, "managed", properties={PROPERTY: "true"})
        assert not is_managed(server, "plain")
        assert is_managed(server, "managed")
