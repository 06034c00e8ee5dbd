"""Reading manifests: the ones that Lance writes, and anything else."""

import contextlib
from pathlib import Path

import lance
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from penstock.lance.commit.manifest import (
    MAX_VERSION,
    BadManifest,
    Manifest,
    manifest_name,
    parse_manifest,
    parse_name,
)
from tests.harness.data.manifests import make_manifest


def test_a_manifest_of_lance_tells_version_branch_time_and_transaction(tmp_path: Path) -> None:
    path = str(tmp_path / "t.lance")
    lance.write_dataset(pa.table({"a": [1]}), path)
    dataset = lance.write_dataset(pa.table({"a": [2]}), path, mode="append")
    found = parse_manifest((tmp_path / f"t.lance/_versions/{manifest_name(2, 'V2')}").read_bytes())
    assert (found.version, found.branch) == (2, "")
    transaction, newest = dataset.read_transaction(2), dataset.versions()[-1]
    assert transaction is not None
    assert found.transaction_id == transaction.uuid
    assert abs(found.timestamp_millis / 1000 - newest["timestamp"].timestamp()) < 1  # type: ignore[union-attr]


def test_a_manifest_of_a_branch_tells_the_branch(tmp_path: Path) -> None:
    dataset = lance.write_dataset(pa.table({"a": [1]}), str(tmp_path / "t.lance"))
    dataset.create_branch("team/dev")
    folder = tmp_path / "t.lance/tree/team/dev/_versions"
    found = parse_manifest((folder / manifest_name(1, "V2")).read_bytes())
    assert found.branch == "team/dev"


def test_a_large_manifest_is_walked_not_decoded() -> None:
    found = parse_manifest(make_manifest(9, filler=2_000_000, transaction="abc"))
    assert found == Manifest(9, "", 1_700_000_000_005, "abc")


@given(st.binary(max_size=200))
def test_bytes_that_are_no_manifest_are_refused(data: bytes) -> None:
    with pytest.raises(BadManifest):
        parse_manifest(data)


@given(st.data())
def test_a_damaged_manifest_is_refused_or_read_but_never_breaks(data: st.DataObject) -> None:
    content = bytearray(make_manifest(5, "dev"))
    for _ in range(data.draw(st.integers(1, 4))):
        content[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.integers(0, 255))
    with contextlib.suppress(BadManifest):
        assert parse_manifest(bytes(content)).version > 0


@given(st.integers(1, MAX_VERSION), st.sampled_from(["V1", "V2"]))
def test_a_final_name_tells_its_version_and_scheme(version: int, scheme: str) -> None:
    assert parse_name(manifest_name(version, scheme)) == (version, scheme)


@pytest.mark.parametrize(
    "name",
    [
        "latest_version_hint.json",
        "18446744073709551614.manifest-0f7c",
        "0.manifest",
        "x.manifest",
        "d9223372036854775809.manifest",
    ],
)
def test_other_files_have_no_version(name: str) -> None:
    assert parse_name(name) is None
