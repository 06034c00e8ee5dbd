"""Find the functions that a statement calls, and check that a materialized view may call them."""

from collections.abc import Iterator
from typing import NamedTuple

from sqlglot import exp
from sqlglot.dialects.dialect import Dialect
from sqlglot.tokenizer_core import Token, TokenType

from penstock.sql.parsing.parse import locate
from penstock.sql.resolving.resolve import find_column
from penstock.sql.results import SqlProblem
from penstock.sql.spark.functions import CLOCK, KNOWN, VOLATILE, VOLATILE_ELSEWHERE

# Words before a bracket that are not functions, though the tokenizer has no type for them.
NOT_CALLED = {"group", "sets", "tablesample", "repeatable", "rollup", "cube"}
# After a comparison these are not aggregates.
QUANTIFIERS = {"any", "some", "all"}
COMPARED = {TokenType.LIKE, TokenType.ILIKE, TokenType.EQ, TokenType.NEQ, TokenType.LT,
            TokenType.LTE, TokenType.GT, TokenType.GTE}  # fmt: skip
# Words that are functions without a bracket.
BARE = {
    TokenType.CURRENT_DATE,
    TokenType.CURRENT_DATETIME,
    TokenType.CURRENT_TIME,
    TokenType.CURRENT_TIMESTAMP,
    TokenType.CURRENT_USER,
    TokenType.SESSION_USER,
    TokenType.LOCALTIME,
    TokenType.LOCALTIMESTAMP,
    TokenType.CURRENT_CATALOG,
    TokenType.CURRENT_ROLE,
}


class FunctionCall(NamedTuple):
    """A function by its name in lower case, and its place."""

    name: str
    start: int
    # Whether it is a plain word, and not one of the language's.
    is_word: bool
    is_qualified: bool
    has_arguments: bool


def find_calls(sql: str, dialect: str) -> list[FunctionCall]:
    """The functions that a text calls, in order."""
    return list(_find_calls(Dialect.get_or_raise(dialect).tokenize(sql)))


def _find_calls(tokens: list[Token]) -> Iterator[FunctionCall]:
    for i, token in enumerate(tokens):
        after = [each.token_type for each in tokens[i + 1 : i + 3]]
        opened = after[:1] == [TokenType.L_PAREN]
        qualified = i > 0 and tokens[i - 1].token_type == TokenType.DOT
        word = token.token_type in (TokenType.VAR, TokenType.IDENTIFIER)
        if i > 0 and tokens[i - 1].token_type in COMPARED and token.text.lower() in QUANTIFIERS:
            continue
        if opened and (word or token.text.replace("_", "").isalnum()):
            arguments = after != [TokenType.L_PAREN, TokenType.R_PAREN]
            yield FunctionCall(token.text.lower(), token.start, word, qualified, arguments)
        elif token.token_type in BARE and not qualified:
            yield FunctionCall(token.text.lower(), token.start, False, False, False)


def check_calls(sql: str, tree: exp.Query, dialect: str) -> SqlProblem | None:
    """The first function that a view can't use: volatile, or unknown to Spark."""
    volatile = VOLATILE if dialect == "spark" else VOLATILE_ELSEWHERE
    # Queries in Lance's own SQL are not rewritten, so nothing says what time it is.
    volatile = volatile if dialect == "lance" else volatile - CLOCK
    named = {
        alias.name.lower() for alias in tree.find_all(exp.TableAlias) if alias.args.get("columns")
    }
    for call in find_calls(sql, dialect):
        place = locate(sql, call.start)
        # Without arguments it is the current time.
        is_now = call.name == "unix_timestamp" and not call.has_arguments
        if not call.is_qualified and (call.name in volatile or is_now):
            return SqlProblem(
                f"{call.name} is not the same at every refresh, so a view can't use it;"
                " store its value in a column of the table",
                *place,
            )
        if dialect != "spark" or not call.is_word or call.name in named | NOT_CALLED:
            continue
        if call.is_qualified:
            return SqlProblem(f"function {call.name} is not one of Spark's own", *place)
        if call.name not in KNOWN:
            hint = find_column(call.name, iter(sorted(KNOWN)))
            return SqlProblem(f"Spark has no function {call.name}{hint}", *place)
    return None
