"""Parse Lance's SQL expressions, and write them again for Lance.

Lance puts a text into a statement and parses its beginning: comments, a second expression and
whatever follows an alias are silently ignored. Here the whole text must be one expression that
Lance knows; Lance gets a text written from the words we read, without comments.
"""

import itertools
import re
from dataclasses import dataclass

from penstock.lance.expressions.tree import Call, Cast, Chain, Column, Constant, Node

# Lance's parser gives up at 47, and then reads NOT as a name.
MAX_DEPTH = 40
# A list of constants counts as one word; all other words cost time, here and in Lance.
MAX_WORDS = 30_000
GAP = re.compile(r"(?:\s++|--[^\n]*+(?:\n|\Z)|/\*(?:[^*]|\*(?!/))*+\*/)*+")
TOKEN = re.compile(
    r"(?P<text>'(?:[^']++|'')*+'|\"(?:[^\"]++|\"\")*+\")"
    r"|(?P<quoted>`(?:[^`]++|``)++`)"
    r"|(?P<number>(?:[0-9]++(?:\.[0-9]*+)?+|\.[0-9]++)(?:[eE][+-]?[0-9]++)?+L?(?!\w))"
    r"|(?P<bytes>[xX]'[0-9a-fA-F]*+')"
    r"|(?P<word>[^\W\d]\w*+)"
    r"|(?P<sign><>|<=(?!>)|>=|<<|>>|\|\||==|!=|::|[(),.\[\]]|[=<>+\-*/%](?![>*~=@]))"
)
_LITERAL = r"(?:-?[0-9]++(?:\.[0-9]++)?+(?!\w)|'(?:[^']++|'')*+')"
# A list of constants is read at once, however long it is.
LITERALS = re.compile(rf"\s*+\(\s*+{_LITERAL}(?:\s*+,\s*+{_LITERAL})*+\s*+\)")

SIGNS = {"=", "==", "!=", "<>", "<", "<=", ">", ">=", "+", "-", "*", "/", "%", "||", "<<", ">>"}
WORDS = {"and", "or", "like", "ilike", "between", "escape"}
CONSTANTS = {"true", "false", "null"}
# Functions that are called without brackets.
BARE = {"current_date", "current_time", "current_timestamp"}
CASTS = {"cast", "try_cast", "safe_cast"}
TYPES = {
    *("boolean", "tinyint", "smallint", "int", "integer", "bigint", "float", "double"),
    *("decimal", "string", "binary", "date", "timestamp", "datetime"),
}
# Words that can't be names here, though Lance's parser accepts most of them.
RESERVED = {
    *("not", "in", "is", "as", "case", "interval", "exists", "trim", "all", "any", "distinct"),
    *("select", "null"),
    *WORDS,
}


class Malformed(Exception):
    """The text is not one of Lance's expressions; the message says where."""


class TooDeep(Exception):
    """More nested brackets than Lance's parser follows, or too many words."""


@dataclass(frozen=True, slots=True)
class ParsedExpression:
    """An expression, its words as read, and the text for Lance."""

    node: Node
    words: tuple[str, ...]
    text: str
    # Where the names of columns are in the text: of nested fields, those of their columns.
    columns: tuple[tuple[int, int], ...]


def parse(sql: str) -> ParsedExpression:
    """Parse a whole text as one expression."""
    reader = _Reader(sql)
    node = reader.read_chain()
    if reader.kind:
        raise Malformed(f"{reader.show()} is not expected")
    ends = list(itertools.accumulate(map(len, reader.pieces)))
    columns = tuple((ends[at] - len(reader.words[at]), ends[at]) for at in reader.columns)
    return ParsedExpression(node, tuple(reader.words), "".join(reader.pieces), columns)


class _Reader:
    def __init__(self, sql: str) -> None:
        self._sql, self._at, self._depth = sql, 0, 0
        self.words: list[str] = []
        self.pieces: list[str] = []
        # Which of the words are names of columns.
        self.columns: list[int] = []
        self.kind = self._word = ""
        self._has_gap = False
        self._look()

    def show(self) -> str:
        return f"{self._word[:40]!r} at character {self._at + 1}" if self.kind else "the end"

    def _look(self) -> None:
        """Peek at the next word."""
        gap = GAP.match(self._sql, self._at)
        assert gap is not None
        self._has_gap = gap.end() > self._at
        self._at = gap.end()
        if self._at == len(self._sql):
            self.kind = self._word = ""
            return
        found = TOKEN.match(self._sql, self._at)
        if found is None:
            raise Malformed(f"{self._sql[self._at]!r} at character {self._at + 1} is not expected")
        self.kind, self._word = found.lastgroup or "", found[0]

    def _take(self) -> str:
        word = self._word
        self._write(word)
        self._at += len(word)
        self._look()
        return word

    def _write(self, word: str) -> None:
        last = self.words[-1] if self.words else "("
        # Brackets, dots and commas separate their neighbours; all else needs a blank.
        parted = last in "([." or word in "()[].,"
        self.pieces.append(word if parted and not self._has_gap else f" {word}")
        if not self.words:
            self.pieces[0] = word
        self.words.append(word)
        if len(self.words) > MAX_WORDS:
            raise TooDeep

    def _is(self, *words: str) -> bool:
        return self.kind in ("word", "sign") and self._word.lower() in words

    def _skip(self, *words: str) -> bool:
        if not self._is(*words):
            return False
        self._take()
        return True

    def _expect(self, *words: str) -> str:
        if not self._is(*words):
            wanted = " or ".join(word.upper() for word in words)
            raise Malformed(f"{wanted} is expected, not {self.show()}")
        return self._take()

    def read_chain(self) -> Node:
        """Read operands and operators, up to a bracket, a comma or the end."""
        self._depth += 1
        if self._depth > MAX_DEPTH:
            raise TooDeep
        operators: list[str] = []
        operands = [self._read_operand(operators)]
        while True:
            if self.kind == "sign" and self._word in SIGNS:
                operators.append(self._take())
            elif self._is(*WORDS):
                operators.append(self._take().lower())
            elif self._skip("is"):
                operators.append("is")
                self._skip("not")
                if not self._skip("distinct"):
                    self._expect("null", "true", "false")
                    continue
                self._expect("from")
            elif self._is("not", "in"):
                operators.append("in")
                if self._skip("not") and not self._is("in"):
                    self._expect("like", "ilike", "between")
                else:
                    self._take()
                    operands += self._read_list()
                    continue
            else:
                break
            operands.append(self._read_operand(operators))
        self._depth -= 1
        return operands[0] if not operators else Chain(tuple(operands), tuple(operators))

    def _read_list(self) -> list[Node]:
        """Read the values after IN."""
        found = LITERALS.match(self._sql, self._at)
        if found is not None:
            self._word = found[0]
            self._take()
            return []
        self._expect("(")
        return self._read_values(")")

    def _read_values(self, end: str) -> list[Node]:
        if self._skip(end):
            return []
        values = [self.read_chain()]
        while self._skip(","):
            values.append(self.read_chain())
        self._expect(end)
        return values

    def _read_operand(self, operators: list[str]) -> Node:
        before = self._depth
        while self._is("not", "-"):
            # Signs in a row nest as deeply as brackets do.
            self._depth += 1
            if self._depth > MAX_DEPTH:
                raise TooDeep
            operators.append(self._take().lower())
        node = self._read_value()
        self._depth = before
        while self._is("::", "[", "."):
            mark = self._take()
            if mark == "::":
                self._read_type()
                node = Cast(node)
            elif mark == ".":
                self._read_name()
            else:
                self.read_chain()
                self._expect("]")
        return node

    def _read_value(self) -> Node:
        if self.kind == "text":
            word = self._take()
            quote = word[0]
            return Constant(word[1:-1].replace(quote * 2, quote), len(word.encode()))
        if self.kind == "number":
            word = self._take()
            return Constant(int(word) if word.isdigit() and len(word) < 20 else word, 16)
        if self.kind == "bytes":
            return Constant("", len(self._take()))
        if self.kind == "quoted":
            return self._read_column()
        if self._skip("("):
            node = self.read_chain()
            self._expect(")")
            return node
        if self._skip("["):
            return Call("make_array", tuple(self._read_values("]")))
        if self.kind == "word":
            return self._read_word()
        raise Malformed(f"an expression is expected, not {self.show()}")

    def _read_word(self) -> Node:
        word = self._word.lower()
        if word in CONSTANTS:
            return Constant(self._take(), 1)
        if word in BARE and not self._comes_next("("):
            self._take()
            return Call(word, ())
        if word in CASTS and self._comes_next("("):
            self._take()
            self._expect("(")
            node = self.read_chain()
            self._expect("as")
            self._read_type()
            self._expect(")")
            return Cast(node)
        if word == "array" and self._comes_next("["):
            self._take()
            return self._read_value()
        if word in TYPES and self._comes_next("(", "'"):
            return self._read_typed()
        if self._comes_next("("):
            if word in RESERVED:
                raise Malformed(f"{self.show()} is nothing that Lance can evaluate")
            self._take()
            self._expect("(")
            return Call(word, tuple(self._read_values(")")))
        if word in RESERVED:
            raise Malformed(f"{self.show()} is not expected; a name may stand in `back-quotes`")
        return self._read_column()

    def _read_typed(self) -> Node:
        """Read a typed literal, as in date '2030-01-01'."""
        self._read_type()
        if self.kind != "text" or self._word[0] != "'":
            raise Malformed(f"a text in quotes is expected, not {self.show()}")
        return self._read_value()

    def _read_column(self) -> Node:
        self.columns.append(len(self.words))
        name = self._read_name()
        while self._is("."):
            self._take()
            self._read_name()
        if self._is("("):
            raise Malformed(f"{self.show()} is not expected; write functions without quotes")
        return Column(name)

    def _read_name(self) -> str:
        if self.kind not in ("word", "quoted"):
            raise Malformed(f"a name is expected, not {self.show()}")
        return self._take().strip("`").lower()

    def _read_type(self) -> None:
        if not self._is(*TYPES):
            raise Malformed(f"a type is expected, not {self.show()}; Lance has {show_types()}")
        self._take()
        if self._skip("("):
            self._read_digits()
            if self._skip(","):
                self._read_digits()
            self._expect(")")
        self._skip("unsigned")

    def _read_digits(self) -> None:
        if self.kind != "number" or not self._word.isdigit() or len(self._word) > 2:
            raise Malformed(f"a number below 100 is expected, not {self.show()}")
        self._take()

    def _comes_next(self, *marks: str) -> bool:
        gap = GAP.match(self._sql, self._at + len(self._word))
        assert gap is not None
        return self._sql.startswith(marks, gap.end())


def show_types() -> str:
    return ", ".join(sorted(TYPES))
