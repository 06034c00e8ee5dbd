"""Catch whatever sqlglot raises on strangers' text and trees."""

from collections.abc import Callable
from typing import TypeVar

from sqlglot.errors import SqlglotError, UnsupportedError

from penstock.sql.parsing.parse import TooMuch
from penstock.sql.results import Refusal

T = TypeVar("T")


class Refused(Exception):
    """Carries a refusal up the call stack."""

    def __init__(self, reason: str, line: int | None = None, column: int | None = None) -> None:
        super().__init__(reason)
        self.refusal = Refusal(reason, line, column)


def guard(what: str, work: Callable[[], T]) -> T | Refusal:
    """The work's result, or a refusal; `what` names the work, in words."""
    try:
        return work()
    except Refused as refused:
        return refused.refusal
    except TooMuch as error:
        return Refusal(str(error))
    except RecursionError:
        return Refusal("the statement is nested too deeply")
    except UnsupportedError as error:
        return Refusal(f"{what} is not possible: {error}")
    except SqlglotError as error:
        return Refusal(f"{what} failed: {error}")
    except Exception as error:
        # A tree that sqlglot's authors did not expect makes it raise anything: blame the text.
        return Refusal(f"{what} failed ({type(error).__name__})")
