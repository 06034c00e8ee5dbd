"""InsertIntoTable: append, overwrite, branches, and many writers at once."""

from concurrent.futures import ThreadPoolExecutor

import lance
import pyarrow as pa
import pytest

from tests.harness.data.arrow import people, read_back, send, to_stream, versions
from tests.harness.processes.servers import Server


@pytest.fixture
def table(server: Server, namespace: str) -> str:
    """A table with the person 1."""
    send(server, f"/v1/table/{namespace}$t/create", people(1)).raise_for_status()
    return f"{namespace}$t"


@pytest.fixture
def branch(server: Server, table: str) -> str:
    """A branch of that table."""
    location = server.post(f"/v1/table/{table}/describe").json()["location"]
    lance.dataset(location).create_branch("dev")
    return "dev"


def test_appended_rows_are_counted_and_listed_as_a_version(server: Server, table: str) -> None:
    answer = send(server, f"/v1/table/{table}/insert", people(2, 3)).json()
    assert (answer["num_inserted_rows"], answer["version"]) == (2, 2)
    assert read_back(server, table) == people(1, 2, 3).to_pylist()
    assert versions(server, table) == [1, 2]


def test_a_table_takes_rows_under_its_new_name(server: Server, table: str) -> None:
    send(server, f"/v1/table/{table}/insert", people(2)).raise_for_status()
    server.post(f"/v1/table/{table}/rename", {"new_table_name": "u"}).raise_for_status()
    renamed = table.removesuffix("t") + "u"
    answer = send(server, f"/v1/table/{renamed}/insert", people(3)).json()
    assert (answer["num_inserted_rows"], answer["version"]) == (1, 3)
    assert read_back(server, renamed) == people(1, 2, 3).to_pylist()


def test_the_transaction_of_an_insert_can_be_described(server: Server, table: str) -> None:
    transaction = send(server, f"/v1/table/{table}/insert", people(2)).json()["transaction_id"]
    found = server.post(f"/v1/transaction/{transaction}/describe").json()
    assert found["status"] == "SUCCEEDED"


def test_overwrite_replaces_all_rows(server: Server, table: str) -> None:
    answer = send(server, f"/v1/table/{table}/insert", people(9), mode="Overwrite").json()
    assert answer["version"] == 2
    assert read_back(server, table) == people(9).to_pylist()


def test_an_insert_creates_a_declared_table(server: Server, namespace: str) -> None:
    server.post(f"/v1/table/{namespace}$d/declare")
    assert send(server, f"/v1/table/{namespace}$d/insert", people(1)).json()["version"] == 1


def test_an_insert_into_a_branch_never_touches_main(
    server: Server, table: str, branch: str
) -> None:
    send(server, f"/v1/table/{table}/insert", people(5), branch=branch).raise_for_status()
    assert read_back(server, table) == people(1).to_pylist()
    assert read_back(server, table, branch) == people(1, 5).to_pylist()
    assert versions(server, table) == [1]


def test_an_overwrite_of_a_branch_never_touches_main(
    server: Server, table: str, branch: str
) -> None:
    send(
        server, f"/v1/table/{table}/insert", people(5), branch=branch, mode="overwrite"
    ).raise_for_status()
    assert read_back(server, table) == people(1).to_pylist()
    assert read_back(server, table, branch) == people(5).to_pylist()


@pytest.mark.parametrize(
    ("rows", "words"),
    [
        (pa.table({"id": ["x"], "name": ["y"]}), ("'id'", "string", "int64")),
        (pa.table({"id": [1], "name": ["y"], "age": [3]}), ("'age'", "int64", "no such column")),
    ],
)
def test_rows_that_do_not_fit_are_refused_by_name(
    server: Server, table: str, rows: pa.Table, words: tuple[str, ...]
) -> None:
    answer = send(server, f"/v1/table/{table}/insert", rows)
    assert (answer.status_code, answer.json()["code"]) == (400, 20)
    assert all(word in answer.json()["error"] for word in words)
    assert versions(server, table) == [1]


def test_a_nullable_column_may_be_left_out(server: Server, table: str) -> None:
    send(server, f"/v1/table/{table}/insert", people(2).select(["id"])).raise_for_status()
    assert read_back(server, table)[-1] == {"id": 2, "name": None}


@pytest.mark.parametrize(
    ("path", "params", "expected"),
    [
        ("missing", {}, (404, 4)),
        ("t", {"branch": "none"}, (404, 22)),
        ("t", {"mode": "sideways"}, (400, 13)),
    ],
)
def test_what_is_not_there_is_told(
    server: Server, table: str, path: str, params: dict[str, str], expected: tuple[int, int]
) -> None:
    namespace = table.partition("$")[0]
    answer = send(server, f"/v1/table/{namespace}${path}/insert", people(2), **params)
    assert (answer.status_code, answer.json()["code"]) == expected


def test_sixteen_writers_at_once_all_succeed_in_fewer_commits(server: Server, table: str) -> None:
    def insert(n: int) -> int:
        answer = send(server, f"/v1/table/{table}/insert", people(n)).raise_for_status()
        version: int = answer.json()["version"]
        location = server.post(f"/v1/table/{table}/describe").json()["location"]
        rows = lance.dataset(location, version=version).to_table(filter=f"id = {n}")
        assert rows.num_rows == 1, "the version in the answer does not hold the row"
        return version

    with ThreadPoolExecutor(16) as pool:
        reached = list(pool.map(insert, range(100, 148)))
    assert len(read_back(server, table)) == 49
    assert len(set(reached)) < 48
    assert versions(server, table) == list(range(1, max(reached) + 1))


def test_first_inserts_at_once_into_a_declared_table_lose_nothing(
    server: Server, namespace: str
) -> None:
    server.post(f"/v1/table/{namespace}$d/declare")
    path = f"/v1/table/{namespace}$d/insert"
    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(lambda n: send(server, path, people(n)), range(8)))
    assert [a.status_code for a in answers] == [200] * 8
    assert read_back(server, f"{namespace}$d") == people(*range(8)).to_pylist()


def test_a_bad_writer_does_not_spoil_the_others(server: Server, table: str) -> None:
    bad = pa.table({"id": ["x"], "name": ["y"]})
    bodies = [bad if n % 4 == 0 else people(n) for n in range(100, 116)]
    path = f"/v1/table/{table}/insert"
    with ThreadPoolExecutor(16) as pool:
        codes = list(pool.map(lambda rows: send(server, path, rows).status_code, bodies))
    assert codes == [400 if n % 4 == 0 else 200 for n in range(16)]
    assert len(read_back(server, table)) == 13


def test_a_stream_that_breaks_off_leaves_no_version_and_no_files(
    server: Server, table: str
) -> None:
    location = server.post(f"/v1/table/{table}/describe").json()["location"]
    before = {f.path for f in lance.dataset(location).get_fragments()[0].data_files()}
    big = pa.table({"id": range(400_000), "name": ["x" * 30] * 400_000})
    content = to_stream(big)
    answer = send(server, f"/v1/table/{table}/insert", iter([content[:9_000_000]]))
    assert (answer.status_code, answer.json()["code"]) == (400, 13)
    assert versions(server, table) == [1]
    from pathlib import Path

    assert {p.name for p in (Path(location) / "data").iterdir()} == before
    assert not (Path(location) / "_uploads").exists()


def test_a_long_stream_arrives_whole(server: Server, table: str) -> None:
    big = pa.table({"id": range(10, 400_010), "name": ["x" * 30] * 400_000})
    content = to_stream(big)
    pieces = (content[i : i + 1_000_000] for i in range(0, len(content), 1_000_000))
    answer = send(server, f"/v1/table/{table}/insert", pieces).json()
    assert answer["num_inserted_rows"] == 400_000
    location = server.post(f"/v1/table/{table}/describe").json()["location"]
    assert lance.dataset(location).count_rows() == 400_001


def test_long_inserts_and_queries_at_once_all_succeed(server: Server, table: str) -> None:
    many = people(*range(150_000), name="x" * 30)

    def use(number: int) -> int:
        if number % 2:
            return server.post(f"/v1/table/{table}/query", {"k": 1}).status_code
        return send(server, f"/v1/table/{table}/insert", many).status_code

    with ThreadPoolExecutor(8) as threads:
        assert set(threads.map(use, range(24))) == {200}
    assert server.post(f"/v1/table/{table}/count_rows", {}).json() == 12 * many.num_rows + 1
