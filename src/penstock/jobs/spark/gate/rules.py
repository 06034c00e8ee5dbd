"""Rules for Spark's plans; pure, over what `reader.py` gives.

A text is checked twice: as parsed, before any name is looked up, because a lookup alone may open
files or run code; and as analyzed, which is what runs.
"""

from collections.abc import Collection, Mapping, Sequence

from penstock.errors import QueryRefused
from penstock.jobs.spark.gate.functions import ALLOWED, OPTIONS, OPTIONS_AT, REFUSED
from penstock.jobs.spark.gate.kinds import INVOKE, KINDS, MAP, PYTHON, STATIC_INVOKE
from penstock.jobs.spark.gate.reader import Node

FUNCTION = "catalyst.analysis.UnresolvedFunction"
GENERATOR = "catalyst.analysis.UnresolvedGenerator"
TABLE_FUNCTION = "catalyst.analysis.UnresolvedTableValuedFunction"
RELATION = "catalyst.analysis.UnresolvedRelation"
WITH = "catalyst.plans.logical.UnresolvedWith"
VIEW = "catalyst.plans.logical.View"
NAMED = "catalyst.expressions.NamedArgumentExpression"
LITERAL = "catalyst.expressions.Literal"
# The argument of a node that names what it calls.
CALLS = {FUNCTION: "nameParts", GENERATOR: "name", TABLE_FUNCTION: "name"}
# Only Spark and the job's own frames can make these, no text can.
MADE = KINDS | {MAP, PYTHON, INVOKE, STATIC_INVOKE}
SPARKS_OWN = ("org.apache.spark.sql.catalyst.", "org.apache.spark.unsafe.")
DETAIL = "a view's SQL reads the view's sources with functions that decide by values alone"


def check_parsed(nodes: Sequence[Node], relations: Collection[str]) -> None:
    """Raise QueryRefused unless a text only reads these relations, or its own, by known means."""
    own = {name for node in nodes if node.kind == WITH for name in node.get("cteRelations")}
    known = {name.lower() for name in (*relations, *own)}
    children = _group(nodes)
    for node in nodes:
        _check_kind(node, KINDS)
        if node.kind in CALLS:
            _check_call(node, children.get(node.id, []), children)
        if node.kind == RELATION:
            _check_relation(node, known)


def check_analyzed(nodes: Sequence[Node]) -> None:
    """Raise QueryRefused unless the plan has only known kinds over frames and temporary views.

    A session's temporary views are frames that its job registered.
    """
    by_id = {node.id: node for node in nodes}
    for node in nodes:
        _check_kind(node, MADE)
        if node.kind == PYTHON and by_id[node.parent].kind != MAP:
            raise _refuse(f"it calls the Python function {' '.join(node.get('name'))}")
        if node.kind == VIEW and not node.get("isTempView"):
            raise _refuse(f"it reads the view {'.'.join(node.get('desc')[:2])} of a catalog")
        if node.kind in (STATIC_INVOKE, INVOKE):
            _check_invoke(node)
        _check_options(node.get("options")[::2])


def _check_kind(node: Node, known: Collection[str]) -> None:
    if node.kind not in known:
        shown = node.kind.rpartition(".")[2].removesuffix("$")
        raise _refuse(f"{shown} is not among the kinds of nodes that are known")


def _check_call(node: Node, arguments: Sequence[Node], below: Mapping[int, list[Node]]) -> None:
    parts = node.get(CALLS[node.kind])
    name = ".".join(parts).lower()
    if reason := REFUSED.get(name):
        raise _refuse(f"it calls {name}, and {reason}")
    if name not in ALLOWED:
        raise _refuse(f"it calls {name}, which is not among the functions that are known")
    at = OPTIONS_AT.get(name)
    if at is not None:
        # Named arguments may come in any order.
        named = [each for each in arguments if each.kind == NAMED]
        for options in (*arguments[at : at + 1], *named):
            _check_options(_list_options(name, options, below.get(options.id, [])))


def _list_options(name: str, options: Node, entries: Sequence[Node]) -> list[str]:
    """The names of a function's options, which must be literals."""
    called = ".".join(options.get("nameParts")).lower() if options.kind == FUNCTION else ""
    if called != "map" or any(entry.kind != LITERAL for entry in entries):
        raise _refuse(f"the options of {name} are not written as map('name', 'value')")
    return [" ".join(entry.get("value")) for entry in entries[::2]]


def _check_options(names: Sequence[str]) -> None:
    for name in names:
        if name.lower() not in OPTIONS:
            raise _refuse(f"it uses the option {name}, which is not among those that are known")


def _check_relation(node: Node, known: Collection[str]) -> None:
    parts = node.get("multipartIdentifier")
    if len(parts) != 1 or parts[0].lower() not in known:
        raise _refuse(f"it reads {'.'.join(parts)}, which is not one of the view's sources")
    if node.get("options") or node.get("isStreaming"):
        raise _refuse(f"it reads {parts[0]} with options, or as a stream")


def _check_invoke(node: Node) -> None:
    """Check a call of Java code, which must be Spark's own."""
    called = node.get("staticObject")
    if node.kind == STATIC_INVOKE and not all(each.startswith(SPARKS_OWN) for each in called):
        raise _refuse(f"it calls {' '.join(called)}")


def _group(nodes: Sequence[Node]) -> dict[int, list[Node]]:
    """The nodes below each, in the order of the text."""
    found: dict[int, list[Node]] = {}
    for node in sorted(nodes):
        found.setdefault(node.parent, []).append(node)
    return found


def _refuse(what: str) -> QueryRefused:
    return QueryRefused(f"the runner refuses the SQL of the view: {what}", detail=DETAIL)
