"""Random histories: writers, jobs at once, cancels, deaths; a model judges every job.

`INGREDIENTS` can be switched on one by one. A history is told by its seed: the same seed goes the
same way, as far as threads that run at once allow.
"""

import random
from collections import Counter
from collections.abc import Callable, Collection
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from penstock.jobs.spark.tasks import Engine
from tests.soak import hooks, judging
from tests.soak.functions import MANY_LINES
from tests.soak.jobs import Ended, Job, SoakAttempt
from tests.soak.source import Writers
from tests.soak.views import kind_of, log_of, make_view, on_spark

PLAIN_WRITES = ("append", "update_text", "update_other", "update_kind", "merge", "delete")
# What a history may have besides writers between jobs, one job at a time.
INGREDIENTS = (
    "at_once",
    "filters",
    "writers",
    "compaction",
    "restores",
    "cancels",
    "kills",
    "prints",
)
# What comes after a number is of the same kind: several of a kind read one source.
VIEWS = ("plain", "filled", "chunks", "parts")
ALL_VIEWS = (*VIEWS, "plain_2", "filled_2", "chunks_2")
SPARK_VIEWS = ("groups", "filled_spark", "chunks_spark")
KINDS_OF_VIEWS = (*VIEWS, "groups")
POINTS = {"source": ("files written", "backfill committed")}
VIEW_POINTS = ("versions pinned", "files written", "refresh committed")
STEPS = 6
# How many jobs nobody disturbs; and of how many a kill is thought of, which takes a process.
CALM, KILLS = 0.4, 0.3


class Failed(AssertionError):
    """A history that went wrong: its seed and its steps."""


@dataclass
class Report:
    """What histories did, and what of it was more or less than it must be."""

    histories: int = 0
    jobs: int = 0
    calls: int = 0
    repeated: int = 0
    cuts: int = 0
    lost_attempts: Counter[str] = field(default_factory=Counter)
    failures: list[str] = field(default_factory=list)

    def add(self, ended: Ended, repeated: int) -> None:
        self.jobs += 1
        self.calls += ended.calls.total()
        self.cuts += ended.cuts
        self.repeated += repeated
        self.lost_attempts.update(ended.lost)

    def merge(self, other: "Report") -> None:
        for name in ("histories", "jobs", "calls", "repeated", "cuts"):
            setattr(self, name, getattr(self, name) + getattr(other, name))
        self.lost_attempts += other.lost_attempts
        self.failures += other.failures


class History:
    """One source, its views, and everything that happens to them."""

    def __init__(
        self,
        folder: Path,
        seed: int,
        ingredients: Collection[str],
        engine: Engine | None,
        views: Collection[str],
    ) -> None:
        self.chance = random.Random(seed)
        self.on = frozenset(ingredients)
        prints = self.chance.choice([0, 0, 3, MANY_LINES // 40]) if "prints" in self.on else 0
        self.writers = Writers(folder, self.chance, prints)
        self.model = self.writers.model
        names = [name for name in ALL_VIEWS if kind_of(name) in views]
        names = [name for name in names if "at_once" in self.on or name in VIEWS]
        made = {name: make_view(folder, name, prints) for name in names}
        if engine is not None:
            names = [name for name in SPARK_VIEWS if kind_of(name) in views]
            made |= {name: make_view(folder, name, prints, engine) for name in names}
        self.views = made
        self.jobs = {name: Job(view, log_of(folder, name)) for name, view in made.items()}
        self.jobs["source"] = Job(self.writers.table, self.writers.table.log)
        self.judge = judging.Judge(self.model, made, self.writers.table)
        self.report = Report()

    @property
    def steps(self) -> list[str]:
        return self.writers.steps

    @property
    def writes(self) -> tuple[str, ...]:
        more = {"filters": "update_filter", "compaction": "compact", "restores": "restore"}
        return (*PLAIN_WRITES, *(write for key, write in more.items() if key in self.on))

    def run(self) -> Report:
        for _ in range(STEPS):
            for _ in range(self.chance.randrange(3)):
                self.writers.write(self.writes)
            self.work(self.choose())
        # At the end all is brought up to date by jobs that nobody disturbs.
        self.steps.append("the end")
        for name in self.jobs:
            self.work([name], calm=True)
        self.judge.check_left(self.steps)
        self.report.histories = 1
        return self.report

    def choose(self) -> list[str]:
        names = list(self.jobs)
        if "at_once" in self.on and len(names) > 1 and self.chance.random() < 0.6:
            return self.chance.sample(names, self.chance.randrange(2, len(names) + 1))
        return [self.chance.choice(names)]

    def work(self, names: list[str], calm: bool = False) -> None:
        """Run jobs, at once if there are several, and judge each."""
        plans = {name: (None, None) if calm else self.disturb(name, names[0]) for name in names}
        self.steps.append("; ".join(f"{n} {plans[n][0] or ''}".strip() for n in names))
        begun = {name: self.judge.begin(name) for name in names}
        with ThreadPoolExecutor(len(names)) as threads:
            running = {n: threads.submit(self.run_job, n, *plans[n]) for n in names}
        writing = [name for name in names if (plans[name][0] or "").startswith("writers")]
        for name in names:
            ended = running[name].result()
            disturbed = "" if not writing else "own" if names == writing else "other"
            repeated = self.judge.end(name, begun[name], ended, disturbed)
            self.report.add(ended, repeated)

    def disturb(self, name: str, first: str) -> tuple[str | None, Any]:
        """What happens during a job; only the first of several has writers, for the order."""
        # Calls that Spark's workers make cannot be waited for here.
        needed, here = self.judge.needed_now(name), not on_spark(name)
        if self.chance.random() < CALM:
            return None, None
        chances: list[tuple[str, Any]] = []
        if here and needed and "cancels" in self.on:
            chances.append(("cancel", self.chance.randrange(1, needed + 1)))
        if here and needed and "writers" in self.on and name == first:
            count = self.chance.choice([1, 2, 6])
            at = sorted(self.chance.sample(range(1, needed + 1), min(count, needed)))
            chances.append(("writers", at))
        if here and "kills" in self.on and self.chance.random() < KILLS:
            if needed and self.chance.random() < 0.7:
                dies = {hooks.DIES_AT: str(self.chance.randrange(1, needed + 1))}
            else:
                points = POINTS.get(name, VIEW_POINTS)
                dies = {"PENSTOCK_CRASH_AT": self.chance.choice(points)}
            chances.append(("kill", dies))
        if not chances:
            return None, None
        kind, how = self.chance.choice(chances)
        return f"{kind} {how}", (kind, how)

    def run_job(self, name: str, told: str | None, plan: Any) -> Ended:
        how: Any
        kind, how = plan or ("", None)

        def at_calls(attempt: SoakAttempt) -> dict[int, Callable[[], None]]:
            if kind == "cancel":
                return {how: attempt.cancel}
            if kind == "writers":
                return {at: lambda: self.writers.write(self.writes) for at in how}
            return {}

        return self.jobs[name].run(at_calls, how if kind == "kill" else None)


def run_history(
    folder: Path,
    seed: int,
    ingredients: Collection[str] = INGREDIENTS,
    engine: Engine | None = None,
    views: Collection[str] = KINDS_OF_VIEWS,
) -> Report:
    """Go through one history; raises Failed with all that is needed to do it again."""
    history = History(folder, seed, ingredients, engine, views)
    try:
        return history.run()
    except Exception as error:
        steps = "\n  ".join(history.steps)
        shown = f"{type(error).__name__}: {error}"
        chosen = ",".join(name for name in INGREDIENTS if name in history.on)
        # "" is none of them, where nothing would be all.
        again = f"make soak SEED={seed} ONLY={chosen or 'none'}"
        raise Failed(f"seed {seed}: {shown}\n  {steps}\n  again: {again}") from error
