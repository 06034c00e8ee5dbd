"""The output of Spark's own lexer and parser, in plain values."""

import json
import re
from typing import Any

from penstock.jobs.spark.tasks import Engine

# They are another one each time, or only about speed.
LEFT_OUT = ("exprId", "resultId", "origin")
HINT = "UnresolvedHint"


def parse(engine: Engine, sql: str) -> Any:
    """The parsed plan without hints, or None for what is no statement to Spark."""
    spark: Any = engine.spark
    try:
        plan = spark._jsparkSession.sessionState().sqlParser().parsePlan(sql)
    # Py4J raises an error for each class of the JVM's.
    except Exception:
        return None
    # The values of binaries are in the text only.
    text = re.sub(r"#\d+L?", "", plan.toString()) if "[B@" in plan.toJSON() else ""
    return [_strip(json.loads(plan.toJSON())), text]


def list_relations(plan: Any) -> set[tuple[str, ...]]:
    """The names of all relations that a plan would look up."""
    return _list_names(plan, "UnresolvedRelation", "multipartIdentifier")


def list_functions(plan: Any) -> set[tuple[str, ...]]:
    """The names of all functions that a plan would look up."""
    return _list_names(plan, "UnresolvedFunction", "nameParts") | _list_names(
        plan, "UnresolvedGenerator", "name"
    )


def list_kinds(plan: Any) -> set[str]:
    """The classes of a plan's nodes, by their short names."""
    nodes = [node for node in _walk(plan) if isinstance(node, dict)]
    return {node["class"].rpartition(".")[2] for node in nodes if "class" in node}


def lex(engine: Engine, text: str) -> list[str]:
    """The lexemes that Spark's lexer finds."""
    # Java counts characters as code points here.
    return [
        text[token.getStartIndex() : token.getStopIndex() + 1]
        for token in _open_lexer(engine, text).getAllTokens()
        if token.getChannel() == 0
    ]


def _list_names(plan: Any, kind: str, field: str) -> set[tuple[str, ...]]:
    found: set[tuple[str, ...]] = set()
    for node in _walk(plan):
        if isinstance(node, dict) and str(node.get("class", "")).endswith(f".{kind}"):
            name = node[field]
            shown = name["funcName"] if isinstance(name, dict) else str(name).strip("[]")
            found.add(tuple(shown.split(", ")))
    return found


def _open_lexer(engine: Engine, text: str) -> Any:
    jvm: Any = engine.spark._jvm
    parsers = jvm.org.apache.spark.sql.catalyst.parser
    characters = jvm.org.antlr.v4.runtime.CharStreams.fromString(text)
    return parsers.SqlBaseLexer(parsers.UpperCaseCharStream(characters))


def _strip(node: Any) -> Any:
    if isinstance(node, list):
        return [_strip(each) for each in node if not _is_hint(each)]
    if isinstance(node, dict):
        return {key: _strip(value) for key, value in node.items() if key not in LEFT_OUT}
    return "binary" if isinstance(node, str) and node.startswith("[B@") else node


def _is_hint(node: Any) -> bool:
    return isinstance(node, dict) and str(node.get("class", "")).endswith(HINT)


def list_keywords(engine: Engine) -> set[str]:
    """All words of Spark's grammar, but for those that have two spellings."""
    vocabulary = _open_lexer(engine, "").getVocabulary()
    names = [vocabulary.getLiteralName(n) for n in range(1, vocabulary.getMaxTokenType() + 1)]
    words = {name.strip("'").lower() for name in names if name}
    return {word for word in words if word.replace("_", "").isalnum()}


def _walk(node: Any) -> Any:
    yield node
    inner = node.values() if isinstance(node, dict) else node if isinstance(node, list) else ()
    for each in inner:
        yield from _walk(each)
