"""Listing views and namespaces: pages only for those who ask for them."""

import itertools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.harness.clients.iceberg import Answer, Iceberg, Namespace
from tests.harness.processes import servers

# In no alphabet's order, and longer in UTF-8 than in characters.
NAMES = ["a", "B", "b", "ä", "z z", "Z", "日本", "😀", "a-b", "a.b"]

List = Callable[..., Answer]


@pytest.fixture
def views(ns: Namespace) -> Namespace:
    """A namespace with a view for each name."""
    for name in NAMES:
        ns.create_view(name)
    return ns


def follow(listing: List, field: str, **query: Any) -> list[list[Any]]:
    """All pages, asked for as Java does: beginning with an empty token."""
    pages, token = [], ""
    while True:
        page = listing(pageToken=token, **query).ok()
        pages.append(page[field])
        token = page["next-page-token"]
        if token is None:
            return pages


def names(page: list[dict[str, Any]]) -> list[str]:
    return [each["name"] for each in page]


def test_without_a_token_everything_comes_at_once(views: Namespace) -> None:
    for query in ({}, {"pageSize": 3}):
        listed = views.list_views(**query).ok()
        assert sorted(names(listed["identifiers"])) == sorted(NAMES)
        assert listed["next-page-token"] is None


@pytest.mark.parametrize("size", [1, 3, 10, 11])
def test_pages_hold_each_view_once(views: Namespace, size: int) -> None:
    pages = [names(page) for page in follow(views.list_views, "identifiers", pageSize=size)]
    assert [len(page) for page in pages[:-1]] == [size] * (len(pages) - 1)
    assert 0 < len(pages[-1]) <= size
    assert sorted(itertools.chain(*pages)) == sorted(NAMES)


def test_an_empty_token_without_a_size_is_enough_for_most(views: Namespace) -> None:
    assert len(follow(views.list_views, "identifiers")) == 1


def test_views_that_come_and_go_do_not_disturb_the_pages(ns: Namespace) -> None:
    for name in ("b", "d", "f", "h"):
        ns.create_view(name)
    first = ns.list_views(pageToken="", pageSize=2).ok()
    ns.view("b").drop().done()
    ns.view("d").drop().done()
    ns.create_view("a")
    ns.create_view("e")
    rest = ns.list_views(pageToken=first["next-page-token"], pageSize=10).ok()
    assert (names(first["identifiers"]), names(rest["identifiers"])) == (
        ["b", "d"],
        ["e", "f", "h"],
    )


def test_views_of_child_namespaces_are_not_listed(ns: Namespace) -> None:
    child = ns.child("child")
    child.create().ok()
    child.create_view("inner")
    ns.create_view("outer")
    assert ns.list_views().ok()["identifiers"] == [{"namespace": [*ns.levels], "name": "outer"}]
    assert child.view_names() == ["inner"]


def test_views_of_a_missing_namespace_are_not_found(iceberg: Iceberg) -> None:
    answer = iceberg.namespace("nowhere", "at all").list_views(pageToken="")
    message = "Namespace does not exist: nowhere.at all"
    answer.refused(404, "NoSuchNamespaceException", message)


@pytest.mark.parametrize("size", ["0", "-1", "x", "1.5", "", "9" * 30])
def test_a_page_holds_a_whole_number_of_views(ns: Namespace, size: str) -> None:
    for query in ({"pageToken": ""}, {}):
        ns.list_views(pageSize=size, **query).refused(400, "BadRequestException")


@pytest.mark.parametrize("token", ["x", "10", "W10", "é", "AAAA" * 100])
def test_a_token_that_nobody_gave_is_refused(ns: Namespace, token: str) -> None:
    ns.list_views(pageToken=token).refused(400, "BadRequestException")
    ns.client.get("namespaces", pageToken=token).refused(400, "BadRequestException")


def test_a_token_belongs_to_its_listing(iceberg: Iceberg, views: Namespace) -> None:
    token = views.list_views(pageToken="", pageSize=1).ok()["next-page-token"]
    other = iceberg.new_namespace()
    other.list_views(pageToken=token).refused(400, "BadRequestException")
    answer = iceberg.get("namespaces", parent=views.name, pageToken=token)
    answer.refused(400, "BadRequestException")


def test_namespaces_have_pages_too(iceberg: Iceberg, ns: Namespace) -> None:
    for name in NAMES:
        ns.child(name).create().ok()

    def listing(**query: Any) -> Answer:
        return iceberg.get("namespaces", parent=ns.name, **query)

    pages = follow(listing, "namespaces", pageSize=4)
    assert [len(page) for page in pages] == [4, 4, 2]
    assert sorted(itertools.chain(*pages)) == sorted([*ns.levels, name] for name in NAMES)
    assert listing(pageSize=4).ok()["next-page-token"] is None


def test_a_page_is_never_larger_than_the_server_allows(tmp_path: Path) -> None:
    with servers.running(tmp_path, environ={"PENSTOCK__SERVER__MAX_PAGE": "2"}) as server:
        ns = Iceberg(server).new_namespace()
        for name in "abc":
            ns.create_view(name)
        for query in ({}, {"pageSize": 1_000_000_000}):
            pages = follow(ns.list_views, "identifiers", **query)
            assert [names(page) for page in pages] == [["a", "b"], ["c"]]
        assert len(ns.list_views().ok()["identifiers"]) == 3
