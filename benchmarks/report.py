"""The goals, and the figures beside them."""

from collections.abc import Sequence
from statistics import median

import msgspec

from benchmarks.load import Measured
from benchmarks.workload import CREATE_NAMESPACE, CREATE_VERSION, DESCRIBE, EXISTS, LIST

# How many times the reference's rate, with 16 connections.
RATE_GOALS = {DESCRIBE: 4, EXISTS: 4, LIST: 5, CREATE_VERSION: 5, CREATE_NAMESPACE: 10}
GOAL_CONNECTIONS = 16
SLOWDOWN_GOAL = 1.3
START_GOAL_SECONDS = 0.5
RESIDENT_GOAL_MB = 80


class Sample(msgspec.Struct):
    """One measurement of one server."""

    operation: str
    connections: int
    server: str
    round: int
    measured: Measured


class Figures(msgspec.Struct):
    """Everything that a run measured."""

    cores: int
    python: str
    pylance: str
    tables: int
    many_tables: int
    load_average: float
    samples: list[Sample] = []
    scaling: list[Sample] = []
    ceiling: list[Sample] = []
    start_seconds: list[float] = []
    reference_start_seconds: float = 0
    resident_mb: float = 0
    resident_many_mb: float = 0
    reference_resident_mb: float = 0


class Summary(msgspec.Struct):
    """The medians of some samples."""

    rate: float
    p50_ms: float
    p99_ms: float


def summarise(samples: Sequence[Sample], operation: str, connections: int, server: str) -> Summary:
    chosen = [
        s.measured
        for s in samples
        if (s.operation, s.connections, s.server) == (operation, connections, server)
    ]
    return Summary(
        median(m.rate for m in chosen),
        median(m.p50_ms for m in chosen),
        median(m.p99_ms for m in chosen),
    )


def show(figures: Figures) -> str:
    """All figures as text."""
    parts = [
        f"{figures.cores} cores, Python {figures.python}, pylance {figures.pylance}; "
        f"{figures.tables:,} tables in the namespace; "
        f"load average {figures.load_average:.1f} before the run",
        align(_compare(figures), range(1, 10)),
        align(_others(figures), range(0)),
    ]
    return "\n\n".join(parts)


def _compare(figures: Figures) -> list[list[str]]:
    head = "operation,conns,penstock/s,reference/s,ratio,goal,p50 ms,ref p50,p99 ms,ref p99,result"
    rows = [head.split(",")]
    for operation, goal in RATE_GOALS.items():
        for connections in sorted({s.connections for s in figures.samples}):
            ours = summarise(figures.samples, operation, connections, "penstock")
            theirs = summarise(figures.samples, operation, connections, "reference")
            ratio, has_goal = ours.rate / theirs.rate, connections == GOAL_CONNECTIONS
            missed = [
                name
                for name, is_missed in (
                    ("rate", has_goal and ratio < goal),
                    ("p99", ours.p99_ms > theirs.p99_ms),
                )
                if is_missed
            ]
            rows.append(
                [
                    operation,
                    str(connections),
                    f"{ours.rate:,.0f}",
                    f"{theirs.rate:,.0f}",
                    f"{ratio:.1f}x",
                    f">= {goal}x" if has_goal else "",
                    f"{ours.p50_ms:.2f}",
                    f"{theirs.p50_ms:.2f}",
                    f"{ours.p99_ms:.2f}",
                    f"{theirs.p99_ms:.2f}",
                    f"missed: {', '.join(missed)}" if missed else "ok",
                ]
            )
    return rows


def _others(figures: Figures) -> list[list[str]]:
    rows = [["measure", "figure", "goal", "result"]]
    for operation in (DESCRIBE, LIST):
        few = summarise(figures.scaling, operation, GOAL_CONNECTIONS, "few")
        many = summarise(figures.scaling, operation, GOAL_CONNECTIONS, "many")
        rows.append(
            _row(
                f"{operation}, {figures.many_tables:,} tables instead of {figures.tables:,}",
                f"{many.rate:,.0f}/s, {few.rate / many.rate:.2f}x slower",
                f"<= {SLOWDOWN_GOAL}x",
                few.rate / many.rate <= SLOWDOWN_GOAL,
            )
        )
    start = median(figures.start_seconds)
    rows += [
        _row(
            "start to first answer",
            f"{start:.2f} s (reference {figures.reference_start_seconds:.2f} s)",
            f"< {START_GOAL_SECONDS} s",
            start < START_GOAL_SECONDS,
        ),
        _row(
            "resident after the load",
            f"{figures.resident_mb:.0f} MB (reference {figures.reference_resident_mb:.0f} MB)",
            f"< {RESIDENT_GOAL_MB} MB",
            figures.resident_mb < RESIDENT_GOAL_MB,
        ),
        _row(
            f"resident with {figures.many_tables:,} tables",
            f"{figures.resident_many_mb:.0f} MB",
            f"< {RESIDENT_GOAL_MB} MB",
            figures.resident_many_mb < RESIDENT_GOAL_MB,
        ),
    ]
    for connections in sorted({s.connections for s in figures.ceiling}):
        most = summarise(figures.ceiling, DESCRIBE, connections, "ceiling")
        ours = summarise(figures.ceiling, DESCRIBE, connections, "penstock")
        rows.append(
            [
                f"uvicorn with a constant answer, connections: {connections}",
                f"{most.rate:,.0f}/s; describe reaches {ours.rate / most.rate:.0%}",
                "",
                "",
            ]
        )
    return rows


def _row(measure: str, figure: str, goal: str, is_reached: bool) -> list[str]:
    return [measure, figure, goal, "ok" if is_reached else "missed"]


def align(rows: list[list[str]], numbers: range) -> str:
    """Columns as wide as their widest cell; those of numbers to the right."""
    widths = [max(len(row[n]) for row in rows) for n in range(len(rows[0]))]
    rows = [rows[0], ["-" * width for width in widths], *rows[1:]]
    lines = []
    for row in rows:
        cells = [
            cell.rjust(widths[n]) if n in numbers else cell.ljust(widths[n])
            for n, cell in enumerate(row)
        ]
        lines.append("  ".join(cells).rstrip())
    return "\n".join(lines)
