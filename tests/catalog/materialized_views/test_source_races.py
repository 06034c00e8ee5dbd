"""Views that are made in the moment in which what they read is changed."""

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import httpx
import pyarrow as pa
import pytest

from tests.harness.data.arrow import send
from tests.harness.data.tables import code
from tests.harness.processes.servers import Server
from tests.harness.processes.waiting import PATIENCE_SECONDS
from tests.harness.views.server_views import View, ask_create, head

PAIRS = 8
GONE = [(200, 0), (400, 13)]
KEPT = [(409, 19), (201, 0)]


def make_wide(server: Server, namespace: str) -> str:
    """A table with a column for each pair of clients."""
    columns = {f"c{n}": pa.array([1, 2], pa.int64()) for n in range(PAIRS)}
    data = pa.table({"id": pa.array([1, 2], pa.int64()), **columns})
    send(server, f"/v1/table/{namespace}$t/create", data).raise_for_status()
    return f"{namespace}$t"


def told(answer: httpx.Response) -> tuple[int, int]:
    return (answer.status_code, 0) if answer.is_success else code(answer)


def together(acts: "list[Callable[[], httpx.Response]]") -> list[httpx.Response]:
    """Let all act at the same moment."""
    start = threading.Barrier(len(acts))

    def run(act: Callable[[], httpx.Response]) -> httpx.Response:
        start.wait()
        return act()

    with ThreadPoolExecutor(len(acts)) as threads:
        return list(threads.map(run, acts))


@pytest.mark.parametrize("operation", ["drop_columns", "alter_columns"])
def test_a_view_never_reads_a_column_that_went_while_it_was_made(
    server: Server, namespace: str, operation: str
) -> None:
    table = make_wide(server, namespace)

    def change(number: int) -> httpx.Response:
        rename = {"alterations": [{"path": f"c{number}", "rename": f"d{number}"}]}
        body: Any = {"columns": [f"c{number}"]} if operation == "drop_columns" else rename
        return server.post(f"/v1/table/{table}/{operation}", body)

    def create(number: int) -> httpx.Response:
        query = f"SELECT id, c{number} FROM t"
        return ask_create(server, f"{namespace}$v{number}", source_query=query)

    acts: list[Callable[[], httpx.Response]] = []
    for number in range(PAIRS):
        acts += [lambda n=number: change(n), lambda n=number: create(n)]  # type: ignore[misc]
    answers = together(acts)
    for number in range(PAIRS):
        changed, made = answers[2 * number], answers[2 * number + 1]
        assert [told(changed), told(made)] in (GONE, KEPT), (changed.text, made.text)
        if not made.is_success:
            assert f"c{number}" in made.json()["error"]
            assert server.post(f"/v1/table/{namespace}$v{number}/describe").status_code == 404


def test_a_table_that_is_written_all_the_time_gets_its_view(server: Server, namespace: str) -> None:
    table = make_wide(server, namespace)
    names = ["id", *(f"c{n}" for n in range(PAIRS))]
    row = pa.table({name: pa.array([3], pa.int64()) for name in names})
    is_over = threading.Event()

    def write() -> None:
        while not is_over.is_set():
            send(server, f"/v1/table/{table}/insert", row).raise_for_status()

    writers = [threading.Thread(target=write) for _ in range(3)]
    for writer in writers:
        writer.start()
    try:
        before = head(server, table)
        for number in range(4):
            query = f"SELECT id, c{number} FROM t"
            answer = ask_create(server, f"{namespace}$v{number}", source_query=query)
            assert told(answer) == (201, 0), answer.text
    finally:
        is_over.set()
        for writer in writers:
            writer.join(PATIENCE_SECONDS)
    assert head(server, table) > before
    assert View(server, table, f"{namespace}$v0", "local").tell()["stale"] == "true"
