"""Specs of jobs: what an older release has queued still decodes, and each kind is whole."""

from typing import Any

import msgspec
import pytest

from penstock.catalog.jobs.kinds import KINDS as HANDLED
from penstock.errors import InvalidRequest, Unsupported
from penstock.jobs.specs import (
    KINDS,
    BackfillSpec,
    PreviewSpec,
    RefreshSpec,
    UpstreamSpec,
    decode_reach,
    decode_spec,
    tell_result,
)
from penstock.model.functions import Needs
from penstock.model.jobs import NewJob
from penstock.model.slots import slot_of_column, slot_of_preview, slot_of_view

COLUMN = {"table": ["n", "t"], "table_id": "x", "column": "c", "inputs": ["a"]}
DEFINITION = {
    "kind": "query",
    "shape": "whole",
    "language": "spark",
    "sources": [{"id": "s", "table": ["n", "t"], "name": "t", "reads": []}],
    "schema": "",
    "digest": "d",
}
VIEW = {"table": ["n", "v"], "table_id": "v", "definition": DEFINITION}


def decode(kind: str, spec: dict[str, Any]) -> Any:
    return decode_spec(kind, msgspec.json.encode(spec))


def test_every_kind_has_a_recipe_and_a_part_of_the_server() -> None:
    assert KINDS.keys() == HANDLED.keys()
    for kind in KINDS.values():
        recipe = kind.load_recipe()
        assert callable(recipe.run)
        assert callable(recipe.sweep)


def test_fields_that_an_older_release_did_not_have_take_their_defaults() -> None:
    assert decode("backfill", COLUMN).num_frags is None
    assert decode("preview", COLUMN | {"rows": 3}) == PreviewSpec(
        table=("n", "t"), table_id="x", column="c", inputs=("a",), rows=3
    )
    found = decode("refresh", VIEW)
    assert (found.upstream, found.states, found.source_ids) == ((), {}, ())


def test_fields_that_nobody_knows_any_more_are_ignored() -> None:
    old = {"resources": {"num_cpus": 2, "num_tpus": 1}, "priority": 7}
    assert decode("backfill", COLUMN | old).resources == Needs(num_cpus=2)


def test_a_view_on_the_way_has_an_environment_of_its_own() -> None:
    found = decode("refresh", VIEW | {"upstream": [VIEW | {"manifest": "{}"}]})
    assert isinstance(found, RefreshSpec)
    (upstream,) = found.upstream
    assert isinstance(upstream, UpstreamSpec)
    assert upstream.manifest == "{}"


def test_what_is_stored_decodes_to_what_it_was() -> None:
    for spec in (decode("backfill", COLUMN), decode("refresh", VIEW | {"upstream": [VIEW]})):
        assert msgspec.json.decode(msgspec.json.encode(spec), type=type(spec)) == spec


def test_what_cannot_be_read_is_refused() -> None:
    with pytest.raises(InvalidRequest, match="column"):
        decode("backfill", {"table": ["t"]})
    with pytest.raises(InvalidRequest, match="cannot be read"):
        decode_spec("refresh", "{")
    with pytest.raises(Unsupported, match="'dance'"):
        decode("dance", {})


def test_rights_see_what_a_job_of_any_kind_works_on() -> None:
    spec = VIEW | {"upstream": [VIEW | {"table_id": "w"}], "source_ids": ["s"]}
    reach = decode_reach(msgspec.json.encode(spec))
    assert (reach.target_ids, reach.source_ids) == (["v", "w"], ("s",))
    assert decode_reach(b"{}").target_ids == []


def test_a_preview_of_a_view_reaches_what_its_alteration_reads() -> None:
    spec = PreviewSpec(
        table=("n", "v"),
        table_id="v",
        column="c",
        rows=8,
        altered=RefreshSpec(table=("n", "v"), definition=decode("refresh", VIEW).definition),
        source_ids=("s",),
    )
    reach = decode_reach(msgspec.json.encode(spec))
    assert (reach.target_ids, reach.source_ids) == (["v"], ("s",))
    assert decode_spec("preview", msgspec.json.encode(spec)) == spec


def test_a_watermark_makes_no_other_request() -> None:
    spec = BackfillSpec(table=("t",), column="c")
    known = decode("backfill", COLUMN | {"watermarks": [{"version": 1}]})
    fresh = decode("backfill", COLUMN)
    slot = slot_of_column("x", "", "c")
    hashes = [
        NewJob("backfill", "t", "t.c", slot, each, "local").spec_hash
        for each in (known, fresh, spec)
    ]
    assert hashes[0] == hashes[1] != hashes[2]


def test_what_a_runner_reports_is_told_as_far_as_it_is_what_it_should_be() -> None:
    upstream = {"w": {"view": "n$w", "version": 3, "mode": "full", "rows_inserted": 1}, "x": 1}
    result = {"mode": "full", "rows_inserted": 2, "reason": None, "upstream": upstream, "more": 1}
    assert tell_result("refresh", result) == {
        "mode": "full",
        "rows_inserted": 2,
        "upstream": '{"n$w":{"version":3,"mode":"full"}}',
    }
    assert tell_result("refresh", {"upstream": {}}) == {}
    assert tell_result("backfill", {"mode": "full"}) == {}
    assert tell_result("of a newer release", {"mode": "full"}) == {}


def test_slots_begin_with_the_table() -> None:
    assert str(slot_of_column("x", "dev", "c")) == "x/dev/c"
    assert str(slot_of_view("x")) == "x//refresh"
    assert str(slot_of_preview("x")) != str(slot_of_preview("x"))
    assert slot_of_preview("x").object_id == "x"
