"""What backfills keep beside a table for a column, removed with the column. All of it blocks."""

from collections.abc import Callable

from penstock.lance import refs
from penstock.lance.storage import files
from penstock.lance.storage.lake import Place


def forget_column(place: Place, binding: str) -> None:
    """Remove the tags and the lists of rows that a column has, on any branch."""
    from penstock.jobs.backfill import watermarks as marks

    tag, folder = marks.tag_of(binding, ""), marks.folder_of(binding, "")
    for name in refs.list_names(place, refs.TAGS):
        if name == tag or name.startswith(f"{tag}-"):
            refs.delete_tag(place, name)
    _remove_lists(place, lambda name: name == folder or name.startswith(f"{folder}-"))


def forget_branch(place: Place, branch: str) -> None:
    """Remove the lists of rows that the columns of a branch have; its tags went with it."""
    from penstock.jobs.backfill import watermarks as marks

    # How the folder of any column ends there.
    end = marks.folder_of("x", branch)[1:]
    _remove_lists(place, lambda name: name.endswith(end))


def _remove_lists(place: Place, is_gone: Callable[[str], bool]) -> None:
    from penstock.jobs.backfill.watermarks import FOLDER

    folders = {path.split("/")[1] for path, _ in files.list_below(place, FOLDER)}
    for folder in filter(is_gone, folders):
        below = f"{FOLDER}/{folder}"
        files.remove_all(Place(place.store, f"{place.key}/{below}", f"{place.location}/{below}"))
    files.remove_if_empty(place, FOLDER)
