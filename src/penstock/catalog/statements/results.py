"""Results of statements that runners sent, kept in the lake until the caller has them.

The runner may talk to another server than the caller, so a result is a file that every server of
the catalog can read. The server that answers the caller removes it; maintenance removes what a
crash left.
"""

import time
from typing import Any

from penstock.catalog.catalog import Catalog
from penstock.errors import Unavailable
from penstock.lance.doors import pa
from penstock.lance.read import results
from penstock.lance.storage import files, scratch
from penstock.lance.storage.data_threads import Deadline
from penstock.lance.storage.lake import RESULTS, Place
from penstock.model.locations import join

# A stream has headers that the limit of a result does not count.
HEADER_BYTES = 16 * 1024 * 1024


async def store(catalog: Catalog, id: str, source: Any, max_bytes: int) -> None:
    """Keep what a runner sends as the result of a job; replaces what it sent before."""
    most = max_bytes + HEADER_BYTES
    await catalog.workers.run(scratch.write, _place(catalog), _name(id), source, most)


async def write_to(
    catalog: Catalog,
    id: str,
    sink: Any,
    deadline: Deadline,
    write: results.Write = results.write_file,
) -> None:
    """Write a result as a file, batch by batch, and remove it."""
    place = _place(catalog)

    def copy() -> None:
        with scratch.read(place, _name(id)) as file:
            write(pa.ipc.open_stream(file), sink)
        sink.end()

    try:
        await catalog.workers.run_until(deadline, copy)
    except FileNotFoundError as error:
        raise Unavailable("the result is gone", detail="ask again") from error
    finally:
        await remove(catalog, id)


async def remove(catalog: Catalog, id: str) -> None:
    """Remove a result, if there is one."""
    await catalog.lake.run(files.remove, _place(catalog), _name(id))


async def sweep(catalog: Catalog) -> int:
    """Remove results that nobody took; returns how many."""
    before = int((time.time() - catalog.staged_seconds) * 1000)
    return await catalog.lake.run(scratch.sweep, _place(catalog), before)


def _place(catalog: Catalog) -> Place:
    return catalog.lake.place(join(catalog.lake.root, RESULTS))


def _name(id: str) -> str:
    return f"{id}.arrow"
