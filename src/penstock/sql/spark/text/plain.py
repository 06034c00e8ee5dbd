"""Rewrite a statement from its lexemes: one line, one spelling, no comments.

However lexers differ on the author's characters, they agree on this text: there is a space between
any two lexemes, unless nothing could be made of both together.
"""

from bisect import bisect_right
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, replace

from sqlglot.dialects.dialect import Dialect
from sqlglot.tokenizer_core import TokenType

from penstock.sql.parsing.guard import Refused
from penstock.sql.parsing.parse import MAX_CHARACTERS, TooMuch, locate
from penstock.sql.results import Refusal, SqlProblem
from penstock.sql.spark.text.lexemes import Kind, Lexeme, read_lexemes

NAMES = (Kind.WORD, Kind.NAME)
KINDS = {
    Kind.STRING: {TokenType.STRING},
    Kind.HEX: {TokenType.HEX_STRING},
    Kind.NAME: {TokenType.IDENTIFIER},
}


@dataclass(frozen=True, slots=True)
class PlainStatement:
    """A rewritten statement, and where each part of it was in its author's text."""

    text: str
    lexemes: tuple[Lexeme, ...]
    # Where each lexeme begins in `text`.
    starts: tuple[int, ...]
    source: str

    def find(self, offset: int) -> int:
        """The number of the lexeme at an offset of the text."""
        return max(bisect_right(self.starts, offset) - 1, 0)

    def locate(self, offset: int) -> tuple[int, int]:
        """The line and column in the author's text for an offset of this one."""
        if not self.lexemes:
            return 1, 1
        number = self.find(offset)
        lexeme = self.lexemes[number]
        within = offset - self.starts[number] if lexeme.kind is Kind.WORD else 0
        return locate(self.source, lexeme.start + within)

    def quote(self, numbers: Collection[int]) -> "PlainStatement":
        """The same with these words in back-quotes."""
        lexemes = (
            replace(each, kind=Kind.NAME) if n in numbers else each
            for n, each in enumerate(self.lexemes)
        )
        return write_plain(lexemes, self.source)


def read_plain(sql: str) -> PlainStatement:
    """Rewrite a statement; raises Refused for what can't be read."""
    if len(sql) > MAX_CHARACTERS:
        raise TooMuch(f"the statement is longer than {MAX_CHARACTERS} characters")
    plain = write_plain(_name_clock(_drop_end(read_lexemes(sql))), sql)
    check_tokens(plain)
    return plain


def relocate(found: Refusal, plain: PlainStatement) -> Refusal:
    """A refusal of the rewritten text, with its place in the author's."""
    if found.line is None or found.column is None:
        return found
    return Refusal(found.reason, *plain.locate(found.column - 1))


def relocate_problem(found: SqlProblem, plain: PlainStatement) -> SqlProblem:
    if found.line is None or found.column is None:
        return found
    return SqlProblem(found.message, *plain.locate(found.column - 1))


def write_plain(lexemes: Iterable[Lexeme], source: str) -> PlainStatement:
    parts: list[str] = []
    starts: list[int] = []
    at = 0
    before: Lexeme | None = None
    kept = tuple(lexemes)
    for lexeme in kept:
        if before is not None and _is_spaced(before, lexeme):
            parts.append(" ")
            at += 1
        written = lexeme.write()
        starts.append(at)
        parts.append(written)
        at += len(written)
        before = lexeme
    return PlainStatement("".join(parts), kept, tuple(starts), source)


def check_tokens(plain: PlainStatement) -> None:
    """Refuse a text in which sqlglot finds other words than are there."""
    starts = frozenset(plain.starts)
    ends = {start + len(x.write()) for start, x in zip(plain.starts, plain.lexemes, strict=True)}
    for token in Dialect.get_or_raise("spark").tokenize(plain.text):
        lexeme = plain.lexemes[plain.find(token.start)]
        wanted = KINDS.get(lexeme.kind)
        is_whole = token.start in starts and token.end + 1 in ends
        if wanted is not None:
            is_alike = is_whole and token.token_type in wanted and token.text == lexeme.value
        elif lexeme.kind is Kind.WORD:
            # GROUP BY is one token of two words.
            is_alike = is_whole and not any(token.token_type in kinds for kinds in KINDS.values())
        else:
            is_alike = token.end < plain.starts[plain.find(token.start)] + len(lexeme.write())
        if token.comments or not is_alike:
            raise Refused(
                f"{lexeme.write()[:40]} can be read in two ways; write it otherwise",
                *locate(plain.source, lexeme.start),
            )


def _drop_end(lexemes: tuple[Lexeme, ...]) -> tuple[Lexeme, ...]:
    """Drop semicolons at the end."""
    count = len(lexemes)
    while count and lexemes[count - 1].kind is Kind.SIGN and lexemes[count - 1].value == ";":
        count -= 1
    return lexemes[:count]


def _name_clock(lexemes: tuple[Lexeme, ...]) -> Iterator[Lexeme]:
    """The same with now() as current_timestamp(), which sqlglot knows."""
    signs = [each.value if each.kind is Kind.SIGN else "" for each in lexemes]
    for n, each in enumerate(lexemes):
        is_called = each.kind is Kind.WORD and signs[n + 1 : n + 3] == ["(", ")"]
        is_now = is_called and each.word == "now"
        yield replace(each, value="current_timestamp") if is_now else each


def _is_spaced(before: Lexeme, after: Lexeme) -> bool:
    """Whether a space goes between two lexemes: if its author had one, or if it needs one."""
    one = before.value if before.kind is Kind.SIGN else ""
    two = after.value if after.kind is Kind.SIGN else ""
    if "." in (one, two):
        return False
    # word:// begins an address for Spark.
    if one in (",", ":") or two == ":":
        return True
    if after.is_apart and one not in ("(", "[") and two not in (")", "]", ","):
        return True
    if one in ("(", "[") or two in (")", "]", ",", "["):
        return False
    if two == "(":
        return before.kind not in NAMES and one not in (")", "]")
    return not (bool(one) ^ bool(two))
