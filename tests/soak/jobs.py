"""Jobs of a history, run as a runner runs them: attempts, cancels, deaths, and what they leave."""

import os
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from msgspec import json

from penstock.jobs.engine.attempt import JobCanceled, is_passing
from penstock.jobs.specs import KINDS, JobSpec, RefreshSpec, decode_spec
from tests.harness.data.calls import take_calls
from tests.harness.jobs.function_tables import FunctionTable
from tests.harness.jobs.held_attempt import HeldAttempt
from tests.harness.jobs.local_engine import LOCAL_ENGINE, FolderLake
from tests.harness.root import ROOT
from tests.harness.views.local_views import LocalView
from tests.soak import hooks
from tests.soak.model import Line

MAX_ATTEMPTS = 3
CHECKPOINT = 4
# How many tasks `LOCAL_ENGINE` has; a partition is a checkpoint of its own.
TASKS = LOCAL_ENGINE.slots
SEEN_SECONDS = 5
KNOBS: dict[str, Any] = {"checkpoint_size": CHECKPOINT, "max_checkpoint_size": CHECKPOINT}
BACKFILL = KNOBS | {"batch_checkpoint_flush_interval_seconds": 0}
# Refreshes take what they know of.
REFRESH = {key: value for key, value in BACKFILL.items() if key in RefreshSpec.__struct_fields__}


class SoakAttempt(HeldAttempt):
    """An attempt that somebody may cancel."""

    def __init__(self, job: str | None = None, number: int = 1) -> None:
        super().__init__(number=number)
        self.job = job or self.job
        self.canceled, self.seen = threading.Event(), threading.Event()

    def check(self) -> None:
        if self.canceled.is_set():
            self.seen.set()
            raise JobCanceled

    fence = check

    def cancel(self) -> None:
        """Cancel it, and go on once it was heard, as a function does that takes its time."""
        self.canceled.set()
        self.seen.wait(SEEN_SECONDS)


@dataclass
class Ended:
    """How a job ended: its result, or None when it was canceled; and the calls that it made."""

    result: Any
    calls: Counter[Line]
    # How often work was cut off, after which calls in flight may be made again.
    cuts: int = 0
    lost: list[str] = field(default_factory=list)


@dataclass
class Job:
    """One job of the source's column or of a view."""

    target: FunctionTable | LocalView
    log: Path
    options: dict[str, Any] = field(default_factory=dict)

    @property
    def name(self) -> str:
        return "source" if isinstance(self.target, FunctionTable) else self.target.name

    def run(
        self,
        at_calls: Callable[[SoakAttempt], dict[int, Callable[[], None]]] = lambda _: {},
        dies: dict[str, str] | None = None,
    ) -> Ended:
        """Run it to its end; raises what made it fail."""
        attempt = SoakAttempt()
        cuts, lost = 0, []
        if dies:
            cuts += self._die(attempt, dies)
            attempt = SoakAttempt(attempt.job, 2)
        while True:
            hooks.plan(str(self.log), at_calls(attempt))
            try:
                result = self._work(attempt)
                break
            except JobCanceled:
                self._sweep_canceled(attempt)
                result = None
                cuts += 1
                break
            except Exception as error:
                if attempt.number >= MAX_ATTEMPTS + bool(dies) or not is_passing(error):
                    raise
                lost.append(f"{self.name}: {type(error).__name__}: {error}")
                attempt = SoakAttempt(attempt.job, attempt.number + 1)
                cuts += 1
            finally:
                hooks.plan(str(self.log), {})
        return Ended(result, self._take_calls(), cuts, lost)

    def _work(self, attempt: SoakAttempt) -> Any:
        if isinstance(self.target, FunctionTable):
            return self.target.fill(attempt, **BACKFILL, **self.options)
        return self.target.refresh(attempt, **REFRESH, **self.options)

    def _sweep_canceled(self, attempt: SoakAttempt) -> None:
        """What a runner does after a cancel: leave what the next job needs, if it knows how to."""
        kind = "backfill" if isinstance(self.target, FunctionTable) else "refresh"
        recipe = KINDS[kind].load_recipe()
        end = recipe.leave or recipe.sweep
        end(self.target.spec(), self.target.catalog, attempt.job, attempt.number)

    def _die(self, attempt: SoakAttempt, environ: dict[str, str]) -> int:
        """The first attempt in a process of its own, which may die; how often it did."""
        if isinstance(self.target, FunctionTable):
            kind, place = "backfill", self.target.path.parent
            spec: JobSpec = self.target.spec(**BACKFILL, **self.options)
        else:
            kind, place = "refresh", self.target.folder
            spec = self.target.spec(**REFRESH, **self.options)
        done = subprocess.run(
            [sys.executable, "-m", "tests.soak.jobs", kind, str(place), attempt.job],
            input=json.encode(spec).decode(),
            text=True,
            cwd=ROOT,
            env={**os.environ, **environ},
            capture_output=True,
            check=False,
        )
        assert done.returncode in (0, -9), done.stderr
        return int(done.returncode != 0)

    def _take_calls(self) -> Counter[Line]:
        return Counter(take_calls(self.log))


def main() -> None:
    """Run the first attempt of a job, in a process that is told when to die."""
    kind, place, job = sys.argv[1:]
    spec, attempt = decode_spec(kind, sys.stdin.read()), HeldAttempt(job=job)
    recipe = KINDS[kind].load_recipe()
    recipe.run(spec, FolderLake(Path(place)), lambda: LOCAL_ENGINE, attempt)


if __name__ == "__main__":
    main()
