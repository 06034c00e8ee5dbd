"""Memory that is ready to use, for whatever is measured next.

A virtual machine may have given free memory back to its host. Whoever uses it first then pays for
getting it again, which for a gigabyte of written files takes longer than writing them.
"""

import os
import tempfile
from pathlib import Path

PIECE_BYTES = 2**20


def prepare_memory(folder: Path, size_bytes: int) -> None:
    """Use twice as much memory for a file, and free it at once."""
    piece = os.urandom(PIECE_BYTES)
    with tempfile.TemporaryFile(dir=folder) as file:
        for _ in range(2 * size_bytes // PIECE_BYTES):
            file.write(piece)
