"""What a recipe may ask of the attempt it runs in, and what it tells about itself."""

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

# What may go well when it is tried again; every other error of ours is the job's own. A file that
# is gone was perhaps removed by a clean-up between a look at its name and the reading: the next
# attempt looks again. If it is really lost, the last attempt says so.
PASSING = (Unavailable, ConcurrentCommit, OutcomeUnknown, TooManyRequests, VanishedFile)


class JobCanceled(Exception):
    """Somebody asked for the job to stop."""


class Attempt(Protocol):
    """One attempt at a job, which only its holder may go on with."""

    @property
    def job(self) -> str: ...

    @property
    def number(self) -> int: ...

    def check(self) -> None:
        """Raise JobCanceled or LeaseLost when that is known already; asks nobody."""

    def fence(self) -> None:
        """Ask the server whether the attempt still holds the job, until it answers; then as above.

        Called before everything that others can see. An answer of a moment ago will do.
        """

    def publish(self, versions: Sequence[Mapping[str, Any]]) -> None:
        """Have the catalog take new versions of several tables, all or none, as the protocol asks
        for them; raises ConcurrentCommit when one is taken by now. A cancel does not end it.
        """

    def progress(self, **values: Value) -> None:
        """Tell how far it is."""

    def log(self, text: str, level: str = "info") -> None:
        """Say something to whoever reads the job's log."""

    def errors(self, rows: Sequence[RowError], view: str = "") -> None:
        """Put rows that the function failed on into the ledger: of the job's table, or of a view
        that it refreshes on the way, by its id.
        """

    def error_rows(self) -> frozenset[int]:
        """The ids of the rows that the ledger has for the job's column."""


def is_passing(error: BaseException) -> bool:
    """Whether another attempt may go well; an error outside our tree says nothing about the job."""
    return isinstance(error, PASSING) or not isinstance(error, PenstockError)
