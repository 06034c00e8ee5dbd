"""Show a job's progress: a line on a terminal, a bar in a notebook, or nothing."""

import html
import os
import sys
import time
from collections.abc import Mapping
from typing import Any, Protocol, TextIO

from penstock.model.jobs import FINISHED, PAUSED, QUEUED, RUNNING
from penstock.sdk.connection.optional_libraries import load

WIDTH, MIN_WIDTH = 24, 6
GAP = "  "
# A cell in eighths.
BLOCKS = "▏▎▍▌▋▊▉"


class Display(Protocol):
    """Where progress is shown."""

    def show(self, status: str, told: Mapping[str, str]) -> None: ...

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
    def show(self, status: str, told: Mapping[str, str]) -> None:
        pass

    def close(self) -> None:
        pass


class Waits:
    """No bar, but why a job waits that no runner takes: nothing else would tell of it."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._told = ""

    def show(self, status: str, told: Mapping[str, str]) -> None:
        why = told.get("waiting", "")
        if why and why != self._told:
            self._stream.write(f"{_name(told)} waits: {why}\n")
            self._stream.flush()
        self._told = why

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

    def show(self, status: str, told: Mapping[str, str]) -> None:
        if self._is_live and "waiting" in told:
            self._stream.write("\r\x1b[K")
        self._waits.show(status, told)
        # A line that fills the last column would wrap.
        width = _columns(self._stream) - 1
        line = render(status, told, time.monotonic() - self._started, width)
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

    def show(self, status: str, told: Mapping[str, str]) -> None:
        shown: Any = load("IPython.display", "a bar in a notebook")
        page = shown.HTML(render_html(status, told, time.monotonic() - self._started))
        if self._handle is None:
            self._handle = shown.display(page, display_id=True)
        else:
            self._handle.update(page)

    def close(self) -> None:
        pass


def render(status: str, told: Mapping[str, str], seconds: float, width: int = 120) -> str:
    """A job's progress in one line; the bar, and then the name, use the room there is."""
    name = _name(told)
    done, total = read_progress(status, told)
    parts = []
    if status == QUEUED:
        parts.append("waits for a runner")
    elif total:
        parts.append(f"{done / total:4.0%}  {done:,}/{total:,} rows")
        if done and seconds >= 1 and status == RUNNING:
            parts.append(f"{done / seconds:,.0f}/s")
    if failed := _number(told, "rows_failed"):
        parts.append(f"{failed:,} failed")
    if status in FINISHED:
        parts.append(status.lower())
    elif status == PAUSED:
        parts.append("paused until it is resumed")
    elif told.get("pause_requested"):
        parts.append("pausing")
    rest = "  ".join([*parts, _clock(seconds)])
    room = width - len(name) - len(rest) - len(GAP) * 2
    if total and room >= MIN_WIDTH:
        return f"{name}{GAP}{_bar(done / total, min(room, WIDTH))} {rest}"
    return f"{_shorten(name, width - len(rest) - len(GAP))}{GAP}{rest}"


def render_html(status: str, told: Mapping[str, str], seconds: float) -> str:
    done, total = read_progress(status, told)
    bar = f'<progress value="{done}" max="{total}"></progress> ' if total else ""
    return f"<div>{bar}<code>{html.escape(render(status, told, seconds))}</code></div>"


def _name(told: Mapping[str, str]) -> str:
    return f"{told.get('kind', 'job')} {told.get('target', '')}".strip()


def read_progress(status: str, told: Mapping[str, str]) -> tuple[int, int]:
    """Rows that are done, and all of them."""
    total = _number(told, "rows_total")
    done = total if status == "SUCCEEDED" else _number(told, "rows_done")
    return min(done, total), total


def _number(told: Mapping[str, str], key: str) -> int:
    try:
        return int(float(told.get(key, "0")))
    except ValueError:
        return 0


def _bar(part: float, width: int) -> str:
    full, rest = divmod(round(part * width * 8), 8)
    return ("█" * full + (BLOCKS[rest - 1] if rest else "")).ljust(width, "░")


def _shorten(name: str, room: int) -> str:
    return name if len(name) <= room else name[: max(1, room - 1)] + "…"


def _clock(seconds: float) -> str:
    minutes, rest = divmod(int(seconds), 60)
    return f"{minutes}:{rest:02}"


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
