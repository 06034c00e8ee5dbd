"""Check the words of a statement that call, name or command something.

By words alone, not by a tree: whatever Spark's parser makes of them, it can call no unknown
function, run no script and name no file.
"""

from collections.abc import Collection, Iterator

from sqlglot import exp

from penstock.sql.parsing.guard import Refused
from penstock.sql.resolving.resolve import find_column
from penstock.sql.spark.functions import CLOCK, KNOWN, VOLATILE
from penstock.sql.spark.text.keywords import ALLOWED, BEFORE_BRACKET, KEYWORDS, UNITS
from penstock.sql.spark.text.lexemes import Kind, Lexeme
from penstock.sql.spark.text.options import TAKERS, find_wrong_option
from penstock.sql.spark.text.plain import NAMES, PlainStatement

CLAUSES = frozenset(["from", "where", "group", "order", "having", "limit", "union", "intersect",
                     "except", "minus", "join", "on", "using", "lateral", "window", "qualify",
                     "sort", "cluster", "distribute", "inner", "cross", "full", "natural", "anti",
                     "semi", "as", "and", "or"])  # fmt: skip
# They reveal the session or the machine, or read a file or address from an argument: XPath's from
# the document type in its very text.
XPATHS = frozenset(each for each in KNOWN if each.startswith("xpath"))
NEVER = XPATHS | {"collations", "from_protobuf", "python_worker_logs", "range", "sql_keywords",
                  "to_protobuf"}  # fmt: skip
REFUSED = VOLATILE - CLOCK
CALLED = KNOWN - REFUSED - NEVER
# Functions that need no brackets.
BARE = frozenset(each for each in VOLATILE if each.startswith(("current_", "local", "session_")))
# Those of the clock: localtimestamp is a column to sqlglot, unless brackets follow.
BARE_CLOCK = CLOCK & BARE - {"localtimestamp"}
# FROM within the brackets of these is no clause.
WITH_FROM = frozenset(["extract", "overlay", "position", "substr", "substring", "trim"])
# Their first argument is a unit of time, not a name.
WITH_UNIT = frozenset(["date_add", "date_diff", "dateadd", "datediff", "timediff", "timestampadd",
                       "timestampdiff"])  # fmt: skip

NOW = (
    "is not the same at every refresh, so a view can't use it;"
    " store its value in a column of the table"
)

Lexemes = tuple[Lexeme, ...]


def find_keywords(plain: PlainStatement, tree: exp.Expr) -> set[int]:
    """The lexemes that are names to sqlglot, but grammar words to Spark unless quoted."""
    lexemes = plain.lexemes
    return {
        n
        for n in _find(plain, tree.find_all(exp.Identifier))
        if lexemes[n].kind is Kind.WORD
        and lexemes[n].word in KEYWORDS
        and not (_is_bare(lexemes, n) and lexemes[n].word not in BARE_CLOCK)
        and not _is_unit(lexemes, n)
        and not (_is_opened(lexemes, n) and lexemes[n].word in CALLED)
    }


def check_words(plain: PlainStatement, tree: exp.Expr) -> None:
    """Refuse calls and commands that no query of a view may have."""
    names = _find(plain, tree.find_all(exp.Identifier))
    # WITH a(x) AS …, and AS t(x): a bracket follows, and nothing is called.
    listed = (each.this for each in tree.find_all(exp.TableAlias) if each.args.get("columns"))
    aliases = _find(plain, listed)
    for n, lexeme in enumerate(plain.lexemes):
        problem = None
        if lexeme.kind in NAMES and _is_opened(plain.lexemes, n):
            problem = None if n in aliases else _check_call(plain.lexemes, n)
        elif _is_bare(plain.lexemes, n):
            problem = _check_bare(lexeme.word)
        elif lexeme.kind is Kind.WORD and n not in names:
            problem = _check_keyword(lexeme.word)
        elif lexeme.kind is Kind.SIGN:
            problem = _check_sign(plain.lexemes, n, names)
        elif lexeme.kind in (Kind.STRING, Kind.HEX) and n and _ends_value(plain.lexemes, n, names):
            problem = "a text stands where none can be; write names in back-quotes"
        if problem is not None:
            raise Refused(problem, *plain.locate(plain.starts[n]))


def check_sources(plain: PlainStatement, tree: exp.Expr, relations: Collection[str]) -> None:
    """Refuse a FROM or JOIN that is followed by anything but one of these names, or a query."""
    known = {*(each.lower() for each in relations)}
    known |= {each.alias.lower() for each in tree.find_all(exp.CTE)}
    lexemes = plain.lexemes
    for n in _find_sources(lexemes):
        first, then = lexemes[n : n + 1], lexemes[n + 1 : n + 2]
        is_query = first and first[0].value in ("(", "[") and first[0].kind is Kind.SIGN
        is_word = first and first[0].kind is Kind.WORD and first[0].word in ("lateral", "values")
        is_known = first and first[0].kind in NAMES and first[0].word in known
        is_longer = then and then[0].kind is Kind.SIGN and then[0].value in (".", "(")
        if not (is_query or is_word or (is_known and not is_longer)):
            where = plain.locate(plain.starts[n]) if first else ()
            raise Refused("a view reads tables of the catalog, by their names", *where)


def _find(plain: PlainStatement, nodes: Iterator[exp.Expr]) -> set[int]:
    """The lexemes at which these nodes of the rewritten text's tree begin."""
    starts = {node.meta["start"] for node in nodes if "start" in node.meta}
    return {n for n, start in enumerate(plain.starts) if start in starts}


def find_clock(plain: PlainStatement) -> Iterator[tuple[int, int, str]]:
    """Where a checked statement reads the clock: start, end and the function."""
    lexemes, starts = plain.lexemes, plain.starts
    for n, lexeme in enumerate(lexemes):
        if lexeme.kind is not Kind.WORD or lexeme.word not in CLOCK:
            continue
        if _is_opened(lexemes, n):
            yield starts[n], starts[n + 2] + 1, lexeme.word
        elif lexeme.word in BARE_CLOCK and _is_bare(lexemes, n):
            yield starts[n], starts[n] + len(lexeme.write()), lexeme.word


def _check_bare(word: str) -> str | None:
    if word in BARE_CLOCK:
        return None
    return f"{word} is written with brackets" if word in CLOCK else f"{word} {NOW}"


def _check_call(lexemes: Lexemes, n: int) -> str | None:
    lexeme = lexemes[n]
    word = lexeme.word
    if n and _is_sign(lexemes[n - 1], "."):
        return f"function {word} is not one of Spark's own"
    # Without arguments it is the current time.
    is_now = word == "unix_timestamp" and _is_sign(lexemes[n + 2], ")")
    if word in REFUSED or is_now:
        return f"{word} {NOW}"
    if word in CLOCK and not (lexeme.kind is Kind.WORD and _is_sign(lexemes[n + 2], ")")):
        return f"{word} has no arguments, and no quotes; write {word}()"
    if word in NEVER:
        remedy = "; use from_xml" if word in XPATHS else ""
        return f"{word} is a table function or reads files, and a view can't use it{remedy}"
    if word in TAKERS:
        return find_wrong_option(lexemes, n)
    if word in CALLED or (lexeme.kind is Kind.WORD and word in BEFORE_BRACKET):
        return None
    if word in KEYWORDS and word not in ALLOWED:
        return f"{word.upper()} is no part of a view's query"
    return f"Spark has no function {word}{find_column(word, iter(sorted(CALLED)))}"


def _check_keyword(word: str) -> str | None:
    if word == "using":
        return "USING must be followed by columns in brackets"
    if word in KEYWORDS and word not in ALLOWED:
        return f"{word.upper()} is no part of a view's query; write a name in back-quotes"
    return None


def _check_sign(lexemes: Lexemes, n: int, names: Collection[int]) -> str | None:
    if lexemes[n].value == "|>":
        return "|> is no part of a view's query; write SELECT"
    if lexemes[n].value != ",":
        return None
    # After an extra comma, Spark reads FROM as a column.
    before, after = lexemes[max(n - 1, 0)], lexemes[min(n + 1, len(lexemes) - 1)]
    is_first = before.value in ("(", "[", ",") or before.word in ("select", "distinct", "by")
    is_led = before.kind in (Kind.SIGN, Kind.WORD) and is_first and n - 1 not in names
    is_closed = after.kind is Kind.SIGN and after.value in (")", "]", ",")
    is_clause = after.kind is Kind.WORD and after.word in CLAUSES and n + 1 not in names
    if is_led or is_closed or (is_clause and not _is_opened(lexemes, n + 1)):
        return "a comma stands beside nothing; remove it"
    return None


def _ends_value(lexemes: Lexemes, n: int, names: Collection[int]) -> bool:
    """Whether a whole value or name precedes a lexeme."""
    before = lexemes[n - 1]
    is_closed = before.kind is Kind.SIGN and before.value in (")", "]")
    return is_closed or before.kind not in (Kind.SIGN, Kind.WORD) or n - 1 in names


def _find_sources(lexemes: Lexemes) -> Iterator[int]:
    """What follows each FROM and JOIN that is a clause."""
    openers: list[str] = []
    for n, lexeme in enumerate(lexemes):
        before = lexemes[n - 1].word if n and lexemes[n - 1].kind in NAMES else ""
        if _is_sign(lexeme, "("):
            openers.append(before)
        elif _is_sign(lexeme, ")") and openers:
            openers.pop()
        elif lexeme.kind is Kind.WORD and lexeme.word in ("from", "join"):
            is_argument = bool(openers) and openers[-1] in WITH_FROM
            is_compared = before == "distinct" and n > 1 and lexemes[n - 2].word in ("is", "not")
            if lexeme.word == "join" or not (is_argument or is_compared):
                yield n + 1


def _is_opened(lexemes: Lexemes, n: int) -> bool:
    return n + 1 < len(lexemes) and _is_sign(lexemes[n + 1], "(")


def _is_bare(lexemes: Lexemes, n: int) -> bool:
    """Whether it is CURRENT_DATE or the like, and no field of anything."""
    is_word = lexemes[n].kind is Kind.WORD and lexemes[n].word in BARE
    return is_word and not (n and _is_sign(lexemes[n - 1], "."))


def _is_unit(lexemes: Lexemes, n: int) -> bool:
    """Whether it is the unit in dateadd(DAY, 1, a)."""
    is_first = n > 1 and _is_sign(lexemes[n - 1], "(") and lexemes[n - 2].word in WITH_UNIT
    return is_first and lexemes[n].word in UNITS


def _is_sign(lexeme: Lexeme, value: str) -> bool:
    return lexeme.kind is Kind.SIGN and lexeme.value == value
