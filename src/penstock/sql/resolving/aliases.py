"""Outputs with the name of a column: SELECT a + 1 AS a ... GROUP BY a.

Engines differ, clause by clause, in whether the later `a` is the column or the output.
"""

from sqlglot import exp
from sqlglot.optimizer.scope import Scope

from penstock.sql.resolving.resolve import ResolvedStatement

# WHERE is not among them: where it may name outputs at all, columns come first.
CLAUSES = ("group", "having", "qualify")


def find_shadowing(resolved: ResolvedStatement) -> str | None:
    """The first name that is both an output and used, where the two have different values."""
    for scope in resolved.scopes:
        if isinstance(scope.expression, exp.Select):
            name = _find_in(scope.expression, scope)
            if name is not None:
                return name
    return None


def _find_in(select: exp.Select, scope: Scope) -> str | None:
    made = {
        projection.alias.lower()
        for projection in select.expressions
        if isinstance(projection, exp.Alias)
        and not (
            isinstance(projection.this, exp.Column) and projection.this.name == projection.alias
        )
    }
    columns = [
        column
        for clause in CLAUSES
        if isinstance(place := select.args.get(clause), exp.Expr)
        for column in place.find_all(exp.Column)
    ]
    order = select.args.get("order")
    for ordered in order.expressions if isinstance(order, exp.Order) else ():
        # A bare name is the output everywhere; inside an expression it depends.
        if not isinstance(ordered.this, exp.Column):
            columns.extend(ordered.find_all(exp.Column))
    local = set(scope.selected_sources)
    return next((c.name for c in columns if c.name.lower() in made and c.table in local), None)
