"""Check SQL expressions that clients send, before Lance evaluates them."""

from collections.abc import Mapping
from functools import lru_cache

from penstock.errors import InvalidRequest
from penstock.lance.expressions.growth import Budget, Unbounded
from penstock.lance.expressions.parsing import Malformed, ParsedExpression, TooDeep, parse

# Lance walks expressions by recursion, and a stack overflow ends the process: these limits are half
# of what it survives.
MAX_CHAIN, MAX_CONNECTIVES = 400, 5_000
MAX_CHARACTERS = 2**21
# The same few expressions come again and again; long ones are not cached.
CACHED, CACHED_CHARACTERS = 2_048, 512


def check_expression(name: str, sql: str) -> str:
    """Check an expression; returns it for Lance. Raises when its values can grow too large."""
    return read_expression(name, sql).text


def check_expressions(name: str, expressions: Mapping[str, str]) -> dict[str, str]:
    """Check expressions that are evaluated together, by alias: their sizes add up."""
    read = {alias: read_expression(f"{name}.{alias}", sql) for alias, sql in expressions.items()}
    budget = Budget()
    for alias, parsed in read.items():
        _spend(f"{name}.{alias}", parsed, budget)
    return {alias: parsed.text for alias, parsed in read.items()}


def read_expression(name: str, sql: str) -> ParsedExpression:
    """Check an expression; returns it with its parts."""
    # Errors are not cached, because each names its field.
    found = _read_cached(sql) if len(sql) <= CACHED_CHARACTERS else _read(sql)
    if isinstance(found, ParsedExpression):
        return found
    raise InvalidRequest(f"{name} {found[0]}", detail=found[1])


@lru_cache(CACHED)
def _read_cached(sql: str) -> ParsedExpression | tuple[str, str]:
    return _read(sql)


def _read(sql: str) -> ParsedExpression | tuple[str, str]:
    many = f"has too many operators, or brackets in brackets: {sql[:40]}…"
    split = "use IN (…) for a list of values, or split the request"
    if len(sql) > MAX_CHARACTERS:
        return f"has {len(sql)} characters; {MAX_CHARACTERS} are read", split
    try:
        parsed = parse(sql)
        if not _is_short(parsed.words):
            return many, split
        Budget().spend(parsed.node)
    except (TooDeep, RecursionError):
        return many, split
    except Malformed as error:
        return f"is not an expression of Lance's SQL: {error}", "check it; a text is in 'quotes'"
    except Unbounded as error:
        return f"is refused: {error}", "docs/reference/access.md tells what expressions may do"
    return parsed


def _spend(name: str, parsed: ParsedExpression, budget: Budget) -> None:
    try:
        budget.spend(parsed.node)
    except Unbounded as error:
        raise InvalidRequest(
            f"{name} is refused: {error}", detail="send the expressions in several requests"
        ) from error


def _is_short(words: tuple[str, ...]) -> bool:
    """Whether an expression is short enough for Lance's stack."""
    if len(words) <= MAX_CHAIN:
        return True
    # For the innermost open bracket: the longest chain so far, the current one, and BETWEENs that
    # still wait for their AND.
    longest, chain, between, connectives = 0, 0, 0, 0
    outer: list[tuple[int, int, int]] = []
    for token in words:
        word = token.upper()
        if word == "(":
            outer.append((longest, chain, between))
            longest, chain, between = 0, 0, 0
        elif word == ")":
            inner = max(longest, chain)
            longest, chain, between = outer.pop()
            chain += inner
        elif word == "," or (word in ("AND", "OR") and not between):
            longest, chain = max(longest, chain), 0
            connectives += word != ","
        else:
            between += (word == "BETWEEN") - (word == "AND")
            chain += 1
        if max(longest, chain) > MAX_CHAIN or connectives > MAX_CONNECTIVES:
            return False
    return True
