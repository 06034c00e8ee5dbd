"""Full-text searches: from the protocol's forms, and lancedb's, to Lance's.

A match without a column searches every column with a full-text index. Several matches in one
multi_match are ranked by the best of them; where they differ in more than column and boost, which
Lance has no form for, their scores are added up.
"""

import re
from typing import Annotated, Any

import msgspec

from penstock.errors import InvalidRequest
from penstock.lance.doors import lance

# Lance walks a query by recursion, and a client must not be able to exhaust the stack.
MAX_DEPTH = 32
# Lance takes memory and time for each word and each query, even for duplicates.
MAX_CHARACTERS, MAX_QUERIES = 10_000, 256
# The form in which lancedb prints a query object into the text of a string query.
PRINTED = re.compile(r"(Match|Phrase|Boost|MultiMatch|Boolean|CombinedFields)\(\w+Query \{")

Number = Annotated[int, msgspec.Meta(ge=0, le=2**31 - 1)]
Column = Annotated[str, msgspec.Meta(min_length=1)]


class StringQuery(msgspec.Struct):
    query: str
    columns: list[Column] | None = None


class Match(msgspec.Struct):
    terms: str
    column: Column | None = None
    boost: float | None = None
    fuzziness: Number | None = None
    max_expansions: Number | None = None
    operator: str | None = None
    prefix_length: Number | None = None


class Phrase(msgspec.Struct):
    terms: str
    column: Column | None = None
    slop: Number | None = None


class Boost(msgspec.Struct):
    positive: "Clause"
    negative: "Clause"
    negative_boost: float | None = None


class MultiMatch(msgspec.Struct):
    """Several matches, or, in lancedb's form, one for several columns."""

    match_queries: list[Match] | None = None
    query: str | None = None
    columns: list[Column] | None = None
    boost: list[float] | None = None
    operator: str | None = None


class Boolean(msgspec.Struct):
    must: "list[Clause] | None" = None
    must_not: "list[Clause] | None" = None
    should: "list[Clause] | None" = None


class Clause(msgspec.Struct):
    """Exactly one of these."""

    match: Match | None = None
    phrase: Phrase | None = None
    boost: Boost | None = None
    multi_match: MultiMatch | None = None
    boolean: Boolean | None = None


class StructuredQuery(msgspec.Struct):
    query: Clause


class TextSearch(msgspec.Struct):
    """Exactly one of these."""

    string_query: StringQuery | None = None
    structured_query: StructuredQuery | None = None
    # lancedb's form: words, perhaps with the columns beside them, or a clause.
    query: str | Clause | None = None
    columns: list[Column] | None = None


def check(given: TextSearch) -> TextSearch:
    """The search in the protocol's form; refuses those that no table could answer."""
    search = _to_protocol(given)
    text, structure = search.string_query, search.structured_query
    if (text is None) == (structure is None):
        raise InvalidRequest(
            "full_text_query needs string_query or structured_query",
            detail="send exactly one of them",
        )
    if text is not None and PRINTED.match(text.query):
        raise InvalidRequest(
            "string_query.query is a printed query object, not words to search for",
            detail="send the words, or the object as structured_query",
        )
    words, columns = _list_words(search)
    if sum(map(len, words)) > MAX_CHARACTERS or max(len(words), columns) > MAX_QUERIES:
        raise InvalidRequest(
            f"full_text_query has more than {MAX_CHARACTERS} characters of terms, or more than "
            f"{MAX_QUERIES} queries or columns",
            detail="search for fewer words, or send several requests",
        )
    return search


def _to_protocol(given: TextSearch) -> TextSearch:
    """The same search without lancedb's form."""
    if given.query is None:
        return given
    if given.string_query is not None or given.structured_query is not None:
        raise InvalidRequest(
            "full_text_query has query beside string_query or structured_query",
            detail="send exactly one of them",
        )
    if isinstance(given.query, str):
        return TextSearch(string_query=StringQuery(given.query, given.columns))
    if given.columns:
        raise InvalidRequest(
            "full_text_query has columns beside a clause",
            detail="name the column in each part of the clause",
        )
    return TextSearch(structured_query=StructuredQuery(given.query))


def _list_words(search: TextSearch) -> tuple[list[str], int]:
    """The words of each query in a search, and how many columns it names at once."""
    if search.string_query is not None:
        return [search.string_query.query], len(search.string_query.columns or ())
    found: list[str] = []
    waiting: list[Clause] = []
    if search.structured_query is not None:
        waiting.append(search.structured_query.query)
    while waiting and len(found) <= MAX_QUERIES:
        clause = waiting.pop()
        found += [one.terms for one in (clause.match, clause.phrase) if one is not None]
        if clause.multi_match is not None:
            found += [one.terms for one in _list_matches(clause.multi_match)]
        if clause.boost is not None:
            waiting += [clause.boost.positive, clause.boost.negative]
        if clause.boolean is not None:
            parts = (clause.boolean.must, clause.boolean.must_not, clause.boolean.should)
            waiting += [part for each in parts for part in each or ()]
    return found, 0


def to_lance(
    dataset: "lance.LanceDataset", search: TextSearch
) -> "lance.query.FullTextQuery | dict[str, Any]":
    """The form that Lance's scanner takes."""
    if search.string_query is not None:
        columns = search.string_query.columns or list_indexed_columns(dataset)
        return {"query": search.string_query.query, "columns": columns}
    assert search.structured_query is not None
    return _to_clause(dataset, search.structured_query.query, MAX_DEPTH)


def _to_clause(
    dataset: "lance.LanceDataset", clause: Clause, depth: int
) -> "lance.query.FullTextQuery":
    if depth == 0:
        raise InvalidRequest(
            f"full_text_query is nested more than {MAX_DEPTH} deep", detail="flatten it"
        )
    match _only(clause):
        case Match() as one:
            return _to_match(dataset, one)
        case Phrase() as phrase:
            return _to_phrase(dataset, phrase)
        case MultiMatch() as several:
            return _to_matches(dataset, _list_matches(several))
        case Boost() as boost:
            factor = 0.5 if boost.negative_boost is None else boost.negative_boost
            return lance.query.BoostQuery(
                _to_clause(dataset, boost.positive, depth - 1),
                _to_clause(dataset, boost.negative, depth - 1),
                negative_boost=factor,
            )
        case Boolean() as parts:
            kinds = (
                (lance.query.Occur.MUST, parts.must),
                (lance.query.Occur.SHOULD, parts.should),
                (lance.query.Occur.MUST_NOT, parts.must_not),
            )
            return lance.query.BooleanQuery(
                [
                    (occur, _to_clause(dataset, part, depth - 1))
                    for occur, found in kinds
                    for part in found or ()
                ]
            )


def _only(clause: Clause) -> Match | Phrase | Boost | MultiMatch | Boolean:
    names = clause.__struct_fields__
    given = [part for name in names if (part := getattr(clause, name)) is not None]
    if len(given) != 1:
        raise InvalidRequest(
            f"a clause of full_text_query has {len(given)} kinds of query",
            detail="send exactly one of " + ", ".join(names),
        )
    found: Match | Phrase | Boost | MultiMatch | Boolean = given[0]
    return found


def _to_match(dataset: "lance.LanceDataset", one: Match) -> "lance.query.FullTextQuery":
    if one.column is None:
        columns = list_indexed_columns(dataset)
        return _to_matches(
            dataset, [msgspec.structs.replace(one, column=column) for column in columns]
        )
    return lance.query.MatchQuery(
        one.terms,
        one.column,
        boost=1.0 if one.boost is None else one.boost,
        fuzziness=one.fuzziness or 0,
        max_expansions=50 if one.max_expansions is None else one.max_expansions,
        operator=lance.query.FullTextOperator(_operator(one)),
        prefix_length=one.prefix_length or 0,
    )


def _to_matches(dataset: "lance.LanceDataset", several: list[Match]) -> "lance.query.FullTextQuery":
    if not several:
        raise InvalidRequest("multi_match has no match_queries", detail="send at least one")
    first = several[0]
    if len(several) == 1:
        return _to_match(dataset, first)
    columns = [one.column for one in several if one.column is not None]
    alike = all(_same_words(one, first) for one in several)
    if alike and len(columns) == len(several) and not first.fuzziness:
        return lance.query.MultiMatchQuery(
            first.terms,
            columns,
            boosts=[1.0 if one.boost is None else one.boost for one in several],
            operator=lance.query.FullTextOperator(_operator(first)),
        )
    return lance.query.BooleanQuery(
        [(lance.query.Occur.SHOULD, _to_match(dataset, one)) for one in several]
    )


def _list_matches(several: MultiMatch) -> list[Match]:
    if several.query is None:
        return several.match_queries or []
    columns = several.columns or []
    boosts = several.boost or [1.0] * len(columns)
    if several.match_queries or len(boosts) != len(columns):
        raise InvalidRequest(
            "multi_match needs match_queries, or a query with columns and a boost for each",
            detail="send exactly one of these forms",
        )
    return [
        Match(several.query, column, boost, operator=several.operator)
        for column, boost in zip(columns, boosts, strict=True)
    ]


def _same_words(one: Match, other: Match) -> bool:
    return (one.terms, one.fuzziness, _operator(one)) == (
        other.terms,
        other.fuzziness,
        _operator(other),
    )


def _to_phrase(dataset: "lance.LanceDataset", phrase: Phrase) -> "lance.query.FullTextQuery":
    columns = [phrase.column] if phrase.column is not None else list_indexed_columns(dataset)
    found = [
        lance.query.PhraseQuery(phrase.terms, column, slop=phrase.slop or 0) for column in columns
    ]
    return (
        found[0]
        if len(found) == 1
        else lance.query.BooleanQuery([(lance.query.Occur.SHOULD, one) for one in found])
    )


def _operator(one: Match) -> str:
    word = (one.operator or "or").upper()
    if word not in ("AND", "OR"):
        raise InvalidRequest(f"operator is {one.operator!r}", detail="use And or Or")
    return word


def list_indexed_columns(dataset: "lance.LanceDataset") -> list[str]:
    """The columns with a full-text index."""
    found = [
        name
        for index in dataset.describe_indices()
        if index.index_type == "Inverted"
        for name in index.field_names
    ]
    if not found:
        raise InvalidRequest(
            "no column of the table has a full-text index",
            detail="create one, or name the columns to search",
        )
    return sorted(set(found))
