"""What holds for every view after any updates."""

import contextlib
import copy

from hypothesis import given, settings
from hypothesis import strategies as st
from pyiceberg.view.metadata import ViewMetadata

from penstock.errors import InvalidRequest
from penstock.iceberg.files import decode_metadata, encode_metadata, next_metadata_path
from penstock.iceberg.history import history_limit
from penstock.iceberg.metadata import Json, current_representations, current_schema, properties
from penstock.iceberg.register import check_metadata
from tests.iceberg.views import (
    UUID,
    add_schema,
    add_version,
    column,
    created,
    logged_ids,
    remove_properties,
    replaced,
    set_current,
    set_location,
    set_properties,
    sql,
    version_ids,
)

HISTORY = "version.history.num-entries"
DROP = "replace.drop-dialect.allowed"

schemas = st.builds(
    lambda names, doc: add_schema(
        *(column(n, name, "int", doc=doc) for n, name in enumerate(names, 1)), newer=doc
    ),
    st.lists(st.sampled_from("abc"), unique=True, max_size=3),
    st.sampled_from([None, "d"]),
)
versions = st.builds(
    lambda dialects, text, wanted, schema_id, millis: add_version(
        *(sql(dialect, text, newer=text) for dialect in dialects),
        version_id=wanted,
        schema_id=schema_id,
        timestamp_ms=millis,
        newer=text,
    ),
    st.lists(st.sampled_from(["spark", "Trino", "duckdb"]), unique=True, min_size=1),
    st.sampled_from(["select 1", "select 2", "select 3"]),
    st.integers(-1, 12),
    st.sampled_from([-1, 0, 0, 0, 1]),
    st.none() | st.integers(0, 2**50),
)
updates = st.one_of(
    schemas,
    versions,
    versions,
    st.builds(set_current, st.sampled_from([-1, -1, -1, 1, 2, 3, 7])),
    st.builds(lambda n: set_properties({HISTORY: str(n)}), st.integers(1, 4)),
    st.builds(lambda flag: set_properties({DROP: flag}), st.sampled_from(["true", "false"])),
    st.builds(remove_properties, st.sampled_from([HISTORY, DROP, "x"])),
    st.builds(set_location, st.sampled_from(["s3://a", "s3://b/"])),
    st.just({"action": "assign-uuid", "uuid": UUID}),
)
commits = st.lists(st.lists(updates, max_size=5), max_size=12)


@settings(max_examples=200, deadline=None)
@given(commits)
def test_any_updates_that_are_accepted_keep_a_view_whole(history: list[list[Json]]) -> None:
    view = {**created(), "newer": {"x": [1]}}
    view = replaced(view, set_properties({DROP: "true"}))
    for commit in history:
        before = copy.deepcopy(view)
        after = view
        with contextlib.suppress(InvalidRequest):
            after = replaced(view, *commit)
        assert view == before
        check_whole(before, after, commit)
        view = after


def check_whole(before: Json, after: Json, commit: list[Json]) -> None:
    ids, schema_ids = version_ids(after), [each["schema-id"] for each in after["schemas"]]
    assert len(set(ids)) == len(ids)
    assert len(set(schema_ids)) == len(schema_ids)
    assert after["current-version-id"] in ids
    assert {each["schema-id"] for each in after["versions"]} <= set(schema_ids)
    assert logged_ids(after)[-1] == after["current-version-id"]
    assert set(logged_ids(after)) <= set(ids)
    assert len(logged_ids(after)) <= len(logged_ids(before)) + 1
    added = sum(update["action"] == "add-view-version" for update in commit)
    if after != before:
        assert len(ids) <= max(history_limit(properties(after)), added + 1)
    assert after["schemas"][: len(before["schemas"])] == before["schemas"]
    assert all(each in after["versions"] for each in before["versions"] if is_kept(each, ids))
    assert (after["view-uuid"], after["newer"]) == (before["view-uuid"], before["newer"])
    assert check_metadata(after) == after
    assert current_representations(after)
    assert current_schema(after)["type"] == "struct"
    seen = ViewMetadata.model_validate(after)
    assert [each.version_id for each in seen.versions] == ids
    path = next_metadata_path(after["location"], properties(after), None, UUID)
    assert decode_metadata(encode_metadata(after, path), path) == after


def is_kept(version: Json, ids: list[int]) -> bool:
    return version["version-id"] in ids


@settings(deadline=None)
@given(commits)
def test_the_same_commit_again_changes_nothing_but_the_versions_it_names(
    history: list[list[Json]],
) -> None:
    """What a commit sets is set, so that its second run finds schemas and properties in place."""
    view = created(properties={DROP: "true"})
    for commit in history:
        plain = [each for each in commit if each["action"] in ("set-properties", "add-schema")]
        view = replaced(view, *plain)
        last: dict[str, str] = {}
        for each in plain:
            last |= each.get("updates", {})
        assert replaced(view, set_properties(last), *(p for p in plain if "schema" in p)) is view
