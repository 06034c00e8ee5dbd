"""What backfills keep beside a table for a column, removed with the column. All of it blocks."""

from collections.abc import Callable

from penstock.lance import refs
from penstock.lance.session.remote import Location
from penstock.lance.storage import files
from penstock.lance.storage.lake import Place


def forget_column(location: Location, binding: str) -> None:
    """Remove the tags, the lists of rows and the finished work of a column, on any branch."""
    from penstock.jobs.backfill import watermarks as marks

    place = location.place()
    tag, folder = marks.tag_of(binding, ""), marks.folder_of(binding, "")
    for name in refs.list_names(place, refs.TAGS):
        if name == tag or name.startswith(f"{tag}-"):
            refs.delete_tag(place, name)
    _remove_all(location, lambda name: name == folder or name.startswith(f"{folder}-"))


def forget_branch(location: Location, branch: str) -> None:
    """The same for the columns of a branch; its tags and files went with it."""
    from penstock.jobs.backfill import watermarks as marks

    # How the folder of any column ends there.
    end = marks.folder_of("x", branch)[1:]
    _remove_all(location, lambda name: name.endswith(end))


def _remove_all(location: Location, is_gone: Callable[[str], bool]) -> None:
    from penstock.jobs.backfill.watermarks import FOLDER
    from penstock.jobs.engine.checkpoints import sweep_kept
    from penstock.jobs.kept.work import COLUMN

    def is_column(owner: str) -> bool:
        return owner.startswith(COLUMN) and is_gone(owner.removeprefix(COLUMN))

    sweep_kept(location, is_column)
    place = location.place()
    folders = {path.split("/")[1] for path, _ in files.list_below(place, FOLDER)}
    for folder in filter(is_gone, folders):
        below = f"{FOLDER}/{folder}"
        files.remove_all(Place(place.store, f"{place.key}/{below}", f"{place.location}/{below}"))
    files.remove_if_empty(place, FOLDER)
