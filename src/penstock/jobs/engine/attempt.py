"""The interface between a recipe and its attempt: cancellation, fencing, progress, errors."""

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from penstock.errors import (
    ConcurrentCommit,
    OutcomeUnknown,
    PenstockError,
    TooManyRequests,
    Unavailable,
    VanishedFile,
)
from penstock.model.functions import RowError

Value = str | int | float

# What an attempt is at; between planning and computing it may have to wait for Spark.
PLANNING, STARTING, COMPUTING = "planning", "starting", "computing"
COMMITTING, SENDING = "committing", "sending"
VERIFYING, FINISHING = "verifying", "finishing"

# Errors that another attempt may overcome; every other error of ours is the job's own. A clean-up
# may have removed a file between listing and reading it: the next attempt lists again. If it is
# really lost, the last attempt says so.
PASSING = (Unavailable, ConcurrentCommit, OutcomeUnknown, TooManyRequests, VanishedFile)


class JobCanceled(Exception):
    """Someone asked for the job to stop."""


class JobPaused(Exception):
    """Someone asked for the job to wait; what has begun may end, and is kept."""


class Attempt(Protocol):
    """One attempt at a job; only its holder may continue."""

    @property
    def job(self) -> str: ...

    @property
    def number(self) -> int: ...

    def check(self) -> None:
        """Raise JobCanceled, JobPaused or LeaseLost if that is already known; asks nobody."""

    def fence(self) -> None:
        """Ask the server, until it answers, whether the attempt holds the job; then as `check`.

        Called before everything that others can see. A recent answer will do.
        """

    def find_obstacle(self) -> str:
        """Ask the server why it would refuse the job's commit at any time; empty when it knows
        nothing of the kind.
        """

    def publish(self, versions: Sequence[Mapping[str, Any]]) -> None:
        """Publish versions of several tables, all or none; raises ConcurrentCommit."""

    def progress(self, **values: Value) -> None:
        """Report progress."""

    def phase(self, name: str) -> None:
        """Report what begins now, for the job's line of time."""

    def log(self, text: str, level: str = "info") -> None:
        """Write to the job's log."""

    def errors(self, rows: Sequence[RowError], view: str = "") -> None:
        """Record failed rows in the ledger: of the job's table, or of a view by its id."""

    def error_rows(self) -> frozenset[int]:
        """The ids of the ledger's rows for the job's column."""


class KeyedAttempt:
    """An attempt whose work is kept under another name than the job's."""

    def __init__(self, attempt: Attempt, key: str) -> None:
        self.job, self.number = key, attempt.number
        self.check, self.fence, self.publish = attempt.check, attempt.fence, attempt.publish
        self.find_obstacle = attempt.find_obstacle
        self.progress, self.phase, self.log = attempt.progress, attempt.phase, attempt.log
        self.errors, self.error_rows = attempt.errors, attempt.error_rows


def is_passing(error: BaseException) -> bool:
    """Whether another attempt may succeed; errors outside our tree say nothing about the job."""
    return isinstance(error, PASSING) or not isinstance(error, PenstockError)
