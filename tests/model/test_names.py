"""Names: one check for all of them, whatever clients and proxies make of a path."""

from collections.abc import Callable

import pytest

from penstock.errors import InvalidRequest
from penstock.lance.indexes import check_index_name
from penstock.model.branches import check_branch, check_tag
from penstock.model.functions import check_label
from penstock.model.identifiers import check_name

Check = Callable[[str], object]
CHECKS: dict[str, Check] = {
    "name": lambda name: check_name(name, "name"),
    "index": check_index_name,
    "tag": check_tag,
    "branch": check_branch,
    "function": lambda name: check_label(name, "udf_name"),
}
ELSEWHERE = [
    *(".", "..", "%2e%2e", "%2E%2e", ".%2e", "%2e", "%252e%252e", "%25252e."),
    *("../x", "x/..", "a/../b", "a\\..\\b", "..\\x", "..%2fx", "%2e%2e%5cx", "..%252f.."),
    *(
        "..;",
        "..;a=b/x",
        " .. ",
        ".. ",
        "\uff0e\uff0e",
        "\u2025",
        "a/./b",
        "a\x00b",
        "a\nb",
        "a\x85b",
    ),
    *(" ", "   ", "\u3000", "\u00a0"),
]


@pytest.mark.parametrize("kind", CHECKS)
@pytest.mark.parametrize("name", ELSEWHERE, ids=ascii)
def test_a_name_that_leads_elsewhere_is_refused_for_everything(kind: str, name: str) -> None:
    with pytest.raises(InvalidRequest) as refused:
        CHECKS[kind](name)
    assert refused.value.detail


@pytest.mark.parametrize(
    "name",
    [
        "...",
        "a.b",
        ".hidden",
        "a..b",
        "a b",
        "100%",
        "%",
        "a%20b",
        "a%2fb",
        "a/b",
        "a\\b",
        "é",
        "日",
    ],
)
def test_a_name_that_only_looks_odd_stays_legal(name: str) -> None:
    assert check_name(name, "name") == name


@pytest.mark.parametrize("name", ["a/b", "a\\b", "\\", "x" * 256, "__lance_x"])
def test_an_index_is_one_part_of_a_path(name: str) -> None:
    with pytest.raises(InvalidRequest):
        check_index_name(name)


@pytest.mark.parametrize("name", ["by x", "a%b", "é" * 255, "idx.1", "x_idx"])
def test_an_index_may_be_called_as_before(name: str) -> None:
    assert check_index_name(name) == name
