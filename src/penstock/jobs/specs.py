"""What jobs are asked for, typed: one spec for each kind, of server and runner alike."""

from msgspec import Struct

from penstock.jobs.backfill.plan import BackfillOptions, Watermark
from penstock.model.functions import Function


class BackfillSpec(Struct, frozen=True, kw_only=True):
    """Which column of which table is filled, and by what: an expression or a function."""

    table: tuple[str, ...]
    column: str
    branch: str = ""
    expression: str | None = None
    inputs: tuple[str, ...]
    where: str | None = None
    read_version: int | None = None
    # How much is done, in which pieces, and whether fresh rows are computed as well.
    num_frags: int | None = None
    task_size: int | None = None
    concurrency: int | None = None
    commit_granularity: int | None = None
    force: bool = False
    watermark: Watermark | None = None
    # For functions: all columns that it fills, and what their backfills left, newest first.
    function: Function | None = None
    columns: tuple[str, ...] = ()
    binding: str = ""
    watermarks: tuple[Watermark, ...] = ()
    errors_only: bool = False
    intra_applier_concurrency: int | None = None
    checkpoint_size: int | None = None
    min_checkpoint_size: int | None = None
    max_checkpoint_size: int | None = None
    batch_checkpoint_flush_interval_seconds: float | None = None

    @property
    def function_identity(self) -> str | None:
        return None if self.function is None else self.function.identity

    @property
    def targets(self) -> tuple[str, ...]:
        """What the columns were called when the job was leased."""
        return self.columns or (self.column,)

    @property
    def known_watermarks(self) -> tuple[Watermark, ...]:
        return self.watermarks or (() if self.watermark is None else (self.watermark,))

    def to_options(self, job: str = "") -> BackfillOptions:
        """What decides the plan of a job; without one it is only asked for."""
        return BackfillOptions(
            expression=self.expression,
            function=self.function_identity,
            binding=self.binding,
            where=self.where,
            num_frags=self.num_frags,
            task_size=self.task_size,
            concurrency=self.concurrency,
            commit_granularity=self.commit_granularity,
            force=self.force,
            job=job,
        )
