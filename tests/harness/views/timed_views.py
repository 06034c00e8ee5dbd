"""A table of events, views whose queries read the clock, and refreshes at chosen moments."""

import random
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import lance
import pyarrow as pa

from penstock.jobs.refresh.view_notes import Pin, Pins, write_pins
from penstock.lance.commit.transaction import transaction_of
from penstock.model.views import RefreshResult
from tests.harness.jobs.held_attempt import HeldAttempt
from tests.harness.jobs.local_engine import LOCAL_ENGINE
from tests.harness.views.definitions import make
from tests.harness.views.local_views import LocalView

NOON = datetime(2026, 3, 1, 12, 0, 0, 123456, tzinfo=UTC)
EVENTS = pa.schema(
    [
        ("id", pa.int64()),
        ("at", pa.timestamp("us", "UTC")),
        ("plain", pa.timestamp("us")),
        ("day", pa.date32()),
        ("name", pa.string()),
    ]
)


def to_moment(time: datetime) -> int:
    return round((time - datetime(1970, 1, 1, tzinfo=UTC)) / timedelta(microseconds=1))


def make_events(start: int, times: list[datetime | None]) -> pa.Table:
    rows = [
        {
            "id": start + n,
            "at": at,
            "plain": at and at.replace(tzinfo=None),
            "day": at and at.date(),
            "name": f"n{(start + n) % 5}",
        }
        for n, at in enumerate(times)
    ]
    return pa.Table.from_pylist(rows, schema=EVENTS)


class Events:
    """A table whose rows are of random times around a moment, to which random things happen."""

    def __init__(self, folder: Path, seed: int = 0, count: int = 40) -> None:
        self.folder, self.path = folder, str(folder / "events")
        self.chance, self.next = random.Random(seed), count
        lance.write_dataset(
            make_events(0, self.times(count)),
            self.path,
            max_rows_per_file=10,
            enable_stable_row_ids=True,
        )

    def times(self, count: int) -> list[datetime | None]:
        hours = [self.chance.choice([None, *range(-300, 300, 7)]) for _ in range(count)]
        return [None if n is None else NOON + timedelta(hours=n) for n in hours]

    def open(self) -> lance.LanceDataset:
        return lance.dataset(self.path)

    def change(self) -> None:
        match self.chance.randrange(5):
            case 0:
                self.open().insert(make_events(self.next, self.times(3)))
                self.next += 3
            case 1:
                self.open().delete(f"id % 11 = {self.chance.randrange(11)}")
            case 2:
                self.open().update({"name": "'new'"}, where=f"id % 7 = {self.chance.randrange(7)}")
            case 3:
                times = self.times(4)
                rows = make_events(self.chance.randrange(self.next), times)
                self.open().merge_insert(
                    "id"
                ).when_matched_update_all().when_not_matched_insert_all().execute(rows)
            case _:
                self.open().optimize.compact_files(target_rows_per_fragment=30)

    def rows(self) -> list[dict[str, Any]]:
        return list(self.open().to_table().to_pylist())

    def view(self, query: str, engine: Any = LOCAL_ENGINE, name: str = "v") -> LocalView:
        """An empty view of a query over `events`."""
        definition = make(query, schemas={("n", "events"): EVENTS}, namespace=("n",))
        return LocalView(self.folder, definition, engine, name).create()


def refresh_at(view: LocalView, time: datetime, job: str = "", **options: Any) -> RefreshResult:
    """Refresh a view at a moment, as a second attempt of a job whose first one chose it."""
    attempt = HeldAttempt(job=job, number=2) if job else HeldAttempt(number=2)
    versions = {}
    for source in view.definition.sources:
        newest = view.catalog.open_latest(source.table, "")
        versions[source.id] = Pin(newest.version, transaction_of(newest))
    if len(versions) == 1:
        # Without it, a moment before the view's own would be one that another job has overtaken.
        (pin,) = versions.values()
        options.setdefault("src_version", pin.version)
    place = view.catalog.locate(("n", view.name), "").place()
    assert write_pins(place, attempt.job, Pins(versions, to_moment(time)))
    return view.refresh(attempt, **options)
