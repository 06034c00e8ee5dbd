"""What operators do beside writers, as docs/guides/operating.md says: compactions, clean-ups."""

import contextlib
import threading
import time
from collections.abc import Callable, Sequence
from datetime import timedelta

from lance.optimize import Compaction, CompactionOptions

from tests.harness.views.runner_views import Source
from tests.soak.live.crowd import Tally, Writer

# Of all tables once, and how long between two pauses of the writers.
ROUND_SECONDS, PAUSE_SECONDS = 12, 60
KEEP = timedelta(seconds=30)
# A piece is a few fragments of what writers made: rarely does one of them write there meanwhile.
PIECE: CompactionOptions = {"target_rows_per_fragment": 100}
# Work of a request that was answered late may go on for a moment.
SETTLE_SECONDS = 1.0


class Tidier(threading.Thread):
    """Compacts and cleans up the source and its views, one after the other, until it is stopped.

    Every so often it has the writers pause, and removes what their lost races left in the source.
    """

    def __init__(self, source: Source, names: Sequence[str], writers: Sequence[Writer]) -> None:
        super().__init__(daemon=True)
        self.stopping = threading.Event()
        self._tables = [Source(source.server, source.namespace, name) for name in names]
        self._writers = writers
        self._tally: Tally = writers[0].tally

    def run(self) -> None:
        turn, paused = 0, time.monotonic()
        while not self.stopping.wait(ROUND_SECONDS / len(self._tables)):
            table = self._tables[turn % len(self._tables)]
            turn += 1
            self._do("compaction", compact, table)
            self._do("cleanup", clean_up, table)
            if time.monotonic() - paused > PAUSE_SECONDS:
                self._do("cleanup without writers", self._clean_up_alone, self._tables[0])
                paused = time.monotonic()

    def _clean_up_alone(self, table: Source) -> None:
        with contextlib.ExitStack() as stack:
            for writer in self._writers:
                stack.enter_context(writer.acting)
            time.sleep(SETTLE_SECONDS)
            clean_up(table, is_alone=True)

    def _do(self, what: str, action: Callable[[Source], None], table: Source) -> None:
        try:
            action(table)
            self._tally.counts[what] += 1
        # It loses races by nature, and the server may be gone; both are counted, and shown.
        except Exception as error:
            shown = " ".join(str(error).split())
            is_race = "commit conflict" in shown
            shown = "lost against a writer" if is_race else f"{type(error).__name__} {shown[:100]}"
            self._tally.retries[f"{what}: {shown}"] += 1


def compact(table: Source) -> None:
    """Compact a table piece by piece; whoever writes meanwhile is in the way of one piece only."""
    dataset = table.open()
    lost: list[Exception] = []
    for task in Compaction.plan(dataset, PIECE).tasks:
        try:
            Compaction.commit(dataset, [task.execute(dataset)])
        except OSError as error:
            lost.append(error)
    if lost:
        raise lost[0]


def clean_up(table: Source, keep: timedelta = KEEP, *, is_alone: bool = False) -> None:
    """Remove versions that are old, and when nobody writes all that never was part of one."""
    table.open().cleanup_old_versions(
        keep, error_if_tagged_old_versions=False, delete_unverified=is_alone
    )
