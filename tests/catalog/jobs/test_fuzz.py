"""Nothing that a client or a runner sends makes the server fail, on a real column and job."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.harness.fuzzing.values import check, fuzzed, values_of, words_of
from tests.harness.jobs.fake_runner import Column, make_column
from tests.harness.processes.servers import Server

WORDS = (
    *("len", "text", "id", "nope", "id > 1", "length(text)", "text >", "1; 2", "a.b", "`", "``"),
    *("local", "QUEUED", "FAILED", "state = 'x'", '{"pip": []}', "{", "null", "main", "dev"),
    *("\0", "\x1f", "é", "😀", "", "'", '"', "(" * 50, "NULL", "*", "id, id", "_rowid", "st.x"),
)
words = words_of(WORDS)
values = values_of(words, words)
OPTIONS = (
    *("where", "branch", "read_version", "num_frags", "task_size", "concurrency", "force"),
    *("commit_granularity", "checkpoint_size", "cluster", "manifest"),
)
REPORT = ("attempt", "progress", "logs", "state", "result", "error", "retryable")
LISTING = ("state", "kind", "target", "limit", "page_token", "job_id", "job_ids", "filter")


def bodies(*names: str) -> st.SearchStrategy[dict[str, Any]]:
    return st.dictionaries(st.sampled_from(names), values, max_size=4)


@pytest.fixture(scope="module")
def bound(server: Server) -> Column:
    return make_column(server, "c399")


@fuzzed(60)
@given(bodies(*OPTIONS), words)
def test_requests_of_backfills(bound: Column, body: dict[str, Any], name: str) -> None:
    for column in ("len", name):
        whole = {"column": column} | body
        check(bound.server, f"/v1/table/{bound.table}/backfill_column", whole)
        check(bound.server, f"/v1/table/{bound.table}/explain_backfill", whole)


@fuzzed(60)
@given(words, values)
def test_declarations(bound: Column, name: str, computed: Any) -> None:
    path = f"/v1/table/{bound.table}"
    check(
        bound.server, f"{path}/add_columns", {"new_columns": [{"name": name, "computed": computed}]}
    )
    if name not in ("id", "text", "len"):
        check(bound.server, f"{path}/drop_columns", {"columns": [name]})


@fuzzed(60)
@given(bodies(*REPORT), st.booleans())
def test_reports(bound: Column, body: dict[str, Any], right: bool) -> None:
    id = bound.request(force=True)
    leased = bound.runner.lease(free=64)
    whole = ({"attempt": 1, "state": "SUCCEEDED"} if right else {}) | body
    for path in ("heartbeat", "finish"):
        check(bound.server, f"/v1/runner/job/{id}/{path}", whole)
    check(bound.server, "/v1/jobs/describe", {"job_id": id})
    check(bound.server, f"/v1/transaction/{id}/describe", {})
    for job in leased:
        bound.runner.finish(job)


@fuzzed(60)
@given(bodies(*LISTING), bodies("manifest", "mode"), words)
def test_listings_and_manifests(
    server: Server, body: dict[str, Any], manifest: dict[str, Any], name: str
) -> None:
    for path in ("list", "describe", "cancel", "query_events"):
        check(server, f"/v1/jobs/{path}", body)
    check(server, "/v1/manifest/fuzzed/create", manifest)
    check(server, "/v1/jobs/list", {"target": name, "kind": name})
