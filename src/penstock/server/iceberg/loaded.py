"""A cache of answers with views and tables that were loaded lately, ready to send."""

from collections import OrderedDict

from penstock.server.transport.http import Reply

CACHE_BYTES = 32 * 1024 * 1024

# An object's id and metadata file, which identify a state that never changes; what of it is told;
# and whether the answer is compressed.
Key = tuple[str, str, str, bool]


class LoadedReplies:
    """Answers, as many as fit."""

    def __init__(self) -> None:
        self._replies: OrderedDict[Key, Reply] = OrderedDict()
        self._bytes = 0

    def find(self, key: Key) -> Reply | None:
        found = self._replies.get(key)
        if found is not None:
            self._replies.move_to_end(key)
        return found

    def keep(self, key: Key, reply: Reply) -> Reply:
        """Cache an answer; returns it."""
        if key not in self._replies and len(reply.body) <= CACHE_BYTES // 4:
            self._replies[key] = reply
            self._bytes += len(reply.body)
            while self._bytes > CACHE_BYTES:
                self._bytes -= len(self._replies.popitem(last=False)[1].body)
        return reply
