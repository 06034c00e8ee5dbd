"""Expressions that make much of little, never end, or break an evaluator, wherever one is taken."""

import json
from collections.abc import Iterator
from urllib.parse import quote

import pyarrow as pa

from tests.attack.attack import HANDLED, REFUSED, Attack, Request, post, send_arrow
from tests.attack.families.arrow import stream
from tests.attack.place import OWNER, PIT, Place

FAMILY = "expressions"
# None may be answered but by a refusal: each asks for far more than anybody needs.
BOMBS = (
    "array_length(array_repeat(1, 1000000000000)) > 0",
    "array_length(array_repeat(array_repeat(1, 1000000), 1000000)) > 0",
    "array_length(list_repeat(1, 1000000000000)) > 0",
    "character_length(repeat('a', 500000000)) > 0",
    "character_length(repeat(repeat('a', 30000), 30000)) > 0",
    "character_length(repeat(repeat(repeat(repeat('a', 1000), 1000), 1000), 1000)) > 0",
    "character_length(repeat(name, 1000000000)) > 0",
    "character_length(repeat('a', id * 1000000000)) > 0",
    "character_length(repeat('a', cast('2000000000' as bigint))) > 0",
    "character_length(lpad('a', 2147483647)) > 0",
    "character_length(rpad('a', 2147483647, 'xy')) > 0",
    "character_length(lpad(name, 2000000000, name)) > 0",
    "array_length(range(0, 100000000000)) > 0",
    "array_length(range(100000000000)) > 0",
    "array_length(generate_series(1, 100000000000)) > 0",
    "array_length(generate_series(1, 9223372036854775807)) > 0",
    "array_length(array_resize([1], 100000000000, 0)) > 0",
    "array_length(list_resize([1], 100000000000)) > 0",
    "character_length(array_to_string(array_repeat('a', 1000000000), 'xxxxxxxx')) > 0",
    "character_length(replace(repeat('a', 100000), 'a', repeat('b', 100000))) > 0",
    "character_length(regexp_replace(repeat('a', 100000), 'a', repeat('b', 100000), 'g')) > 0",
    "array_length(string_to_array(repeat('a,', 500000000), ',')) > 0",
    "octet_length(encode(repeat('a', 1000000000), 'hex')) > 0",
    "digest(repeat('a', 1000000000), 'sha256') is not null",
    "character_length(concat(repeat('a', 1000000000), repeat('b', 1000000000))) > 0",
    "character_length(translate(repeat('a', 1000000000), 'a', 'b')) > 0",
    "levenshtein(repeat('a', 100000000), repeat('b', 100000000)) > 0",
)
# These may be answered: what must hold is that they end soon, and that nothing else ends by them.
ODD = (
    "1 / 0 > 0",
    "id % 0 = 0",
    "-9223372036854775808 / -1 > 0",
    "abs(-9223372036854775808) > 0",
    "id + 9223372036854775807 > 0",
    "power(10, 400) > 0",
    "factorial(100000) > 0",
    "chr(-1) = 'a'",
    "chr(1114112) = 'a'",
    "substr(name, -9223372036854775808, 9223372036854775807) = ''",
    "left(name, -9223372036854775808) = ''",
    "split_part(name, '', -9223372036854775808) = ''",
    "cast('x' as int) > 0",
    "cast(1e300 as bigint) > 0",
    "cast('9999-99-99' as date) is null",
    "date_trunc('eon', cast('2020-01-01' as timestamp)) is null",
    "to_timestamp(9223372036854775807) is null",
    "interval '9999999999999 years' is null",
    "arrow_cast(1, 'FixedSizeList(1000000000, Int8)') is null",
    "arrow_cast('1', 'Decimal256(76, 127)') is null",
    "arrow_cast(1, 'Nonsense(') is null",
    "regexp_like(name, '(a{1000}){1000}')",
    "regexp_like(name, '((((((((((a{20}){20}){20}){20}){20}){20}){20}){20}){20}){20}')",
    "regexp_like(name, '(')",
    "regexp_like(repeat('a', 30), '(a+)+$')",
    "name like '" + "%a" * 500 + "'",
    "name similar to '(a|a)*b'",
    "name in (" + ", ".join(f"'{n}'" for n in range(5_000)) + ")",
    " or ".join(["id = 1"] * 2_000),
    "not " * 500 + "true",
    "(" * 200 + "id" + ")" * 200 + " = 1",
    "(" * 20_000 + "id" + ")" * 20_000 + " = 1",
    "-" * 5_000 + "1 = 1",
    "case " + "when id = 1 then 1 " * 500 + "end = 1",
    "array[" + "[" * 100 + "1" + "]" * 100 + "] is null",
    "make_array(1, 'a', null) is null",
    "id = (select 1)",
    "exists (select 1 from t)",
    "id in (select id from t)",
    "row_number() over () > 0",
    "sum(id) > 0",
    "unnest([1, 2]) > 0",
    "random() > 2",
    "uuid() = ''",
    "now() is null",
    "version() = ''",
    "current_setting('x') = ''",
    "read_csv('/etc/passwd') is null",
    "_rowid > 18446744073709551615",
    "nosuch(id) > 0",
    "nosuch > 0",
    "id = 1; drop table t",
    "id = 1 -- x",
    "id = 1 /* x",
    "'",
    '"',
    "",
    " ",
    "\x00",
    "id = '\U0001f600'",
    "true = 'true' and 1 = 1.0 and null",
)


def make(place: Place) -> Iterator[Attack]:
    for expression in BOMBS:
        for where, request in _places(expression).items():
            # What Spark evaluates takes memory of the runner, never of the server.
            expected = HANDLED if where == "view of Spark" else REFUSED
            yield Attack(FAMILY, f"{where}: {expression[:60]}", OWNER, request, expected)
    for expression in ODD:
        for where, request in _places(expression).items():
            yield Attack(FAMILY, f"{where}: {expression[:60]}", OWNER, request)
    yield from _searches()


def _places(expression: str) -> dict[str, Request]:
    """Every place that takes an expression, of rows of the pit."""
    table = f"/v1/table/{PIT}$t"
    quoted = quote(expression, safe="")
    merge = f"{table}/merge_insert?on=id&when_matched_update_all=true&when_matched_update_all_filt"
    missing = f"{table}/merge_insert?on=id&when_not_matched_by_source_delete=true"
    create = f"/v1/materialized_view/{PIT}$bomb/create"
    sql = f"SELECT id FROM {PIT.replace('$', '.')}.t WHERE {expression}"
    lance = json.dumps({"sql": sql, "dialect": "lance"})
    return {
        "filter": post(f"{table}/query", {"filter": expression, "k": 1}),
        "prefilter": post(f"{table}/query", {"filter": expression, "k": 1, "prefilter": True}),
        "alias": post(f"{table}/query", {"columns": {"column_aliases": {"x": expression}}, "k": 1}),
        "predicate": post(f"{table}/count_rows", {"predicate": expression}),
        "plan": post(f"{table}/analyze_plan", {"filter": expression, "k": 1}),
        "explanation": post(f"{table}/explain_plan", {"query": {"filter": expression, "k": 1}}),
        "update": post(f"{table}/update", {"updates": [["name", f"cast({expression} as string)"]]}),
        "rows of an update": post(
            f"{table}/update", {"updates": [["id", "id"]], "predicate": expression}
        ),
        "delete": post(f"{table}/delete", {"predicate": f"({expression}) and id = 77"}),
        "column": post(
            f"{table}/add_columns", {"new_columns": [{"name": "x", "expression": expression}]}
        ),
        "computed": post(
            f"{table}/add_columns", {"new_columns": [{"name": "y", "computed": expression}]}
        ),
        "merge": send_arrow(f"{merge}={quoted}", MERGED),
        "merge's rest": send_arrow(
            f"{missing}&when_not_matched_by_source_delete_filt={quoted}", MERGED
        ),
        "view": post(create, {"kind": "query", "source_query": lance}),
        "view of Spark": post(create, {"kind": "query", "source_query": sql}),
        "backfill": post(f"{table}/explain_backfill", {"column": "y", "where": expression}),
    }


MERGED = stream(pa.table({"id": [77], "name": ["x"]}))


def _searches() -> Iterator[Attack]:
    path = f"/v1/table/{PIT}$t/query"
    deep: dict[str, object] = {"match": {"column": "name", "terms": "a"}}
    for _ in range(200):
        deep = {"boolean": {"must": [deep], "should": [], "must_not": []}}
    match = {"column": "name", "terms": "a"}
    for name, query in {
        "a deep one": {"structured_query": {"query": deep}},
        "fuzzy": {"structured_query": {"query": {"match": {**match, "fuzziness": 2**31}}}},
        "expansions": {
            "structured_query": {"query": {"match": {**match, "max_expansions": 2**31}}}
        },
        "boost": {"structured_query": {"query": {"match": {**match, "boost": 1e308}}}},
        "slop": {"structured_query": {"query": {"phrase": {**match, "slop": 2**31}}}},
        "a long text": {"string_query": {"query": "a " * 200_000}},
        "no column": {"string_query": {"query": "a", "columns": ["nosuch"]}},
        "an odd one": {"string_query": {"query": "\x00\u202e"}},
    }.items():
        yield Attack(FAMILY, f"text: {name}", OWNER, post(path, {"full_text_query": query, "k": 1}))
    for k in (0, 2**31, 2**63 - 1):
        yield Attack(FAMILY, f"k is {k}", OWNER, post(path, {"k": k, "offset": k}))
    for vector in ([1e308] * 4, [0.0] * 100_000, [[1.0]] * 10_000, ["x"], [None]):
        body = {"vector": vector, "k": 2**31, "vector_column": "name"}
        yield Attack(FAMILY, f"a vector of {len(vector)}", OWNER, post(path, body))
