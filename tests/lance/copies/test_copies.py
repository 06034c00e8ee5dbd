"""Copies of tables: which files belong to a moment, and manifests that name their own folder."""

import shutil
from pathlib import Path

import lance
import pytest

from penstock.lance.commit.manifest import BadManifest, manifest_name
from penstock.lance.copies import copy_plan, transfer
from penstock.lance.copies.rebasing import rebase
from penstock.lance.copies.tables import moved_base, rebase_folder
from penstock.lance.copies.transfer import File
from penstock.lance.storage.lake import Lake
from tests.harness.data.arrow import people

V1, V2, V3 = (manifest_name(number, "V2") for number in (1, 2, 3))


def choose(*paths: str, **heads: int) -> list[str]:
    found = copy_plan.plan_copy(
        [File(path, 1) for path in paths], {"": heads.pop("main", 0), **heads}
    )
    return [file.path for file in (*found.files, *found.tags, *found.branches)]


def test_versions_of_later_are_not_of_the_moment() -> None:
    paths = (f"_versions/{V1}", f"_versions/{V2}", f"_versions/{V3}", f"tree/a/b/_versions/{V1}")
    assert choose(*paths, main=2) == [*paths[:2]]
    assert choose(*paths, main=1, **{"a/b": 1}) == [paths[0], paths[3]]


def test_drafts_and_hints_and_holds_are_nobody_s() -> None:
    kept = ("data/a.lance", "_refs/tags/mine.json", "_refs/branches/b.json")
    passing = (
        *(f"_versions/{V1}-staged", "_versions/latest_version_hint.json", "data/.tmp_x"),
        *("_jobs/x.tmp", "_refs/tags/penstock-backup-1-0.json"),
    )
    assert choose(*kept, *passing) == [*kept]


@pytest.mark.parametrize("name", ["n", "a-much-longer-name-than-the-table-had-before"])
def test_branches_of_a_copied_table_read_the_copy(tmp_path: Path, name: str) -> None:
    was, now = tmp_path / "was.lance", tmp_path / f"{name}.lance"
    dataset = lance.write_dataset(people(1, 2), was)
    dataset.create_branch("dev").insert(people(3))
    shutil.move(was, now)
    place = Lake(str(tmp_path)).place(str(now))
    paths = [file.path for file in transfer.list_files(place)]
    changed = rebase_folder(place, paths, moved_base(str(was), str(now)))
    assert {path.split("/")[0] for path in changed} == {"tree"}
    assert lance.dataset(now).checkout_version(("dev", None)).count_rows() == 3
    assert rebase_folder(place, paths, moved_base(str(was), str(now))) == {}


def test_what_is_no_manifest_is_not_rewritten() -> None:
    for content in (b"", b"short", bytes(64)):
        with pytest.raises(BadManifest):
            rebase(content, str.upper)
