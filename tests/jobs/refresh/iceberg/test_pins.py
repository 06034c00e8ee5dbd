"""What the first attempt of a refresh chose of an Iceberg table holds for all attempts."""

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from msgspec import structs

from penstock.errors import InvalidRequest, InvalidTableState
from penstock.jobs.refresh.run import run_refresh
from penstock.jobs.spark.tasks import Engine
from penstock.model.views import Appends, CheckedSql, Definition, IcebergState, Source
from tests.harness.data.loose_iceberg import ROWS, make_table
from tests.harness.jobs.held_attempt import HeldAttempt
from tests.harness.views.local_views import LocalView, encode_schema

TYPES = pa.schema([("id", pa.int64())])
DEFINITION = Definition(
    kind="query",
    shape="whole",
    language="spark",
    sources=(
        Source(
            id="i1",
            table=("n", "ice"),
            name="ice",
            reads=("id",),
            types=encode_schema(TYPES),
            fields={"id": 1},
            is_iceberg=True,
        ),
    ),
    sql=CheckedSql("SELECT id FROM ice"),
    schema=encode_schema(TYPES),
    digest="1",
    appends=Appends(is_filtered=False),
)


class Ended(Exception):
    """Ends an attempt."""


def state_of(table: Any, uuid: str = "u") -> dict[str, IcebergState]:
    current = table.current_snapshot()
    snapshot = 0 if current is None else current.snapshot_id
    return {"i1": IcebergState(uuid, snapshot, table.metadata_location, (table.location(),))}


def ids(view: LocalView) -> list[int]:
    return sorted(view.open().to_table()["id"].to_pylist())


def test_a_later_attempt_reads_the_file_that_the_first_one_chose(
    engine: Engine, tmp_path: Path
) -> None:
    table = make_table(f"file://{tmp_path}/ice")
    view = LocalView(tmp_path, DEFINITION, engine).create()
    table.append(ROWS)

    def end() -> None:
        raise Ended

    first = HeldAttempt(on_fence=end)
    with pytest.raises(Ended):
        view.refresh(first, iceberg=state_of(table))
    chosen = state_of(table)["i1"].snapshot
    table.append(ROWS)
    view.refresh(HeldAttempt(job=first.job, number=2), iceberg=state_of(table))
    assert view.watermark is not None
    assert (ids(view), view.watermark.versions) == ([1, 2, 3], {"i1": chosen})
    done = view.refresh(iceberg=state_of(table), verify=True)
    assert (done.mode, ids(view)) == ("incremental", [1, 1, 2, 2, 3, 3])
    assert done.certificate is not None
    assert done.certificate["is_equal"]
    assert done.certificate["source_versions"] == done.source_versions


def test_an_attempt_that_could_not_report_is_verified_at_what_it_read(
    engine: Engine, tmp_path: Path
) -> None:
    table = make_table(f"file://{tmp_path}/ice")
    view = LocalView(tmp_path, DEFINITION, engine).create()
    table.append(ROWS)
    first = HeldAttempt()
    spec = view.spec(iceberg=state_of(table))
    run_refresh(spec, view.catalog, lambda: engine, first)
    table.append(ROWS)
    again = HeldAttempt(job=first.job, number=2)
    done = view.refresh(again, iceberg=state_of(table), verify=True)
    assert done.certificate is not None
    assert (done.certificate["is_equal"], done.certificate["rows"]) == (True, 3)


def test_another_table_makes_a_view_anew_and_another_column_is_refused(
    engine: Engine, tmp_path: Path
) -> None:
    table = make_table(f"file://{tmp_path}/ice")
    table.append(ROWS)
    view = LocalView(tmp_path, DEFINITION, engine).create()
    view.refresh(iceberg=state_of(table))
    done = view.refresh(iceberg=state_of(table, "v"))
    assert (done.mode, ids(view)) == ("full", [1, 2, 3])
    assert "another table" in done.reason
    (source,) = DEFINITION.sources
    other = structs.replace(source, fields={"id": 7})
    view.definition = structs.replace(DEFINITION, sources=(other,))
    with pytest.raises(InvalidRequest, match="column id is another one"):
        view.refresh(iceberg=state_of(table))


def test_a_metadata_file_that_is_gone_is_told(engine: Engine, tmp_path: Path) -> None:
    table = make_table(f"file://{tmp_path}/ice")
    view = LocalView(tmp_path, DEFINITION, engine).create()
    Path(table.metadata_location.removeprefix("file://")).unlink()
    with pytest.raises(InvalidTableState, match="is gone"):
        view.refresh(iceberg=state_of(table))
