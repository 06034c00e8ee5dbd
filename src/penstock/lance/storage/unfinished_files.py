"""Files that writers had begun when they were killed, on a disk: Lance gives them a name of its own
until they are whole, and nobody else ever gives them another. All of it blocks.
"""

import contextlib
import os
import re

from penstock.lance.storage import files
from penstock.lance.storage.lake import Place
from penstock.lance.storage.side_files import FOLDER as JOBS

# A writer may wait for its next rows as long as it likes; one that waits for longer is gone.
UNFINISHED_SECONDS = 24 * 3600
NAME = re.compile(r"\.tmp[A-Za-z0-9]{6}")


def sweep_unfinished(place: Place, before_millis: int) -> bool:
    """Remove those that nothing was written to since then; whether there are younger ones.

    What lies in the folders of jobs goes with them. Object stores do not show what is not whole.
    """
    is_left = False
    for path in files.walk(place) if place.is_local else ():
        if not NAME.fullmatch(os.path.basename(path)) or path.startswith(f"{JOBS}/"):
            continue
        # A writer that is alive may finish it at this moment.
        with contextlib.suppress(FileNotFoundError):
            if os.stat(place.file(path)).st_mtime * 1000 < before_millis:
                files.remove(place, path)
            else:
                is_left = True
    return is_left
