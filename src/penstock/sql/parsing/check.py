"""Does a view's statement parse in the dialect that it claims to be?"""

from penstock.sql.parsing.languages import find_dialect
from penstock.sql.parsing.parse import TooMuch, parse_query
from penstock.sql.results import Problem


def check_statement(sql: str, dialect: str) -> Problem | None:
    """What is wrong with a statement, or None for one that is right or that is not judged."""
    known = find_dialect(dialect)
    if known is None:
        return None
    try:
        found = parse_query(sql, known)
    except TooMuch:
        return None
    return found if isinstance(found, Problem) else None
