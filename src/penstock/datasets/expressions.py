"""SQL expressions that clients send: the limits within which Lance can be trusted with them."""

import re

from penstock.errors import InvalidRequest

# Lance walks expressions by recursion, and a stack that is used up ends the process: these are
# half of what it bears.
MAX_CHAIN, MAX_CONNECTIVES = 400, 5_000
TOKEN = re.compile(r"'(?:[^']|'')*'|\"[^\"]*\"|`[^`]*`|[\w.]+|[^\s\w]")


def check_expression(name: str, sql: str) -> None:
    """Refuse an expression so long that Lance would exhaust its stack, and end this process."""
    if len(sql) <= MAX_CHAIN:
        return
    # Of the innermost open parenthesis: the longest chain so far, the current one, and BETWEENs
    # that wait for their AND.
    longest, chain, between, connectives = 0, 0, 0, 0
    outer: list[tuple[int, int, int]] = []
    for token in TOKEN.findall(sql):
        word = token.upper()
        if word == "(":
            outer.append((longest, chain, between))
            longest, chain, between = 0, 0, 0
        elif word == ")" and outer:
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
            raise InvalidRequest(
                f"{name} has too many operators: {sql[:40]}…",
                detail="use IN (…) for a list of values, or split the request",
            )
