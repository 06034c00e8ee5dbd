"""Metadata documents that were read or written lately; what lies at one place never changes."""

from collections import OrderedDict

MAX_BYTES = 64 * 1024 * 1024

# A table's id, and the place of a metadata file.
State = tuple[str, str]


class KeptDocuments:
    """Documents as JSON, by the state of a table, as many as fit."""

    def __init__(self, max_bytes: int = MAX_BYTES) -> None:
        self._max_bytes = max_bytes
        self._texts: OrderedDict[State, bytes] = OrderedDict()
        self._bytes = 0

    def find(self, state: State) -> bytes | None:
        found = self._texts.get(state)
        if found is not None:
            self._texts.move_to_end(state)
        return found

    def keep(self, state: State, text: bytes) -> bytes:
        """Keep a document, unless it is so large that few others would fit; returns it."""
        if state not in self._texts and len(text) <= self._max_bytes // 4:
            self._texts[state] = text
            self._bytes += len(text)
            while self._bytes > self._max_bytes:
                self._bytes -= len(self._texts.popitem(last=False)[1])
        return text
