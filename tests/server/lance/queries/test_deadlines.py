"""A query that takes too long is 503 / 17, and others are answered while it ends."""

from collections.abc import Iterator

import pyarrow as pa
import pytest

from tests.harness.data.rows import put
from tests.harness.data.tables import Table, code
from tests.harness.processes.servers import running

# Much more than a second of work, on a quick machine as well: each text is compared with ten long
# ones. The server is killed at the end, and the work with it.
SLOW = " AND ".join(f"levenshtein(text, '{letter * 250}') > 0" for letter in "abcdefghij")


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Table]:
    few = {"PENSTOCK__SERVER__QUERY_SECONDS": "1", "PENSTOCK__SERVER__DATA_THREADS": "1"}
    rows = pa.table({"id": range(8_000), "text": ["xy" * 500] * 8_000})
    with running(tmp_path_factory.mktemp("deadlines"), environ=few) as server:
        yield put(server, rows)[0]
        server.kill()


def test_a_query_past_its_deadline_is_unavailable_and_others_are_answered(table: Table) -> None:
    for operation, body in (("count_rows", {"predicate": SLOW}), ("query", {"filter": SLOW})):
        answer = table.ask(operation, body)
        assert code(answer) == (503, 17), answer.text
        assert "server.query_seconds" in answer.text
        if operation == "count_rows":
            assert "id" in table.ask("explain_plan", {"query": {"filter": "id < 7"}}).json()
