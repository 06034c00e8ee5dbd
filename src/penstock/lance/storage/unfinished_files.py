"""Sweep unfinished files that killed writers left on local disks, under temporary names."""

import contextlib
import os
import re

from penstock.lance.storage import files
from penstock.lance.storage.lake import Place
from penstock.lance.storage.side_files import FOLDER as JOBS

# A writer may wait long for its next rows; one that waits longer than this is dead.
UNFINISHED_SECONDS = 24 * 3600
NAME = re.compile(r"\.tmp[A-Za-z0-9]{6}")


def sweep_unfinished(place: Place, before_millis: int) -> bool:
    """Remove files not written to since then; returns whether there are younger ones.

    Files in job folders are removed with them. Object stores do not show unfinished files.
    """
    is_left = False
    for path in files.walk(place) if place.is_local else ():
        if not NAME.fullmatch(os.path.basename(path)) or path.startswith(f"{JOBS}/"):
            continue
        # A live writer may be finishing it right now.
        with contextlib.suppress(FileNotFoundError):
            if os.stat(place.file(path)).st_mtime * 1000 < before_millis:
                files.remove(place, path)
            else:
                is_left = True
    return is_left
