"""Values as people look at them."""

import math
from datetime import date
from decimal import Decimal
from typing import Any

import pytest

from penstock.lance.read.samples import show_inputs, show_value


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (None, None),
        (True, True),
        (2**60, 2**60),
        (0.5, 0.5),
        (math.nan, "nan"),
        (-math.inf, "-inf"),
        ("text", "text"),
        (b"12345", {"bytes": 5}),
        ([1.0] * 16, [1.0] * 16),
        ([0.25] * 768, {"first": [0.25] * 16, "length": 768}),
        ([b"1", b"22"], [{"bytes": 1}, {"bytes": 2}]),
        ([[1, 2], None], [[1, 2], None]),
        ({"a": {"b": math.inf}}, {"a": {"b": "inf"}}),
        (date(2024, 1, 2), "2024-01-02"),
        (Decimal("1.50"), "1.50"),
    ],
)
def test_a_value_becomes_json(value: Any, shown: Any) -> None:
    assert show_value(value) == shown


def test_a_long_text_is_cut_and_says_so() -> None:
    shown = show_value("x" * 5000)
    assert shown == "x" * 1024 + "… (5000 characters)"


def test_inputs_are_one_line() -> None:
    assert show_inputs(["a", "b.c"], ["it's", b"123"]) == "a=\"it's\", b.c={'bytes': 3}"
    assert len(show_inputs(["a"], ["x" * 5000])) < 300
