"""Every public method of lancedb's client is on the page about it, and tested if it works."""

import importlib
import re
from pathlib import Path
from typing import Any

import pytest
from lancedb import db, job, materialized_view, merge, query, table
from lancedb.remote import db as remote_db
from lancedb.remote import table as remote_table

from tests.harness.clients.lancedb_modes import COVERED
from tests.harness.root import ROOT

PAGE = (ROOT / "docs/reference/lancedb.md").read_text()
# The kinds of objects: their headings on the page, and their classes in both forms.
KINDS: dict[str, tuple[str, Any, Any]] = {
    "connection": ("Connection", remote_db.RemoteDBConnection, db.AsyncConnection),
    "table": ("Table", remote_table.RemoteTable, table.AsyncTable),
    "tags": ("Tags", table.Tags, table.AsyncTags),
    "branches": ("Branches", table.Branches, table.AsyncBranches),
    "merge": ("Merges", merge.LanceMergeInsertBuilder, merge.LanceMergeInsertBuilder),
    "job": ("Jobs", job.Job, job.AsyncJob),
    "view": (
        "Materialized views",
        materialized_view.MaterializedView,
        materialized_view.AsyncMaterializedView,
    ),
}
# The columns of the page's table of queries.
QUERIES: dict[str, tuple[Any, Any]] = {
    "plain": (query.LanceEmptyQueryBuilder, query.AsyncQuery),
    "vector": (query.LanceVectorQueryBuilder, query.AsyncVectorQuery),
    "text": (query.LanceFtsQueryBuilder, query.AsyncFTSQuery),
    "hybrid": (query.LanceHybridQueryBuilder, query.AsyncHybridQuery),
    "take": (query.LanceTakeQueryBuilder, query.AsyncTakeQuery),
}

for found in sorted(Path(__file__).parent.glob("test_*.py")):
    if found.stem != Path(__file__).stem:
        importlib.import_module(f"tests.clients.lancedb.{found.stem}")


def list_public(*classes: Any) -> set[str]:
    return {name for one in classes for name in dir(one) if not name.startswith("_")}


def read_rows(heading: str) -> dict[str, list[str]]:
    """The rows of the table below a heading, by their method."""
    section = PAGE.partition(f"## {heading}\n")[2].partition("\n## ")[0]
    rows = re.findall(r"^\| `(\w+)`[^|]*\|(.*)\|$", section, re.M)
    assert len(rows) == len(dict(rows)), "a method is there twice"
    return {name: [cell.strip() for cell in cells.split("|")] for name, cells in rows}


def check(kind: str, name: str, status: str, note: str) -> None:
    assert status in ("works", "differs", "not"), (kind, name)
    if status != "works":
        assert note, f"{name} of {kind} has no reason"
    if status != "not":
        assert (kind, name) in COVERED, f"no test exercises {name} of {kind}"


@pytest.mark.parametrize("kind", KINDS)
def test_every_method_is_tested_or_has_a_reason(kind: str) -> None:
    heading, *classes = KINDS[kind]
    rows = read_rows(heading)
    assert set(rows) == list_public(*classes)
    for name, (status, note) in rows.items():
        check(kind, name, status, note)


def test_every_method_of_queries_is_tested_or_has_a_reason() -> None:
    rows = read_rows("Queries")
    public = {kind: list_public(*classes) for kind, classes in QUERIES.items()}
    assert set(rows) == set().union(*public.values())
    for name, (*cells, note) in rows.items():
        for kind, status in zip(QUERIES, cells, strict=True):
            assert bool(status) == (name in public[kind]), (kind, name)
            if status:
                check(kind, name, status, note)


def test_what_tests_exercise_is_there() -> None:
    known = {kind: classes for kind, (_, *classes) in KINDS.items()} | dict(QUERIES)
    for kind, name in COVERED:
        assert name in list_public(*known[kind]), f"{kind} has no {name}"
