"""What is kept for a view from one refresh to the next, and let go when nothing needs it."""

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import TYPE_CHECKING

from penstock.errors import PenstockError
from penstock.jobs.refresh import view_notes
from penstock.lance.storage.lake import Place
from penstock.model.views import Watermark

if TYPE_CHECKING:
    from lance import LanceDataset


class Retention:
    """What was there when an attempt began.

    It lets go of nothing else: what came later may be another attempt's, which has the job now.
    """

    def __init__(self, view_id: str, view: Place, sources: Mapping[str, Place]) -> None:
        self._view_id = view_id
        self._view = view
        self._sources = sources
        self._lists = view_notes.list_failed(view)
        self._own_tags = view_notes.list_tags(view, view_id)
        self._tags = {id: view_notes.list_tags(place, view_id) for id, place in sources.items()}

    def keep(self, view: "LanceDataset", version: int, tell: Callable[[str], None]) -> None:
        """Have the view's own version stay, which tells the next refresh what it left."""
        if view_notes.tag_of(self._view_id, version) in self._own_tags:
            return
        try:
            view_notes.keep_version(view, self._view_id, version)
        except PenstockError as error:
            # The next refresh may have to compute everything, but this one is done.
            tell(f"version {version} of the view is not kept: {error.message}")

    def let_go(self, needed: Sequence[Watermark], tell: Callable[[str], None]) -> None:
        """Remove what no watermark needs; what cannot be removed now is told and left."""
        try:
            view_notes.remove_failed(self._view, self._lists - {each.failed for each in needed})
            own = {each.view_version for each in needed}
            view_notes.remove_tags(self._view, self._own_tags - self._name(own))
            for id, place in self._sources.items():
                kept = {each.versions[id] for each in needed if id in each.versions}
                view_notes.remove_tags(place, self._tags[id] - self._name(kept))
        except (OSError, PenstockError) as error:
            # The view is refreshed all the same.
            tell(f"what is not needed any more is left to the next refresh: {error}")

    def _name(self, versions: Collection[int]) -> set[str]:
        return {view_notes.tag_of(self._view_id, version) for version in versions}
