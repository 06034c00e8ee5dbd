"""Split a SELECT of one level into the texts of its outputs and of its filter."""

import itertools
from collections.abc import Callable
from dataclasses import dataclass

from sqlglot import exp
from sqlglot.dialects.dialect import Dialect
from sqlglot.tokenizer_core import Token, TokenType

from penstock.sql.parsing.parse import CLOSE, OPEN, TooMuch, parse_query
from penstock.sql.parsing.splice import Edit, splice

# DISTINCT, and hints about speed.
BEFORE_OUTPUTS = {TokenType.DISTINCT, TokenType.ALL, TokenType.HINT}
AFTER_WHERE = {
    TokenType.GROUP_BY,
    TokenType.HAVING,
    TokenType.QUALIFY,
    TokenType.WINDOW,
    TokenType.ORDER_BY,
    TokenType.SORT_BY,
    TokenType.CLUSTER_BY,
    TokenType.DISTRIBUTE_BY,
    TokenType.LIMIT,
    TokenType.OFFSET,
    TokenType.FETCH,
    TokenType.SEMICOLON,
}


@dataclass(frozen=True, slots=True)
class SelectPiece:
    """An expression and its place in the text; `name` is the author's alias."""

    node: exp.Expr
    start: int
    end: int
    name: str | None = None
    # Including its alias.
    whole_end: int = 0


@dataclass(frozen=True, slots=True)
class FlatSelect:
    sql: str
    tree: exp.Select
    outputs: tuple[SelectPiece, ...]
    filter: SelectPiece | None

    def write(self, piece: SelectPiece, edit: Callable[[exp.Column], list[Edit]]) -> str:
        """The text of a piece, with its columns changed."""
        edits = [each for column in piece.node.find_all(exp.Column) for each in edit(column)]
        return splice(self.sql, edits, piece.start, piece.end)


def take_apart(sql: str, tree: exp.Query, dialect: str) -> FlatSelect | None:
    """The pieces of a SELECT; None when its text can't be split for sure."""
    if not isinstance(tree, exp.Select):
        return None
    tokens = Dialect.get_or_raise(dialect).tokenize(sql)
    found = _split(tokens)
    if found is None:
        return None
    items, where = found
    if len(items) != len(tree.expressions):
        return None
    outputs = tuple(to_piece(i, node) for i, node in zip(items, tree.expressions, strict=True))
    clause = tree.args.get("where")
    if bool(where) != isinstance(clause, exp.Where):
        return None
    kept = SelectPiece(clause.this, where[0].start, where[-1].end + 1) if clause else None
    pieces = [*outputs, *([kept] if kept else [])]
    if not all(is_read_alike(sql, piece, dialect) for piece in pieces):
        return None
    return FlatSelect(sql, tree, outputs, kept)


def _split(tokens: list[Token]) -> tuple[list[list[Token]], list[Token]] | None:
    """The tokens of each output, and of the filter."""
    if not tokens or tokens[0].token_type != TokenType.SELECT:
        return None
    items: list[list[Token]] = [[]]
    where: list[Token] = []
    part, depth = "outputs", 0
    for before, token in itertools.pairwise(tokens):
        kind = token.token_type
        depth += (kind in OPEN) - (kind in CLOSE)
        if depth == 0 and part == "outputs" and kind == TokenType.FROM:
            if before.token_type != TokenType.DISTINCT:
                part = "from"
                continue
        elif depth == 0 and part == "from" and kind == TokenType.WHERE:
            part = "where"
            continue
        elif depth == 0 and kind in AFTER_WHERE:
            part = "rest"
        if part == "where":
            where.append(token)
        elif part == "outputs" and depth == 0 and kind == TokenType.COMMA:
            items.append([])
        elif part == "outputs":
            items[-1].append(token)
    while items[0] and items[0][0].token_type in BEFORE_OUTPUTS:
        items[0].pop(0)
    return (items, where) if all(items) else None


def to_piece(tokens: list[Token], node: exp.Expr) -> SelectPiece:
    """An output of a SELECT as a piece of its text."""
    start, end = tokens[0].start, tokens[-1].end + 1
    if not isinstance(node, exp.Alias):
        return SelectPiece(node, start, end, None, end)
    kept = tokens[:-1]
    if kept and kept[-1].token_type == TokenType.ALIAS:
        kept = kept[:-1]
    return SelectPiece(node.this, start, kept[-1].end + 1 if kept else start, node.alias, end)


def is_read_alike(sql: str, piece: SelectPiece, dialect: str) -> bool:
    """Whether the piece's text alone parses to the expression that it is in the statement."""
    try:
        # On a line of its own: a comment may end the piece.
        again = parse_query(f"SELECT {sql[piece.start : piece.end]}\n", dialect)
    except TooMuch:
        return False
    return (
        isinstance(again, exp.Select)
        and len(again.expressions) == 1
        and not any(value for key, value in again.args.items() if key != "expressions")
        and again.expressions[0] == piece.node
    )
