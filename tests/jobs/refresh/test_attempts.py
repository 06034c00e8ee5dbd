"""Refreshes that are killed, canceled or raced: one commit, and nothing twice."""

import uuid
from collections.abc import Sequence
from pathlib import Path

import lance
import pyarrow as pa
import pytest

from penstock.errors import ConcurrentCommit, LeaseLost
from penstock.jobs.engine.attempt import JobCanceled, JobPaused
from penstock.jobs.refresh.cascade import sweep_refreshes
from penstock.jobs.refresh.run import run_refresh, sweep_refresh
from penstock.lance.commit.removal import list_files
from tests.harness.data.sources import SourceHistory
from tests.harness.jobs.held_attempt import HeldAttempt
from tests.harness.jobs.local_engine import FolderLake
from tests.harness.views.local_views import LocalView, define

KINDS = {"id": pa.int64(), "a": pa.int64()}
KILLED = -9


@pytest.fixture
def history(tmp_path: Path) -> SourceHistory:
    return SourceHistory(tmp_path / "source", 5)


@pytest.fixture
def view(history: SourceHistory, tmp_path: Path) -> LocalView:
    view = LocalView(tmp_path, define({"id": "id", "a": "a"}, KINDS, ("id", "a"))).create()
    view.refresh()
    history.open().update({"a": "50"}, where="id < 5")
    history.do_append()
    return view


def rows_at(source: lance.LanceDataset) -> dict[int, tuple[int, int]]:
    rows = source.to_table(["id", "a"], with_row_id=True).to_pylist()
    return {row["_rowid"]: (row["id"], row["a"]) for row in rows}


@pytest.mark.parametrize("point", ["versions pinned", "files written"])
def test_after_a_kill_the_next_attempt_refreshes_to_the_same_versions(
    history: SourceHistory, view: LocalView, point: str
) -> None:
    job, pinned = str(uuid.uuid4()), history.open().version
    assert view.die_at(point, job) == KILLED
    history.do_append()
    written = set((view.path / "data").glob("rf-*"))
    done = view.refresh(HeldAttempt(job=job, number=2))
    assert (done.mode, done.source_versions) == ("incremental", {"n$source": pinned})
    assert view.rows() == rows_at(history.open(pinned))
    if point == "files written":
        # The finished files are used, and none is made again.
        assert set((view.path / "data").glob("rf-*")) == written
    assert not view.loose_files()


def test_what_was_committed_before_a_kill_is_reported_and_not_done_again(
    history: SourceHistory, view: LocalView
) -> None:
    job, pinned = str(uuid.uuid4()), history.open().version
    assert view.die_at("refresh committed", job) == KILLED
    version = view.open().version
    history.do_append()
    attempt = HeldAttempt(job=job, number=2)
    done = view.refresh(attempt)
    assert (done.version, view.open().version) == (version, version)
    assert attempt.told["rows_done"] == attempt.told["rows_total"] != 0
    assert (done.mode, done.rows_updated) == ("incremental", 5)
    assert done.source_versions == {"n$source": pinned}
    view.refresh()
    assert view.rows() == rows_at(history.open())


def test_a_commit_that_was_never_reported_is_what_the_next_job_starts_from(
    history: SourceHistory, view: LocalView
) -> None:
    assert view.die_at("refresh committed", str(uuid.uuid4())) == KILLED
    history.do_append()
    done = view.refresh()
    assert (done.mode, done.rows_updated) == ("incremental", 0)
    assert view.rows() == rows_at(history.open())


def test_a_canceled_refresh_changes_nothing(history: SourceHistory, view: LocalView) -> None:
    before, version = view.rows(), view.open().version

    def cancel() -> None:
        raise JobCanceled

    attempt = HeldAttempt(on_fence=cancel)
    with pytest.raises(JobCanceled):
        view.refresh(attempt)
    assert (view.rows(), view.open().version) == (before, version)
    assert sweep_refresh(view.spec(), view.catalog, attempt.job, attempt.number) == 1
    assert not view.loose_files()


def test_whoever_lost_the_job_commits_nothing(history: SourceHistory, view: LocalView) -> None:
    def lose() -> None:
        raise LeaseLost

    version = view.open().version
    with pytest.raises(LeaseLost):
        view.refresh(HeldAttempt(on_fence=lose))
    assert view.open().version == version


def test_whoever_lost_the_job_does_not_choose_versions_for_it(
    history: SourceHistory, view: LocalView
) -> None:
    job, checks = str(uuid.uuid4()), iter(["pinned"])

    def overtake() -> None:
        """The next attempt begins after this one has chosen, and dies with its files written."""
        if next(checks, None):
            history.open().update({"a": "60"}, where="id < 5")
            assert view.die_at("files written", job, number=2) == KILLED

    with pytest.raises(LeaseLost, match="other versions"):
        view.refresh(HeldAttempt(job=job, on_check=overtake))
    done = view.refresh(HeldAttempt(job=job, number=3))
    assert done.source_versions == {"n$source": history.open().version}
    assert view.rows() == rows_at(history.open())


def test_a_compaction_of_the_view_meanwhile_is_no_matter(
    history: SourceHistory, view: LocalView
) -> None:
    history.open().delete("id = 3")
    view.refresh()
    history.open().update({"a": "51"}, where="id < 5")
    fences = iter(["first", "second"])

    def compact() -> None:
        if next(fences, None) == "second":
            view.open().optimize.compact_files()

    assert view.refresh(HeldAttempt(on_fence=compact)).rows_updated == 4
    assert view.rows() == rows_at(history.open())
    assert len(view.open().get_fragments()) == 2


class CompactedLake(FolderLake):
    """A lake in which somebody compacts a table each time that a commit has looked at it."""

    def __init__(self, folder: Path, times: int) -> None:
        super().__init__(folder)
        self.times = times
        self._is_planned = False

    def open_latest(self, table: Sequence[str], branch: str) -> lance.LanceDataset:
        opened = super().open_latest(table, branch)
        if table[-1] == "view" and self._is_planned and self.times:
            self.times -= 1
            lance.dataset(opened.uri).optimize.compact_files()
        self._is_planned |= table[-1] == "view"
        return opened


def test_commits_that_lost_against_a_compaction_leave_no_files(
    history: SourceHistory, view: LocalView
) -> None:
    history.open().delete("id = 3")
    view.refresh()
    history.open().update({"a": "51"}, where="id = 2")
    lake, attempt = CompactedLake(view.folder, 2), HeldAttempt()
    done = run_refresh(view.spec(), lake, lambda: view.engine, attempt)
    assert (done.rows_updated, lake.times) == (1, 0)
    assert view.rows() == rows_at(history.open())
    referred = set[str]()
    for version in view.open().versions():
        referred |= list_files(view.open().checkout_version(version["version"]))
    written = {f"_deletions/{path.name}" for path in (view.path / "_deletions").iterdir()}
    assert written - referred == set()


def test_a_refresh_does_not_go_over_rows_that_somebody_wrote_meanwhile(
    history: SourceHistory, view: LocalView
) -> None:
    attempt = HeldAttempt(on_fence=lambda: view.open().insert(pa.table({"id": [7]})) and None)
    with pytest.raises(ConcurrentCommit, match="somebody else's append"):
        view.refresh(attempt)
    again = HeldAttempt(job=attempt.job, number=2)
    assert view.refresh(again).mode == "full"
    assert view.rows() == rows_at(history.open())


def test_of_two_refreshes_at_once_one_gives_way(history: SourceHistory, view: LocalView) -> None:
    fences = iter(["first", "second"])

    def overtake() -> None:
        if next(fences, None) == "second":
            LocalView(view.folder, view.definition, watermark=view.watermark).refresh()

    with pytest.raises(ConcurrentCommit, match="another refresh"):
        view.refresh(HeldAttempt(on_fence=overtake))
    assert view.rows() == rows_at(history.open())


def tags_of(source: lance.LanceDataset) -> set[int]:
    return {tag["version"] for tag in source.tags.list().values()}


def test_whoever_lost_the_job_lets_go_of_nothing_that_is_newer(
    history: SourceHistory, view: LocalView
) -> None:
    late = view.path / "_refresh" / "failed-late.rows"
    later = LocalView(view.folder, view.definition, watermark=view.watermark)

    class Overtaken(HeldAttempt):
        def log(self, text: str, level: str = "info") -> None:
            """Between the commit and the end another job refreshes the view, twice."""
            if not text.startswith("version "):
                return
            for _ in range(2):
                history.do_append()
                later.refresh()
            late.parent.mkdir()
            late.touch()

    view.refresh(Overtaken())
    assert late.exists()
    now = history.open().version
    assert tags_of(history.open()) >= {now - 1, now}
    view.watermark = later.watermark
    history.do_append()
    assert view.refresh().mode == "incremental"
    assert view.rows() == rows_at(history.open())


def test_a_refresh_is_done_although_nothing_can_be_let_go(
    history: SourceHistory, view: LocalView
) -> None:
    view.refresh()
    history.do_append()
    tags = Path(history.path) / "_refs" / "tags"

    def hinder() -> None:
        if tags.is_dir():
            tags.rename(tags.with_name("away"))
            tags.touch()

    attempt = HeldAttempt(on_fence=hinder)
    done = view.refresh(attempt)
    assert (done.mode, done.version) == ("incremental", view.open().version)
    assert "left to the next refresh" in attempt.lines[-1]


def paused(view: LocalView) -> HeldAttempt:
    """An attempt that was paused when its files were written."""

    def pause() -> None:
        raise JobPaused

    attempt = HeldAttempt(on_fence=pause)
    with pytest.raises(JobPaused):
        view.refresh(attempt)
    return attempt


def test_a_paused_refresh_goes_on_with_its_files_and_versions(
    history: SourceHistory, view: LocalView
) -> None:
    pinned, attempt = history.open().version, paused(view)
    written = set((view.path / "data").glob("rf-*"))
    history.do_append()
    done = view.refresh(HeldAttempt(job=attempt.job, number=2))
    assert done.source_versions == {"n$source": pinned}
    assert set((view.path / "data").glob("rf-*")) == written
    assert view.rows() == rows_at(history.open(pinned))


def test_a_paused_refresh_does_not_take_the_view_back_behind_another(
    history: SourceHistory, view: LocalView
) -> None:
    attempt = paused(view)
    history.open().update({"a": "70"}, where="id < 3")
    view.refresh()
    history.do_append()
    again = HeldAttempt(job=attempt.job, number=2)
    done = run_refresh(view.spec(), view.catalog, lambda: view.engine, again)
    assert done.source_versions == {"n$source": history.open().version}
    assert (done.mode, view.rows()) == ("incremental", rows_at(history.open()))
    assert any("took the view further" in line for line in again.lines)
    sweep_refreshes(view.spec(), view.catalog, attempt.job, again.number)
    assert not view.loose_files()


def test_a_paused_refresh_that_was_overtaken_and_killed_is_finished_by_the_next_attempt(
    history: SourceHistory, view: LocalView
) -> None:
    attempt = paused(view)
    history.open().update({"a": "70"}, where="id < 3")
    view.refresh()
    history.do_append()
    assert view.die_at("files written", attempt.job, number=2) == KILLED
    history.do_append()
    view.refresh(HeldAttempt(job=attempt.job, number=3))
    assert view.rows() == rows_at(history.open())
