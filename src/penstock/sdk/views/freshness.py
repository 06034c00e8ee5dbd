"""How far a view is behind what it reads, and when it refreshes itself by the clock."""

import datetime
from dataclasses import dataclass, field

import msgspec

from penstock.model.identifiers import Identifier
from penstock.sdk.connection.names import show_id
from penstock.sdk.pictures.bars import badge
from penstock.sdk.pictures.graph import Node, draw_graph
from penstock.sdk.pictures.markup import BAD, GOOD, WARN, element, join
from penstock.sdk.show import find_time, show_time

# What a picture calls the view itself, whose name its freshness does not have.
VIEW = "this view"


@dataclass(frozen=True)
class Freshness:
    """How far a view is behind what it reads."""

    stale: bool
    # None before the first refresh.
    refreshed_at: datetime.datetime | None
    # The versions that it is made from, and how many each table has had since.
    watermark: dict[str, int]
    pending: dict[str, int]
    # Views that it reads and by way of which it is stale: how many versions the tables below have
    # had that it has not.
    through: dict[str, dict[str, int]] = field(default_factory=dict)
    # How long ago the first change of a table was that it does not have; None when there is none.
    lag_seconds: float | None = None
    # Whether that is more than its target lag; None without one.
    late: bool | None = None

    @property
    def age_seconds(self) -> float | None:
        """How long ago it was refreshed."""
        if self.refreshed_at is None:
            return None
        return (datetime.datetime.now(datetime.UTC) - self.refreshed_at).total_seconds()

    def __str__(self) -> str:
        since = [f"{count} of {name}" for name, count in self.pending.items()]
        for view, below in self.through.items():
            counts = [f"{count} of {name}" for name, count in below.items()]
            since.append(f"{', '.join(counts) or 'some'} through {view}")
        # Without new versions, only time has passed, or the view was never filled.
        state = f"stale, new versions: {', '.join(since)}" if since else "stale"
        state = state if self.stale else "fresh"
        if self.lag_seconds is not None:
            state += f"; {self.lag_seconds:,.0f} s behind{', late' if self.late else ''}"
        return f"{state}; refreshed {show_time(self.refreshed_at)}"

    def _repr_html_(self) -> str:
        word, colour = ("stale", WARN) if self.stale else ("fresh", GOOD)
        word, colour = ("late", BAD) if self.late else (word, colour)
        nodes = [
            Node(
                name,
                _show_source(self.watermark.get(name), self.pending.get(name, 0)),
                WARN if self.pending.get(name) else GOOD,
            )
            for name in dict.fromkeys([*self.watermark, *self.pending])
        ]
        known = {node.name for node in nodes}
        edges = [(name, VIEW) for name in known]
        for view, below in self.through.items():
            edges += [(name, view) for name in below] + [(view, VIEW)]
            counts = {view: "stale itself"} | {n: f"{c:,} newer" for n, c in below.items()}
            for name, detail in counts.items():
                if name not in known:
                    known.add(name)
                    nodes.append(Node(name, detail, WARN))
        nodes.append(Node(VIEW, f"refreshed {show_time(self.refreshed_at)}", colour))
        head = element("div", join([badge(word, colour), f" {self}"]))
        return join([head, draw_graph(nodes, edges, "what the view has seen of its sources")])


@dataclass(frozen=True)
class Schedule:
    """When a view refreshes itself by the clock."""

    # A cron expression, read in the time zone.
    expression: str
    timezone: str
    # None when it never comes again.
    next_at: datetime.datetime | None

    def __str__(self) -> str:
        return f"{self.expression} ({self.timezone}), next {show_time(self.next_at)}"


def _show_source(version: int | None, newer: int) -> str:
    seen = "not seen yet" if version is None else f"version {version} seen"
    return f"{seen}, {newer:,} newer" if newer else seen


def read_freshness(told: dict[str, str]) -> Freshness:
    """The freshness of a view, from its properties."""
    lag = told.get("penstock.lag_seconds")
    has_target = "penstock.target_lag_seconds" in told
    return Freshness(
        stale=told["penstock.stale"] == "true",
        refreshed_at=find_time(told.get("penstock.refreshed_at")),
        watermark=_show_counts(read_counts(told, "watermark")),
        pending=_show_counts(read_counts(told, "pending")),
        through=_read_through(told),
        lag_seconds=None if lag is None else float(lag),
        late=told.get("penstock.late") == "true" if has_target else None,
    )


def read_schedule(told: dict[str, str]) -> Schedule | None:
    """The schedule of a view, from its properties."""
    if "penstock.refresh_schedule" not in told:
        return None
    return Schedule(
        told["penstock.refresh_schedule"],
        told["penstock.refresh_schedule_timezone"],
        find_time(told.get("penstock.next_refresh_at")),
    )


def read_counts(properties: dict[str, str], name: str) -> dict[Identifier, int]:
    """Numbers by table, whose names the catalog joins."""
    text = properties.get(f"penstock.{name}", "{}")
    found = msgspec.json.decode(text, type=dict[str, int])
    return {tuple(joined.split("$")): number for joined, number in found.items()}


def _read_through(properties: dict[str, str]) -> dict[str, dict[str, int]]:
    text = properties.get("penstock.through", "{}")
    found = msgspec.json.decode(text, type=dict[str, dict[str, int]])
    return {
        show_id(tuple(name.split("$"))): {
            show_id(tuple(table.split("$"))): count for table, count in below.items()
        }
        for name, below in found.items()
    }


def show_names(names: list[str]) -> list[str]:
    return [show_id(tuple(name.split("$"))) for name in names]


def _show_counts(counts: dict[Identifier, int]) -> dict[str, int]:
    return {show_id(id): number for id, number in counts.items()}
