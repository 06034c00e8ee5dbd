"""Translate a view's statement to another dialect, or say why no translation can be trusted.

Parse, resolve, vouch, write, and parse again: the written text must parse, name the same tables,
and feed the same columns into the same outputs as the original.
"""

from collections import Counter

from sqlglot import exp
from sqlglot.dialects.dialect import Dialect
from sqlglot.errors import ErrorLevel

from penstock.model.identifiers import Identifier
from penstock.sql.parsing.guard import guard
from penstock.sql.parsing.languages import LOWERS_ALL, find_dialect, ignores_case
from penstock.sql.parsing.parse import find_doubled_quote, find_place, parse_query
from penstock.sql.resolving.aliases import find_shadowing
from penstock.sql.resolving.lineage import trace
from penstock.sql.resolving.resolve import ResolvedStatement, resolve, restore
from penstock.sql.results import Refusal, SqlProblem, Tables, Translation
from penstock.sql.translating.meaning import FAMILIES, VOUCHED, find_difference

# A translation is longer than its original: names and stars are written in full.
WRITTEN_WORDS = 15_000


def translate(
    sql: str,
    source_dialect: str,
    target_dialect: str,
    tables: Tables,
    default_namespace: Identifier,
    default_catalog: str | None = None,
) -> Translation | Refusal:
    """The statement in the target dialect, checked against the catalog's tables."""
    source, target = find_dialect(source_dialect), find_dialect(target_dialect)
    for name, known in ((source_dialect, source), (target_dialect, target)):
        if known not in VOUCHED:
            return Refusal(f"translations from or to {name} are not offered")
    assert source is not None
    assert target is not None
    resolved = resolve(sql, source, tables, default_namespace, default_catalog)
    if isinstance(resolved, Refusal):
        return resolved
    if refusal := _find_obstacle(resolved, sql, source, target, default_catalog):
        return refusal
    written = guard(f"writing it in {target}", lambda: _write(restore(resolved), target))
    if isinstance(written, Refusal):
        return written
    again = resolve(written, target, tables, default_namespace, default_catalog, WRITTEN_WORDS)
    if isinstance(again, Refusal):
        return Refusal(f"the translation is not right in {target}: {again.reason}")
    difference = guard(
        "reading it back", lambda: _compare(resolved, again, written, source, target)
    )
    if difference is not None:
        return difference
    return Translation(written, target, resolved.references, resolved.output_columns)


def _find_obstacle(
    resolved: ResolvedStatement, sql: str, source: str, target: str, default_catalog: str | None
) -> Refusal | None:
    """Obstacles that show before writing: names, and constructs that mean something else."""
    if source != target and (touching := find_doubled_quote(sql, source)):
        # Spark 4 reads 'it''s' as it's; sqlglot, as Spark 3 did, as its.
        return Refusal("two quotes in a row are read in two ways; write \\' for a quote", *touching)
    for place, name in enumerate(resolved.output_columns, 1):
        if not name:
            return Refusal(
                f"column {place} of the result has no name, and engines make up different ones;"
                " give it an alias"
            )
    fold = str.lower if ignores_case(target) else str
    twice = Counter(fold(name) for name in resolved.output_columns).most_common(1)
    if twice and twice[0][1] > 1:
        return Refusal(f"the result has two columns called {twice[0][0]} in {target}; rename one")
    if source != target and not any({source, target} <= family for family in FAMILIES):
        for stand_in in resolved.stand_ins.values():
            shown = ".".join(stand_in.identifier)
            if target in LOWERS_ALL and any(part != part.lower() for part in stand_in.parts):
                return Refusal(f"{target} lowers every name, so it can't name table {shown}")
            if len(stand_in.parts) > 3 or (
                len(stand_in.parts) == 3 and stand_in.parts[0] != default_catalog
            ):
                return Refusal(
                    f"{target} would take the first part of {'.'.join(stand_in.parts)}"
                    " for a catalog; set the view's default namespace, and name the table alone"
                )
        if shadowed := find_shadowing(resolved):
            return Refusal(
                f"{shadowed} is the name of a column and of an output that is made of more;"
                " engines choose differently between them; rename the output"
            )
    if found := find_difference(resolved.tree, source, target):
        return Refusal(found[0], *find_place(found[1], sql))
    return None


def _write(tree: exp.Query, target: str) -> str:
    # Hints are about speed, and each engine has its own.
    for select in tree.find_all(exp.Select):
        select.set("hint", None)
    for cte in tree.find_all(exp.CTE):
        cte.set("materialized", None)
    return Dialect.get_or_raise(target).generate(
        tree, identify=True, comments=False, unsupported_level=ErrorLevel.RAISE
    )


def _compare(
    before: ResolvedStatement, after: ResolvedStatement, written: str, source: str, target: str
) -> Refusal | None:
    """Check that a translation has the same columns, outputs and filters."""
    old, new = trace(before, source), trace(after, target)
    if set(old.references) != set(new.references):
        return Refusal(f"the translation reads other tables in {target}")
    if [c.name.lower() for c in old.columns] != [c.name.lower() for c in new.columns]:
        return Refusal(f"the translation has other output columns in {target}")
    for was, now in zip(old.columns, new.columns, strict=True):
        if was.sources != now.sources:
            return Refusal(f"output column {was.name} is made of other columns in {target}")
    if old.filters != new.filters:
        return Refusal(f"the translation filters by other columns in {target}")
    tree = parse_query(written, target)
    if isinstance(tree, SqlProblem) or _write(tree, target) != written:
        return Refusal(f"the translation is read back as another statement in {target}")
    for function in after.tree.find_all(exp.Anonymous):
        if source != target:
            return Refusal(f"function {function.name} of the translation is not known in {target}")
    if not _literals(before.tree) <= _literals(after.tree):
        return Refusal(f"the translation has other literals in {target}")
    if _orders(before.tree) != _orders(after.tree):
        return Refusal(f"the translation orders NULLs otherwise in {target}")
    return None


def _literals(tree: exp.Query) -> set[tuple[bool, str]]:
    # The unit of a truncation is a word of the dialect, not a value.
    return {
        (literal.is_string, literal.name)
        for literal in tree.find_all(exp.Literal)
        if literal.arg_key != "unit"
    }


def _orders(tree: exp.Query) -> Counter[tuple[bool, bool]]:
    return Counter(
        (bool(order.args.get("desc")), bool(order.args.get("nulls_first")))
        for order in tree.find_all(exp.Ordered)
    )
