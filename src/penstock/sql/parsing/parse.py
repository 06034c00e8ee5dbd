"""Parse a stranger's text into one query's tree, in bounded time and without ever raising.

sqlglot is a recursive parser in Python: deep or repetitive text makes it overflow its stack or take
minutes. So length, nesting and time are bounded, comments are dropped (sqlglot obeys instructions
in them), and its log is silenced: its messages are in the results.
"""

import functools
import itertools
import logging
import math
import re
from time import thread_time

from sqlglot import exp
from sqlglot.dialects.dialect import Dialect
from sqlglot.errors import ParseError, TokenError
from sqlglot.parser import Parser
from sqlglot.tokenizer_core import Token, TokenType

from penstock.sql.results import SqlProblem

MAX_CHARACTERS = 100_000
MAX_WORDS = 20_000
MAX_NESTING = 100
PARSE_SECONDS = 2.0

OPEN = {TokenType.L_PAREN, TokenType.L_BRACKET, TokenType.L_BRACE}
CLOSE = {TokenType.R_PAREN, TokenType.R_BRACKET, TokenType.R_BRACE}
_TOO_DEEP = "the statement is nested too deeply to be judged"

# Its warnings are errors here, and quote strangers' text.
logging.getLogger("sqlglot").setLevel(logging.CRITICAL)


class TooMuch(Exception):
    """The statement exceeds our limits; the message says which."""


def parse_query(sql: str, dialect: str, max_words: int = MAX_WORDS) -> exp.Query | SqlProblem:
    """The tree of a text that is one query; raises TooMuch when it exceeds our limits."""
    if len(sql) > MAX_CHARACTERS:
        raise TooMuch(f"the statement is longer than {MAX_CHARACTERS} characters")
    try:
        tokens = Dialect.get_or_raise(dialect).tokenize(sql)
        if problem := _check_tokens(sql, tokens, max_words):
            return problem
        found = _parse(tokens, sql, dialect)
    except TokenError as error:
        return _explain_token(sql, error)
    except ParseError as error:
        return _explain_parse(error)
    except RecursionError:
        return SqlProblem(_TOO_DEEP)
    except TooMuch:
        raise
    except Exception as error:
        # Text that its authors did not expect makes sqlglot raise anything: blame the text.
        return SqlProblem(f"the statement can't be parsed ({type(error).__name__})")
    return _check_query(sql, tokens, found, dialect)


def locate(sql: str, offset: int) -> tuple[int, int]:
    """The line and the column of an offset, both from 1."""
    # As sqlglot counts: a carriage return alone also ends a line.
    before = sql[:offset].replace("\r\n", " \n").replace("\r", "\n")
    return before.count("\n") + 1, offset - before.rfind("\n")


def find_place(node: exp.Expr, sql: str) -> tuple[int, int] | tuple[()]:
    """Where a node's first word is in the text, if sqlglot recorded it."""
    starts = [found.meta["start"] for found in node.walk() if "start" in found.meta]
    return locate(sql, min(starts)) if starts else ()


def find_doubled_quote(sql: str, dialect: str) -> tuple[int, int] | None:
    """Where two strings touch, as in 'it''s', in a dialect where '' is no quote to sqlglot."""
    tokens = Dialect.get_or_raise(dialect).tokenize(sql)
    for token, after in itertools.pairwise(tokens):
        both = token.token_type == after.token_type == TokenType.STRING
        if both and after.start == token.end + 1:
            return locate(sql, after.start)
    return None


def find_double_quoted(sql: str, dialect: str) -> str | None:
    """A part of a text in double quotes, which hold names in most dialects, and texts in some."""
    try:
        tokens = Dialect.get_or_raise(dialect).tokenize(sql)
    except TokenError:
        return None  # whoever parses it says what is wrong
    found = (sql[token.start : token.end + 1] for token in tokens)
    return next((text for text in found if text.startswith('"')), None)


def _parse(tokens: list[Token], sql: str, dialect: str) -> list[exp.Expr]:
    parser = _bounded(dialect)(dialect=dialect)
    parser.deadline = thread_time() + PARSE_SECONDS  # type: ignore[attr-defined]
    trees = parser.parse(tokens, sql)
    return [tree for tree in trees if tree is not None and not isinstance(tree, exp.Semicolon)]


@functools.cache
def _bounded(dialect: str) -> type[Parser]:
    """The dialect's parser with a deadline, checked at every token."""
    base = Dialect.get_or_raise(dialect).parser_class

    def advance(self: Parser, times: int = 1) -> None:
        if thread_time() > self.deadline:  # type: ignore[attr-defined]
            raise TooMuch("the statement takes too long to parse")
        base._advance(self, times)

    return type(f"Bounded{base.__name__}", (base,), {"_advance": advance, "deadline": math.inf})


def _check_tokens(sql: str, tokens: list[Token], max_words: int) -> SqlProblem | None:
    if not tokens:
        return SqlProblem("the statement is empty", 1, 1)
    depth = 0
    for token in tokens:
        token.comments.clear()
        depth += (token.token_type in OPEN) - (token.token_type in CLOSE)
        if depth > MAX_NESTING:
            return SqlProblem(_TOO_DEEP, *locate(sql, token.start))
    if len(tokens) > max_words:
        raise TooMuch(f"the statement has more than {max_words} words")
    return None


def _check_query(
    sql: str, tokens: list[Token], found: list[exp.Expr], dialect: str
) -> exp.Query | SqlProblem:
    first = locate(sql, tokens[0].start)
    if len(found) != 1:
        return SqlProblem(
            f"the text holds {len(found)} statements, and a view is one query", *first
        )
    query = found[0]
    if isinstance(query, exp.Values):
        query = exp.select("*").from_(query)
    if not isinstance(query, exp.Query):
        return SqlProblem("the statement is not a query (SELECT, WITH, VALUES or a union)", *first)
    if query.find(exp.DML, exp.DDL, exp.Command) is not None:
        return SqlProblem("the statement changes data, and a view only reads", *first)
    if isinstance(query, exp.Select) and not query.expressions and dialect != "postgres":
        return SqlProblem("SELECT names no columns", *first)
    if query.find(exp.Into) is not None:
        return SqlProblem("the statement writes INTO a table, and a view only reads", *first)
    return query


def _explain_parse(error: ParseError) -> SqlProblem:
    if not error.errors:
        return SqlProblem("the statement can't be parsed")
    first = error.errors[0]
    message = str(first.get("description") or "the statement can't be parsed").rstrip(".")
    line, end, token = first.get("line"), first.get("col"), str(first.get("highlight") or "")
    if not line or end is None:
        return SqlProblem(message)
    # sqlglot reports a token's last character; people look for the first.
    start = end if "\n" in token else max(end - len(token) + 1, 1)
    message = re.sub(r"<class '[\w.]*\.(\w+)'>", r"\1", message)
    message = re.sub(r"<Token .*>", "the end", message, flags=re.DOTALL)
    return SqlProblem(f"{message} (at {token[:40]!r})" if token else message, line, start)


def _explain_token(sql: str, error: TokenError) -> SqlProblem:
    cause = str(error.__cause__ or "")
    if found := re.search(r"^(Missing .+) from \d+:(\d+)$", cause, re.DOTALL):
        return SqlProblem(f"{found[1]}: opened and never closed", *locate(sql, int(found[2])))
    return SqlProblem("the statement has a word that can't be read", *locate(sql, error.start or 0))
