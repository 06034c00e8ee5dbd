"""Check that a view's statement parses in its dialect."""

from penstock.sql.parsing.languages import find_dialect
from penstock.sql.parsing.parse import TooMuch, parse_query
from penstock.sql.results import SqlProblem


def check_statement(sql: str, dialect: str) -> SqlProblem | None:
    """What is wrong with a statement; None when it is right, or cannot be judged."""
    known = find_dialect(dialect)
    if known is None:
        return None
    try:
        found = parse_query(sql, known)
    except TooMuch:
        return None
    return found if isinstance(found, SqlProblem) else None
