"""What a soak measures: memory of its processes and what lies on disk, over time."""

import contextlib
import statistics
import threading
import time
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

from tests.soak.live.field import Field

MEBIBYTE = 2**20
SAMPLE_SECONDS = 2.0
# A process that has just started is not yet what it will be.
YOUNG_SECONDS = 20
# Memory is flat when the last third of a soak has at most so much more than the one before it.
FLAT, FLAT_MEBIBYTES = 1.15, 30


@dataclass(frozen=True)
class Sample:
    """One look, in seconds from the beginning; 0 where there was no process to look at."""

    at: float
    server: float
    runner: float
    jvm: float
    files: int
    mebibytes: float


class Sampler(threading.Thread):
    """Looks every few seconds until it is told to stop."""

    def __init__(self, field_of: Field) -> None:
        super().__init__(daemon=True)
        self.field_of = field_of
        self.samples: list[Sample] = []
        self.stopping = threading.Event()
        self._begun = time.monotonic()

    def run(self) -> None:
        while not self.stopping.wait(SAMPLE_SECONDS):
            self.samples.append(self._look())

    def _look(self) -> Sample:
        runner = self.field_of.team.members[0]
        jvm = 0
        with contextlib.suppress(StopIteration):
            jvm = runner.jvm()
        files, size = measure_folder(self.field_of.server.lake)
        return Sample(
            time.monotonic() - self._begun,
            resident(self.field_of.server.process.pid),
            resident(runner.process.pid),
            resident(jvm),
            files,
            size / MEBIBYTE,
        )


def resident(pid: int) -> float:
    """The memory of a process, in MiB; 0 when it is gone, or has hardly begun."""
    try:
        born = Path(f"/proc/{pid}").stat().st_ctime
        text = Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return 0
    if time.time() - born < YOUNG_SECONDS:
        return 0
    lines = [line for line in text.splitlines() if line.startswith("VmRSS:")]
    return int(lines[0].split()[1]) / 1024 if lines else 0


def measure_folder(folder: Path) -> tuple[int, int]:
    """How many files there are, and their bytes."""
    count = size = 0
    for path in folder.rglob("*"):
        # Files come and go meanwhile.
        with contextlib.suppress(OSError):
            if path.is_file():
                count, size = count + 1, size + path.stat().st_size
    return count, size


def kinds_of_files(lake: Path) -> Counter[str]:
    """How many files there are in folders of each name below tables."""
    found: Counter[str] = Counter()
    for path in lake.rglob("*"):
        with contextlib.suppress(OSError):
            if path.is_file():
                inside = path.relative_to(lake).parts[1:-1]
                found[inside[0] if inside else "."] += 1
    return found


def thirds(samples: list[Sample], name: str) -> tuple[float, float, float]:
    """The median of a measure in each third of the time."""
    if not samples:
        return 0, 0, 0
    end = samples[-1].at
    found = []
    for third in range(3):
        low, high = end * third / 3, end * (third + 1) / 3
        values = [getattr(s, name) for s in samples if low <= s.at <= high and getattr(s, name)]
        found.append(statistics.median(values) if values else 0)
    return found[0], found[1], found[2]


def is_flat(samples: list[Sample], name: str) -> bool:
    """Whether a measure has stopped growing."""
    _, before, after = thirds(samples, name)
    return after <= max(before * FLAT, before + FLAT_MEBIBYTES)


def draw_table(samples: list[Sample], lines: int = 10) -> list[str]:
    """The samples as a table in Markdown, about so many lines of it."""
    head = "| minute | server MiB | runner MiB | JVM MiB | files | MiB on disk |"
    found = [head, "| ---: | ---: | ---: | ---: | ---: | ---: |"]
    step = max(1, len(samples) // lines)
    for n in range(0, len(samples) - step + 1, step):
        part = samples[n : n + step]
        shown = [f"{part[-1].at / 60:.1f}"]
        for name in ("server", "runner", "jvm", "files", "mebibytes"):
            values = [getattr(sample, name) for sample in part if getattr(sample, name)]
            shown.append(f"{statistics.median(values):,.0f}" if values else "-")
        found.append(f"| {' | '.join(shown)} |")
    return found
