"""Check whether the disk under a folder takes new files; blocks briefly."""

import errno
import os

from penstock.errors import Unavailable

# Errors of file systems without anonymous files.
UNKNOWN = (errno.EOPNOTSUPP, errno.EISDIR, errno.ENOENT, errno.EINVAL)
PROBE = bytes(4096)


def check_disk(folder: str, min_free_bytes: int) -> None:
    """Raise when a local folder's disk is full, nearly full, or read-only."""
    try:
        found = os.statvfs(folder)
        free = found.f_bavail * found.f_frsize
        if found.f_flag & os.ST_RDONLY:
            raise OSError(errno.EROFS, os.strerror(errno.EROFS))
        _try_to_write(folder)
    except OSError as error:
        raise Unavailable(
            f"nothing can be written to {folder}: {error.strerror}",
            detail="check the disk and its space",
        ) from error
    if free < min_free_bytes:
        raise Unavailable(
            f"the disk of {folder} has {free} bytes free, less than storage.min_free_bytes "
            f"({min_free_bytes})",
            detail="make room",
        )


def _try_to_write(folder: str) -> None:
    """Write something: quotas and missing inodes only show that way."""
    try:
        probe = os.open(folder, os.O_TMPFILE | os.O_WRONLY | os.O_CLOEXEC, 0o600)
    except OSError as error:
        if error.errno in UNKNOWN:
            return
        raise
    try:
        os.write(probe, PROBE)
    finally:
        os.close(probe)
