"""Answer a statement with Lance alone: filter, projection and limit of one table."""

from typing import TYPE_CHECKING, Any

from penstock.catalog.catalog import Catalog
from penstock.catalog.statements.statements import StatementRequest
from penstock.errors import InvalidRequest
from penstock.lance.doors import pa
from penstock.lance.errors import translated
from penstock.lance.read import query, results
from penstock.lance.read.query import Query
from penstock.lance.storage.data_threads import Deadline
from penstock.sql.doors import statements as statements_door

if TYPE_CHECKING:
    from penstock.sql.definitions.statements import LanceCount, LanceStatement


async def check_count(
    catalog: Catalog,
    asked: StatementRequest,
    found: "LanceStatement | LanceCount",
    deadline: Deadline,
) -> None:
    """Refuse a result of too many rows, before any of them is sent."""
    if isinstance(found, statements_door.LanceCount):
        return
    most = _limit(asked, found)
    if most is not None and most <= asked.max_rows:
        return

    def count() -> int:
        with translated():
            return query.count(found.table.open_dataset(), found.rows.filter)

    if min(await catalog.workers.run_until(deadline, count), most or 2**62) > asked.max_rows:
        raise InvalidRequest(
            f"the result has more than {asked.max_rows} rows", detail="add LIMIT, or select less"
        )


async def write_to(
    catalog: Catalog,
    asked: StatementRequest,
    found: "LanceStatement | LanceCount",
    deadline: Deadline,
    write: results.Write,
    sink: Any,
) -> None:
    """Write the rows as a file, as they are found."""

    def work() -> None:
        with translated():
            if isinstance(found, statements_door.LanceCount):
                rows = _count(found, asked.limit)
            else:
                rows = _bound(_search(asked, found), asked.max_bytes)
            write(rows, sink)
            sink.end()

    await catalog.workers.run_until(deadline, work)


def _count(found: "LanceCount", limit: int | None) -> Any:
    count = query.count(found.table.open_dataset(), found.filter)
    return pa.table({found.name: pa.array([count], pa.int64())}).slice(0, limit)


def _search(asked: StatementRequest, found: "LanceStatement") -> Any:
    columns = {column.name: column.expression for column in found.rows.columns}
    names = list(columns)
    if all(column.path is None and not column.reads for column in found.rows.columns):
        # Lance does not scan for constants alone.
        columns["_".join(["", *names, "row"])] = "_rowid"
    wanted = Query(columns=columns, filter=found.rows.filter, k=_limit(asked, found))
    rows = query.search(found.table.open_dataset(), wanted)
    if len(columns) == len(names):
        return rows
    batches = (batch.select(names) for batch in rows)
    schema = pa.schema([rows.schema.field(name) for name in names])
    return pa.RecordBatchReader.from_batches(schema, batches)


def _limit(asked: StatementRequest, found: "LanceStatement") -> int | None:
    given = [each for each in (asked.limit, found.rows.limit) if each is not None]
    return min(given) if given else None


def _bound(rows: Any, max_bytes: int) -> Any:
    """The same rows, and an error when there are too many bytes of them."""

    def batches() -> Any:
        size = 0
        for batch in rows.to_batches() if isinstance(rows, pa.Table) else rows:
            size += batch.nbytes
            if size > max_bytes:
                raise InvalidRequest(
                    f"the result has more than {max_bytes} bytes",
                    detail="add LIMIT, or select less",
                )
            yield batch

    return pa.RecordBatchReader.from_batches(rows.schema, batches())
