"""CountTableRows: all rows, those of a predicate, of a version and of a branch."""

import pytest

from tests.harness.data.rows import documents, put
from tests.harness.data.tables import Table, code, declare
from tests.harness.processes.servers import Server


@pytest.fixture(scope="module")
def table(server: Server) -> Table:
    """Ten rows in version 1, nine in version 2, and eight on a branch."""
    table, dataset = put(server, documents(10))
    dataset.delete("id = 3")
    dataset.create_branch("dev").delete("id = 4")
    return table


@pytest.mark.parametrize(
    ("body", "rows"),
    [
        (None, 9),
        ({"predicate": "id < 5"}, 4),
        ({"predicate": "title = 'a, b'"}, 0),
        ({"version": 1}, 10),
        ({"version": 1, "predicate": "info.x >= 3"}, 7),
        ({"branch": "dev"}, 8),
        ({"branch": "dev", "predicate": "id < 5"}, 3),
    ],
)
def test_the_answer_is_a_bare_number(table: Table, body: object, rows: int) -> None:
    answer = table.ask("count_rows", body)
    assert answer.status_code == 200, answer.text
    assert answer.content == str(rows).encode()


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ({"predicate": "nope = 1"}, (404, 12)),
        ({"predicate": "id >"}, (400, 13)),
        ({"predicate": "title"}, (400, 13)),
        ({"predicate": ""}, (400, 13)),
        ({"version": 7}, (404, 11)),
        ({"branch": "nope"}, (404, 22)),
        ({"version": -1}, (400, 13)),
    ],
)
def test_what_cannot_be_counted_is_the_clients_error(
    table: Table, body: object, expected: tuple[int, int]
) -> None:
    assert code(table.ask("count_rows", body)) == expected


def test_a_table_without_data_cannot_be_counted(server: Server, namespace: str) -> None:
    assert code(declare(server, f"{namespace}$t").ask("count_rows")) == (400, 19)
    assert code(server.post(f"/v1/table/{namespace}$nope/count_rows")) == (404, 4)
