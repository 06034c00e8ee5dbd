"""Views that Spark SQL computes, on a real server and a real runner."""

import json
import time
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pytest

from tests.harness.clients import iceberg_requests as iceberg
from tests.harness.clients.pylance import connect
from tests.harness.processes.runners import FINISHED, RunnerProcess, Team, cpu_seconds, wait
from tests.harness.processes.servers import Server
from tests.harness.views.runner_views import Source, make_source, make_view

# The first test waits for Spark, which starts slowly on a busy machine.
pytestmark = pytest.mark.timeout(400)

JOIN = "SELECT t.id, t.title, k.label FROM t JOIN kinds k ON t.kind = k.kind WHERE t.id > 1"
GROUPS = "SELECT kind, count(*) AS n, sum(id) AS total, max(title) AS last FROM t GROUP BY kind"
OF_JOIN = "SELECT label, count(*) AS n, min(id) AS low, avg(id) AS mean FROM v GROUP BY label"


def make_kinds(source: Source) -> Source:
    """A table with a label for two of the three kinds of documents."""
    lance.write_dataset(
        pa.table({"kind": ["k0", "k1"], "label": ["zero", "one"]}),
        namespace_client=connect(source.server),
        table_id=[source.namespace, "kinds"],
        mode="create",
        enable_stable_row_ids=True,
    )
    return Source(source.server, source.namespace, "kinds")


def joined(source: Source, kinds: Source) -> list[tuple[Any, ...]]:
    labels = {row["kind"]: row["label"] for row in kinds.rows()}
    found = [
        (row["id"], row["title"], labels[row["kind"]])
        for row in source.rows()
        if row["id"] > 1 and row["kind"] in labels
    ]
    return sorted(found, key=repr)


def grouped(source: Source) -> list[tuple[Any, ...]]:
    rows = source.rows()
    found = []
    for kind in {row["kind"] for row in rows}:
        members = [row for row in rows if row["kind"] == kind]
        ids = [row["id"] for row in members]
        found.append((kind, len(ids), sum(ids), max(row["title"] for row in members)))
    return sorted(found, key=repr)


def check_join(server: Server) -> None:
    """A join with an index, and a view over it."""
    source = make_source(server, range(12))
    kinds = make_kinds(source)
    view = make_view(source, JOIN)
    plan = view.explain()
    assert (plan["shape"], plan["obstacle"]) == ("keys", "")
    assert view.refresh()["rows_inserted"] == str(len(joined(source, kinds)))
    body = {"column": "id", "index_type": "BTREE"}
    view.server.post(f"/v1/table/{view.id}/create_index", body).raise_for_status()
    above = make_view(source, OF_JOIN, "above")
    above.refresh()
    assert above.show("label", "n", "low", "mean") == [("one", 3, 4, 7.0), ("zero", 3, 3, 6.0)]
    source.update("text", "'of no matter'", "id = 4")
    source.compact()
    assert view.refresh()["mode"] == "none"
    kinds.update("label", "'ONE'", "kind = 'k1'")
    found = view.refresh()
    assert (found["mode"], found["reason"]) == (
        "incremental",
        "1 row changed in 3 joined rows",
    )
    assert view.show("id", "title", "label") == joined(source, kinds)
    # Readers of the new version have the index, and it leads to its rows.
    indexes = view.ask("index/list").json()["indexes"]
    assert [each["index_name"] for each in indexes] == ["id_idx"]
    assert view.open().to_table(filter="id = 4", columns=["label"])["label"].to_pylist() == ["ONE"]
    assert above.refresh()["mode"] == "incremental"
    assert above.show("label", "n", "low", "mean") == [("ONE", 3, 4, 7.0), ("zero", 3, 3, 6.0)]
    assert view.loose_files() == set()


def check_groups(server: Server) -> None:
    """Groups that change, come and go."""
    source = make_source(server, range(12))
    view = make_view(source, GROUPS)

    def follow(**body: Any) -> tuple[str, ...]:
        found = view.refresh(**body)
        assert view.show("kind", "n", "total", "last") == grouped(source)
        if "verify" in body:
            made = json.loads(found["certificate"])
            assert (made["is_equal"], made["rows"]) == (True, view.open().count_rows())
            assert made["view_version"] == view.open().version
            assert made["source_versions"] == json.loads(found["source_versions"])
        names = ("mode", "rows_inserted", "rows_updated", "rows_deleted")
        return tuple(found[name] for name in names)

    assert view.explain()["shape"] == "keys"
    assert follow() == ("full", "3", "0", "0")
    source.update("kind", "'k9'", "id = 4")
    source.delete("kind = 'k2'")
    assert follow() == ("incremental", "1", "1", "1")
    source.append(12)
    assert follow(verify=True) == ("incremental", "0", "1", "0")


def check_iceberg(server: Server) -> None:
    """A view over an Iceberg view, which is replaced."""
    source = make_source(server, range(12))
    request = iceberg.create(source.namespace, "i", "SELECT kind, id FROM t WHERE id > 2")
    request.body["view-version"]["default-namespace"] = [source.namespace]
    request.send(server).raise_for_status()
    view = make_view(source, "SELECT kind, count(*) AS n FROM i GROUP BY kind")
    assert view.explain()["shape"] == "keys"
    view.refresh()
    assert view.show("kind", "n") == [("k0", 3), ("k1", 3), ("k2", 3)]
    request = iceberg.replace(source.namespace, "i", "SELECT kind, id FROM t WHERE id > 8")
    request.body["updates"][0]["view-version"]["default-namespace"] = [source.namespace]
    request.send(server).raise_for_status()
    found = view.refresh()
    assert (found["mode"], view.show("kind", "n")) == ("full", [("k0", 1), ("k1", 1), ("k2", 1)])


def test_a_join_is_a_view_and_so_are_its_groups(server: Server, runner: RunnerProcess) -> None:
    check_join(server)


def test_only_groups_that_changed_are_computed(server: Server, runner: RunnerProcess) -> None:
    check_groups(server)


def test_an_iceberg_view_can_be_read(server: Server, runner: RunnerProcess) -> None:
    check_iceberg(server)


# Hours of work, in which Spark does not look up once: for each batch of rows, or for one value.
PAIRS = "SELECT count(*) AS n FROM t x JOIN t y ON md5(concat(x.text, y.text)) < '0'"
BACKTRACKING = "SELECT count(*) AS n FROM t WHERE repeat('a', 40 + id % 2) RLIKE '(.*a){20}c'"


@pytest.mark.slow
@pytest.mark.parametrize("query", [PAIRS, BACKTRACKING], ids=["a join", "a regular expression"])
def test_a_query_that_spark_cannot_end_is_over_ten_seconds_after_its_cancel(
    server: Server, team: Team, query: str
) -> None:
    team.at_least(1)
    source = make_source(server, range(100_000))
    job = make_view(source, query).request()
    wait(server, job, lambda found: found["status"] == "RUNNING")
    jvm = team.holder(job).jvm()
    start = cpu_seconds(jvm)
    # More than Spark takes to plan it.
    while cpu_seconds(jvm) < start + 6:
        time.sleep(0.2)
    canceled = time.monotonic()
    server.post("/v1/jobs/cancel", {"job_id": job}).raise_for_status()
    assert wait(server, job, lambda found: found["status"] in FINISHED)["status"] == "CANCELED"
    assert not Path(f"/proc/{jvm}").exists()
    assert time.monotonic() - canceled < 10
    check_groups(server)
