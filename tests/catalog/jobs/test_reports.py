"""What a runner tells on the way never costs it its lease."""

from typing import Any

from penstock.runner.attempt import MAX_LINES, MAX_REPORT_LINES, LeasedAttempt
from penstock.runner.client import AttemptEnd, Lease, ServerClient
from tests.harness.jobs.fake_runner import Column

NAMES = ("id", "kind", "attempt", "spec", "cluster", "lease_seconds", "heartbeat_seconds")


def hold(column: Column) -> LeasedAttempt:
    column.request()
    (job,) = column.runner.lease()
    return LeasedAttempt(
        ServerClient(column.server.url), Lease(**{name: job[name] for name in NAMES})
    )


def read_log(column: Column, job: str) -> list[str]:
    lines: list[str] = []
    after: dict[str, Any] = {}
    while True:
        page = column.server.get(f"/v1/jobs/{job}/logs", limit=1000, **after).json()
        lines += [line["text"] for line in page["lines"]]
        if not page.get("page_token"):
            return lines
        after = {"page_token": page["page_token"]}


def test_more_lines_than_a_report_carries_arrive_in_pieces_and_in_order(column: Column) -> None:
    attempt = hold(column)
    told = [f"line {n}" for n in range(4 * MAX_REPORT_LINES + 7)]
    for line in told:
        attempt.log(line, "print")
    attempt.fence()
    assert attempt.finish(AttemptEnd("FAILED", error="x"), lambda: True) == "FAILED"
    assert read_log(column, attempt.job)[: len(told)] == told


def test_the_newest_lines_are_kept_when_there_are_too_many(column: Column) -> None:
    attempt = hold(column)
    for n in range(MAX_LINES + 10):
        attempt.log(str(n))
    attempt.finish(AttemptEnd("FAILED", error="x"), lambda: True)
    assert read_log(column, attempt.job)[0] == "10"


def test_a_line_that_is_no_unicode_is_told_as_far_as_it_can_be(column: Column) -> None:
    attempt = hold(column)
    attempt.log("half \ud800 a pair, and a \0", "print")
    attempt.finish(AttemptEnd("FAILED", error="x"), lambda: True)
    assert read_log(column, attempt.job) == ["half ? a pair, and a �"]


def test_a_refused_line_costs_no_lease(column: Column) -> None:
    attempt = hold(column)
    attempt.log("fine", "a level that is longer than the server takes")
    attempt.fence()
    attempt.check()
    attempt.log("fine", "and so is this level of the last line")
    assert attempt.finish(AttemptEnd("FAILED", error="x"), lambda: True) == "FAILED"
