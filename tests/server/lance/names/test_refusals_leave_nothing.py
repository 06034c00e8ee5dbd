"""Check, then write: of a table that is refused, storage holds no byte more than before."""

import threading
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pytest

from tests.harness.data.arrow import people, read_back, send, to_stream
from tests.harness.data.locations import files_below
from tests.harness.data.tables import code
from tests.harness.processes.servers import Server

BROKEN = to_stream(people(*range(100)))[:-200]
# Longer than what is taken in whole, so that files are written before its end is missed.
LONG = to_stream(pa.table({"n": range(700_000)}))[:-200]


@pytest.fixture
def taken(server: Server, namespace: str) -> str:
    """The location of a table of somebody else's."""
    made = send(server, f"/v1/table/{namespace}$other/create", people(1)).json()
    return str(made["location"])


def create(server: Server, id: str, location: str, rows: Any = None, **params: str) -> Any:
    headers = {"x-lance-table-location": location}
    body = people(2, 3) if rows is None else rows
    return send(server, f"/v1/table/{id}/create", body, headers, **params)


@pytest.mark.parametrize("mode", ["create", "overwrite", "exist_ok"])
@pytest.mark.parametrize("below", ["", "/", "/data", "/tree/x"])
def test_a_table_is_not_created_at_anothers_location(
    server: Server, namespace: str, taken: str, mode: str, below: str
) -> None:
    before = files_below(server.data)
    answer = create(server, f"{namespace}$t", taken + below, mode=mode)
    assert code(answer) == (409, 5)
    assert changed(server, before) == []
    assert read_back(server, f"{namespace}$other") == people(1).to_pylist()


def test_a_table_is_not_created_around_another(server: Server, namespace: str) -> None:
    create(server, f"{namespace}$a", f"{namespace}/deep/a").raise_for_status()
    before = files_below(server.data)
    assert code(create(server, f"{namespace}$t", f"{namespace}/deep")) == (409, 5)
    assert changed(server, before) == []


def test_a_table_is_not_created_over_files_that_no_table_has(
    server: Server, namespace: str
) -> None:
    location = server.lake / namespace / "t"
    lance.write_dataset(people(1), str(location))
    before = files_below(server.data)
    assert code(create(server, f"{namespace}$t", str(location))) == (409, 5)
    assert changed(server, before) == []
    body = {"location": str(location)}
    assert server.post(f"/v1/table/{namespace}$t/register", body).status_code == 200


@pytest.mark.parametrize("name", ["readme.txt", "data/x.csv", "_versions/1.manifest", "a/b/c"])
def test_a_table_is_not_created_among_files_of_others(
    server: Server, namespace: str, name: str
) -> None:
    path = server.lake / namespace / "t" / name
    path.parent.mkdir(parents=True)
    path.write_text("mine")
    assert code(create(server, f"{namespace}$t", f"{namespace}/t")) == (409, 5)
    assert files_below(server.lake / namespace) == {f"t/{name}": b"mine"}


def test_what_a_crash_left_is_not_in_the_way(server: Server, namespace: str) -> None:
    for name in ("data/0.lance", "_transactions/0-x.txn", "_versions/1.manifest-x"):
        path = server.lake / namespace / "t" / name
        path.parent.mkdir(parents=True)
        path.write_text("half")
    create(server, f"{namespace}$t", f"{namespace}/t").raise_for_status()
    assert read_back(server, f"{namespace}$t") == people(2, 3).to_pylist()


@pytest.mark.parametrize("body", [b"", b"junk", BROKEN, LONG], ids=["none", "junk", "cut", "long"])
def test_a_broken_body_leaves_nothing_at_a_chosen_location(
    server: Server, namespace: str, body: Any
) -> None:
    before = files_below(server.data)
    assert code(create(server, f"{namespace}$t", f"{namespace}/t", body)) == (400, 13)
    assert changed(server, before) == []
    assert not (server.lake / namespace / "t").exists()


def test_a_table_whose_name_or_namespace_is_wrong_leaves_nothing(
    server: Server, namespace: str, taken: str
) -> None:
    before = files_below(server.data)
    assert code(create(server, f"{namespace}$other", f"{namespace}/t")) == (409, 5)
    assert code(create(server, "nowhere$t", f"{namespace}/t")) == (404, 1)
    assert changed(server, before) == []


@pytest.mark.parametrize("operation", ["declare", "register"])
def test_declaring_and_registering_write_nothing_when_refused(
    server: Server, namespace: str, taken: str, operation: str
) -> None:
    before = files_below(server.data)
    for mode in ("create", "overwrite"):
        body = {"location": taken, "mode": mode}
        answer = server.post(f"/v1/table/{namespace}$t/{operation}", body)
        assert code(answer) == (409, 5)
    assert changed(server, before) == []
    assert server.post(f"/v1/table/{namespace}$t/exists").status_code == 404


def test_a_view_that_is_refused_leaves_nothing(server: Server, namespace: str, taken: str) -> None:
    before = files_below(server.data)
    path = f"/v1/materialized_view/{namespace}$other/create"
    for query in (f"SELECT * FROM {namespace}.other", "SELECT * FROM nowhere.t", "DROP TABLE x"):
        answer = server.post(path, {"kind": "query", "source_query": query})
        assert answer.status_code in (400, 404, 409), answer.text
    assert changed(server, before) == []


def test_of_many_creators_at_one_place_one_wins_and_the_others_leave_nothing(
    server: Server, namespace: str
) -> None:
    answers: list[Any] = []
    location = str(server.lake / namespace / "t")

    def run(number: int) -> None:
        answers.append(create(server, f"{namespace}$t{number}", location, people(number)))

    threads = [threading.Thread(target=run, args=(n,)) for n in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(answer.status_code for answer in answers) == [200] + [409] * 7
    assert counts(Path(location)) == {"data": 1, "_versions": 1, "_transactions": 1}
    assert lance.dataset(location).count_rows() == 1


def counts(location: Path) -> dict[str, int]:
    names = {"data": "*.lance", "_versions": "*.manifest*", "_transactions": "*.txn"}
    return {name: len(list((location / name).glob(kind))) for name, kind in names.items()}


def changed(server: Server, before: dict[str, bytes]) -> list[str]:
    """What is new, gone or different in the lake."""
    after = files_below(server.data)
    return sorted(
        name
        for name in before.keys() | after.keys()
        if name.startswith("lake/") and before.get(name) != after.get(name)
    )
