"""How processes share the tests: which ones stay together, and which go first."""

import functools
import re
from pathlib import Path
from typing import Any

import pytest
from xdist.scheduler import LoadScopeScheduling

# Fixtures with Spark, as tests ask for them.
SPARK = re.compile(r"\b(engine: Engine|team: Team|runner: RunnerProcess)\b")
KIND = re.compile(r"\[.*?\b(sqlite|postgresql)\b")


@functools.cache
def has_spark(module: Path) -> bool:
    return SPARK.search(module.read_text()) is not None


class Sharing(LoadScopeScheduling):  # type: ignore[misc]
    """Spark goes to one process; a module's tests stay together for each kind of database.

    A server of one kind is there for many modules, so that a process changes kinds rarely.
    """

    def __init__(self, config: pytest.Config, log: Any) -> None:
        super().__init__(config, log)
        # In the order of their collection, which is by kind of database.
        config.option.loadscopereorder = False

    def _split_scope(self, nodeid: str) -> str:
        module, _, test = nodeid.partition("::")
        if has_spark(self.config.rootpath / module):
            return "spark"
        kind = KIND.search(test)
        return f"{module} {kind[1]}" if kind else module
