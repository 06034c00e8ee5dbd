"""Remove what backfills keep beside a table for a column, with the column. Blocks."""

from collections.abc import Callable

from penstock.jobs.backfill.watermarks import FOLDER, tag_of
from penstock.jobs.kept.store import COLUMN, name_column
from penstock.jobs.kept.sweep import sweep_kept
from penstock.lance import refs
from penstock.lance.session.remote import Location
from penstock.lance.storage import files
from penstock.lance.storage.lake import Place


def forget_column(location: Location, binding: str) -> None:
    """Remove the tags, the lists of rows and the finished work of a column, on any branch."""
    place = location.place()
    tag, folder = tag_of(binding, ""), name_column(binding, "")
    for name in refs.list_names(place, refs.TAGS):
        if name == tag or name.startswith(f"{tag}-"):
            refs.delete_tag(place, name)
    _remove_all(location, lambda name: name == folder or name.startswith(f"{folder}-"))


def forget_branch(location: Location, branch: str) -> None:
    """The same for the columns of a branch; its tags and files went with it."""
    # How the folder of any column ends there.
    end = name_column("x", branch)[1:]
    _remove_all(location, lambda name: name.endswith(end))


def _remove_all(location: Location, is_gone: Callable[[str], bool]) -> None:
    def is_column(owner: str) -> bool:
        return owner.startswith(COLUMN) and is_gone(owner.removeprefix(COLUMN))

    sweep_kept(location, is_column)
    place = location.place()
    folders = {path.split("/")[1] for path, _ in files.list_below(place, FOLDER)}
    for folder in filter(is_gone, folders):
        below = f"{FOLDER}/{folder}"
        files.remove_all(Place(place.store, f"{place.key}/{below}", f"{place.location}/{below}"))
    files.remove_if_empty(place, FOLDER)
