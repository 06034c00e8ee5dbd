"""DropNamespace: modes and behaviors."""

import pytest

from tests.harness.data.tables import declare
from tests.harness.processes.servers import Server


def drop(server: Server, namespace: str, **body: str) -> tuple[int, int]:
    answer = server.post(f"/v1/namespace/{namespace}/drop", body or None)
    return answer.status_code, answer.json().get("code", 0)


def exists(server: Server, namespace: str) -> bool:
    return server.post(f"/v1/namespace/{namespace}/exists").status_code == 200


def test_an_empty_namespace_is_dropped_and_tells_its_properties(
    server: Server, namespace: str
) -> None:
    body = {"properties": {"a": "b"}}
    server.post(f"/v1/namespace/{namespace}$x/create", body).raise_for_status()
    answer = server.post(f"/v1/namespace/{namespace}$x/drop").json()
    assert answer["properties"] == {"a": "b"}
    assert not exists(server, f"{namespace}$x")
    assert exists(server, namespace)


@pytest.mark.parametrize("behavior", ["Restrict", "restrict", "RESTRICT", None])
@pytest.mark.parametrize("inside", ["table", "namespace"])
def test_restrict_keeps_what_is_not_empty(
    server: Server, namespace: str, inside: str, behavior: str | None
) -> None:
    server.post(
        f"/v1/{inside}/{namespace}$x/{'declare' if inside == 'table' else 'create'}"
    ).raise_for_status()
    wanted = {} if behavior is None else {"behavior": behavior}
    assert drop(server, namespace, **wanted) == (409, 3)
    assert exists(server, namespace)
    assert server.post(f"/v1/{inside}/{namespace}$x/exists").status_code == 200


@pytest.mark.parametrize("behavior", ["Cascade", "cascade", "CASCADE"])
def test_cascade_drops_everything_below_with_its_files(
    server: Server, namespace: str, behavior: str
) -> None:
    for path in (f"{namespace}$a", f"{namespace}$a$b"):
        server.post(f"/v1/namespace/{path}/create").raise_for_status()
    tables = [declare(server, f"{path}$t") for path in (namespace, f"{namespace}$a$b")]
    for table in tables:
        table.commit(1)
    assert drop(server, namespace, behavior=behavior) == (200, 0)
    assert not any(exists(server, f"{namespace}{below}") for below in ("", "$a", "$a$b"))
    assert not any(table.location.exists() for table in tables)
    assert not [t for t in server.get("/v1/table").json()["tables"] if t.startswith(namespace)]


def test_a_name_is_free_after_a_cascade(server: Server, namespace: str) -> None:
    declare(server, f"{namespace}$t").commit(1, 2)
    assert drop(server, namespace, behavior="Cascade") == (200, 0)
    server.post(f"/v1/namespace/{namespace}/create").raise_for_status()
    table = declare(server, f"{namespace}$t")
    assert table.listed() == []
    table.commit(1)


def test_cascade_leaves_neighbours_whose_names_begin_alike(server: Server, namespace: str) -> None:
    for name in ("a", "a b", "a!", "ab"):
        server.post(f"/v1/namespace/{namespace}${name}/create").raise_for_status()
    assert drop(server, f"{namespace}$a", behavior="Cascade") == (200, 0)
    assert server.get(f"/v1/namespace/{namespace}/list").json()["namespaces"] == ["a b", "a!", "ab"]


@pytest.mark.parametrize("mode", ["Fail", "fail", None])
def test_fail_says_that_it_is_missing(server: Server, namespace: str, mode: str | None) -> None:
    wanted = {} if mode is None else {"mode": mode}
    assert drop(server, f"{namespace}$no", **wanted) == (404, 1)


@pytest.mark.parametrize("mode", ["Skip", "skip", "SKIP"])
def test_skip_is_content_when_it_is_missing(server: Server, namespace: str, mode: str) -> None:
    assert drop(server, f"{namespace}$no", mode=mode) == (200, 0)
    assert drop(server, f"{namespace}$no$deeper", mode=mode) == (200, 0)


def test_skip_does_not_weaken_restrict(server: Server, namespace: str) -> None:
    declare(server, f"{namespace}$t")
    assert drop(server, namespace, mode="Skip") == (409, 3)


@pytest.mark.parametrize("body", [{"mode": "Maybe"}, {"behavior": "Gently"}])
def test_unknown_words_are_refused(server: Server, namespace: str, body: dict[str, str]) -> None:
    assert drop(server, namespace, **body) == (400, 13)
    assert exists(server, namespace)


def test_a_registered_tables_files_go_with_a_cascade(server: Server, namespace: str) -> None:
    table = declare(server, f"{namespace}$t")
    table.commit(1)
    table.ask("deregister").raise_for_status()
    body = {"location": str(table.location)}
    server.post(f"/v1/table/{namespace}$r/register", body).raise_for_status()
    assert drop(server, namespace, behavior="Cascade") == (200, 0)
    assert not table.location.exists()
