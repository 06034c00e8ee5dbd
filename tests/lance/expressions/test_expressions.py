"""Expressions of clients: what is read here is what Lance reads, and nothing in it grows large."""

import random
import re
from collections.abc import Iterator
from pathlib import Path

import lance
import pyarrow as pa
import pytest

from penstock.errors import InvalidRequest
from penstock.lance.expressions import functions, growth
from penstock.lance.expressions.check import check_expression, check_expressions


@pytest.fixture(scope="module")
def dataset(tmp_path_factory: pytest.TempPathFactory) -> lance.LanceDataset:
    rows = {"id": [1, 2, 3], "name": ["a", "b", None], "x": [0.5, 1.5, 2.5], "l": [[1], [2], []]}
    path: Path = tmp_path_factory.mktemp("expressions") / "t.lance"
    return lance.write_dataset(pa.table(rows), path)


@pytest.mark.parametrize(
    "sql",
    [
        "id = 1",
        "id=1 -- or true",
        "id = 1 /* AND false */ AND /* x */ x<1",
        "name = 'it''s -- no comment' OR id IN (1,2 , 3)",
        "`name` LIKE 'a%' AND NOT (id BETWEEN 2 AND 3)",
        "id NOT IN (2, -3) AND name IS NOT NULL",
        "cast(x AS bigint)::string = '0'",
        'abs(-x)>=0.5 and upper(`name`)="A"',
        "l[1] = id AND array_has(l, 1)",
        "x < 1e3 AND id IS DISTINCT FROM 2",
        "coalesce(name, 'z') || 'b' <> 'ab'",
        "date '2020-01-01' < current_date",
        "regexp_like(name, '^[a-b]$')",
    ],
)
def test_lance_finds_the_same_rows_by_the_words_that_were_read(
    dataset: lance.LanceDataset, sql: str
) -> None:
    checked = check_expression("filter", sql)
    assert "--" not in re.sub(r"'[^']*'", "", checked)
    assert dataset.to_table(filter=checked) == dataset.to_table(filter=sql)


@pytest.mark.parametrize(
    "sql",
    [
        "id = 1; DROP TABLE t",
        "id = 1 GROUP BY array_repeat(1, 1000000000000)",
        "id ISNULL",
        "id = 1_000",
        "x = 1f",
        "id, name",
        "id AS other",
        "id = 1 /* /* */ */",
        "name = N'a'",
        "id = $1",
        "id = ?",
        "`upper`(name) = 'A'",
        "(SELECT 1) = 1",
        "id IN (SELECT 1)",
        "upper(name ORDER BY array_repeat(1, 1000000000000)) = 'A'",
        "name = 'open",
        "id = 1 /* open",
        "",
        "\x00",
    ],
)
def test_what_lance_would_read_in_part_or_otherwise_is_refused(sql: str) -> None:
    with pytest.raises(InvalidRequest, match="filter is not an expression of Lance's SQL"):
        check_expression("filter", sql)


@pytest.mark.parametrize(
    "sql",
    [
        "array_length(array_repeat(1, 1000000000000)) > 0",
        "character_length(repeat('a', 500000000)) > 0",
        "repeat(repeat(repeat('abcdefgh', 100), 100), 100) = ''",
        "repeat(name, id) = ''",
        "lpad(name, 2000000000) = ''",
        "rpad(name, id, 'x') = ''",
        "array_length(range(0, 1000000000)) > 0",
        "array_length(generate_series(1, id)) > 0",
        "array_resize(l, 1000000000) IS NULL",
        "replace(replace(name, '', 'aaaaaaaaaaaaaaaa'), 'a', 'aaaaaaaaaaaaaaaa') = ''",
        "regexp_replace(name, '', '" + "a" * 66 + "', 'g') = ''",
        "regexp_replace(name, name, 'a') = ''",
        "regexp_like(name, '((a{90}){90}){90}')",
        "regexp_like(name, 'a{1000}{1000}')",
        "concat(name, '" + "x" * 20_000 + "') = ''",
        " || ".join(["name"] * 70) + " = ''",
        "array_to_string(string_to_array(name, NULL), 'xxxxxxxxxxxxxxx') = ''",
        "arrow_cast(name, 'FixedSizeBinary(2147483647)') IS NULL",
        "arrow_cast(l, 'FixedSizeList(2147483647, Int64)') IS NULL",
        "to_char(now(), '" + "%c" * 1000 + "') = ''",
        "levenshtein(name, name) > 1",
        "array_transform(l, x) IS NULL",
        "no_such_function(id)",
        "sum(id) > 1",
    ],
)
def test_what_makes_large_values_of_small_ones_is_refused_by_name(sql: str) -> None:
    with pytest.raises(InvalidRequest, match="filter is refused") as caught:
        check_expression("filter", sql)
    assert re.search(
        r"repeat|pad|range|series|resize|replace|regexp|concat|\|\||to_string|cast|"
        r"to_char|levenshtein|transform|no_such_function|sum",
        str(caught.value),
    )


def test_small_constants_are_fine(dataset: lance.LanceDataset) -> None:
    made = {
        "a": "lpad(name, 8, '0')",
        "b": "repeat(name, 3)",
        "c": "array_length(range(1, 10))",
        "d": "replace(name, 'a', 'bb')",
        "e": "concat_ws(', ', name, cast(id AS string), x::string)",
    }
    found = dataset.to_table(columns=check_expressions("columns", made)).to_pylist()[0]
    assert found == {"a": "0000000a", "b": "aaa", "c": 9, "d": "bb", "e": "a, 1, 0.5"}


def test_what_expressions_make_together_counts_together() -> None:
    one = {"a": "repeat(name, 40)"}
    assert check_expressions("columns", one) == one
    with pytest.raises(InvalidRequest, match=r"columns\.b is refused: repeat"):
        check_expressions("columns", one | {"b": "repeat(name, 40)"})


def test_every_function_that_lance_has_has_a_rule_or_a_reason(dataset: lance.LanceDataset) -> None:
    tables = [functions.FIXED, functions.SUM, functions.TIMES, growth.RULES, functions.REFUSED]
    ruled = set().union(*tables)
    assert sum(map(len, tables)) == len(ruled), "a function is in two tables"
    found = set(_find_functions(dataset, ruled))
    assert found - ruled == set()
    assert ruled - found <= {"extract", "trim"}, "Lance has these no more"


def _find_functions(dataset: lance.LanceDataset, seeds: set[str]) -> Iterator[str]:
    """Ask Lance by name: for a wrong one it tells a near name that it has."""
    chance, asked = random.Random(7), set[str]()
    waiting = sorted(seeds)
    while waiting:
        name = waiting.pop()
        if name in asked:
            continue
        asked.add(name)
        try:
            scanner = dataset.scanner(columns={"a": f"{name}()"}, with_row_address=True)
            text = str(scanner.projected_schema)
        except BaseException as error:  # A panic is outside Exception.
            text = str(error)
        if "Invalid function" in text:
            waiting += re.findall(r"Did you mean '(\w+)'", text)
        elif "not supported SQL" not in text and "parser error" not in text:
            yield name
            cut = chance.randrange(len(name))
            waiting += [name[:cut] + name[cut + 1 :], f"{name}s", name.replace("array", "list")]
