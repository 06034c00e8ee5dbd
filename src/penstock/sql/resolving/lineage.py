"""Lineage: the columns of tables that feed each column of a view's result."""

from collections import defaultdict
from collections.abc import Iterable

from sqlglot import exp
from sqlglot.optimizer.scope import Scope, find_all_in_scope

from penstock.model.identifiers import Identifier
from penstock.sql.parsing.guard import guard
from penstock.sql.parsing.languages import find_dialect
from penstock.sql.resolving.resolve import ResolvedStatement, resolve, restore, select_first
from penstock.sql.results import Lineage, OutputColumn, Refusal, SourceColumn, Tables

# A column of a scope's result, by position; a leaf is a Source.
Node = tuple[int, int] | SourceColumn


def trace_columns(
    sql: str,
    dialect: str,
    schemas: Tables,
    default_namespace: Identifier,
    default_catalog: str | None = None,
) -> Lineage | Refusal:
    """The sources of each output column, through CTEs, subqueries, unions, joins and stars."""
    known = find_dialect(dialect)
    if known is None:
        return Refusal(f"the dialect {dialect} is not known here")
    resolved = resolve(sql, known, schemas, default_namespace, default_catalog)
    if isinstance(resolved, Refusal):
        return resolved
    return guard("tracing the columns", lambda: trace(resolved, known))


def trace(resolved: ResolvedStatement, dialect: str) -> Lineage:
    """The lineage of a resolved statement."""
    graph = _Graph(resolved)
    root = resolved.scopes[-1]
    feeding = [_leaves(graph.feeds, [(id(root), i)]) for i in range(_width(root.expression))]
    fed = {source for sources in feeding for source in sources}
    filters = _leaves(graph.feeds, graph.list_filters(root)) - fed
    selects = select_first(restore(resolved)).selects
    columns = (
        OutputColumn(name, tuple(sorted(sources)), select.unalias().sql(dialect=dialect))
        for name, sources, select in zip(resolved.output_columns, feeding, selects, strict=True)
    )
    return Lineage(tuple(columns), tuple(sorted(filters)), resolved.references)


class _Graph:
    """The inputs of each scope's outputs, and of what only filters its rows.

    A graph rather than a recursion: a recursive CTE feeds itself, and a CTE that is read in many
    places is visited once.
    """

    def __init__(self, resolved: ResolvedStatement) -> None:
        self.resolved = resolved
        self.scopes = {id(scope.expression): scope for scope in resolved.scopes}
        self.sources: dict[int, exp.Table | Scope] = {}
        self.feeds: dict[Node, set[Node]] = defaultdict(set)
        self.deciding: dict[int, set[Node]] = defaultdict(set)
        self.below: dict[int, list[Scope]] = defaultdict(list)
        for scope in resolved.scopes:
            self._find_sources(scope)
        for scope in resolved.scopes:
            self._add(scope)

    def list_filters(self, root: Scope) -> set[Node]:
        """What filters rows anywhere below a scope; an unread CTE does not."""
        found: set[Node] = set()
        seen, waiting = {id(root)}, [root]
        while waiting:
            scope = waiting.pop()
            found |= self.deciding[id(scope)]
            fresh = [each for each in self.below[id(scope)] if id(each) not in seen]
            seen.update(map(id, fresh))
            waiting.extend(fresh)
        return found

    def _find_sources(self, scope: Scope) -> None:
        selected = scope.selected_sources if isinstance(scope.expression, exp.Select) else {}
        inner = scope.semi_or_anti_join_tables
        for column in scope.columns:
            source = scope.sources.get(column.table)
            if source is None or id(column) in self.sources:
                continue
            # Every CTE in scope is in `sources`; an outer table may have the same name.
            if column.table in selected or column.table in inner or not selected:
                self.sources[id(column)] = source
        self.below[id(scope)] = [
            *(source for _, source in selected.values() if isinstance(source, Scope)),
            *(s for name in inner if isinstance(s := scope.sources.get(name), Scope)),
            *scope.subquery_scopes,
            *scope.set_operation_scopes,
            *scope.udtf_scopes,
        ]

    def _add(self, scope: Scope) -> None:
        query, key = scope.expression, id(scope)
        if isinstance(query, exp.SetOperation):
            left, right = scope.set_operation_scopes
            for i in range(_width(query)):
                self.feeds[key, i].add((id(left), i))
                if isinstance(query, exp.Except):
                    self.deciding[key].add((id(right), i))
                else:
                    self.feeds[key, i].add((id(right), i))
        elif isinstance(query, exp.Select):
            for i, projection in enumerate(query.selects):
                self.feeds[key, i] |= self._uses(projection)
            valued = {id(node) for select in query.selects for node in select.walk()}
            columns = find_all_in_scope(query, exp.Column)
            self.deciding[key] |= self._resolve(c for c in columns if id(c) not in valued)
            for nested in scope.subquery_scopes:
                if id(nested.expression) not in valued:
                    self.deciding[key] |= self._outputs(nested.expression)
        elif isinstance(query, exp.Subquery) or _find_lateral(query) is not None:
            for inner in scope.subquery_scopes[:1] or scope.derived_table_scopes[:1]:
                for i in range(_width(inner.expression)):
                    self.feeds[key, i].add((id(inner), i))
        else:
            # A function in FROM: each of its columns depends on all of its inputs.
            everything = self._resolve(query.find_all(exp.Column))
            for i in range(max(1, len(_alias_names(query)))):
                self.feeds[key, i] |= everything

    def _uses(self, projection: exp.Expr) -> set[Node]:
        found = self._resolve(find_all_in_scope(projection, exp.Column))
        for nested in find_all_in_scope(projection, exp.Query):
            found |= self._outputs(nested)
        return found

    def _outputs(self, query: exp.Expr) -> set[Node]:
        scope = self.scopes.get(id(query))
        if scope is None:
            return set()
        return {(id(scope), i) for i in range(_width(query))}

    def _resolve(self, columns: Iterable[exp.Column]) -> set[Node]:
        found: set[Node] = set()
        for column in columns:
            source = self.sources.get(id(column))
            if isinstance(source, exp.Table):
                stand_in = self.resolved.stand_ins.get(source.name)
                if stand_in is not None:
                    found.add(SourceColumn(stand_in.identifier, stand_in.columns[column.name][0]))
            elif isinstance(source, Scope):
                names = _names(source.expression)
                if column.name in names:
                    found.add((id(source), names.index(column.name)))
        return found


def _leaves(feeds: dict[Node, set[Node]], start: Iterable[Node]) -> set[SourceColumn]:
    seen: set[Node] = set(start)
    waiting = list(seen)
    while waiting:
        fresh = feeds.get(waiting.pop(), set()) - seen
        seen |= fresh
        waiting.extend(fresh)
    return {node for node in seen if isinstance(node, SourceColumn)}


def _names(query: exp.Expr) -> list[str]:
    inner = _find_lateral(query) or query
    return inner.named_selects if isinstance(inner, exp.Query) else _alias_names(inner)


def _find_lateral(query: exp.Expr) -> exp.Query | None:
    """The query of FROM t, LATERAL (SELECT ...)."""
    wrapped = query.this if isinstance(query, exp.Lateral) else None
    inner = wrapped.unnest() if isinstance(wrapped, exp.Subquery) else None
    return inner if isinstance(inner, exp.Query) else None


def _alias_names(query: exp.Expr) -> list[str]:
    alias = query.args.get("alias")
    return [name.name for name in alias.columns] if isinstance(alias, exp.TableAlias) else []


def _width(query: exp.Expr) -> int:
    return len(_names(query))
