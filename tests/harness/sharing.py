"""How processes share the tests: which ones stay together, and which go first."""

import functools
import re
from pathlib import Path
from typing import Any

import pytest
from xdist.scheduler import LoadScopeScheduling

# Fixtures with Spark, as tests ask for them: a session of the process, or runners beside it.
SPARK = {
    "session": re.compile(r"\bengine: Engine\b"),
    "runners": re.compile(r"\b(team: Team|runner: RunnerProcess)\b"),
}
KIND = re.compile(r"\[.*?\b(sqlite|postgresql)\b")


@functools.cache
def spark_of(module: Path) -> str:
    """Where the tests of a module have Spark; "" when they have none."""
    text = module.read_text()
    return next((name for name, used in SPARK.items() if used.search(text)), "")


class Sharing(LoadScopeScheduling):  # type: ignore[misc]
    """What shares Spark is in one process; other modules stay together for each kind of database.

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
