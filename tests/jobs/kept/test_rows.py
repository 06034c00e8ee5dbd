"""What functions of a view made is kept: after a kill or a cancel they are called for the rest."""

import os
import random
import signal
import threading
import time
import uuid
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa
import pytest
from msgspec import structs

from penstock.errors import FunctionFailed, VanishedFile
from penstock.jobs.engine.attempt import JobCanceled, JobPaused
from penstock.jobs.refresh.run import sweep_refresh
from penstock.jobs.spark.tasks import Engine
from tests.harness.jobs.function_tables import store
from tests.harness.jobs.held_attempt import HeldAttempt, once
from tests.harness.processes.waiting import until
from tests.harness.views.function_views import FunctionView, make_view
from tests.harness.views.local_views import define

ROWS, CHECKPOINT = 80, 5
PACE: dict[str, Any] = {"checkpoint_size": CHECKPOINT, "max_checkpoint_size": CHECKPOINT}


def documents(ids: range) -> pa.Table:
    return pa.table(
        {
            "id": pa.array(ids, pa.int64()),
            "text": [f"a{n} b{n}" if n % 7 else "" for n in ids],
            "kind": [f"k{n % 40}" for n in ids],
        }
    )


def split(text: str) -> list[dict[str, Any]]:
    time.sleep(0.01)
    return [{"word": word} for word in text.split()]


def count(rows: pa.Table) -> list[dict[str, Any]]:
    time.sleep(0.01)
    return [{"n": rows.num_rows}]


def loud(text: str) -> str:
    time.sleep(0.01)
    return text.upper()


def chunks(folder: Path, compute: Any = split, **more: Any) -> FunctionView:
    given: dict[str, Any] = {"inputs": ("text",), "inherited": ("id",)} | more
    data = documents(range(ROWS))
    return make_view(folder, data, compute, "chunker", {"word": pa.string()}, **given)


def partitions(folder: Path) -> FunctionView:
    more: Any = {"inputs": ("text",), "partition_by": "kind"}
    more["show"] = lambda rows: ",".join(rows["text"].to_pylist())
    return make_view(folder, documents(range(ROWS)), count, "udtf", {"n": pa.int64()}, **more)


def column(folder: Path) -> FunctionView:
    lance.write_dataset(documents(range(ROWS)), str(folder / "source"), enable_stable_row_ids=True)
    (folder / "view").mkdir()
    more: Any = {"inputs": ("text",), "outputs": ("loud",), "kind": "scalar"}
    function = store(folder / "view", folder / "calls", loud, "1", **more)
    kinds = {"id": pa.int64(), "loud": pa.string()}
    columns = {"id": "id", "text": "text"}
    definition = define(columns, kinds, ("id", "text"), functions=[function])
    view = FunctionView(folder, definition)
    view.create()
    return view


# The view, and how often its function is called in all.
KINDS: dict[str, tuple[Callable[[Path], FunctionView], int]] = {
    "chunker": (chunks, ROWS),
    "udtf": (partitions, 40),
    "query": (column, ROWS),
}
EVERY = pytest.mark.parametrize("kind", KINDS)


def values(view: FunctionView) -> list[Any]:
    columns = [name for name in view.open().schema.names if not name.startswith("__")]
    return view.show(*columns)


def calls(view: FunctionView) -> list[str]:
    return view.log.read_text().splitlines() if view.log.exists() else []


def cancel_at(view: FunctionView, wanted: int) -> HeldAttempt:
    """An attempt that is canceled when so many calls were made, and swept as by a runner."""

    def check() -> None:
        if len(calls(view)) >= wanted:
            raise JobCanceled

    attempt = HeldAttempt(on_check=check)
    with pytest.raises(JobCanceled):
        view.refresh(attempt, **PACE)
    sweep_refresh(view.spec(), view.catalog, attempt.job, attempt.number)
    return attempt


@EVERY
def test_after_a_kill_only_what_was_under_way_is_called_again(tmp_path: Path, kind: str) -> None:
    make, total = KINDS[kind]
    view, job = make(tmp_path), str(uuid.uuid4())
    with view.start(job, **PACE) as dying:
        until(lambda: len(calls(view)) > total // 2, "nothing is called")
        dying.kill()
    view.refresh(HeldAttempt(job=job, number=2), **PACE)
    assert total <= len(calls(view)) <= total + CHECKPOINT
    assert not view.loose_files()


@EVERY
def test_what_a_canceled_refresh_made_serves_the_next_job(tmp_path: Path, kind: str) -> None:
    make, total = KINDS[kind]
    view = make(tmp_path)
    cancel_at(view, total // 2)
    # Its files are gone, its values are not.
    assert not list((view.path / "data").glob("rf-*"))
    assert any(name.startswith("kept-view-") for name in view.loose_files())
    before = len(calls(view))
    done = view.refresh(**PACE)
    assert len(calls(view)) == total == before + done.function_calls
    assert not view.loose_files()


def test_kept_values_are_found_by_row_and_inputs_after_a_compaction(tmp_path: Path) -> None:
    view = chunks(tmp_path, fragments=8)
    cancel_at(view, 40)
    done = {text for text in calls(view) if text}
    view.take_calls()
    # One that was made, and one that was not.
    view.source.update({"text": "text || ' c'"}, where="id IN (1, 79)")
    view.source.update({"kind": "'other'"}, where="id < 20")
    view.source.delete("id = 2")
    view.source.optimize.compact_files()
    lance.write_dataset(documents(range(80, 82)), str(view.folder / "source"), mode="append")
    view.refresh(**PACE)
    made = view.take_calls()
    assert {"a1 b1 c", "a79 b79 c", "a80 b80", "a81 b81"} <= set(made)
    assert not done & set(made)
    words = [w for row in view.source.to_table().to_pylist() for w in row["text"].split()]
    assert sorted(word for (word,) in view.show("word")) == sorted(words)


def test_another_version_of_the_function_takes_nothing_of_the_last(tmp_path: Path) -> None:
    view = chunks(tmp_path)
    cancel_at(view, 40)
    view.take_calls()
    function = view.definition.function
    assert function is not None
    changed = structs.replace(function, version="2")
    view.definition = structs.replace(view.definition, function=changed, digest="2")
    assert view.refresh(**PACE).function_calls == len(view.take_calls()) == ROWS
    assert not view.loose_files()


def test_a_refresh_that_is_to_compute_everything_does(tmp_path: Path) -> None:
    view = chunks(tmp_path)
    cancel_at(view, 40)
    view.take_calls()
    assert view.refresh(mode="full", **PACE).function_calls == len(view.take_calls()) == ROWS
    assert not view.loose_files()


def test_what_was_made_before_a_row_failed_is_kept_and_the_row_is_tried_again(
    tmp_path: Path,
) -> None:
    flag = tmp_path / "healed"

    def fail(text: str) -> list[dict[str, Any]]:
        if text.startswith("a60 ") and not flag.exists():
            raise ValueError("not yet")
        return split(text)

    view = chunks(tmp_path, fail)
    attempt = HeldAttempt()
    with pytest.raises(FunctionFailed):
        view.refresh(attempt, **PACE)
    sweep_refresh(view.spec(), view.catalog, attempt.job, attempt.number)
    flag.touch()
    before = len(calls(view))
    view.refresh(**PACE)
    assert len(calls(view)) <= ROWS + CHECKPOINT
    assert before > ROWS // 2


def test_rows_that_failed_are_tried_again_by_another_job(tmp_path: Path) -> None:
    def fail(text: str) -> list[dict[str, Any]]:
        if text.startswith("a3 "):
            raise ValueError("never")
        return split(text)

    view = chunks(tmp_path, fail, on_error={"action": "skip"})
    cancel_at(view, 40)
    view.take_calls()
    done = view.refresh(**PACE)
    assert (done.rows_failed, view.take_calls().count("a3 b3")) == (1, 1)


def test_a_limit_counts_kept_rows_in_order(tmp_path: Path) -> None:
    view, plain = chunks(tmp_path), chunks(tmp_path)
    cancel_at(view, 40)
    view.source.update({"text": "'x y z'"}, where="id IN (3, 11)")
    plain.source.update({"text": "'x y z'"}, where="id IN (3, 11)")
    view.refresh(output_limit=30)
    plain.refresh(output_limit=30)
    assert view.show("id", "__child_index", "word") == plain.show("id", "__child_index", "word")


class Writer(threading.Thread):
    """Appends, updates, deletes and compacts at random, and counts the inputs that it makes."""

    def __init__(self, source: Path) -> None:
        super().__init__(daemon=True)
        self._source, self._random, self._end = source, random.Random(7), threading.Event()
        self._next, self.inputs = ROWS, 0

    def run(self) -> None:
        while not self._end.wait(0.1):
            dataset, first = lance.dataset(str(self._source)), self._random.randrange(self._next)
            some = f"id BETWEEN {first} AND {first + 5}"
            match self._random.choice(["append", "update", "other", "delete", "compact"]):
                case "append":
                    ids = range(self._next, self._next + 5)
                    lance.write_dataset(documents(ids), str(self._source), mode="append")
                    self._next, self.inputs = self._next + 5, self.inputs + 5
                case "update":
                    self.inputs += dataset.count_rows(some)
                    dataset.update({"text": "text || ' u'"}, where=some)
                case "other":
                    dataset.update({"kind": "'other'"}, where=some)
                case "delete":
                    dataset.delete(f"id = {first}")
                case _:
                    dataset.optimize.compact_files()

    def stop(self) -> None:
        self._end.set()
        self.join()


def test_under_a_writer_that_never_rests_no_call_is_made_twice(tmp_path: Path) -> None:
    view = chunks(tmp_path, fragments=6)
    writer = Writer(view.folder / "source")
    writer.start()
    for more in (20, 40):
        cancel_at(view, len(calls(view)) + more)
    view.refresh(**PACE)
    view.refresh(**PACE)
    writer.stop()
    view.refresh(**PACE)
    words = [w for row in view.source.to_table().to_pylist() for w in row["text"].split()]
    assert sorted(word for (word,) in view.show("word")) == sorted(words)
    assert len(calls(view)) <= ROWS + writer.inputs
    assert not view.loose_files()


def test_a_worker_that_dies_repeats_what_was_under_way(engine: Engine, tmp_path: Path) -> None:
    marker = tmp_path / "killed"

    def deadly(text: str) -> list[dict[str, Any]]:
        import os

        if text.startswith("a30 ") and not marker.exists():
            marker.touch()
            os.kill(os.getpid(), signal.SIGKILL)
        return split(text)

    view = chunks(tmp_path, deadly, engine=engine)
    view.refresh(**PACE, concurrency=2)
    assert marker.exists()
    assert ROWS <= len(calls(view)) <= ROWS + 2 * CHECKPOINT
    assert not view.loose_files()


def test_what_nobody_comes_back_to_is_swept(tmp_path: Path) -> None:
    view = chunks(tmp_path)
    cancel_at(view, 40)
    long_ago = time.time() - 8 * 24 * 3600
    for path in view.path.glob("_jobs/**/*"):
        os.utime(path, (long_ago, long_ago))
    # A job of which nothing is known beside it.
    sweep_refresh(view.spec(), view.catalog, str(uuid.uuid4()), 1)
    assert not view.loose_files()


@EVERY
def test_a_version_of_the_view_that_is_cleaned_up_meanwhile_costs_an_attempt_only(
    tmp_path: Path, kind: str
) -> None:
    make, _ = KINDS[kind]
    view = make(tmp_path)
    view.refresh()
    view.source.update({"text": "'x y'"}, where="id < 4")
    view.refresh()
    # No refresh made the newest version, so nobody keeps it.
    view.open().optimize.compact_files()
    view.source.update({"text": "'z'"}, where="id < 3")

    def clean_up() -> None:
        newest: Any = view.open()
        newest.update_schema_metadata({"note": "another version"})
        newest.cleanup_old_versions(timedelta(0), error_if_tagged_old_versions=False)

    first = HeldAttempt(on_check=once(clean_up))
    with pytest.raises(VanishedFile):
        view.refresh(first)
    done = view.refresh(HeldAttempt(job=first.job, number=2))
    assert (done.mode, view.loose_files()) == ("incremental", set())


@EVERY
@pytest.mark.parametrize("threads", [1, 3])
def test_a_refresh_that_is_paused_twice_calls_nothing_again(
    tmp_path: Path, kind: str, threads: int
) -> None:
    make, total = KINDS[kind]
    view, job = make(tmp_path), str(uuid.uuid4())
    pace: Any = PACE | {"intra_applier_concurrency": threads}
    for number, wanted in enumerate((total // 4, total // 2), 1):

        def check(wanted: int = wanted) -> None:
            if len(calls(view)) >= wanted:
                raise JobPaused

        with pytest.raises(JobPaused):
            view.refresh(HeldAttempt(job=job, number=number, on_check=check), **pace)
        assert wanted <= len(calls(view))
    view.refresh(HeldAttempt(job=job, number=3), **pace)
    assert len(calls(view)) == total
    assert not view.loose_files()
