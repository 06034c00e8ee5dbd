"""What is kept for a view from one refresh to the next, and let go when nothing needs it."""

from collections.abc import Callable, Mapping, Sequence

from penstock.datasets import view_notes
from penstock.datasets.lake import Place
from penstock.errors import PenstockError
from penstock.model.views import Watermark


class Kept:
    """What was there when an attempt began.

    It lets go of nothing else: what came later may be another attempt's, which has the job now.
    """

    def __init__(self, view_id: str, view: Place, sources: Mapping[str, Place]) -> None:
        self._view_id = view_id
        self._view = view
        self._sources = sources
        self._lists = view_notes.list_failed(view)
        self._tags = {id: view_notes.list_tags(place, view_id) for id, place in sources.items()}

    def let_go(self, needed: Sequence[Watermark], tell: Callable[[str], None]) -> None:
        """Remove what no watermark needs; what cannot be removed now is told and left."""
        try:
            view_notes.remove_failed(self._view, self._lists - {each.failed for each in needed})
            for id, place in self._sources.items():
                kept = {each.versions[id] for each in needed if id in each.versions}
                named = {view_notes.tag_of(self._view_id, version) for version in kept}
                view_notes.remove_tags(place, self._tags[id] - named)
        except (OSError, PenstockError) as error:
            # The view is refreshed all the same.
            tell(f"what is not needed any more is left to the next refresh: {error}")
