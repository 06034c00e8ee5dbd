"""Split Spark SQL into lexemes, by the rules of Spark's own lexer.

Comments are dropped, strings are resolved to their values, and ambiguous text is refused: nested
comments, comments that end in a backslash, letters and spaces that are not ASCII outside of quotes.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from enum import Enum

from penstock.sql.parsing.guard import Refused
from penstock.sql.parsing.parse import locate
from penstock.sql.spark.text.literals import LINES, find_fault, read_raw, read_string, write_string


class Kind(Enum):
    WORD = "word"
    NAME = "name in back-quotes"
    STRING = "text"
    HEX = "binary"
    NUMBER = "number"
    SIGN = "sign"


@dataclass(frozen=True, slots=True)
class Lexeme:
    kind: Kind
    # Its value: a string without quotes and escapes, a name without back-quotes.
    value: str
    # Where it began in its author's text.
    start: int
    # Whether something separated it from the previous one.
    is_apart: bool = False

    @property
    def word(self) -> str:
        """The value in lower case."""
        return self.value.lower()

    def write(self) -> str:
        """Its one spelling in the text for Spark."""
        match self.kind:
            case Kind.STRING:
                return write_string(self.value)
            case Kind.HEX:
                return f"X'{self.value}'"
            case Kind.NAME:
                return "`" + self.value.replace("`", "``") + "`"
            case _:
                return self.value


SIGNS = r"""\*/|<=>|>>>|<<|>>|==|<>|!=|!>|!<|<=|>=|\|>|\|\||->|=>|::|[-+*/%=<>!~&|^:,.;()\[\]]"""
# Other spellings of a sign.
SAME = {"==": "=", "!=": "<>", "!>": "<=", "!<": ">="}
PATTERN = re.compile(
    rf"""
    (?P<space>[ \t\r\n]+)
    |(?P<line>--[^\r\n]*)
    |(?P<block>/\*)
    |(?P<raw>[rR](?:'[^']*'|"[^"]*"))
    |(?P<hex>[xX](?:'[^']*'))
    |(?P<string>'(?:[^'\\]|\\.|'')*+'|"(?:[^"\\]|\\.|"")*+")
    |(?P<name>`(?:[^`]|``)*+`)
    |(?P<number>(?:[0-9]+[LSYlsy]
        |(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][-+]?[0-9]+)?(?:[bB][dD]|[fFdD])?)(?![A-Za-z0-9_]))
    |(?P<word>[A-Za-z_][A-Za-z0-9_]*)
    |(?P<sign>{SIGNS})
    """,
    re.VERBOSE | re.DOTALL,
)
# A hint about speed: names, with words or numbers in brackets.
HINT = re.compile(r"/\*\+[ \t\r\n]*[A-Za-z_][A-Za-z0-9_ \t\r\n,.()`]*\*/")
HEX = re.compile(r"(?:[0-9A-Fa-f]{2})*")


def read_lexemes(sql: str) -> tuple[Lexeme, ...]:
    """The lexemes of a text; raises Refused with the place of what can't be read for sure."""
    found: list[Lexeme] = []
    for lexeme in _scan(sql):
        before = found[-1] if found else None
        if before is not None and before.kind is lexeme.kind is Kind.STRING:
            # Spark joins adjacent strings.
            found[-1] = replace(before, value=before.value + lexeme.value)
        elif before is not None and lexeme.kind is Kind.STRING and _is_hex(before):
            found[-1] = replace(before, kind=Kind.HEX, value=_read_hex(sql, lexeme))
        else:
            found.append(lexeme)
    for lexeme in found:
        kept = LINES if lexeme.kind is Kind.STRING else ""
        if lexeme.kind in (Kind.STRING, Kind.NAME) and (fault := find_fault(lexeme.value, kept)):
            remedy = "use concat or chr" if lexeme.kind is Kind.STRING else "use another name"
            raise Refused(
                f"a {lexeme.kind.value} has {fault}; {remedy}", *locate(sql, lexeme.start)
            )
    _check_dots(sql, found)
    return tuple(found)


def _scan(sql: str) -> Iterator[Lexeme]:
    at, is_apart = 0, False
    last = ""
    while at < len(sql):
        found = PATTERN.match(sql, at)
        if found is None:
            raise Refused(_explain(sql, at), *locate(sql, at))
        kind, text = str(found.lastgroup), found[0]
        if kind in ("space", "line", "block"):
            end = _end_block(sql, at, last) if kind == "block" else found.end()
            if kind == "line" and text.endswith("\\"):
                raise Refused("a comment ends in a backslash; remove it", *locate(sql, at))
            at, is_apart = end, True
            continue
        yield _make(kind, text, sql, at, is_apart)
        at, is_apart, last = found.end(), False, text.lower()


def _make(kind: str, text: str, sql: str, at: int, is_apart: bool) -> Lexeme:
    match kind:
        case "string":
            return Lexeme(Kind.STRING, read_string(text), at, is_apart)
        case "raw":
            return Lexeme(Kind.STRING, read_raw(text), at, is_apart)
        case "hex":
            inner = Lexeme(Kind.STRING, text[2:-1], at)
            return Lexeme(Kind.HEX, _read_hex(sql, inner), at, is_apart)
        case "name":
            if text == "``":
                raise Refused("a name is empty", *locate(sql, at))
            return Lexeme(Kind.NAME, text[1:-1].replace("``", "`"), at, is_apart)
        case "number":
            written = text.upper()
            return Lexeme(
                Kind.NUMBER, f"0{written}" if written[0] == "." else written, at, is_apart
            )
        case "word":
            return Lexeme(Kind.WORD, text, at, is_apart)
        case _:
            if text == "*/":
                raise Refused("a comment ends that never began", *locate(sql, at))
            return Lexeme(Kind.SIGN, SAME.get(text, text), at, is_apart)


def _end_block(sql: str, at: int, last: str) -> int:
    """The end of a comment between /* and */; of a hint where Spark takes one."""
    if sql.startswith("/*+", at):
        hint = HINT.match(sql, at)
        if hint is None or last != "select":
            raise Refused("a hint stands where none can be followed; remove it", *locate(sql, at))
        return hint.end()
    end = sql.find("*/", at + 2)
    if end < 0:
        raise Refused("Missing */: opened and never closed", *locate(sql, at))
    if "/*" in sql[at + 2 : end + 2]:
        raise Refused("a comment is within a comment; remove the inner one", *locate(sql, at))
    return end + 2


def _is_hex(lexeme: Lexeme) -> bool:
    return lexeme.kind is Kind.WORD and lexeme.word == "x"


def _read_hex(sql: str, lexeme: Lexeme) -> str:
    digits = lexeme.value
    digits = f"0{digits}" if len(digits) % 2 else digits
    if not HEX.fullmatch(digits):
        raise Refused("X'…' holds hexadecimal digits only", *locate(sql, lexeme.start))
    return digits.upper()


def _check_dots(sql: str, found: list[Lexeme]) -> None:
    """A dot joins names, or a value in brackets with a field: beside a number it means more."""
    for n, lexeme in enumerate(found):
        if lexeme.kind is not Kind.SIGN or lexeme.value != ".":
            continue
        before, after = found[n - 1] if n else None, found[n + 1] if n + 1 < len(found) else None
        names = (Kind.WORD, Kind.NAME)
        is_led = before is not None and (before.kind in names or before.value in (")", "]"))
        is_followed = after is not None and (after.kind in names or after.value == "*")
        if not (is_led and is_followed):
            raise Refused("a dot stands between no two names", *locate(sql, lexeme.start))


def _explain(sql: str, at: int) -> str:
    char = sql[at]
    if char in "'\"`":
        return f"Missing {char}: opened and never closed"
    if char.isascii() and (char.isdigit() or char == "."):
        return "a number or name can't be read; write a name in back-quotes"
    if not char.isascii():
        return f"{char!r} stands outside of quotes; write a name in back-quotes"
    return f"{char!r} can't be used here"
