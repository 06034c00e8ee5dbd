"""Tracebacks that show the user's own frames."""

import os
import sysconfig
import traceback
from importlib.util import find_spec

MAX_FRAMES = 30
# Packages whose frames stand between the user's code and Spark.
HIDDEN = ("penstock", "pyspark", "pyarrow", "cloudpickle", "lance")


def show_frames(error: BaseException) -> str:
    """The traceback of an error, without our frames and those of what we call functions with."""
    frames = [
        frame
        for frame in traceback.extract_tb(error.__traceback__)
        if not frame.filename.startswith(_hidden_folders())
    ]
    if not frames:
        return ""
    shown = ["Traceback (most recent call last):\n"]
    if len(frames) > MAX_FRAMES:
        shown.append(f"  ({len(frames) - MAX_FRAMES} frames before)\n")
    shown += traceback.format_list(frames[-MAX_FRAMES:])
    shown += traceback.format_exception_only(error)
    return "".join(shown).rstrip("\n").encode(errors="backslashreplace").decode()


def _hidden_folders() -> tuple[str, ...]:
    global _folders
    if not _folders:
        found = [os.path.join(sysconfig.get_paths()["stdlib"], "concurrent")]
        for name in HIDDEN:
            spec = find_spec(name)
            found += spec.submodule_search_locations or () if spec else ()
        _folders = ("<frozen", *(folder + os.sep for folder in found))
    return _folders


_folders: tuple[str, ...] = ()
