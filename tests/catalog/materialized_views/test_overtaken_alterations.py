"""What others do to a view, or to what it is to read, while its alteration waits for a runner."""

from collections.abc import Callable
from typing import Any

import pytest

from penstock.errors import InvalidTableState, TableInUse
from tests.harness.jobs.fake_runner import describe
from tests.harness.processes.servers import Server
from tests.harness.views.server_views import QUERY, View, ask_create, make_view, run_here

NARROWER = "SELECT id FROM t WHERE id > 1"


@pytest.fixture
def view(server: Server, cluster: str) -> View:
    made = make_view(server, cluster)
    made.work_all()
    return made


def ask_alter(view: View, sql: str) -> str:
    answer = view.alter(source_query=sql)
    assert answer.status_code == 202, answer.text
    return str(answer.json()["job_id"])


def read_by_another(view: View) -> None:
    sql = "SELECT text FROM v"
    ask_create(view.server, f"{view.namespace}$reader", source_query=sql).raise_for_status()


def index(view: View) -> None:
    body = {"column": "text", "index_type": "BTREE", "name": "by_text"}
    view.ask_table("create_scalar_index", body).raise_for_status()


def compute(view: View) -> None:
    body = {"new_columns": [{"name": "size", "computed": "upper(text)"}]}
    view.ask_table("add_columns", body).raise_for_status()


def fail_to_commit(view: View, job: dict[str, Any], match: str) -> None:
    """Carry out a job whose commit is refused, which is told at once."""
    tries: list[int] = []
    with pytest.raises(InvalidTableState, match=match):
        run_here(view.server, job, lambda: tries.append(1))
    # One may be before it pins its sources.
    assert len(tries) <= 2


def check_unaltered(view: View) -> None:
    assert view.tell()["source_query"] == QUERY
    assert [row[:2] for row in view.rows()] == [(2, "bb"), (3, "ccc")]
    assert len(view.ask("history").json()["definitions"]) == 1


def test_a_view_that_came_to_read_a_column_keeps_it(view: View) -> None:
    job = ask_alter(view, NARROWER)
    read_by_another(view)
    assert view.runner.lease() == []
    told = describe(view.server, job)
    assert told["status"] == "FAILED"
    assert "column text would be dropped" in told["error"]
    assert "reader" in told["error"]
    check_unaltered(view)


def test_a_view_that_comes_while_the_job_runs_keeps_its_column(view: View) -> None:
    ask_alter(view, NARROWER)
    job = view.lease()
    read_by_another(view)
    fail_to_commit(view, job, r"column text would be .*reader; alter or drop these first")
    check_unaltered(view)


@pytest.mark.parametrize(("build", "name"), [(index, "by_text"), (compute, "size")])
def test_what_was_built_on_a_column_keeps_it(
    view: View, build: Callable[[View], None], name: str
) -> None:
    ask_alter(view, NARROWER)
    build(view)
    with pytest.raises(TableInUse, match=f"column text would .*{name}"):
        view.work()
    check_unaltered(view)


def test_two_alterations_close_no_circle(view: View) -> None:
    other = View(view.server, view.source, f"{view.namespace}$w", view.cluster)
    ask_create(view.server, other.id).raise_for_status()
    other.work_all()
    ask_alter(view, "SELECT id, text FROM w")
    job = ask_alter(other, "SELECT id, text FROM v")
    view.work()
    assert view.runner.lease() == []
    assert "would read itself" in describe(view.server, job)["error"]
    check_unaltered(other)
    view.work_all()


def test_two_alterations_that_run_at_once_close_no_circle(view: View) -> None:
    other = View(view.server, view.source, f"{view.namespace}$w", view.cluster)
    ask_create(view.server, other.id).raise_for_status()
    other.work_all()
    ask_alter(view, "SELECT id, text FROM w")
    ask_alter(other, "SELECT id, text FROM v")
    one, two = view.runner.lease(2)
    run_here(view.server, one)
    fail_to_commit(other, two, r"w would read itself: .*; alter one of the two")
    check_unaltered(other)
    view.work_all()
