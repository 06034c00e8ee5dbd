"""Outcomes of a function's calls: values, and failed rows."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import pyarrow as pa
from msgspec import Struct

from penstock.jobs.functions.frames import show_frames
from penstock.jobs.functions.redaction import hide

MAX_TEXT = 2000
TOO_MANY = 429
_RATE_LIMIT = re.compile("RateLimit|TooManyRequests|Throttl")


class Failure(Struct, frozen=True, kw_only=True):
    """Why a row, or a batch, has no values."""

    exception: str
    message: str
    traceback: str = ""
    # The exception's name and those of its bases, each with and without its module.
    names: tuple[str, ...] = ()
    is_rate_limit: bool = False
    # The function itself is wrong: no other batch would do, and no row is to blame.
    is_final: bool = False
    retry_after_seconds: float | None = None

    @property
    def text(self) -> str:
        return f"{self.exception}: {self.message}" if self.message else self.exception


@dataclass(slots=True)
class Outcome:
    """The first rows of a batch: their values, null where a row failed, and those failures.

    When the batch failed as a whole, there are no rows and `whole` says why. Where rows are called
    at once, some may be left that were not called, or not to their end because the job stops.
    """

    values: pa.RecordBatch | None
    failures: dict[int, Failure] = field(default_factory=dict)
    whole: Failure | None = None
    left: tuple[int, ...] = ()
    is_stopped: bool = False

    @property
    def rows(self) -> int:
        return 0 if self.values is None else int(self.values.num_rows)

    def take(self, rows: Sequence[int]) -> pa.RecordBatch:
        """The values of some rows."""
        assert self.values is not None
        return self.values.take(pa.array(rows, pa.int64()))


class Caller(Protocol):
    """Runs the function on a batch, here or in another process; any number of threads may ask."""

    @property
    def calls_at_once(self) -> bool:
        """Whether rows are called at once, so that those that have values need not be the first."""

    def run(self, batch: pa.RecordBatch, *, go_on: bool) -> Outcome:
        """Call the function; without `go_on` it may end at the first row that fails."""

    def close(self) -> None: ...


def to_failure(error: BaseException, rate_limits: tuple[str, ...] = ()) -> Failure:
    """What is to be known of an exception of the user's."""
    kinds = [kind for kind in type(error).__mro__ if kind not in (object, BaseException)]
    names = tuple(
        name for kind in kinds for name in (kind.__name__, f"{kind.__module__}.{kind.__name__}")
    )
    limited = (
        any(_RATE_LIMIT.search(kind.__name__) for kind in kinds)
        or bool(set(rate_limits) & set(names))
        or _status(error) == TOO_MANY
    )
    return Failure(
        exception=hide(type(error).__name__),
        message=hide(_safe_text(error))[:MAX_TEXT],
        traceback=hide(show_frames(error))[-MAX_TEXT * 4 :],
        names=names,
        is_rate_limit=limited,
        retry_after_seconds=_retry_after(error) if limited else None,
    )


def _safe_text(error: BaseException) -> str:
    try:
        # Half of a surrogate pair is a character that no file takes.
        return str(error).encode(errors="backslashreplace").decode()
    # The user's own class may do anything here.
    except Exception:
        return "(an error whose text cannot be shown)"


def _status(error: BaseException) -> object:
    for holder in (error, getattr(error, "response", None)):
        for name in ("status_code", "status", "code"):
            found = getattr(holder, name, None)
            if found is not None and not callable(found):
                return int(found) if str(found).isdecimal() else found
    return None


def _retry_after(error: BaseException) -> float | None:
    """The seconds that a service asks for, from the error or from its response's headers."""
    given: Any = getattr(error, "retry_after", None)
    for holder in (error, getattr(error, "response", None)):
        headers = getattr(holder, "headers", None)
        if given is None and headers is not None:
            try:
                given = headers.get("Retry-After") or headers.get("retry-after")
            except (AttributeError, TypeError):
                continue
    try:
        return max(0.0, float(given)) if given is not None else None
    except (TypeError, ValueError):
        return None
