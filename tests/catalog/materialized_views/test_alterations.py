"""Views that get another definition: one at a time, in one commit, with their history."""

import threading
from typing import Any

import lance
import pyarrow as pa
import pytest

from tests.harness.clients.pylance import connect
from tests.harness.data.arrow import send
from tests.harness.data.tables import code
from tests.harness.jobs.fake_runner import describe
from tests.harness.processes.servers import Server
from tests.harness.views.server_views import QUERY, View, ask_create, commit_rows, head, make_view

NEWER = pa.table({"id": pa.array([7], pa.int64()), "text": ["new"]})
WIDER = "SELECT id, text, id AS again FROM t"


@pytest.fixture
def view(server: Server, cluster: str) -> View:
    made = make_view(server, cluster)
    made.work_all()
    return made


def job_of(answer: Any) -> str:
    assert answer.status_code == 202, answer.text
    return str(answer.json()["job_id"])


def test_a_new_query_comes_with_its_rows_in_one_version(view: View) -> None:
    assert view.rows() == [(2, "bb"), (3, "ccc")]
    version = head(view.server, view.id)
    job = job_of(view.alter(source_query=WIDER))
    # Until the commit, everything is as it was.
    assert (view.tell()["source_query"], view.tell()["altered_by_job"]) == (QUERY, job)
    assert view.rows() == [(2, "bb"), (3, "ccc")]
    assert view.work() == job
    assert view.rows() == [(1, "a", 1), (2, "bb", 2), (3, "ccc", 3)]
    assert head(view.server, view.id) == version + 1
    told = view.tell()
    assert (told["source_query"], "altered_by_job" in told) == (WIDER, False)
    assert told["stale"] == "false"
    view.insert()
    view.work_all()
    assert len(view.rows()) == 6


def test_definitions_are_kept_with_their_versions(view: View) -> None:
    job = job_of(view.alter(source_query=WIDER))
    view.work()
    new, old = view.ask("history").json()["definitions"]
    assert (new["edition"], new["version"], new["source_query"]) == (1, 3, WIDER)
    assert (new["job_id"], new["changed"]) == (job, ["source_query"])
    assert (old["edition"], old["version"], old["source_query"]) == (0, 1, QUERY)
    page = view.ask("history", limit=1).json()
    assert [each["edition"] for each in page["definitions"]] == [1]
    rest = view.ask("history", limit=1, page_token=page["page_token"]).json()
    path = f"/v1/materialized_view/{view.id}/history"
    assert view.server.post(path, {"limit": 1}).json() == page
    assert view.server.post(path, {"limit": 1, "page_token": page["page_token"]}).json() == rest
    assert code(view.server.post(path, {"limit": 0})) == (400, 13)
    assert [each["edition"] for each in rest["definitions"]] == [0]
    # The old version is still there to read.
    location = view.ask_table("describe").json()["location"]
    assert lance.dataset(location, version=2).schema.names[-1] == "text"


def test_of_two_alterations_one_wins(view: View) -> None:
    job = job_of(view.alter(source_query=WIDER))
    second = view.alter(source_query="SELECT id FROM t")
    assert code(second) == (409, 19)
    assert job in second.json()["error"]
    view.work()
    job_of(view.alter(source_query="SELECT id FROM t"))
    view.work()
    assert view.rows() == [(1,), (2,), (3,)]


def test_of_sixteen_alterations_at_once_one_wins(server: Server, cluster: str) -> None:
    view = make_view(server, cluster)
    answers: list[int] = []

    def ask(n: int) -> None:
        answers.append(view.alter(source_query=f"SELECT id AS id{n} FROM t").status_code)

    threads = [threading.Thread(target=ask, args=(n,)) for n in range(16)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(answers) == [202] + [409] * 15


def test_a_canceled_alteration_leaves_the_view_as_it_was(view: View) -> None:
    job = job_of(view.alter(source_query=WIDER, auto_refresh=True))
    view.server.post("/v1/jobs/cancel", {"job_id": job}).raise_for_status()
    told = view.tell()
    assert (told["source_query"], told["auto_refresh"]) == (QUERY, "false")
    assert "altered_by_job" not in told
    view.work_all()
    assert view.rows() == [(2, "bb"), (3, "ccc")]
    job_of(view.alter(source_query=WIDER))


def test_a_refresh_that_waited_follows_the_new_definition(view: View) -> None:
    job_of(view.alter(source_query=WIDER))
    waiting = view.request()
    view.insert()
    view.work()
    assert len(view.rows()) == 6
    assert view.rows()[0] == (1, "a", 1)
    view.insert()
    assert view.work() == waiting
    assert len(view.rows()) == 9
    assert describe(view.server, waiting)["status"] == "SUCCEEDED"


def ask(view: View, verb: str, job: str) -> None:
    view.server.post(f"/v1/jobs/{verb}", {"job_id": job}).raise_for_status()


def test_a_paused_alteration_is_still_the_only_one(view: View) -> None:
    job = job_of(view.alter(source_query=WIDER))
    ask(view, "pause", job)
    second = view.alter(source_query="SELECT id FROM t")
    assert code(second) == (409, 19)
    assert job in second.json()["error"]
    ask(view, "resume", job)
    assert view.work() == job
    assert view.rows()[0] == (1, "a", 1)


def test_a_refresh_that_was_paused_in_its_work_says_to_ask_again(view: View) -> None:
    paused = view.request()
    (leased,) = view.runner.lease()
    ask(view, "pause", paused)
    view.runner.finish(leased, "PAUSED").raise_for_status()
    job = job_of(view.alter(source_query=WIDER))
    ask(view, "resume", paused)
    assert view.work() == job
    assert view.runner.lease() == []
    told = describe(view.server, paused)
    assert told["status"] == "FAILED"
    assert "was altered since" in told["error"]


def test_a_cascade_that_waited_says_to_ask_again(view: View, cluster: str) -> None:
    upper = f"{view.namespace}$upper"
    ask_create(view.server, upper, source_query="SELECT id FROM v").raise_for_status()
    job_of(view.alter(source_query=WIDER))
    body = {"cascade": True, "cluster": cluster}
    answer = view.server.post(f"/v1/materialized_view/{upper}/refresh", body)
    waiting = job_of(answer)
    view.work()
    assert view.runner.lease() == []
    told = describe(view.server, waiting)
    assert told["status"] == "FAILED"
    assert "was altered since" in told["error"]


def test_settings_are_set_at_once_and_come_with_a_definition_otherwise(view: View) -> None:
    answer = view.alter(target_lag_seconds=60, properties={"team": "search"})
    assert (answer.status_code, answer.json()["properties"]["team"]) == (200, "search")
    job_of(view.alter(source_query=WIDER, target_lag_seconds=None, properties={"team": None}))
    assert view.tell()["target_lag_seconds"] == "60"
    view.work()
    told = view.tell()
    assert "target_lag_seconds" not in told
    assert "team" not in told


def test_the_same_definition_is_no_alteration(view: View) -> None:
    answer = view.alter(source_query="select id,   text from t where id > 1")
    assert (answer.status_code, answer.json().get("job_id")) == (200, None)
    assert len(view.ask("history").json()["definitions"]) == 1


def test_a_query_that_is_sent_means_the_tables_that_have_its_names_now(view: View) -> None:
    server, ns = view.server, view.namespace
    old = {"new_table_name": "old", "new_namespace_id": [ns]}
    server.post(f"/v1/table/{view.source}/rename", old).raise_for_status()
    gone = view.alter(source_query=QUERY)
    assert code(gone) == (400, 13)
    send(server, f"/v1/table/{view.source}/create", NEWER).raise_for_status()
    # Refreshes go on reading the table that had the name.
    view.work_all()
    assert view.rows() == [(2, "bb"), (3, "ccc")]
    plan = view.ask("explain_alter", {"source_query": QUERY}).raise_for_status().json()
    assert plan["reason"] == "the altered view reads other tables"
    job_of(view.alter(source_query=QUERY))
    view.work()
    assert view.rows() == [(7, "new")]
    assert view.alter(source_query=QUERY).status_code == 200


def test_the_plan_of_no_alteration_tells_as_much_as_any_other(view: View) -> None:
    same, other = (
        view.ask("explain_alter", {"source_query": sql}).raise_for_status().json()
        for sql in (QUERY, WIDER)
    )
    assert (same["mode"], same["rows_staying"], same["shape"]) == ("none", 2, "rows")
    assert same.keys() == other.keys()


def test_the_plan_is_told_before(view: View) -> None:
    plan = view.ask("explain_alter", {"source_query": "SELECT id, id AS n FROM t"}).json()
    assert plan["mode"] == "incremental"
    assert (plan["rows_to_insert"], plan["rows_to_delete"]) == (1, 0)
    assert (plan["rows_staying"], plan["columns_kept"]) == (2, ["id"])
    assert (plan["columns_computed"], plan["columns_dropped"]) == (["n"], ["text"])
    plan = view.ask("explain_alter", {"source_query": "SELECT count(*) AS n FROM t"}).json()
    assert (plan["mode"], plan["rows_staying"]) == ("full", 0)
    assert view.ask("explain_alter", {"source_query": QUERY}).json()["mode"] == "none"


REFUSED: list[tuple[dict[str, Any], str]] = [
    ({"source_query": "SELEC id FROM t"}, "source_query"),
    ({"source_query": "SELECT nothing FROM t"}, "nothing"),
    ({"source_query": "SELECT id FROM gone"}, "gone"),
    ({"source_query": "SELECT id FROM v"}, "reads itself"),
    ({"source_query": ""}, "source_query"),
    ({"kind": "chunker"}, "kind"),
    ({"inherited": ["id"]}, "inherited"),
    ({"udtf_spec": {"udtf": "e30="}}, "udtf_spec"),
    ({"output_schema": "bm9wZQ=="}, "output_schema"),
    ({"properties": {"penstock.kind": "x"}}, "penstock.kind"),
    ({"target_lag_seconds": 0}, "target_lag_seconds"),
    ({}, "nothing is to be altered"),
]


def test_what_cannot_be_is_refused_and_changes_nothing(server: Server, cluster: str) -> None:
    view = make_view(server, cluster)
    before = view.ask("describe").json()["source_query"]
    for body, names in REFUSED:
        answer = view.ask("alter", body)
        assert code(answer) == (400, 13), answer.text
        assert names in answer.text
    assert view.ask("describe").json()["source_query"] == before
    assert "altered_by_job" not in view.tell()
    assert len(view.ask("history").json()["definitions"]) == 1


def test_columns_that_others_use_are_not_taken_away(view: View) -> None:
    index = {"column": "text", "index_type": "BTREE", "name": "by_text"}
    view.ask_table("create_scalar_index", index).raise_for_status()
    answer = view.alter(source_query="SELECT id, upper(text) AS text FROM t")
    assert code(answer) == (409, 19)
    assert "by_text" in answer.text
    computed = {"name": "size", "computed": "upper(text)"}
    view.ask_table("add_columns", {"new_columns": [computed]}).raise_for_status()
    view.ask_table("index/by_text/drop").raise_for_status()
    answer = view.alter(source_query="SELECT id FROM t")
    assert code(answer) == (409, 19)
    assert "size" in answer.text
    upper = f"{view.namespace}$reader"
    ask_create(view.server, upper, source_query="SELECT id FROM v").raise_for_status()
    answer = view.alter(source_query="SELECT text FROM t")
    assert code(answer) == (409, 19)
    assert "reader" in answer.text
    answer = view.alter(source_query="SELECT id, text, id AS size FROM t")
    assert code(answer) == (400, 13)


def test_computed_columns_know_what_an_alteration_made_stale(view: View) -> None:
    computed = {"name": "up", "computed": "upper(text)"}
    view.ask_table("add_columns", {"new_columns": [computed]}).raise_for_status()

    def fill() -> dict[str, int]:
        body = {"column": "up", "cluster": view.cluster}
        found: dict[str, int] = view.ask_table("explain_backfill", body).json()["rows_by_state"]
        view.ask_table("backfill_column", body).raise_for_status()
        view.work()
        return found

    fill()
    job_of(view.alter(source_query="SELECT id, text FROM t"))
    view.work()
    assert view.rows() == [(1, "a", None), (2, "bb", "BB"), (3, "ccc", "CCC")]
    assert fill() == {"fresh": 2, "stale": 0, "unfilled": 1, "failed": 0}
    job_of(view.alter(source_query="SELECT id, 'x' AS text FROM t"))
    view.work()
    assert fill() == {"fresh": 0, "stale": 3, "unfilled": 0, "failed": 0}
    assert view.rows() == [(1, "x", "X"), (2, "x", "X"), (3, "x", "X")]


def test_only_the_job_can_commit_an_alteration(view: View) -> None:
    job_of(view.alter(source_query=WIDER))
    with pytest.raises(Exception, match="conflict"):
        commit_rows(connect(view.server), view.id, **{"penstock.alteration": "x"})
    assert view.tell()["source_query"] == QUERY


def test_a_view_of_another_shape_is_made_anew(view: View) -> None:
    job_of(view.alter(source_query="SELECT id, text FROM t LIMIT 2"))
    view.work()
    assert view.rows() == [(1, "a"), (2, "bb")]
