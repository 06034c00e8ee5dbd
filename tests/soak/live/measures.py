"""What a soak measures: memory of its processes and what lies on disk, over time."""

import contextlib
import os
import re
import statistics
import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import httpx

from tests.harness.processes.servers import Server
from tests.soak.live.crowd import Tally
from tests.soak.live.field import Field

MEBIBYTE = 2**20
SAMPLE_SECONDS = 2.0
# A process that has just started is not yet what it will be.
YOUNG_SECONDS = 20
# Memory is flat when the last third of a soak has at most so much more than the one before it.
FLAT, FLAT_MEBIBYTES = 1.1, 20
# What Lance calls a file that is not whole yet.
UNFINISHED, UNFINISHED_KIND = re.compile(r"\.tmp[A-Za-z0-9]{6}"), "unfinished"


@dataclass(frozen=True)
class Sample:
    """One look, in seconds from the beginning; 0 where there was no process to look at."""

    at: float
    server: float
    runner: float
    jvm: float
    files: int
    mebibytes: float
    kinds: Mapping[str, int] = field(default_factory=dict)
    # Since the beginning; None when the server could not be asked.
    jobs: Mapping[str, int] | None = None
    requests: int = 0
    unexplained: int = 0


@dataclass(frozen=True)
class Rest:
    """What lies on disk when nobody works any more and all is cleaned up."""

    kinds: Counter[str]
    mebibytes: float


class Sampler(threading.Thread):
    """Looks every few seconds until it is told to stop."""

    def __init__(self, field_of: Field, tally: Tally) -> None:
        super().__init__(daemon=True)
        self.field_of = field_of
        self.tally = tally
        self.samples: list[Sample] = []
        self.stopping = threading.Event()
        self._begun = time.monotonic()

    def run(self) -> None:
        while not self.stopping.wait(SAMPLE_SECONDS):
            # Processes die, and files go, while they are looked at.
            with contextlib.suppress(OSError, LookupError):
                self.samples.append(self._look())

    def _look(self) -> Sample:
        server, runner = self.field_of.server, self.field_of.team.members[0]
        jvm = 0
        with contextlib.suppress(StopIteration):
            jvm = runner.jvm()
        kinds, size = measure_folder(server.lake)
        return Sample(
            time.monotonic() - self._begun,
            resident(server.process.pid),
            resident(runner.process.pid),
            resident(jvm),
            kinds.total(),
            size / MEBIBYTE,
            kinds,
            count_jobs(server),
            self.tally.counts.total(),
            self.tally.failures.total(),
        )


def count_jobs(server: Server) -> Counter[str] | None:
    """How many jobs there are of each state; None when the server is away."""
    try:
        text = server.get("/metrics").raise_for_status().text
    except httpx.HTTPError:
        return None
    found = re.findall(r'^penstock_jobs\{state="(\w+)"\} ([\d.]+)', text, re.MULTILINE)
    return Counter({state: int(float(count)) for state, count in found})


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


def measure_folder(lake: Path) -> tuple[Counter[str], int]:
    """How many files there are in folders of each name below tables, and the bytes of all."""
    found: Counter[str] = Counter()
    size = 0
    for folder, _, names in os.walk(lake):
        inside = Path(folder).relative_to(lake).parts[1:]
        for name in names:
            # Files come and go meanwhile.
            with contextlib.suppress(OSError):
                size += os.stat(os.path.join(folder, name)).st_size
                is_whole = not UNFINISHED.fullmatch(name)
                found[(inside[0] if inside else ".") if is_whole else UNFINISHED_KIND] += 1
    return found, size


def measure_rest(lake: Path) -> Rest:
    kinds, size = measure_folder(lake)
    return Rest(kinds, size / MEBIBYTE)


def split(samples: Sequence[Sample]) -> list[list[Sample]]:
    """The samples of each third of the time."""
    end = samples[-1].at if samples else 0
    bounds = [(end * third / 3, end * (third + 1) / 3) for third in range(3)]
    return [[s for s in samples if low <= s.at <= high] for low, high in bounds]


def typical(samples: Sequence[Sample], value: Callable[[Sample], float]) -> float:
    """The median of what there was to measure."""
    values = [found for sample in samples if (found := value(sample))]
    return statistics.median(values) if values else 0


def thirds(samples: Sequence[Sample], name: str) -> tuple[float, float, float]:
    """The median of a measure in each third of the time."""
    first, second, last = (typical(third, _named(name)) for third in split(samples))
    return first, second, last


def is_flat(samples: Sequence[Sample], name: str) -> bool:
    """Whether a measure has stopped growing."""
    _, before, after = thirds(samples, name)
    return after <= max(before * FLAT, before + FLAT_MEBIBYTES)


def _named(name: str) -> Callable[[Sample], float]:
    return lambda sample: float(getattr(sample, name))


def draw_table(samples: Sequence[Sample], lines: int = 10) -> list[str]:
    """The samples as a table in Markdown, about so many lines of it."""
    head = "| minute | server MiB | runner MiB | JVM MiB | files | MiB on disk |"
    found = [head, "| ---: | ---: | ---: | ---: | ---: | ---: |"]
    step = max(1, len(samples) // lines)
    for n in range(0, len(samples) - step + 1, step):
        part = samples[n : n + step]
        shown = [f"{part[-1].at / 60:.1f}"]
        for name in ("server", "runner", "jvm", "files", "mebibytes"):
            value = typical(part, _named(name))
            shown.append(f"{value:,.0f}" if value else "-")
        found.append(f"| {' | '.join(shown)} |")
    return found


def is_bounded(samples: Sequence[Sample], name: str) -> bool:
    """Whether what rises and falls is not above what it was: its usual value is no new peak."""
    before, last = split(samples)[1:]
    peak = max((getattr(sample, name) for sample in before), default=0)
    return typical(last, _named(name)) <= peak


def draw_thirds(samples: Sequence[Sample], rest: Rest, unexplained: int) -> list[str]:
    """The thirds of a soak as a table in Markdown: medians, and what was done in each.

    What was found wrong at the end counts for the last one.
    """
    parts = split(samples)
    rows: list[tuple[str, Sequence[float]]] = [
        (label, thirds(samples, name))
        for label, name in (
            ("server, MiB", "server"),
            ("runner, MiB", "runner"),
            ("JVM, MiB", "jvm"),
        )
    ]
    rows.append(("files on disk", [*thirds(samples, "files"), rest.kinds.total()]))
    for kind in sorted({kind for sample in samples for kind in sample.kinds}):
        counts = [[sample.kinds.get(kind, 0) for sample in part] for part in parts]
        medians = [statistics.median(found) if found else 0 for found in counts]
        label = "… unfinished" if kind == UNFINISHED_KIND else f"… in `{kind}`"
        rows.append((label, [*medians, rest.kinds[kind]]))
    rows.append(("MiB on disk", [*thirds(samples, "mebibytes"), rest.mebibytes]))
    rows.append(("requests", _growth(parts, lambda sample: sample.requests)))
    rows.append(("jobs that succeeded", _growth(parts, _count("SUCCEEDED"))))
    wrong = _growth(parts, lambda sample: sample.unexplained + (_count("FAILED")(sample) or 0))
    rows.append(("unexplained", [*wrong[:2], unexplained - sum(wrong[:2])]))
    found = ["| | first third | second | last | at rest |", "| --- | ---: | ---: | ---: | ---: |"]
    for label, values in rows:
        shown = [f"{value:,.0f}" for value in values]
        found.append(f"| {label} | {' | '.join([*shown, ''][:4])} |")
    return found


def _count(state: str) -> Callable[[Sample], int | None]:
    return lambda sample: None if sample.jobs is None else sample.jobs.get(state, 0)


def _growth(
    parts: Sequence[Sequence[Sample]], value: Callable[[Sample], int | None]
) -> list[float]:
    """By how much something that is counted from the beginning grew in each part."""
    ends, last = [], 0
    for part in parts:
        known = [found for sample in part if (found := value(sample)) is not None]
        last = max([last, *known])
        ends.append(last)
    return [end - before for before, end in zip([0, *ends], ends, strict=False)]
