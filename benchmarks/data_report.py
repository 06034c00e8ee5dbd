"""The goals of the part about rows, and its figures beside them."""

from statistics import median

import msgspec

from benchmarks.bulk import BulkRound
from benchmarks.report import Sample, align, summarise
from benchmarks.tables import ALL_ROWS, BUSY_DESCRIBE, COUNT, INSERT, NEAREST, SCAN

# How many times the reference's rate, by connections.
RATE_GOALS = {
    INSERT: {1: 1.0, 16: 5.0},
    SCAN: {1: 1.0, 16: 1.0},
    NEAREST: {1: 1.0, 16: 1.0},
    COUNT: {1: 1.5, 16: 1.5},
    BUSY_DESCRIBE: {},
    ALL_ROWS: {},
}
# At most this part of the reference's p99.
P99_GOALS = {(INSERT, 16): 0.2}
BULK_GOAL = 1.5


class DataFigures(msgspec.Struct):
    """Everything that this part measured."""

    rows: int
    inserts: dict[int, int]
    bulk_bytes: int
    load_average: float
    samples: list[Sample] = []
    bulk: list[BulkRound] = []


def show(figures: DataFigures) -> str:
    """All figures as text."""
    inserts = " and ".join(f"{count:,}" for count in figures.inserts.values())
    return "\n\n".join(
        [
            f"{figures.rows:,} rows; {inserts} inserts; {figures.bulk_bytes / 1e9:g} GB in bulk; "
            f"load average {figures.load_average:.1f} before this part",
            align(_compare(figures), range(1, 10)),
            align(_bulk(figures), range(1, 3)),
        ]
    )


def _compare(figures: DataFigures) -> list[list[str]]:
    head = "operation,conns,penstock/s,reference/s,ratio,goal,p50 ms,ref p50,p99 ms,ref p99,result"
    rows = [head.split(",")]
    for operation, goals in RATE_GOALS.items():
        for connections in sorted({s.connections for s in figures.samples}):
            ours = summarise(figures.samples, operation, connections, "penstock")
            theirs = summarise(figures.samples, operation, connections, "reference")
            ratio, goal = ours.rate / theirs.rate, goals.get(connections)
            part = P99_GOALS.get((operation, connections))
            missed = [
                name
                for name, is_missed in (
                    ("rate", goal is not None and ratio < goal),
                    ("p99", part is not None and ours.p99_ms > theirs.p99_ms * part),
                )
                if is_missed
            ]
            result = f"missed: {', '.join(missed)}" if missed else "ok" if goal else ""
            rows.append(
                [
                    operation,
                    str(connections),
                    f"{ours.rate:,.1f}",
                    f"{theirs.rate:,.1f}",
                    f"{ratio:.2f}x",
                    (f">= {goal:g}x" if goal else "") + (f", p99 {part:g}x" if part else ""),
                    f"{ours.p50_ms:.1f}",
                    f"{theirs.p50_ms:.1f}",
                    f"{ours.p99_ms:.1f}",
                    f"{theirs.p99_ms:.1f}",
                    result + _refused(figures, operation, connections),
                ]
            )
    return rows


def _refused(figures: DataFigures, operation: str, connections: int) -> str:
    """How many requests each server turned down, over all rounds."""
    counts = {
        server: sum(
            s.measured.refused
            for s in figures.samples
            if (s.operation, s.connections, s.server) == (operation, connections, server)
        )
        for server in ("penstock", "reference")
    }
    found = [f"{server} refused {count:,}" for server, count in counts.items() if count]
    return f" ({', '.join(found)})" if found else ""


def _bulk(figures: DataFigures) -> list[list[str]]:
    rows = [["bulk", "penstock s", "pylance s", "times as long", "goal", "peak MB", "result"]]
    for name, ours, theirs, peaks in (
        (
            "in",
            [r.write_seconds for r in figures.bulk],
            [r.pylance_write_seconds for r in figures.bulk],
            [r.write_peak_mb for r in figures.bulk],
        ),
        (
            "in, bare socket",
            [r.socket_write_seconds for r in figures.bulk],
            [r.pylance_write_seconds for r in figures.bulk],
            [],
        ),
        (
            "out",
            [r.read_seconds for r in figures.bulk],
            [r.pylance_read_seconds for r in figures.bulk],
            [r.read_peak_mb for r in figures.bulk],
        ),
    ):
        times = median(ours) / median(theirs)
        rows.append(
            [
                name,
                f"{median(ours):.2f}",
                f"{median(theirs):.2f}",
                f"{times:.2f}x",
                f"<= {BULK_GOAL:g}x" if peaks else "",
                f"{max(peaks):.0f}" if peaks else "",
                ("ok" if times <= BULK_GOAL else "missed") if peaks else "",
            ]
        )
    return rows
