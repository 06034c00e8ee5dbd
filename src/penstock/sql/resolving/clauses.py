"""Cut the text of a plain SELECT into its clauses, each checked against the tree of the whole."""

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from sqlglot import exp
from sqlglot.dialects.dialect import Dialect
from sqlglot.tokenizer_core import Token, TokenType

from penstock.sql.parsing.flat_select import BEFORE_OUTPUTS, SelectPiece, is_read_alike, to_piece
from penstock.sql.parsing.parse import CLOSE, OPEN, parse_query
from penstock.sql.resolving.joins import Obstacle
from penstock.sql.results import SqlProblem

MAX_WORDS = 10_000
UNREADABLE = "its text can't be taken apart into clauses"
STARTS = {
    TokenType.FROM: "from",
    TokenType.WHERE: "where",
    TokenType.GROUP_BY: "group",
    TokenType.HAVING: "having",
    TokenType.ORDER_BY: "order",
}
# What a SELECT may have to be taken apart; ORDER BY without LIMIT means nothing.
TAKEN = {"expressions", "from_", "joins", "where", "group", "having", "distinct", "order"}
JOIN_WORDS = {TokenType.NATURAL, TokenType.LEFT, TokenType.RIGHT, TokenType.FULL, TokenType.OUTER,
              TokenType.INNER, TokenType.CROSS, TokenType.SEMI, TokenType.ANTI}  # fmt: skip
QUERIES = {TokenType.SELECT, TokenType.WITH}
SETS = {TokenType.UNION, TokenType.EXCEPT, TokenType.INTERSECT}


@dataclass(frozen=True, slots=True)
class Relation:
    """A place in FROM: a table by name, or a query in brackets."""

    name: str
    # The text within the brackets.
    query: str | None
    alias: str
    # New names for the columns.
    columns: tuple[str, ...]
    # None for the first.
    join: exp.Join | None
    condition: SelectPiece | None


@dataclass(frozen=True, slots=True)
class Clauses:
    sql: str
    tree: exp.Select
    outputs: tuple[SelectPiece, ...]
    relations: tuple[Relation, ...]
    where: SelectPiece | None
    group: SelectPiece | None
    having: SelectPiece | None


@dataclass(frozen=True, slots=True)
class NamedQuery:
    """A query that a WITH defines."""

    name: str
    columns: tuple[str, ...]
    sql: str


def parse(sql: str) -> exp.Query:
    tree = parse_query(sql, "spark", MAX_WORDS)
    if isinstance(tree, SqlProblem):
        raise Obstacle(UNREADABLE)
    return tree


def tokenize(sql: str) -> list[Token]:
    return Dialect.get_or_raise("spark").tokenize(sql)


def cut_with(sql: str) -> tuple[list[NamedQuery], str]:
    """The queries that a WITH in front defines, and the text after it."""
    tokens = tokenize(sql)
    if tokens[0].token_type != TokenType.WITH:
        return [], sql
    if tokens[1].token_type == TokenType.RECURSIVE:
        raise Obstacle("WITH RECURSIVE reads its own rows")
    found, at = [], 1
    while True:
        name, at = tokens[at].text, at + 1
        columns: tuple[str, ...] = ()
        if tokens[at].token_type == TokenType.L_PAREN:
            end = find_close(tokens, at)
            columns, at = _read_names(tokens[at + 1 : end]), end + 1
        if tokens[at].token_type == TokenType.ALIAS:
            at += 1
        end = find_close(tokens, at)
        found.append(NamedQuery(name, columns, sql[tokens[at].end + 1 : tokens[end].start]))
        at = end + 1
        if tokens[at].token_type != TokenType.COMMA:
            break
        at += 1
    tree = parse(sql)
    clause = tree.args.get("with_")
    rest = sql[tokens[at].start :]
    known = clause.expressions if isinstance(clause, exp.With) else []
    named = [(each.alias, tuple(each.alias_column_names), each.this) for each in known]
    if named != [(each.name, each.columns, parse(each.sql)) for each in found]:
        raise Obstacle(UNREADABLE)
    tree.set("with_", None)
    if tree != parse(rest):
        raise Obstacle(UNREADABLE)
    return found, rest


def cut_sets(sql: str) -> list[str]:
    """The queries that set operations join, each followed by the words between it and the next."""
    parts: list[list[Token]] = [[]]
    depth = 0
    tokens = tokenize(sql)
    for before, token in itertools.pairwise([tokens[0], *tokens]):
        kind = token.token_type
        depth += (kind in OPEN) - (kind in CLOSE)
        # SELECT * EXCEPT (a) is none.
        if not depth and kind in SETS and before.token_type != TokenType.STAR:
            parts += [[token], []]
        elif kind in (TokenType.ALL, TokenType.DISTINCT) and len(parts) > 1 and not parts[-1]:
            parts[-2].append(token)
        else:
            parts[-1].append(token)
    if not all(parts):
        raise Obstacle(UNREADABLE)
    return [sql[part[0].start : part[-1].end + 1] for part in parts]


def cut_brackets(sql: str) -> str:
    """The text without brackets around all of it."""
    tokens = tokenize(sql)
    if tokens[0].token_type != TokenType.L_PAREN or find_close(tokens, 0) != len(tokens) - 1:
        return sql
    return cut_brackets(sql[tokens[0].end + 1 : tokens[-1].start])


def cut_select(sql: str) -> Clauses:
    """The clauses of a SELECT without WITH; raises Obstacle for what can't be cut for sure."""
    tree = parse(sql)
    if not isinstance(tree, exp.Select):
        raise Obstacle("one of its subqueries is a union; make a view of that one")
    more = sorted(key for key, value in tree.args.items() if value and key not in TAKEN)
    if more:
        clause = more[0].strip("_").upper()
        raise Obstacle(f"one of its SELECTs has {clause}; make a view of that one")
    tokens = tokenize(sql)
    parts = _cut(tokens)
    outputs = _split(parts["outputs"])
    while outputs[0] and outputs[0][0].token_type in BEFORE_OUTPUTS:
        outputs[0].pop(0)
    if not all(outputs) or len(outputs) != len(tree.expressions):
        raise Obstacle(UNREADABLE)
    pieces = [to_piece(each, node) for each, node in zip(outputs, tree.expressions, strict=True)]
    if not all(is_read_alike(sql, piece, "spark") for piece in pieces):
        raise Obstacle(UNREADABLE)
    return Clauses(
        sql,
        tree,
        tuple(pieces),
        tuple(_cut_relations(sql, parts.get("from", []), tree)),
        _take(sql, tree, parts, "where"),
        _take(sql, tree, parts, "group"),
        _take(sql, tree, parts, "having"),
    )


def find_queries(sql: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    """The outermost queries in brackets in a part of a text, without the brackets."""
    tokens = [each for each in tokenize(sql) if start <= each.start < end]
    at = 0
    while at + 1 < len(tokens):
        opened = tokens[at].token_type == TokenType.L_PAREN
        if opened and tokens[at + 1].token_type in QUERIES:
            close = find_close(tokens, at)
            yield tokens[at].end + 1, tokens[close].start
            at = close
        at += 1


def find_close(tokens: Sequence[Token], at: int) -> int:
    """The place of the bracket that closes the one at a place."""
    depth = 0
    for place in range(at, len(tokens)):
        kind = tokens[place].token_type
        depth += (kind in OPEN) - (kind in CLOSE)
        if not depth:
            break
    else:
        raise Obstacle(UNREADABLE)
    if place == at:
        raise Obstacle(UNREADABLE)
    return place


def _cut(tokens: list[Token]) -> dict[str, list[Token]]:
    if tokens[0].token_type != TokenType.SELECT:
        raise Obstacle(UNREADABLE)
    parts: dict[str, list[Token]] = {"outputs": []}
    part, depth = "outputs", 0
    for before, token in itertools.pairwise(tokens):
        kind = token.token_type
        depth += (kind in OPEN) - (kind in CLOSE)
        starts = STARTS.get(kind) if not depth else None
        # As in: a IS DISTINCT FROM b.
        if kind == TokenType.FROM and before.token_type == TokenType.DISTINCT:
            starts = None
        if starts is None:
            parts[part].append(token)
        elif starts in parts:
            raise Obstacle(UNREADABLE)
        else:
            part = starts
            parts[part] = []
    return parts


def _split(tokens: list[Token]) -> list[list[Token]]:
    """The parts between commas outside of brackets."""
    items: list[list[Token]] = [[]]
    depth = 0
    for token in tokens:
        depth += (token.token_type in OPEN) - (token.token_type in CLOSE)
        if not depth and token.token_type == TokenType.COMMA:
            items.append([])
        else:
            items[-1].append(token)
    return items


def _take(
    sql: str, tree: exp.Select, parts: dict[str, list[Token]], name: str
) -> SelectPiece | None:
    """A clause without its first words."""
    tokens, node = parts.get(name), tree.args.get(name)
    if tokens is None and node is None:
        return None
    if not tokens or not isinstance(node, exp.Expr):
        raise Obstacle(UNREADABLE)
    start, end = tokens[0].start, tokens[-1].end + 1
    if name == "group":
        again = parse(f"SELECT 1 GROUP BY {sql[start:end]}\n")
        if again.args.get("group") != node or len(list(filter(None, again.args.values()))) != 2:
            raise Obstacle(UNREADABLE)
        return SelectPiece(node, start, end)
    return _check(sql, SelectPiece(node.this, start, end))


def _check(sql: str, piece: SelectPiece) -> SelectPiece:
    if not is_read_alike(sql, piece, "spark"):
        raise Obstacle(UNREADABLE)
    return piece


def _cut_relations(sql: str, tokens: list[Token], tree: exp.Select) -> Iterator[Relation]:
    joins = list(tree.args.get("joins") or [])
    first = tree.args.get("from_")
    if not isinstance(first, exp.From):
        raise Obstacle("one of its subqueries reads no table")
    items = list(_cut_joined(tokens))
    if len(items) != len(joins) + 1:
        raise Obstacle("it has joins in brackets")
    for item, join in zip(items, [None, *joins], strict=True):
        yield _read_relation(sql, item, first.this if join is None else join.this, join)


def _cut_joined(tokens: list[Token]) -> Iterator[list[Token]]:
    """The tokens of each relation, with its condition."""
    item: list[Token] = []
    depth = 0
    for token in tokens:
        kind = token.token_type
        depth += (kind in OPEN) - (kind in CLOSE)
        if depth or kind not in (TokenType.COMMA, TokenType.JOIN):
            item.append(token)
            continue
        while kind == TokenType.JOIN and item and item[-1].token_type in JOIN_WORDS:
            item.pop()
        yield item
        item = []
    yield item


def _read_relation(
    sql: str, tokens: list[Token], node: exp.Expr, join: exp.Join | None
) -> Relation:
    depths = itertools.accumulate(
        (each.token_type in OPEN) - (each.token_type in CLOSE) for each in tokens
    )
    ends = [
        place
        for place, (token, depth) in enumerate(zip(tokens, depths, strict=True))
        if not depth and token.token_type == TokenType.ON
    ]
    head = tokens[: ends[0]] if ends else tokens
    wanted = None if join is None else join.args.get("on")
    condition = None
    if ends and wanted is not None and ends[0] + 1 < len(tokens):
        start, end = tokens[ends[0] + 1].start, tokens[-1].end + 1
        condition = _check(sql, SelectPiece(wanted, start, end))
    elif ends or wanted is not None or not head:
        raise Obstacle(UNREADABLE)
    if any(value for key, value in node.args.items() if key not in ("this", "alias")):
        raise Obstacle("it reads more than tables and subqueries in FROM")
    query = None
    if isinstance(node, exp.Subquery) and not isinstance(node.this, exp.Query):
        raise Obstacle("it has joins in brackets")
    if isinstance(node, exp.Subquery):
        close = find_close(head, 0)
        query = sql[head[0].end + 1 : head[close].start]
        if parse(query) != node.this:
            raise Obstacle(UNREADABLE)
    elif not isinstance(node, exp.Table) or head[0].text != node.name:
        raise Obstacle("it reads more than tables and subqueries in FROM")
    columns = tuple(node.alias_column_names)
    return Relation(node.name, query, node.alias_or_name, columns, join, condition)


def _read_names(tokens: Sequence[Token]) -> tuple[str, ...]:
    return tuple(each.text for each in tokens if each.token_type != TokenType.COMMA)
