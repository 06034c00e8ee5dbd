"""Distribute tests over processes: which ones stay together, and which go first."""

import functools
import re
from pathlib import Path
from typing import Any

import pytest
from xdist.scheduler import LoadScopeScheduling

# Fixtures with Spark, as tests ask for them: a session of the process, or runners beside it.
SPARK = {
    "session": re.compile(r"\bengine: Engine\b"),
    "field": re.compile(r"\bfield: Field\b"),
    "runners": re.compile(r"\b(team: Team|runner: RunnerProcess)\b"),
}
KIND = re.compile(r"\[.*?\b(sqlite|postgresql)\b")


@functools.cache
def spark_of(module: Path) -> str:
    """Where the tests of a module have Spark; "" when they have none."""
    text = module.read_text()
    return next((name for name, used in SPARK.items() if used.search(text)), "")


class Sharing(LoadScopeScheduling):  # type: ignore[misc]
    """Keeps what shares Spark in one process, and a module together for each kind of database.

    A server of one kind is there for many modules, so that a process changes kinds rarely.
    """

    def __init__(self, config: pytest.Config, log: Any) -> None:
        super().__init__(config, log)
        # In the order of their collection, which is by kind of database.
        config.option.loadscopereorder = False

    def _split_scope(self, nodeid: str) -> str:
        module, _, test = nodeid.partition("::")
        if spark := spark_of(self.config.rootpath / module):
            return spark
        kind = KIND.search(test)
        return f"{module} {kind[1]}" if kind else module

    def remove_node(self, node: Any) -> str | None:
        """Give what a process left to others: not the test that ended it, nor what it had done.

        The base gives back whole units. One without a test to run would leave the process that
        takes it waiting for ever, and the test that ended this process would end the next one.
        """
        left = {
            scope: unit
            for scope, unit in self.assigned_work.pop(node).items()
            if not all(unit.values())
        }
        if not left:
            return None
        scope, unit = next(iter(left.items()))
        ended_by: str = next(test for test, done in unit.items() if not done)
        unit[ended_by] = True
        if all(unit.values()):
            del left[scope]
        self.workqueue.update(left)
        for other in self.assigned_work:
            self._reschedule(other)
        return ended_by

    def _reschedule(self, node: Any) -> None:
        """Give a process more than two tests, or tell it that no more come.

        It begins its last test only when it knows what follows.
        """
        if node not in self.registered_collections:
            return
        super()._reschedule(node)
        while not node.shutting_down and self._pending_of(self.assigned_work[node]) <= 2:
            super()._reschedule(node)
