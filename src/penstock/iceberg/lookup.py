"""Finding what a view has already, however much it has and however many a request adds."""

from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable

from penstock.iceberg.metadata import Json


class Lookup:
    """Schemas or versions by what they say.

    The exact content of one is dear to work out, so a cheap fingerprint first tells which of the
    stored ones may be meant; each is looked at once at most, and a request stays linear.
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
        """The first one that says the same."""
        for each in self._rough.pop(self._fingerprint(wanted), ()):
            self._exact.setdefault(self._content(each), each)
        return self._exact.get(self._content(wanted))

    def add(self, item: Json) -> None:
        self._exact[self._content(item)] = item
