"""One spelling of a location: what is accepted means the same to pylance, to obstore and to us."""

import os
from collections.abc import Callable
from pathlib import Path

import lance
import obstore
import pyarrow as pa
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from penstock.errors import InvalidRequest, InvalidTableState
from penstock.lance.session.remote import Location
from penstock.lance.storage import files
from penstock.lance.storage.lake import Lake
from tests.harness.data.locations import ODD, SPELLINGS, STEPS
from tests.harness.processes.s3 import BUCKET, Store

ROWS = pa.table({"n": [1]})
texts = st.text(st.sampled_from("ab./%2eE5c?#\\ ;:~*$é\u0301{}"), min_size=1, max_size=12)


@pytest.fixture(scope="module")
def remote(store: Store) -> Lake:
    return Lake(f"s3://{BUCKET}/lake", options=store.options)


@pytest.fixture(scope="module", params=["local", "s3"])
def lake(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Lake:
    if request.param == "local":
        return Lake(str(tmp_path_factory.mktemp("data") / "lake"))
    return Lake(f"s3://{BUCKET}/lake", options={"aws_region": "us-east-1"})


@pytest.mark.parametrize("step", STEPS, ids=ascii)
def test_a_step_that_some_read_otherwise_is_refused(lake: Lake, step: str) -> None:
    for text in (step, f"{step}/t", f"a/{step}", f"a/{step}/t", f"{step}/{step}/x"):
        for location in (text, f"{lake.root}/{text}"):
            with pytest.raises(InvalidRequest) as refused:
                lake.accept(location)
            assert refused.value.message.startswith("location")
            assert refused.value.detail


@pytest.mark.parametrize("spelling", SPELLINGS, ids=ascii)
def test_a_spelling_that_leads_elsewhere_is_refused(lake: Lake, spelling: str) -> None:
    location = spelling.replace("{root}", lake.root)
    with pytest.raises(InvalidRequest):
        lake.accept(location)


def test_every_spelling_has_one_form(lake: Lake) -> None:
    wanted = f"{lake.root}/a/t.lance"
    spelt = ["a/t.lance", "a/t.lance/", wanted, f"{wanted}/"]
    if lake.root.startswith("/"):
        spelt += [f"file://{wanted}", f"file:{wanted}", f"{lake.root}//a/./t.lance"]
    assert {lake.accept(each) for each in spelt} == {wanted}


def test_a_location_in_an_odd_root_is_accepted_as_it_was_told(tmp_path: Path) -> None:
    lake = Lake(str(tmp_path / "100% #1?"))
    location = lake.accept("t")
    assert lake.accept(location) == location == f"{tmp_path}/100% #1?/t"
    assert lake.accept(lake.place(location).uri) == location


@pytest.mark.parametrize("root", ["s3://b/a%2e", "s3://b/../x", "s3a://b/x", "s3://u@b/x", "s3://"])
def test_a_root_that_is_not_read_alike_is_refused(root: str) -> None:
    with pytest.raises(InvalidRequest, match=r"storage\.root"):
        Lake(root)


def test_a_link_to_another_root_counts_as_what_it_leads_to(tmp_path: Path) -> None:
    lake = Lake(str(tmp_path / "lake"))
    (tmp_path / "lake").mkdir()
    (tmp_path / "lake" / "in").symlink_to(tmp_path / "lake" / "t")
    (tmp_path / "lake" / "out").symlink_to(tmp_path / "elsewhere")
    assert lake.accept("in") == f"{tmp_path}/lake/t"
    for name in ("out", "out/t"):
        with pytest.raises(InvalidRequest):
            lake.accept(name)


def test_a_place_of_old_that_is_not_read_alike_is_not_opened(remote: Lake) -> None:
    with pytest.raises(InvalidTableState, match="not one that everybody reads alike"):
        remote.place(f"s3://{BUCKET}/lake/%2e%2e/secret.lance")


def test_a_worker_finds_the_folder_that_pylance_writes(tmp_path: Path) -> None:
    place = Lake(str(tmp_path)).place(f"{tmp_path}/a b%41.lance")
    lance.write_dataset(ROWS, place.uri)
    assert files.list_folder(Location(place.uri, "").place(), "_versions")


def check_s3(store: Store, lake: Lake, location: str) -> None:
    """pylance's own files are where obstore looks for them, and nowhere else."""
    place = lake.place(location)
    lance.write_dataset(ROWS, location, storage_options=store.options, mode="overwrite")
    obstore.put(place.store, f"{place.key}/x", b"x")
    assert files.list_folder(place, "_versions")
    assert f"{place.key}/x" in store.keys(f"{place.key}/")
    assert [key for key in store.keys("") if not key.startswith(f"{place.key}/")] == []
    files.remove_all(place)


def check_local(lake: Lake, location: str) -> None:
    place = lake.place(location)
    for uri in (location, place.uri):
        lance.write_dataset(ROWS, uri, mode="overwrite")
    found = [folder for folder, _, _ in os.walk(lake.root) if folder.endswith("/_versions")]
    assert found == [f"{location}/_versions"]
    names = [entry.name for entry in files.list_folder(place, "_versions")]
    assert len([name for name in names if name.endswith(".manifest")]) == 2


def test_an_odd_folder_is_the_same_to_both_libraries(
    store: Store, remote: Lake, tmp_path: Path
) -> None:
    for step in ODD:
        check_s3(store, remote, remote.accept(f"odd/{step}/t"))
        local = Lake(str(tmp_path / f"{ODD.index(step)}"))
        check_local(local, local.accept(f"odd/{step}/t"))


def accepted(lake: Lake, text: str, check: Callable[[str], None]) -> None:
    try:
        location = lake.accept(text)
    except InvalidRequest:
        return
    assert lake.accept(location) == location
    check(location)


@example("a%2e")
@example("a//b")
@settings(max_examples=25, deadline=None)
@given(texts)
def test_whatever_is_accepted_survives_both_libraries(
    store: Store, remote: Lake, text: str
) -> None:
    accepted(remote, f"any/{text}/t", lambda location: check_s3(store, remote, location))


@pytest.mark.slow
@settings(max_examples=400, deadline=None)
@given(texts)
def test_whatever_is_accepted_survives_on_local_storage_too(
    tmp_path_factory: pytest.TempPathFactory, text: str
) -> None:
    lake = Lake(str(tmp_path_factory.mktemp("lake")))
    accepted(lake, f"any/{text}/t", lambda location: check_local(lake, location))
