"""Jobs that were canceled when their work was done, and a second column to fill."""

from typing import Any

import msgspec
import pytest

from penstock.jobs.engine.attempt import JobCanceled
from penstock.jobs.specs import BackfillSpec
from tests.harness.jobs.function_tables import (
    FunctionTable,
    bound_field,
    join,
)
from tests.harness.jobs.held_attempt import HeldAttempt

OTHER = "f" * 32


def canceled(table: FunctionTable, **options: Any) -> HeldAttempt:
    """A job that was canceled when all of it was computed."""

    def cancel() -> None:
        raise JobCanceled

    attempt = HeldAttempt(on_fence=cancel)
    with pytest.raises(JobCanceled):
        table.fill(attempt, **options)
    table.leave(attempt)
    return attempt


def make_other_column(table: FunctionTable) -> FunctionTable:
    """The same table with a second column by the same function."""
    output = msgspec.structs.replace(table.function.outputs[0], column="second")
    function = msgspec.structs.replace(table.function, outputs=(output,))
    table.open().add_columns(bound_field("second", function, OTHER))
    return OtherColumn(table.path, table.catalog, table.engine, function, table.log)


class OtherColumn(FunctionTable):
    def spec(self, branch: str = "", **options: Any) -> BackfillSpec:
        return msgspec.structs.replace(super().spec(branch, **options), binding=OTHER)


def expected(table: FunctionTable) -> dict[int, str]:
    rows = table.open().to_table(columns=["id", "text", "number"]).to_pylist()
    return {row["id"]: join(row["text"], row["number"]) for row in rows}
