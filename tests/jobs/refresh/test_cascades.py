"""Views refreshed together with the views that they read: all of one moment, seen all or none."""

import os
import shutil
import signal
import time
import uuid
from pathlib import Path

import pytest

from penstock.errors import ConcurrentCommit, LeaseLost
from penstock.jobs.engine.attempt import JobPaused
from penstock.jobs.engine.worker_notes import write_note
from penstock.jobs.kept.sweep import ABANDONED_SECONDS, sweep
from penstock.jobs.refresh.view_notes import list_keys, write_key
from tests.harness.jobs.held_attempt import HeldAttempt
from tests.harness.views.cascades import Chain, make_chain


@pytest.fixture
def chain(tmp_path: Path) -> Chain:
    return make_chain(tmp_path)


def test_views_are_refreshed_in_order_from_one_version_of_the_source(chain: Chain) -> None:
    done = chain.refresh()
    assert chain.is_right()
    assert chain.versions() == [2, 2, 2]
    one, two = done.upstream[chain.one.id], done.upstream[chain.two.id]
    assert [one.view, two.view, done.view] == ["n$one", "n$two", "n$three"]
    assert one.source_versions == {"n$source": 1}
    assert two.source_versions == {"n$one": 2}
    assert done.source_versions == {"n$two": 2}
    assert len(chain.three.rows()) > 0


def test_what_a_cascade_left_is_followed_by_the_next_one(chain: Chain) -> None:
    chain.refresh()
    chain.history.open().update({"a": "5"}, where="id = 3")
    done = chain.refresh()
    found = [done.upstream[chain.one.id], done.upstream[chain.two.id], done]
    assert [each.mode for each in found] == ["incremental"] * 3
    assert [each.rows_inserted + each.rows_updated for each in found] == [1, 1, 1]
    assert chain.is_right()
    again = chain.refresh()
    assert [again.mode, *(each.mode for each in again.upstream.values())] == ["none"] * 3
    assert chain.versions() == [3, 3, 3]
    # The versions that are compared with next time are kept, and no others any more.
    for view, reader in [(chain.one, chain.two), (chain.two, chain.three)]:
        tags = view.open().tags.list()
        kept = [tag["version"] for name, tag in tags.items() if f"-{reader.name}0" in name]
        assert kept == [3], view.name


@pytest.mark.parametrize("seed", range(4))
def test_each_view_is_its_query_whatever_happened(tmp_path: Path, seed: int) -> None:
    chain = make_chain(tmp_path, seed)
    for _ in range(6):
        chain.history.step()
        done = chain.refresh()
        version = done.upstream[chain.one.id].source_versions["n$source"]
        assert version == chain.history.open().version
        assert chain.is_right(), chain.history.steps
        # A view may also be refreshed by itself in between.
        chain.history.do_append()
        chain.one.refresh()
    for view in chain.views:
        assert view.loose_files() == set()


def test_versions_that_come_while_it_runs_are_for_the_next_one(chain: Chain) -> None:
    # The first fence is before the first commit that is held back.
    attempt = HeldAttempt()

    def append_once() -> None:
        attempt.on_fence = lambda: None
        chain.history.do_append()

    attempt.on_fence = append_once
    chain.refresh(attempt)
    assert chain.is_right(1)
    assert chain.history.open().version == 2
    chain.refresh()
    assert chain.is_right(2)


def test_a_commit_that_comes_between_lets_nothing_be_seen(chain: Chain) -> None:
    chain.refresh()
    chain.history.do_append()
    attempt = HeldAttempt()

    def interfere() -> None:
        # All that is left to do is to publish what is held back.
        if list(chain.three.path.glob("_jobs/*/*/*.manifest")):
            chain.two.open().create_scalar_index("id", "BTREE")

    attempt.on_fence = interfere
    with pytest.raises(ConcurrentCommit):
        chain.try_to(attempt)
    assert chain.versions() == [2, 3, 2]
    second = HeldAttempt(job=attempt.job, number=2)
    chain.refresh(second)
    assert chain.versions() == [3, 4, 3]
    assert chain.is_right()
    assert all(view.loose_files() == set() for view in chain.views)


def test_an_attempt_after_the_last_one_published_only_reports(chain: Chain) -> None:
    job = str(uuid.uuid4())
    first = chain.try_to(HeldAttempt(job=job))
    for view in chain.views:
        view.watermark = None
    chain.history.do_append()
    again = chain.refresh(HeldAttempt(job=job, number=2))
    assert chain.versions() == [2, 2, 2]
    assert again.watermark == first.watermark
    assert chain.is_right(1)


def test_views_without_anything_to_do_stay_when_only_the_report_was_lost(chain: Chain) -> None:
    chain.one.refresh()
    job = str(uuid.uuid4())
    first = chain.refresh(HeldAttempt(job=job))
    assert first.upstream[chain.one.id].mode == "none"
    chain.two.watermark = chain.three.watermark = None
    chain.history.open().update({"a": "5"}, where="id IN (3, 4)")
    again = chain.refresh(HeldAttempt(job=job, number=2))
    assert chain.versions() == [2, 2, 2]
    assert chain.is_right(1)
    one, two = again.upstream[chain.one.id], again.upstream[chain.two.id]
    assert [one.mode, two.mode, again.mode] == ["none", "full", "full"]
    assert one.watermark == first.upstream[chain.one.id].watermark
    assert [chain.refresh().mode, chain.is_right()] == ["incremental", True]


def test_views_that_never_had_rows_stay_as_well(chain: Chain) -> None:
    chain.history.open().update({"a": "1"})
    job = str(uuid.uuid4())
    chain.refresh(HeldAttempt(job=job))
    assert chain.versions() == [2, 1, 1]
    for view in chain.views:
        view.watermark = None
    chain.history.open().update({"a": "5"})
    again = chain.refresh(HeldAttempt(job=job, number=2))
    assert chain.versions() == [2, 1, 1]
    assert (again.mode, again.version, again.source_versions) == ("none", 1, {"n$two": 0})
    assert [chain.refresh().mode, chain.is_right()] == ["full", True]


def test_what_a_cascade_abandoned_is_swept_by_the_next_one(chain: Chain) -> None:
    attempt = HeldAttempt()

    def lose() -> None:
        if list(chain.three.path.glob("_jobs/*/*/*.manifest")):
            raise LeaseLost

    attempt.on_fence = lose
    with pytest.raises(LeaseLost):
        chain.try_to(attempt)
    for view in (chain.two, chain.three):
        (key,) = list_keys(view.catalog.locate((view.name,), "").place(), attempt.job)
        # Views that Spark SQL computes leave no notes about their files.
        shutil.rmtree(view.path / "_jobs" / key)
    long_ago = time.time() - ABANDONED_SECONDS - 60
    for view in chain.views:
        assert list((view.path / "data").glob("rf-*"))
        for path in view.path.glob("_jobs/**/*"):
            os.utime(path, (long_ago, long_ago))
    chain.refresh()
    assert [view.loose_files() for view in chain.views] == [set(), set(), set()]


def test_a_cascade_whose_work_goes_on_is_not_abandoned(tmp_path: Path) -> None:
    view = make_chain(tmp_path).two
    location = view.catalog.locate((view.name,), "")
    write_key(location.place(), "job", "key")
    long_ago = time.time() - ABANDONED_SECONDS - 60
    for path in view.path.glob("_jobs/**/*"):
        os.utime(path, (long_ago, long_ago))
    write_note(location.place(), "key", "out-1.json", [])
    sweep(location, "another", 1)
    assert list_keys(location.place(), "job") == ["key"]
    assert (view.path / "_jobs" / "key" / "out-1.json").exists()


def test_each_version_names_the_attempt_that_the_catalog_is_to_take_it_from(chain: Chain) -> None:
    attempt = HeldAttempt(number=3)
    chain.refresh(attempt)
    for view in chain.views:
        made = view.open().read_transaction(2)
        assert made is not None
        found = made.transaction_properties or {}
        assert (found["penstock.job"], found["penstock.attempt"]) == (attempt.job, "3"), view.name


@pytest.mark.slow
@pytest.mark.parametrize("point", ["refresh committed", "views held back", "views published"])
def test_a_process_that_dies_leaves_all_or_nothing(chain: Chain, point: str) -> None:
    chain.refresh()
    chain.history.open().update({"a": "5"}, where="id IN (3, 4)")
    version = chain.history.open().version
    job = str(uuid.uuid4())
    assert chain.die_at(point, job) == -signal.SIGKILL
    published = point == "views published"
    assert chain.versions() == ([3, 3, 3] if published else [2, 2, 2])
    chain.history.do_append()
    done = chain.refresh(HeldAttempt(job=job, number=2))
    assert chain.versions() == [3, 3, 3]
    assert chain.is_right(version)
    assert done.rows_inserted + done.rows_updated == 2
    assert all(view.loose_files() == set() for view in chain.views)
    chain.refresh()
    assert chain.is_right()


def pause_at(chain: Chain, fence: int) -> str:
    """A cascade that is paused at one of its fences; returns its job."""
    left = iter(range(fence))

    def pause() -> None:
        if next(left, None) is None:
            raise JobPaused

    attempt = HeldAttempt(on_fence=pause)
    with pytest.raises(JobPaused):
        chain.try_to(attempt)
    return attempt.job


@pytest.mark.parametrize("fence", [0, 3])
def test_a_paused_cascade_goes_on_with_the_versions_that_it_chose(chain: Chain, fence: int) -> None:
    chosen, job = chain.history.open().version, pause_at(chain, fence)
    assert chain.versions() == [1, 1, 1]
    chain.history.do_append()
    done = chain.refresh(HeldAttempt(job=job, number=2))
    assert done.upstream[chain.one.id].source_versions == {"n$source": chosen}
    assert all(view.loose_files() == set() for view in chain.views)


@pytest.mark.parametrize("fence", [0, 3])
def test_a_paused_cascade_takes_no_view_back_behind_another_job(chain: Chain, fence: int) -> None:
    job = pause_at(chain, fence)
    chain.history.open().update({"a": "5"}, where="id = 3")
    chain.one.refresh()
    chain.history.do_append()
    done = chain.refresh(HeldAttempt(job=job, number=2))
    newest = chain.history.open().version
    assert done.upstream[chain.one.id].source_versions == {"n$source": newest}
    assert chain.is_right()
    assert all(view.loose_files() == set() for view in chain.views)
