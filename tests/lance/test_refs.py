"""Tags that keep versions for jobs, while other jobs make and remove theirs."""

import threading
from pathlib import Path

import lance
import pyarrow as pa

from penstock.lance.refs import Tag, delete_tag, hold_version, update_tag
from penstock.lance.storage.lake import Lake


def test_versions_are_held_while_others_come_and_go(tmp_path: Path) -> None:
    dataset = lance.write_dataset(pa.table({"id": [1]}), tmp_path / "t.lance")
    is_over = threading.Event()

    def churn(name: str) -> None:
        # Threads can't share a handle.
        dataset = lance.dataset(tmp_path / "t.lance")
        while not is_over.is_set():
            for n in range(20):
                dataset.tags.create(f"{name}-{n}", (None, 1))
            for n in range(20):
                dataset.tags.delete(f"{name}-{n}")

    others = [threading.Thread(target=churn, args=(name,)) for name in ("a", "b")]
    for other in others:
        other.start()
    try:
        for n in range(100):
            hold_version(dataset, f"mine-{n}", "", 1)
    finally:
        is_over.set()
        for other in others:
            other.join()
    assert {tag for tag in dataset.tags.list() if tag.startswith("mine")} == {
        f"mine-{n}" for n in range(100)
    }


def test_a_tag_moves_to_later_versions_only(tmp_path: Path) -> None:
    for _ in range(3):
        dataset = lance.write_dataset(pa.table({"id": [1]}), tmp_path / "t.lance", mode="overwrite")
    for version, held in ((2, 2), (3, 3), (1, 3), (3, 3)):
        hold_version(dataset, "mine", "", version)
        assert dataset.tags.get_version("mine") == held


def test_a_tag_that_somebody_deletes_while_it_is_written_is_no_error(tmp_path: Path) -> None:
    place = Lake(str(tmp_path)).place(str(tmp_path / "t.lance"))
    is_over = threading.Event()

    def delete() -> None:
        while not is_over.is_set():
            delete_tag(place, "mine")

    others = [threading.Thread(target=delete) for _ in range(2)]
    for other in others:
        other.start()
    try:
        for _ in range(30):
            update_tag(place, "mine", Tag(1))
    finally:
        is_over.set()
        for other in others:
            other.join()
