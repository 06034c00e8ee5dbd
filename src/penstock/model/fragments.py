"""Fragments of Lance tables, as plans look at them."""

from msgspec import Struct


class FragmentState(Struct, frozen=True):
    """One fragment in one version of a table, as far as a backfill is concerned."""

    id: int
    physical_rows: int
    rows: int
    # Rows that match `where`; all of them without one.
    matching_rows: int
    # `path:field ids` of the files that hold the inputs; the names of those that hold the column.
    input_files: tuple[str, ...]
    target_files: tuple[str, ...]
    # All files but those of the column: what a `where` may read.
    other_files: tuple[str, ...]
    # The file that lists deleted rows.
    deletions: str = ""
    # Whether one file holds all of the column.
    is_whole: bool = True
