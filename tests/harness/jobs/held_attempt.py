"""An attempt of a job whose lease is in the test's hands."""

import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from penstock.errors import ConcurrentCommit
from penstock.jobs.engine.attempt import Value
from penstock.model.functions import RowError


@dataclass
class HeldAttempt:
    """An attempt that holds its job until the test says otherwise."""

    job: str = field(default_factory=lambda: str(uuid.uuid4()))
    number: int = 1
    # Called before each commit; the test's chance to be first, or to raise.
    on_fence: Callable[[], None] = lambda: None
    on_check: Callable[[], None] = lambda: None
    find_obstacle: Callable[[], str] = lambda: ""
    told: dict[str, Value] = field(default_factory=dict)
    phases: list[str] = field(default_factory=list)
    lines: list[str] = field(default_factory=list)
    # The ledger: what it is told, and what it has of the column.
    failed: list[RowError] = field(default_factory=list)
    ledger: frozenset[int] = frozenset()

    def check(self) -> None:
        self.on_check()

    def fence(self) -> None:
        self.on_fence()

    def progress(self, **values: Value) -> None:
        self.told.update(values)

    def phase(self, name: str) -> None:
        self.phases.append(name)

    def log(self, text: str, level: str = "info") -> None:
        self.lines.append(text)

    def publish(self, versions: Sequence[Mapping[str, Any]]) -> None:
        staged = [Path("/") / each["manifest_path"] for each in versions]
        final = [path.with_name(path.name.partition("-")[0]) for path in staged]
        if any(path.exists() for path in final):
            raise ConcurrentCommit("a version is taken")
        for path, to in zip(staged, final, strict=True):
            path.rename(to)

    def errors(self, rows: Sequence[RowError], view: str = "") -> None:
        self.failed += rows

    def error_rows(self) -> frozenset[int]:
        return self.ledger


def once(work: Callable[[], object]) -> Callable[[], None]:
    """Do something the first time only."""
    left = [work]

    def call() -> None:
        if left:
            left.pop()()

    return call
