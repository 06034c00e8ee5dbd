"""Small files in the folders of jobs."""

import os
from pathlib import Path
from typing import Any

import pytest

from penstock.jobs.engine.worker_notes import write_note
from penstock.lance.storage.lake import Lake
from penstock.lance.storage.side_files import FOLDER, list_names


def test_a_note_is_written_while_another_job_removes_the_empty_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lake, make = Lake(str(tmp_path)), os.mkdir
    swept: list[str] = []

    def sweep_and_make(path: Any, *mode: Any) -> None:
        if Path(path).name == "job" and not swept:
            swept.append(path)
            os.rmdir(tmp_path / FOLDER)
        make(path, *mode)

    monkeypatch.setattr(os, "mkdir", sweep_and_make)
    place = lake.place(lake.root)
    write_note(place, "job", "1-a.json", {})
    assert (list_names(place, f"{FOLDER}/job"), len(swept)) == (["1-a.json"], 1)
