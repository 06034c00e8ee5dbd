"""Find existing schemas and versions of a view by content, in linear time."""

from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable

from penstock.iceberg.metadata import Json


class Lookup:
    """Schemas or versions by content.

    Exact content is expensive to compute, so a cheap fingerprint selects candidates first; each
    stored one is examined at most once.
    """

    def __init__(
        self,
        stored: Iterable[Json],
        fingerprint: Callable[[Json], Hashable],
        content: Callable[[Json], bytes],
    ) -> None:
        self._fingerprint = fingerprint
        self._content = content
        self._rough: defaultdict[Hashable, list[Json]] = defaultdict(list)
        self._exact: dict[bytes, Json] = {}
        for each in stored:
            self._rough[fingerprint(each)].append(each)

    def find(self, wanted: Json) -> Json | None:
        """The first one with the same content."""
        for each in self._rough.pop(self._fingerprint(wanted), ()):
            self._exact.setdefault(self._content(each), each)
        return self._exact.get(self._content(wanted))

    def add(self, item: Json) -> None:
        self._exact[self._content(item)] = item
