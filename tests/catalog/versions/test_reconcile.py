"""What reconciling decides, as pure data, and that random histories lose nothing."""

from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from penstock.catalog.versions.reconcile import plan_reconcile
from penstock.lance.commit.manifest import manifest_name
from penstock.lance.storage.files import FileEntry
from penstock.model.tables import TableVersion


def record(version: int, *, settled: bool = True) -> TableVersion:
    final = f"_versions/{manifest_name(version, 'V2')}"
    return TableVersion(version, final, 1, 0, staged_path=f"{final}-x", settled=settled)


def file(version: int) -> FileEntry:
    return FileEntry(manifest_name(version, "V2"), 1, 0, None)


def staged(name: str, modified_millis: int) -> FileEntry:
    return FileEntry(f"{name}.manifest-abc", 1, modified_millis, None)


def test_what_agrees_needs_nothing() -> None:
    found = plan_reconcile([record(1), record(2)], [file(1), file(2)], "_versions", 0)
    assert (found.adopt, found.forget, found.finish, found.collect) == ([], [], [], [])


def test_versions_above_the_newest_record_are_adopted_in_order() -> None:
    found = plan_reconcile([record(1)], [file(3), file(1), file(2)], "_versions", 0)
    assert [v.version for v in found.adopt] == [2, 3]


def test_a_deleted_record_below_the_newest_stays_deleted() -> None:
    assert plan_reconcile([record(2)], [file(1), file(2)], "_versions", 0).adopt == []


def test_a_record_whose_file_was_cleaned_up_is_forgotten() -> None:
    assert plan_reconcile([record(1), record(2)], [file(2)], "_versions", 0).forget == [1]


def test_an_unsettled_record_is_finished_never_forgotten() -> None:
    found = plan_reconcile([record(1, settled=False)], [], "_versions", 0)
    assert found.forget == []
    assert [v.version for v in found.finish] == [1]


def test_only_old_staged_files_that_no_record_waits_for_are_collected() -> None:
    waiting = record(1, settled=False)
    entries = [
        staged("old", 10),
        staged("young", 200),
        FileEntry(waiting.staged_path.rpartition("/")[2], 1, 10, None),
    ]
    found = plan_reconcile([waiting], entries, "_versions", 100)
    assert found.collect == ["_versions/old.manifest-abc"]


@given(st.sets(st.integers(1, 30)), st.sets(st.integers(1, 30)))
def test_after_reconciling_the_records_are_what_lies_on_storage_above_the_newest(
    recorded: set[int], on_storage: set[int]
) -> None:
    found = plan_reconcile(
        [record(v) for v in recorded], [file(v) for v in on_storage], "_versions", 0
    )
    after = recorded - set(found.forget) | {v.version for v in found.adopt}
    head = max(recorded, default=0)
    assert after == (recorded & on_storage) | {v for v in on_storage if v > head}
    assert Path("_versions") == Path(found.adopt[0].manifest_path).parent if found.adopt else True
