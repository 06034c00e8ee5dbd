"""Small files in the folders of jobs."""

import contextlib
import threading
import time
from pathlib import Path

from penstock.jobs.engine.worker_notes import write_note
from penstock.lance.storage import files
from penstock.lance.storage.lake import Lake
from penstock.lance.storage.side_files import FOLDER, list_names

SECONDS = 2.0


def test_notes_are_written_while_other_jobs_remove_empty_folders(tmp_path: Path) -> None:
    lake = Lake(str(tmp_path))
    place = lake.place(lake.root)
    stop = threading.Event()

    def sweep() -> None:
        while not stop.is_set():
            files.remove_if_empty(place, FOLDER)

    sweeping = threading.Thread(target=sweep)
    sweeping.start()
    try:
        deadline, number = time.monotonic() + SECONDS, 0
        while time.monotonic() < deadline:
            number += 1
            write_note(place, f"job{number}", "1-a.json", {})
            assert list_names(place, f"{FOLDER}/job{number}") == ["1-a.json"]
            (tmp_path / FOLDER / f"job{number}" / "1-a.json").unlink()
            with contextlib.suppress(FileNotFoundError):
                (tmp_path / FOLDER / f"job{number}").rmdir()
    finally:
        stop.set()
        sweeping.join()
