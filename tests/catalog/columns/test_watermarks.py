"""Which watermarks of a column are kept."""

from typing import Any

from penstock.catalog.columns.watermarks import add, find_counts, find_covered, is_incomplete


def mark(version: int, function: str = "f@1") -> dict[str, Any]:
    return {"version": version, "function": function}


def add_all(*marks: dict[str, Any]) -> list[dict[str, Any]]:
    kept: list[dict[str, Any]] = []
    for each in marks:
        kept = add(kept, each)
    return kept


def test_the_last_three_are_kept() -> None:
    assert add_all(mark(1), mark(2), mark(3), mark(4)) == [mark(4), mark(3), mark(2)]


def test_one_that_comes_again_is_the_newest() -> None:
    assert add_all(mark(1), mark(2), mark(1)) == [mark(1), mark(2)]


def test_that_of_another_function_outlives_older_ones_of_the_same() -> None:
    found = add_all(mark(1), *(mark(n, "f@2") for n in range(2, 6)))
    assert found == [mark(5, "f@2"), mark(4, "f@2"), mark(1)]


def test_of_many_functions_the_last_three_are_kept() -> None:
    found = add_all(*(mark(n, f"f@{n}") for n in range(1, 6)))
    assert [each["version"] for each in found] == [5, 4, 3]


def test_what_is_no_count_is_not_known() -> None:
    text = '[{"version": 4, "counts": {"fresh": "x"}}]'
    assert find_counts(text, "", 4, None) is None
    assert (is_incomplete(text, ""), find_covered(text, "")) == (False, 4)
