"""Unexpected values for requests: words, numbers at the limits, and nests of them."""

import json
from collections.abc import Sequence
from typing import Any

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st

from tests.harness.processes.servers import Server

Strategy = st.SearchStrategy[Any]

numbers = st.integers(-2, 5) | st.sampled_from([2**31, 2**63 - 1, 2**63, 2**64, -(2**63), 10**30])


def fuzzed(examples: int) -> settings:
    """As many examples, however long the server takes for them."""
    return settings(
        max_examples=examples,
        deadline=None,
        suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
    )


def words_of(known: Sequence[str]) -> st.SearchStrategy[str]:
    """Words that mean something somewhere, and any others."""
    return st.sampled_from(known) | st.text(max_size=12)


def values_of(words: st.SearchStrategy[str], keys: st.SearchStrategy[str]) -> Strategy:
    """Any JSON; strings are from the words, names of objects' fields from the keys."""
    scalars = st.none() | st.booleans() | numbers | st.floats(allow_nan=False) | words
    return st.recursive(
        scalars,
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(keys, inner, max_size=4),
        max_leaves=8,
    )


def check(server: Server, path: str, body: Any) -> None:
    """Whatever the body is, the server answers, and says by a code what is wrong."""
    answer = server.send(path, json.dumps(body).encode())
    assert answer.status_code < 500, (path, body, answer.text)
    if answer.status_code >= 400:
        assert isinstance(answer.json()["code"], int)
