"""The reports of a backfill's workers: finished files, failed rows, printed lines."""

import time
from collections.abc import Collection, Sequence

from penstock.jobs.engine import checkpoints
from penstock.jobs.engine.attempt import Attempt
from penstock.jobs.engine.checkpoints import Checkpoint
from penstock.jobs.engine.failed_rows import Failures
from penstock.jobs.engine.finished import rate_of
from penstock.lance.session.remote import Location
from penstock.model.functions import Function

# How often the driver looks at unfinished fragments.
LOOK_SECONDS = 1.0


class WorkerReports:
    """The notes in the job's folder, by this attempt and those before it."""

    def __init__(
        self,
        location: Location,
        functions: Sequence[Function],
        attempt: Attempt,
        kept: str = "",
    ) -> None:
        # Where finished work of the column is, whichever job did it.
        self._kept = kept
        self.place = location.place()
        self._location = location
        self._attempt = attempt
        self._seen: set[str] = set()
        self._beats: dict[int, int] = {}
        self._last_look = 0.0 if functions else float("inf")
        self._is_first_look = True
        self.failures = Failures(functions, attempt)
        self.notes: list[Checkpoint] = []
        # Rows that the function was given in this attempt.
        self.function_calls = 0
        # Rows that are null without a call, because an input is.
        self.rows_null = 0

    def listen(self) -> bool:
        """Read new reports; returns whether a file was finished."""
        news = checkpoints.read_new_notes(self.place, self._attempt.job, self._seen)
        if self._kept:
            known = checkpoints.read_new_notes(self.place, self._kept, self._seen)
            news.checkpoints += known.checkpoints
        moved = False
        for note in news.checkpoints:
            if self._is_mine(note):
                self.function_calls += note.calls
                self.rows_null += note.rows_null
            elif not checkpoints.has_file(self.place, self._location, note):
                continue
            self.notes.append(note)
            moved = True
        for line in news.lines:
            self._attempt.log(line, "print")
        if self._is_first_look and self._attempt.number > 1:
            self.failures.add_earlier(news.errors)
        else:
            self.failures.add(news.errors)
        self._is_first_look = False
        return moved

    def listen_inside(self) -> bool:
        """Read the progress of unfinished fragments; returns whether any moved."""
        now = time.monotonic()
        if now - self._last_look < LOOK_SECONDS:
            return False
        self._last_look, before = now, self._beats
        self._beats = checkpoints.read_beats(self.place, self._attempt.job, self._attempt.number)
        return self._beats != before

    def rows_inside(self, finished: Collection[int]) -> int:
        """The finished rows in unfinished fragments."""
        return sum(rows for id, rows in self._beats.items() if id not in finished)

    def rate(self) -> float | None:
        """Rows per core and second, as measured by this attempt."""
        return rate_of([note for note in self.notes if self._is_mine(note)])

    def _is_mine(self, note: Checkpoint) -> bool:
        return note.is_of(self._attempt.job, self._attempt.number)
