"""Views of views refreshed together, on a real server and a real runner."""

import json
import signal
from pathlib import Path
from typing import Any

import pytest

from tests.harness.processes.runners import RunnerProcess, Team
from tests.harness.processes.servers import Server
from tests.harness.processes.waiting import until
from tests.harness.views.runner_views import RunnerView, make_source, make_view, make_words

pytestmark = pytest.mark.timeout(400)


class Stack:
    """What Lance computes of a table, what Spark does of that, and the words of that."""

    def __init__(self, server: Server, log: Path) -> None:
        self.table = make_source(server, range(12))
        low = {"sql": "SELECT id, title, text FROM t WHERE id > 2", "dialect": "lance"}
        self.low = make_view(self.table, low, "low")
        middle = "SELECT id, title, concat(upper(text), ' END') AS text FROM low WHERE id % 5 <> 1"
        self.middle = make_view(self.table, middle, "middle")
        self.top = make_words(self.table, log, source_query="SELECT id, title, text FROM middle")

    @property
    def views(self) -> list[RunnerView]:
        return [self.low, self.middle, self.top]

    def refresh(self) -> dict[str, Any]:
        job = self.top.request(cascade=True)
        found = self.top.finish(job)
        assert found["status"] == "SUCCEEDED", found
        return found | {"job": job}

    def is_right(self, rows: list[dict[str, Any]]) -> bool:
        """Whether all views are what their queries give for these rows of the table."""
        low = [(r["id"], r["text"]) for r in rows if r["id"] > 2]
        middle = [(id, text.upper() + " END") for id, text in low if id % 5 != 1]
        words = [(id, n, word) for id, text in middle for n, word in enumerate(text.split(" "))]
        return (
            self.low.show("id", "text") == sorted(low, key=repr)
            and self.middle.show("id", "text") == sorted(middle, key=repr)
            and self.top.show("id", "__child_index", "word") == sorted(words, key=repr)
        )

    def watermarks(self) -> list[dict[str, int]]:
        """What the catalog says each view is made from."""
        found = [view.ask("describe").json()["properties"] for view in self.views]
        assert [each["penstock.stale"] for each in found] == ["false"] * 3
        return [json.loads(each["penstock.watermark"]) for each in found]

    def agrees(self) -> bool:
        """Whether each view follows what the one before it is now."""
        heads = [self.table.open().version, *(view.open().version for view in self.views)]
        return [list(each.values()) for each in self.watermarks()] == [[v] for v in heads[:3]]


@pytest.mark.slow
def test_a_cascade_brings_three_levels_to_one_moment(
    server: Server, runner: RunnerProcess, tmp_path: Path
) -> None:
    stack = Stack(server, tmp_path / "calls")
    stack.refresh()
    assert stack.is_right(stack.table.rows())
    assert stack.agrees()
    assert len(stack.top.take_calls()) == 7
    stack.table.update("text", "'a b'", "id = 7")
    stack.table.append(12)
    found = stack.refresh()
    assert stack.is_right(stack.table.rows())
    assert stack.agrees()
    # Each of them did only what had changed.
    assert found["mode"] == "incremental"
    assert {each["mode"] for each in json.loads(found["upstream"]).values()} == {"incremental"}
    assert stack.top.take_calls() == ["A B END", "W12-0 END"]
    for view in stack.views:
        assert len(view.commits(found["job"])) == 1
        assert view.loose_files() == set()


@pytest.mark.slow
@pytest.mark.parametrize("point", ["views held back"])
def test_a_runner_killed_in_a_cascade_leaves_all_or_nothing(
    server: Server, team: Team, runner: RunnerProcess, tmp_path: Path, point: str
) -> None:
    stack = Stack(server, tmp_path / "calls")
    stack.refresh()
    rows = stack.table.rows()
    stack.table.update("text", "'a b'", "id IN (7, 8)")
    new = stack.table.rows()
    with team.asleep():
        doomed = team.start(PENSTOCK_CRASH_AT=point).wait_until_warm()
        job = stack.top.request(cascade=True)
        assert doomed.process.wait(180) == -signal.SIGKILL
        assert stack.is_right(new if point == "views published" else rows)
        # What comes now is for the next refresh.
        stack.table.append(12)
    found = stack.top.finish(job, 300)
    assert found["status"] == "SUCCEEDED", found
    assert stack.is_right(new)
    assert [len(view.commits(job)) for view in stack.views] == [1, 1, 1]
    stack.refresh()
    assert stack.is_right(stack.table.rows())
    assert stack.agrees()

    def left() -> set[str]:
        return {name for view in stack.views for name in view.loose_files()}

    until(lambda: not left(), "files of the killed attempt stay")
