"""The work on one fragment of a table, and the names of the files that jobs write. It is pure."""

import sys

from msgspec import Struct

# Files of a column: all rows are fresh, or some are not, and the file says which.
PREFIX, PARTIAL_PREFIX = "bf", "bp"
# Files with new rows of a view.
ROWS_PREFIX = "rf"
JOB_CHARACTERS = 12
# In the metadata of a column's file: the offsets of rows that are not fresh, and the codes of all.
UNFILLED_KEY, CODES_KEY = b"penstock.unfilled", b"penstock.codes"


class FragmentWork(Struct, frozen=True):
    """A fragment that gets a new file of the column; its key says what the file is made from."""

    id: int
    key: str
    physical_rows: int
    # Rows that are not deleted, and those among them that are computed.
    live_rows: int
    rows: int
    input_files: tuple[str, ...]
    target_files: tuple[str, ...]
    # Packed masks over the physical rows, for functions: those to compute (None: all that are
    # alive), those that are not fresh even afterwards, and those that are deleted.
    need: bytes | None = None
    left: bytes | None = None
    dead: bytes | None = None
    # Why rows are not fresh: packed codes, or the one code that they share.
    reasons: bytes | None = None
    reason: int = 0
    deletions: str = ""


def file_name(key: str, job: str, attempt: int, unique: str, *, partial: bool = False) -> str:
    """The name of a file that an attempt of a job writes; partial: some rows are not fresh."""
    prefix = PARTIAL_PREFIX if partial else PREFIX
    return f"{prefix}-{key}-{short_job(job)}-{attempt}-{unique}.lance"


def rows_file_name(job: str, attempt: int, unique: str) -> str:
    """The name of a file with new rows that an attempt of a refresh writes."""
    return f"{ROWS_PREFIX}-rows-{short_job(job)}-{attempt}-{unique}.lance"


def short_job(job: str) -> str:
    """The part of a job's id that stands in names of files."""
    return job.replace("-", "")[:JOB_CHARACTERS]


def is_file_of(name: str, job: str, attempt: int = sys.maxsize) -> bool:
    """Whether this attempt of this job, or an earlier one, wrote the file."""
    parts = name.split("-")
    if len(parts) != 5 or parts[0] not in (PREFIX, PARTIAL_PREFIX, ROWS_PREFIX):
        return False
    if parts[2] != short_job(job):
        return False
    return parts[3].isdecimal() and int(parts[3]) <= attempt
