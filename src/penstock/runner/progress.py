"""How far an attempt is: what its recipe told, what it is at, and how fast rows are done."""

import threading
from collections import deque
from collections.abc import Callable, Mapping, Sequence

from penstock.jobs.engine.attempt import COMPUTING, Value
from penstock.model.jobs import LEFT, PHASE, RATE
from penstock.runner.client import PhaseBegun

# A rate is that of the last seconds, or of the last steps if those took longer.
RECENT_SECONDS, RECENT_STEPS = 30.0, 5
# Over less time a rate says nothing.
LEAST_SECONDS = 1.0
# A phase that was over so soon, before anybody heard of it, is not told.
BRIEF_SECONDS = 0.002
MAX_PHASES, MAX_NAME = 100, 500


class JobProgress:
    """What the next report tells; any thread may add to it."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._values: dict[str, Value] = {}
        self._is_news = False
        self._phase = ""
        # The phases that began since the last report, and when.
        self._begun: deque[tuple[str, float]] = deque(maxlen=MAX_PHASES)
        self._pace = Pace()

    @property
    def phase(self) -> str:
        return self._phase

    @property
    def is_news(self) -> bool:
        return self._is_news

    def tell(self, values: Mapping[str, Value]) -> None:
        with self._lock:
            self._is_news |= any(self._values.get(k) != v for k, v in values.items())
            self._values.update(values)
            now, done = self._clock(), self._number("rows_done")
            if "rows_total" in values and self._pace.is_going:
                # What is done as soon as the work is known was done before.
                self._pace.begin(now, done)
            self._pace.note(now, done)

    def find(self, name: str) -> float:
        """A number that was told; 0 when it was not."""
        with self._lock:
            return self._number(name)

    def begin(self, phase: str) -> None:
        """Say what begins now, if it has not begun already."""
        now, name = self._clock(), phase[:MAX_NAME]
        with self._lock:
            if name == self._phase:
                return
            self._phase, self._is_news = name, True
            since = now
            if self._begun and now - self._begun[-1][1] < BRIEF_SECONDS:
                _, since = self._begun.pop()
            if not self._begun or self._begun[-1][0] != name:
                self._begun.append((name, since))
            self._pace.end(now)
            if name.startswith(COMPUTING):
                self._pace.begin(now, self._number("rows_done"))

    def take(self) -> tuple[dict[str, Value | None], list[PhaseBegun]]:
        """What there is to report now."""
        now = self._clock()
        with self._lock:
            self._is_news = False
            told: dict[str, Value | None] = dict(self._values)
            if self._phase:
                told[PHASE] = self._phase
            rate, total = self._pace.rate(now), self._number("rows_total")
            left = total - self._number("rows_done")
            told[RATE] = rate
            told[LEFT] = _round(left / rate) if rate and total and left >= 0 else None
            return told, self._take_begun(now)

    def take_last(self) -> tuple[dict[str, Value | None], list[PhaseBegun]]:
        """What there is to report at the end: nothing is left, and the rate is that of all."""
        now = self._clock()
        with self._lock:
            self._pace.end(now)
            told = {**self._values, PHASE: None, RATE: self._pace.average(), LEFT: None}
            return told, self._take_begun(now)

    def put_back(self, phases: Sequence[PhaseBegun], taken: float) -> None:
        """Phases of a report that did not arrive, and that was made at this time."""
        with self._lock:
            before = [(each.name, taken - each.ago_millis / 1000) for each in phases]
            self._begun.extendleft(reversed(before))
            self._is_news = True

    def _take_begun(self, now: float) -> list[PhaseBegun]:
        taken = [PhaseBegun(name, round(1000 * (now - at))) for name, at in self._begun]
        self._begun.clear()
        return taken

    def _number(self, name: str) -> float:
        value = self._values.get(name, 0)
        return value if isinstance(value, int | float) else 0


class Pace:
    """Rows a second while rows are computed. Those that were there before do not count."""

    def __init__(self) -> None:
        self._start: tuple[float, float] | None = None
        self._points: deque[tuple[float, float]] = deque()
        self._rows = self._seconds = 0.0

    @property
    def is_going(self) -> bool:
        return self._start is not None

    def begin(self, now: float, done: float) -> None:
        self.end(now)
        self._start = (now, done)
        self._points = deque([self._start])

    def note(self, now: float, done: float) -> None:
        if self._start is None or done == self._points[-1][1]:
            return
        if done < self._points[-1][1]:
            # What others rewrote meanwhile is not done any more.
            self.begin(now, done)
            return
        self._points.append((now, done))
        while len(self._points) > RECENT_STEPS and self._points[1][0] < now - RECENT_SECONDS:
            self._points.popleft()

    def end(self, now: float) -> None:
        if self._start is not None:
            self._seconds += now - self._start[0]
            self._rows += self._points[-1][1] - self._start[1]
        self._start = None
        self._points.clear()

    def rate(self, now: float) -> float | None:
        """As it is now; None while it is not known."""
        if self._start is None or len(self._points) < 2:
            return None
        (first, was), (_, done) = self._points[0], self._points[-1]
        return _round((done - was) / (now - first)) if now - first >= LEAST_SECONDS else None

    def average(self) -> float | None:
        """Over all that was computed; None when nothing was."""
        return _round(self._rows / self._seconds) if self._rows and self._seconds else None


def _round(value: float) -> float:
    """Three digits: nobody knows more."""
    return float(f"{value:.3g}")
