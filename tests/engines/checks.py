"""Operations as engines carry them out: what is done, and what must be seen afterwards."""

import datetime
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any, Protocol

from tests.engines.results import Outcome, Result

Rows = list[list[Any]]
NOTE_CHARACTERS = 240


class Refused(Exception):
    """An engine, or the server behind it, said no."""


class Session(Protocol):
    """An engine that takes SQL."""

    def rows(self, sql: str) -> Rows:
        """Run one statement; values come as JSON has them. Raises Refused."""


@dataclass(frozen=True)
class Check:
    """One operation; with a limit it must be refused with words that this pattern finds."""

    operation: str
    act: Callable[[], object]
    limit: str = ""
    reason: str = ""


@dataclass(frozen=True)
class Sql:
    """An operation in SQL: statements, and a query with the rows that it must answer.

    What a query in `given` finds first is filled in where its name stands in braces.
    """

    operation: str
    does: Sequence[str] = ()
    query: str = ""
    shows: Rows | None = None
    given: Mapping[str, str] = field(default_factory=dict)
    limit: str = ""
    reason: str = ""

    def check(self, session: Session) -> Check:
        return Check(self.operation, lambda: self._act(session), self.limit, self.reason)

    def _act(self, session: Session) -> None:
        found = dict[str, str]()
        for statement in self.does:
            session.rows(self._fill(session, statement, found))
        if self.query:
            expect(session.rows(self._fill(session, self.query, found)), self.shows)

    def _fill(self, session: Session, statement: str, found: dict[str, str]) -> str:
        for name, query in self.given.items():
            if f"{{{name}}}" in statement:
                if name not in found:
                    found[name] = str(session.rows(query)[0][0])
                statement = statement.replace(f"{{{name}}}", found[name])
        return statement


def expect(found: Any, wanted: Any) -> None:
    """Refuse what differs."""
    if found != wanted:
        raise Refused(f"found {found}, not {wanted}")


def plain(value: Any) -> Any:
    """A value as JSON has it, so that engines can be compared."""
    if isinstance(value, datetime.date | datetime.datetime | Decimal):
        return str(value)
    if isinstance(value, list | tuple):
        return [plain(each) for each in value]
    return value


def carry_out(checks: Iterable[Check]) -> Iterator[Result]:
    """What came of each, one after the other."""
    for check in checks:
        yield _judge(check)


def _judge(check: Check) -> Result:
    try:
        check.act()
    # A client may raise anything at all, and the next operation is to be tried all the same.
    except Exception as error:
        said = shorten(str(error) or type(error).__name__)
        if check.limit and re.search(check.limit, str(error)):
            return Result(check.operation, Outcome.LIMIT, check.reason or said)
        return Result(check.operation, Outcome.FAILS, said)
    if check.limit:
        return Result(check.operation, Outcome.FAILS, "works now: take its limit away")
    return Result(check.operation, Outcome.WORKS)


def shorten(text: str) -> str:
    """What was said, in one line."""
    line = " ".join(text.split())
    return line if len(line) <= NOTE_CHARACTERS else f"{line[:NOTE_CHARACTERS]}…"
