"""Show a job's progress: a line on a terminal, a bar in a notebook, or nothing."""

import html
import os
import sys
import time
from typing import Any, Protocol, TextIO

from penstock.model.jobs import FINISHED, PAUSED, QUEUED, SUCCEEDED
from penstock.sdk.connection.optional_libraries import load
from penstock.sdk.jobs.facts import Facts, show_clock

# What people are told of some phases.
PHASES = {"starting": "waits for Spark"}
WIDTH, MIN_WIDTH = 24, 6
GAP = "  "
# A cell in eighths.
BLOCKS = "▏▎▍▌▋▊▉"


class Display(Protocol):
    """Where progress is shown."""

    def show(self, job: Facts) -> None: ...

    def close(self) -> None: ...


def open_display(wanted: bool | None) -> Display:
    """The display for this environment; `wanted` overrides the detection."""
    if wanted is False:
        return NoDisplay()
    if _in_notebook():
        return Notebook()
    stream = sys.stderr
    if wanted or (stream.isatty() and os.environ.get("TERM") != "dumb"):
        return Terminal(stream)
    return Waits(stream)


class NoDisplay:
    def show(self, job: Facts) -> None:
        pass

    def close(self) -> None:
        pass


class Waits:
    """No bar, but why a job waits that no runner takes: nothing else would tell of it."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._told = ""

    def show(self, job: Facts) -> None:
        if job.waiting and job.waiting != self._told:
            self._stream.write(f"{_name(job)} waits: {job.waiting}\n")
            self._stream.flush()
        self._told = job.waiting

    def close(self) -> None:
        pass


class Terminal:
    """One line that is written again and again; lines below each other where that can't be."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._is_live = stream.isatty()
        self._started = time.monotonic()
        self._last = ""
        self._waits = Waits(stream)

    def show(self, job: Facts) -> None:
        if self._is_live and job.waiting:
            self._stream.write("\r\x1b[K")
        self._waits.show(job)
        # A line that fills the last column would wrap.
        width = _columns(self._stream) - 1
        line = render(job, time.monotonic() - self._started, width)
        if self._is_live:
            self._stream.write("\r\x1b[K" + line)
        elif _without_time(line) != self._last:
            self._stream.write(line + "\n")
        self._last = _without_time(line)
        self._stream.flush()

    def close(self) -> None:
        if self._is_live and self._last:
            self._stream.write("\n")
            self._stream.flush()


class Notebook:
    """A bar in the output of a notebook's cell."""

    def __init__(self) -> None:
        self._started = time.monotonic()
        self._handle: Any = None

    def show(self, job: Facts) -> None:
        shown: Any = load("IPython.display", "a bar in a notebook")
        page = shown.HTML(render_html(job, time.monotonic() - self._started))
        if self._handle is None:
            self._handle = shown.display(page, display_id=True)
        else:
            self._handle.update(page)

    def close(self) -> None:
        pass


def render(job: Facts, seconds: float, width: int = 120) -> str:
    """A job's progress in one line; the bar, and then the name, use the room there is."""
    name = _name(job)
    done, total = read_progress(job)
    parts = _show_end(job) if job.status in FINISHED else _show_way(job, done, total)
    rest = "  ".join([*parts, show_clock(seconds)])
    room = width - len(name) - len(rest) - len(GAP) * 2
    if total and room >= MIN_WIDTH:
        return f"{name}{GAP}{_bar(done / total, min(room, WIDTH))} {rest}"
    return f"{_shorten(name, width - len(rest) - len(GAP))}{GAP}{rest}"


def _show_way(job: Facts, done: int, total: int) -> list[str]:
    """How far a job is."""
    if job.status == QUEUED:
        return ["waits for a runner"]
    parts = [f"{done / total:4.0%}  {done:,}/{total:,} rows"] if total else []
    if job.phase and not (total and job.phase.startswith("computing")):
        parts.append(PHASES.get(job.phase, job.phase))
    if job.rows_failed:
        parts.append(f"{job.rows_failed:,} failed")
    if job.status == PAUSED:
        return [*parts, "paused until it is resumed"]
    if job.properties.get("pause_requested"):
        return [*parts, "pausing"]
    if job.rows_per_second:
        parts.append(f"{job.rows_per_second:,.0f}/s")
    if job.seconds_left is not None:
        parts.append(f"{show_clock(job.seconds_left)} left")
    return parts


def _show_end(job: Facts) -> list[str]:
    """How a job ended."""
    summary = job.summary
    return [f"{job.status.lower()}: {summary}" if summary else job.status.lower()]


def render_html(job: Facts, seconds: float) -> str:
    done, total = read_progress(job)
    bar = f'<progress value="{done}" max="{total}"></progress> ' if total else ""
    return f"<div>{bar}<code>{html.escape(render(job, seconds))}</code></div>"


def _name(job: Facts) -> str:
    return f"{job.kind or 'job'} {job.target}".strip()


def read_progress(job: Facts) -> tuple[int, int]:
    """Rows that are done, and all of them."""
    total = job.rows_total or 0
    done = total if job.status == SUCCEEDED else job.rows_done
    return min(done, total), total


def _bar(part: float, width: int) -> str:
    full, rest = divmod(round(part * width * 8), 8)
    return ("█" * full + (BLOCKS[rest - 1] if rest else "")).ljust(width, "░")


def _shorten(name: str, room: int) -> str:
    return name if len(name) <= room else name[: max(1, room - 1)] + "…"


def _without_time(line: str) -> str:
    return line.rpartition("  ")[0]


def _columns(stream: TextIO) -> int:
    try:
        return os.get_terminal_size(stream.fileno()).columns or 80
    except OSError:
        return 80


def _in_notebook() -> bool:
    """Whether IPython shows results of cells, other than in a terminal."""
    library: Any = sys.modules.get("IPython")
    shell = None if library is None else library.get_ipython()
    return shell is not None and type(shell).__name__ != "TerminalInteractiveShell"
