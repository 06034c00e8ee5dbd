"""The keys of a query: columns that tell which of its rows a changed row of a table can touch.

Rows of a join are told apart by the row ids of the joined tables. Groups, partitions of windows and
distinct rows are told apart by columns that they are made by and that are also outputs.
"""

from dataclasses import dataclass

from sqlglot import exp

from penstock.model.views import SOURCE_ROW_IDS, Branch, KeyPart
from penstock.sql.resolving.aliases import find_shadowing
from penstock.sql.resolving.joins import KEY_TYPES, JoinedTables, Obstacle
from penstock.sql.resolving.resolve import ResolvedStatement
from penstock.sql.spark.functions import AGGREGATES, GENERATORS, ORDERLESS, WINDOWS

NO_GROUPS = "an aggregate without GROUP BY is made of all rows"
SETS = (exp.Rollup, exp.Cube, exp.GroupingSets)
# Functions that put rows into windows of time; they are not called with OVER.
TIME_WINDOWS = {"session_window", "window", "window_time"}


@dataclass(frozen=True, slots=True)
class FoundKeys:
    """The view's columns that are the key, and where each SELECT takes them from."""

    columns: tuple[str, ...]
    branches: tuple[Branch, ...]


def find_keys(resolved: ResolvedStatement, calls: list[str]) -> FoundKeys:
    """The keys of a statement, given the functions that it calls; raises Obstacle."""
    for name in calls:
        if name in GENERATORS:
            raise Obstacle(f"{name} makes several rows from one")
        if name in TIME_WINDOWS:
            raise Obstacle(f"{name} makes a row's value depend on other rows")
    selects = list(_list_selects(resolved.tree))
    _check_functions(resolved, calls)
    tables = [JoinedTables(select, resolved) for select in selects]
    parts = [_list_parts(*each) for each in zip(selects, tables, strict=True)]
    if all(each is None for each in parts) and not _compares_rows(resolved.tree):
        return _key_by_row_ids(tables)
    return _key_by_outputs(resolved, selects, tables, parts)


def _list_selects(tree: exp.Expr) -> list[exp.Select]:
    if isinstance(tree, exp.Select):
        return [tree]
    if isinstance(tree, exp.SetOperation) and not tree.args.get("with_"):
        return [*_list_selects(tree.this), *_list_selects(tree.expression)]
    raise Obstacle("it is not a plain SELECT, or a union of such")


def _compares_rows(tree: exp.Expr) -> bool:
    """Whether a row depends on others like it: in all set operations but UNION ALL."""
    found = [each for each in tree.walk() if isinstance(each, exp.SetOperation)]
    return any(not isinstance(each, exp.Union) or each.args.get("distinct") for each in found)


def _check_functions(resolved: ResolvedStatement, calls: list[str]) -> None:
    """Raise Obstacle for functions whose rows, or whose values, are not certain."""
    windows = list(resolved.tree.find_all(exp.Window))
    nodes = [each for each in resolved.tree.find_all(exp.Func) if is_aggregate(each)]
    over = [each for each in nodes if is_windowed(each)]
    called = [each for each in resolved.tree.find_all(exp.Func) if _list_names(each) & WINDOWS]
    if sum(name in WINDOWS for name in calls) > sum(map(is_windowed, called)):
        raise Obstacle("it has a window function without OVER")
    alone = not any(_is_grouped(each) for each in _list_selects(resolved.tree))
    if alone and sum(name in AGGREGATES for name in calls) > len(nodes):
        raise Obstacle(NO_GROUPS)
    loose = sorted(name for name in calls if name in AGGREGATES - ORDERLESS)
    if len(loose) > sum(_is_loose(each) and _is_ordered(each) for each in over):
        raise Obstacle(f"{loose[0]} may depend on the order of rows")
    if (windows or not alone) and (shadowed := find_shadowing(resolved)):
        raise Obstacle(f"{shadowed} is the name of a column and of another output")


def _is_grouped(select: exp.Select) -> bool:
    return isinstance(select.args.get("group"), exp.Group)


def is_aggregate(node: exp.Func) -> bool:
    """Whether a function makes one value of many rows, or of a window of them."""
    names = _list_names(node)
    return bool(names & AGGREGATES) or (isinstance(node, exp.AggFunc) and not names & WINDOWS)


def _is_loose(node: exp.Func) -> bool:
    return not _list_names(node) & ORDERLESS


def _list_names(node: exp.Func) -> set[str]:
    names = [node.name] if isinstance(node, exp.Anonymous) else node.sql_names()
    return {name.lower() for name in names}


def _find_window(node: exp.Expr) -> exp.Window | None:
    """The window that a function is called over."""
    while node.parent is not None and node.parent.this is node:
        node = node.parent
        if isinstance(node, exp.Window):
            return node
        if not isinstance(node, exp.Filter | exp.IgnoreNulls | exp.RespectNulls):
            return None
    return None


def is_windowed(node: exp.Func) -> bool:
    """Whether a function is called with OVER."""
    return _find_window(node) is not None


def _is_ordered(node: exp.Func) -> bool:
    window = _find_window(node)
    return window is not None and bool(window.args.get("order"))


def _list_parts(select: exp.Select, tables: JoinedTables) -> set[KeyPart] | None:
    """The columns by which a SELECT keeps rows together; None when each row is on its own."""
    own = (each for each in select.find_all(exp.Func) if each.parent_select is select)
    if not _is_grouped(select) and any(is_aggregate(e) and not is_windowed(e) for e in own):
        raise Obstacle(NO_GROUPS)
    for clause in ("qualify", "windows", "sort", "cluster", "distribute", "kind", "limit"):
        if select.args.get(clause):
            raise Obstacle(f"it has a {clause.upper()} clause")
    found: set[KeyPart] | None = None
    group = select.args.get("group")
    if isinstance(group, exp.Group):
        more = any(value for key, value in group.args.items() if key != "expressions")
        if more or any(isinstance(each, SETS) for each in group.expressions):
            raise Obstacle("GROUP BY is more than a list of columns")
        found = _find_parts(group.expressions, tables)
        if not found:
            raise Obstacle(_why_no_key(group.expressions))
    for window in select.find_all(exp.Window):
        if window.parent_select is not select:
            continue
        parts = _find_parts(window.args.get("partition_by") or [], tables)
        if not parts:
            raise Obstacle("a window function without PARTITION BY plain columns reads all rows")
        found = parts if found is None else found & parts
    if select.args.get("distinct"):
        outputs = _find_parts([each.unalias() for each in select.selects], tables)
        found = outputs if found is None else found & outputs
    return found


def _find_parts(columns: list[exp.Expr], tables: JoinedTables) -> set[KeyPart]:
    return {part for each in columns if (part := tables.find(each)) is not None}


def _why_no_key(grouped: list[exp.Expr]) -> str:
    for each in grouped:
        if isinstance(each, exp.Column) and each.type and each.type.this not in KEY_TYPES:
            return f"groups by {each.name} can't be told apart by their values"
    return "GROUP BY has no plain column"


def _key_by_row_ids(tables: list[JoinedTables]) -> FoundKeys:
    cores = [each.list_core() for each in tables]
    if len(tables) > len(SOURCE_ROW_IDS):
        raise Obstacle(f"it is a union of more than {len(SOURCE_ROW_IDS)} queries")
    # Fewer row ids make coarser keys, which are as right.
    most = len(SOURCE_ROW_IDS) // len(tables)
    cores = [core[:most] for core in cores]
    columns = SOURCE_ROW_IDS[: sum(map(len, cores))]
    branches, at = [], 0
    for each, core in zip(tables, cores, strict=True):
        keys: list[KeyPart | None] = [None] * len(columns)
        keys[at : at + len(core)] = [KeyPart(number) for number in core]
        at += len(core)
        branches.append(Branch(each.occurrences, tuple(keys)))
    return FoundKeys(columns, tuple(branches))


def _key_by_outputs(
    resolved: ResolvedStatement,
    selects: list[exp.Select],
    tables: list[JoinedTables],
    parts: list[set[KeyPart] | None],
) -> FoundKeys:
    columns: list[str] = []
    keys: list[list[KeyPart]] = [[] for _ in selects]
    for place, name in enumerate(resolved.output_columns):
        outputs = [select.selects[place].unalias() for select in selects]
        found = [each.find(output) for each, output in zip(tables, outputs, strict=True)]
        kinds = {output.type for output in outputs}
        wanted = [
            part
            for part, made in zip(found, parts, strict=True)
            if part is not None and (made is None or part in made)
        ]
        if len(wanted) == len(selects) and len(kinds) == 1:
            columns.append(name)
            for mine, part in zip(keys, wanted, strict=True):
                mine.append(part)
    if not columns:
        raise Obstacle("no output is a plain column that its rows are kept together by")
    branches = zip(tables, keys, strict=True)
    return FoundKeys(
        tuple(columns), tuple(Branch(each.occurrences, tuple(mine)) for each, mine in branches)
    )
