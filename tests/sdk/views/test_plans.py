"""Plans and literals, as texts."""

import datetime
from typing import Any

import penstock
from penstock.sdk.jobs.plans import Plan

PLAN: dict[str, Any] = {
    "mode": "incremental",
    "reason": "rows changed",
    "rows_to_insert": 1200,
    "rows_to_update": None,
    "rows_to_delete": None,
    "function_calls": 1200,
    "unknown": dict.fromkeys(("rows_to_update", "rows_to_delete"), "Spark evaluates the filter"),
    "estimated_seconds": 61.5,
    "calls_by_reason": {"never_filled": 1200, "forced": 0},
    "rows_left": 3,
    "rows_by_state": {"fresh": 7, "stale": 0, "unfilled": 1200, "failed": 3},
    "obstacle": "it has a join",
    "source_versions": {"a$t": {"from": 4, "to": 5}},
    "upstream": {"a$v": {"mode": "full", "reason": "it was never filled"}},
}


def test_a_plan_tells_everything() -> None:
    assert str(Plan("refresh of a.w", PLAN)).splitlines() == [
        "refresh of a.w",
        "  mode       incremental: rows changed",
        "  rows       1,200 to insert, to update and to delete: unknown, because Spark evaluates "
        "the filter",
        "  now        7 fresh, 1,200 unfilled, 3 failed",
        "  calls      1,200 (1,200 never filled)",
        "  left       3 rows for a later one",
        "  follows    as a whole: it has a join",
        "  source     a.t: version 4 -> 5",
        "  before     a.v: full, it was never filled",
        "  time       functions about 61.5 s on one core",
    ]


def test_a_plan_is_a_mapping_with_what_was_told() -> None:
    told = {**PLAN, **dict.fromkeys(("rows_to_insert", "rows_to_update", "rows_to_delete"), 0)}
    told |= {"function_calls": None, "unknown": {"function_calls": "the limit decides"}}
    plan = Plan("it", told)
    assert dict(plan)["rows_left"] == 3
    assert len(plan) == len(PLAN)
    assert plan.function_calls is None
    assert plan.unknown == {"function_calls": "the limit decides"}
    assert "calls      unknown, because the limit decides" in str(plan)
    assert "rows       none to change" in str(plan)


def test_python_values_are_literals_of_sql(lake: penstock.Lake, space: str) -> None:
    row = {
        "text": "it's",
        "number": -3,
        "real": 2.5e-3,
        "yes": True,
        "day": datetime.date(2024, 2, 29),
        "at": datetime.datetime(2024, 2, 29, 12, 30, 1, 5),
    }
    made = lake.create_table(f"{space}.t", [dict(row)])
    made.update(dict.fromkeys(row))
    assert made.to_list() == [dict.fromkeys(row)]
    made.update(row)
    assert made.to_list() == [row]
