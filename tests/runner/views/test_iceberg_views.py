"""Iceberg views of more than one table's rows: Spark answers what is asked of them."""

from typing import Any

import lancedb
import pytest

from tests.harness.processes.runners import RunnerProcess
from tests.harness.processes.servers import Server
from tests.harness.views.runner_views import make_source

pytestmark = pytest.mark.timeout(400)

KINDS = "SELECT kind, count(*) AS n, max(id) AS top FROM t GROUP BY kind"
# Types that only Spark knows.
WORDS = (
    "SELECT id, transform(split(text, ' '), each -> upper(each)) AS words, 1.5 * id AS half FROM t"
)


def test_lancedbs_client_reads_a_view_of_groups(server: Server, runner: RunnerProcess) -> None:
    space = [make_source(server, range(9)).namespace]
    database: Any = lancedb.connect("db://x", api_key="k", host_override=server.url)
    told = database.create_view("kinds", KINDS, namespace_path=space)
    assert told.schema.names == ["kind", "n", "top"]
    view = database.open_table("kinds", namespace_path=space)
    assert sorted(view.search().to_pandas()["top"]) == [6, 7, 8]
    assert view.count_rows() == 3
    assert view.count_rows("top > 6 AND kind <> 'it''s'") == 2
    found = view.search().where("`top` < 8").select({"twice": "top * 2"})
    ordered = found.order_by([{"column_name": "twice", "ascending": False}]).limit(1).offset(1)
    assert ordered.to_list() == [{"twice": 12}]
    with pytest.raises(Exception, match=r"can.t be searched.*materialized view"):
        view.search([1.0]).to_list()
    with pytest.raises(Exception, match="Spark answers this query"):
        view.search().explain_plan()


def test_types_that_only_spark_knows_are_found_when_the_view_is_made(
    server: Server, runner: RunnerProcess
) -> None:
    source = make_source(server, range(3))
    path = f"/v1/view/{source.namespace}$words"
    made = server.post(f"{path}/create", {"query": WORDS, "dialect": "spark"}).json()
    shown = {field["name"]: field["type"]["type"] for field in made["schema"]["fields"]}
    assert shown == {"id": "int64", "words": "list", "half": "decimal128"}
    # A view of a view, and a materialized view of that.
    upper = {"query": "SELECT id, words[0] AS word FROM words WHERE id > 0"}
    server.post(f"/v1/view/{source.namespace}$first/create", upper).raise_for_status()
    counted = server.post(f"/v1/table/{source.namespace}$first/count_rows", timeout=120)
    assert counted.json() == 2
