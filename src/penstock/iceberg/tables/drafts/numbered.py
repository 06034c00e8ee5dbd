"""Schemas, specs or sort orders of a draft: by id, found by content, numbered when added."""

from collections.abc import Callable, Collection, Hashable, Iterable

from penstock.errors import InvalidTable, NothingAdded
from penstock.iceberg.checks import INT32
from penstock.iceberg.lookup import Lookup
from penstock.iceberg.metadata import Json
from penstock.iceberg.tables.document import LAST_ADDED


class Numbered:
    """What a table has of one noun, while a request adds to it."""

    def __init__(
        self,
        noun: str,
        key: str,
        fingerprint: Callable[[Json], Hashable],
        content: Callable[[Json], bytes],
        stored: Iterable[Json] = (),
    ) -> None:
        self.noun = noun
        self.by_id: dict[int, Json] = {each.get(key, 0): each for each in stored}
        self._key = key
        self._fingerprint, self._content = fingerprint, content
        # Created when the first one is added.
        self._lookup: Lookup | None = None
        self._highest = max(self.by_id, default=-1)
        self._last: int | None = None
        # What the ids that this request sent became.
        self._sent: dict[int, int] = {}

    def find(self, sent: Json) -> Json | None:
        """The one with the same content; the request means that one from now on."""
        found = self._open_lookup().find(sent)
        if found is None or found.get(self._key, 0) not in self.by_id:
            return None
        # Also when it was there before: two clients may add the same one at the same time.
        self._note(sent, found.get(self._key, 0))
        return found

    def add(self, sent: Json, id: int | None = None, first: int = 0) -> Json:
        """Add one that was not found, under the next id or one of its own."""
        if id is None:
            id = self._highest = max(self._highest + 1, first)
        if id not in INT32:
            raise InvalidTable(
                f"no {self.noun} id is left after {id - 1}", detail="create the table again"
            )
        stored = self.by_id[id] = {**sent, self._key: id}
        self._open_lookup().add(stored)
        self._note(sent, id)
        return stored

    def resolve(self, wanted: int, role: str) -> int:
        """The id that a request means: one it sent, the last one added, or one of the table."""
        if wanted == LAST_ADDED:
            if self._last is None:
                raise NothingAdded(
                    f"Cannot set last added {self.noun}: no {self.noun} has been added",
                    detail=f"add a {self.noun} in the same request, or name one of the table",
                )
            return self._last
        # An id from this request means what it became, even if others had taken that id.
        wanted = self._sent.get(wanted, wanted)
        if wanted not in self.by_id:
            raise InvalidTable(
                f"Cannot set {role} to unknown {self.noun}: {wanted}",
                detail="load the table to see what it has, or send -1 for what was added last",
            )
        return wanted

    def remove(self, ids: Collection[int]) -> None:
        for id in ids:
            self.by_id.pop(id, None)
            if id == self._last:
                self._last = None

    def _open_lookup(self) -> Lookup:
        if self._lookup is None:
            self._lookup = Lookup(self.by_id.values(), self._fingerprint, self._content)
        return self._lookup

    def _note(self, sent: Json, id: int) -> None:
        self._last = id
        if self._key in sent:
            self._sent[sent[self._key]] = id
