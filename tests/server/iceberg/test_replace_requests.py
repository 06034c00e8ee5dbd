"""Requests to replace a view: on what condition, and of what form."""

from typing import Any

import pytest

from tests.harness.clients.iceberg import Namespace, View
from tests.harness.clients.iceberg_views import Json, set_properties


def test_a_requirement_names_the_view_in_any_case(view: View) -> None:
    required = [{"type": "assert-view-uuid", "uuid": view.uuid.upper()}]
    assert view.replace(set_properties(a="b"), requirements=required).properties == {"a": "b"}


def test_a_requirement_that_does_not_hold_is_a_conflict(view: View) -> None:
    other = "9c12d441-03fe-4693-9a96-a0705ddf69c1"
    required = [{"type": "assert-view-uuid", "uuid": other}]
    answer = view.try_replace(set_properties(a="b"), requirements=required)
    message = f"Requirement failed: view UUID does not match: expected {view.uuid} != {other}"
    answer.refused(409, "CommitFailedException", message)
    assert view.load().properties == {}


def test_a_view_that_was_made_anew_is_another_one(ns: Namespace, view: View) -> None:
    view.drop().done()
    ns.create_view()
    answer = view.try_replace(set_properties(a="b"))
    answer.refused(409, "CommitFailedException", "Requirement failed: view UUID does not match")


@pytest.mark.parametrize("body", [{"requirements": []}, {"requirements": None}, {}])
def test_requirements_may_be_left_out(view: View, body: Json) -> None:
    whole = {"updates": [set_properties(a="b")], **body}
    answer = view.client.post(view.path, whole).ok()
    assert answer["metadata"]["properties"] == {"a": "b"}


@pytest.mark.parametrize(
    "requirement",
    [
        {"type": "assert-create"},
        {"type": "assert-table-uuid", "uuid": "x"},
        {"type": "assert-view-uuid"},
        {"type": "assert-view-uuid", "uuid": 7},
        {},
        "assert-view-uuid",
    ],
)
def test_other_requirements_are_refused(view: View, requirement: Any) -> None:
    answer = view.try_replace(set_properties(a="b"), requirements=[requirement])
    answer.refused(400, "BadRequestException")


def test_an_identifier_must_be_that_of_the_path(ns: Namespace, view: View) -> None:
    for other in (ns.view("other"), ns.child("a").view("view")):
        answer = view.try_replace(set_properties(a="b"), identifier=other.identifier)
        answer.refused(400, "BadRequestException")
    view.replace(set_properties(a="b"), identifier=view.identifier)


@pytest.mark.parametrize(
    "update",
    [
        {"action": "add-snapshot", "snapshot": {}},
        {"action": "nonsense"},
        {"action": 7},
        {},
        "set-properties",
        {"action": "set-properties"},
        {"action": "set-properties", "updates": {"a": 1}},
        {"action": "remove-properties", "removals": "a"},
        {"action": "add-schema"},
        {"action": "add-schema", "schema": {"type": "list"}},
        {"action": "add-view-version", "view-version": {}},
        {"action": "set-current-view-version", "view-version-id": "1"},
        {"action": "upgrade-format-version", "format-version": True},
    ],
)
def test_an_update_that_cannot_be_read_is_refused(view: View, update: Any) -> None:
    known = view.load()
    view.try_replace(set_properties(a="b"), update).refused(400, "BadRequestException")
    assert view.load() == known
