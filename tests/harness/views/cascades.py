"""Three views, each of the one before, refreshed together in the test's own process."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import lance
import msgspec
import pyarrow as pa

from penstock.jobs.refresh.cascade import run_refreshes, sweep_refreshes
from penstock.jobs.specs import RefreshSpec, UpstreamSpec
from penstock.model.views import RefreshResult
from tests.harness.data.sources import SourceHistory
from tests.harness.jobs.held_attempt import HeldAttempt
from tests.harness.jobs.local_engine import LOCAL_ENGINE
from tests.harness.processes.python_code import die_at
from tests.harness.views.local_views import LocalView, define


def get_engine(of: Any = None) -> Any:
    return LOCAL_ENGINE


@dataclass
class Chain:
    """`one` has some rows of the source, `two` some of those, and `three` squares of these."""

    history: SourceHistory
    one: LocalView
    two: LocalView
    three: LocalView

    @property
    def views(self) -> list[LocalView]:
        return [self.one, self.two, self.three]

    def spec(self, **options: Any) -> RefreshSpec:
        specs = (self.one.spec(), self.two.spec())
        upstream = tuple(UpstreamSpec(**msgspec.structs.asdict(spec)) for spec in specs)
        return self.three.spec(**options, upstream=upstream)

    def refresh(self, attempt: HeldAttempt | None = None, **options: Any) -> RefreshResult:
        """Refresh all of them to the end, and remember what the catalog would."""
        attempt = attempt or HeldAttempt()
        done = self.try_to(attempt, **options)
        self.sweep(attempt, **options)
        return done

    def try_to(self, attempt: HeldAttempt, **options: Any) -> RefreshResult:
        done = run_refreshes(self.spec(**options), self.three.catalog, get_engine, attempt)
        self.one.watermark = done.upstream[self.one.id].watermark
        self.two.watermark = done.upstream[self.two.id].watermark
        self.three.watermark = done.watermark
        return done

    def sweep(self, attempt: HeldAttempt, **options: Any) -> None:
        sweep_refreshes(self.spec(**options), self.three.catalog, attempt.job, attempt.number)

    def versions(self) -> list[int]:
        return [view.open().version for view in self.views]

    def is_right(self, version: int | None = None) -> bool:
        """Whether each view is its query, with the source at a version."""
        source = lance.dataset(str(self.history.path), version=version)
        for view, above in zip(self.views, [source, self.one.open(), self.two.open()], strict=True):
            if view.rows() != EXPECTED[view.name](above):
                return False
        return True

    def die_at(self, point: str, job: str) -> int:
        """Run the first attempt of a job in a process that dies at a named place; its exit code."""
        code = (
            "import sys; from pathlib import Path\n"
            "from tests.harness.jobs.local_engine import FolderLake\n"
            "from tests.harness.views import cascades as c, local_views as v\n"
            "folder, job, spec = sys.argv[1:]\n"
            "c.run_refreshes(v.read_spec(spec), FolderLake(Path(folder)), c.get_engine,"
            " c.HeldAttempt(job=job))"
        )
        spec = msgspec.json.encode(self.spec()).decode()
        return die_at(point, code, str(self.three.folder), job, spec)


def _read(dataset: lance.LanceDataset, *columns: str) -> list[dict[str, Any]]:
    rows = dataset.to_table(columns=list(columns), with_row_id=True).to_pylist()
    return sorted(rows, key=lambda row: row["_rowid"])


EXPECTED = {
    "one": lambda d: {
        r["_rowid"]: (r["id"], r["a"])
        for r in _read(d, "id", "a")
        if r["a"] is not None and r["a"] > 0
    },
    "two": lambda d: {r["_rowid"]: (r["id"], r["a"]) for r in _read(d, "id", "a") if r["a"] > 1},
    "three": lambda d: {r["_rowid"]: (r["id"], r["a"] * r["a"]) for r in _read(d, "id", "a")},
}


def make_chain(folder: Path, seed: int = 7) -> Chain:
    """New views without rows, and what they begin at."""
    history = SourceHistory(folder / "source", seed)
    plain, kinds = {"id": "id", "a": "a"}, {"id": pa.int64(), "a": pa.int64()}
    one = LocalView(folder, define(plain, kinds, ("id", "a"), where="a > 0"), name="one").create()
    above: dict[str, Any] = {"source": "one", "source_id": one.id}
    two = LocalView(folder, define(plain, kinds, ("id", "a"), where="a > 1", **above), name="two")
    two.create()
    squares = {"id": "id", "square": "a * a"}
    above = {"source": "two", "source_id": two.id}
    kinds = {"id": pa.int64(), "square": pa.int64()}
    three = LocalView(folder, define(squares, kinds, ("id", "a"), **above), name="three").create()
    return Chain(history, one, two, three)
