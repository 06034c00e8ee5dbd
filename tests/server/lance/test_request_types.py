"""Fields of queries and changes of rows by every type of JSON: a wrong one is 400 / 13, by name."""

from collections.abc import Iterator
from typing import Any

import pytest

from tests.harness.data.arrow import people, send
from tests.harness.data.tables import code, new_name
from tests.harness.processes.servers import Server

pytestmark = pytest.mark.parametrize("server", ["sqlite"], indirect=True)

SAMPLES: dict[str, list[Any]] = {
    "bool": [True],
    "number": [-7, 1.5, 10**30],
    "text": ["no such thing"],
    "list": [[{}], [[None]]],
    "object": [{"no": {"such": 1}}],
}
TEXT, BOOL, NUMBER = frozenset({"text"}), frozenset({"bool"}), frozenset({"number"})
NONE: frozenset[str] = frozenset()
QUERY = {
    **dict.fromkeys(["branch", "distance_type", "filter", "vector_column"], TEXT),
    **dict.fromkeys(["bypass_vector_index", "fast_search", "prefilter", "with_row_id"], BOOL),
    **dict.fromkeys(["ef", "k", "maximum_nprobes", "minimum_nprobes", "nprobes"], NONE),
    **dict.fromkeys(["offset", "refine_factor", "version"], NONE),
    **dict.fromkeys(["lower_bound", "upper_bound"], NUMBER),
    **dict.fromkeys(["columns", "full_text_query", "id"], NONE),
    # Fields that are not known are ignored, and so no vector is left.
    "vector": frozenset({"object"}),
    **dict.fromkeys(["columns.column_names", "columns.column_aliases"], NONE),
    **dict.fromkeys(["vector.single_vector", "vector.multi_vector"], NONE),
    "full_text_query.string_query": NONE,
    "full_text_query.structured_query": NONE,
}
WORDS = {"branch": TEXT, "predicate": TEXT}
FIELDS: dict[str, tuple[dict[str, Any], dict[str, frozenset[str]]]] = {
    "query": ({}, QUERY),
    "analyze_plan": ({}, QUERY),
    "count_rows": ({}, {**WORDS, "version": NONE}),
    "explain_plan": (
        {"query": {}},
        {"branch": TEXT, "query": frozenset({"object"}), "verbose": BOOL}
        | {f"query.{name}": kinds for name, kinds in QUERY.items()},
    ),
    "update": ({"updates": [["name", "'x'"]]}, {**WORDS, "updates": NONE}),
    "delete": ({"predicate": "false"}, WORDS),
}


@pytest.fixture(scope="module")
def table(server: Server) -> str:
    namespace = new_name()
    server.post(f"/v1/namespace/{namespace}/create").raise_for_status()
    send(server, f"/v1/table/{namespace}$t/create", people(1, 2, 3)).raise_for_status()
    return f"{namespace}$t"


def wrong(operation: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """Each field with each value of a type that it does not take."""
    base, fields = FIELDS[operation]
    for path, taken in fields.items():
        for value in (v for kind in SAMPLES.keys() - taken for v in SAMPLES[kind]):
            body: Any = value
            *outer, name = path.split(".")
            body = {name: value}
            for part in reversed(outer):
                body = {part: body}
            yield path, {**base, **body}


@pytest.mark.parametrize("operation", FIELDS)
def test_a_field_of_a_wrong_type_is_refused_by_its_name(
    server: Server, table: str, operation: str
) -> None:
    for path, body in wrong(operation):
        answer = server.post(f"/v1/table/{table}/{operation}", body)
        assert answer.status_code == 400, body
        assert code(answer) == (400, 13), (body, answer.text)
        assert path.split(".")[-1] in answer.text or "columns" in path, (body, answer.text)
    assert server.post(f"/v1/table/{table}/count_rows", {}).json() == 3


@pytest.mark.parametrize(
    "columns",
    [
        {"column_names": "id"},
        {"column_names": {"id": 1}},
        {"column_names": True},
        {"column_names": 0},
        {"column_names": ""},
        {"column_names": [1]},
        {"column_aliases": "id"},
        {"column_aliases": ["id"]},
        {"column_aliases": {"a": ["id"]}},
        {"column_aliases": False},
    ],
)
def test_columns_in_another_form_are_refused(
    server: Server, table: str, columns: dict[str, Any]
) -> None:
    answer = server.post(f"/v1/table/{table}/query", {"columns": columns, "k": 1})
    assert code(answer) == (400, 13)
    assert "columns" in answer.text


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("when_matched_update_all", "yes"),
        ("when_not_matched_insert_all", "[]"),
        ("use_index", "2"),
        ("timeout", "soon"),
        ("timeout", "1e400"),
        ("timeout", "nan"),
        ("when_matched_update_all_filt", "{}"),
        ("branch", "a b"),
    ],
)
def test_a_parameter_of_a_merge_in_another_form_is_refused(
    server: Server, table: str, name: str, value: str
) -> None:
    flags = {"on": "id", "when_matched_update_all": "true", name: value}
    answer = send(server, f"/v1/table/{table}/merge_insert", people(1), **flags)
    assert code(answer) in ((400, 13), (404, 22)), answer.text
