"""Rows that come in parts, over several requests, and are committed together.

The parts are files in the table's folder, so that any server can take one. What was completed is
known by a key of its own, recorded with the commit: an upload is committed once.
"""

from dataclasses import replace

from penstock.catalog.catalog import Catalog
from penstock.catalog.data import datasets, rows
from penstock.catalog.data.appends import get_appender
from penstock.catalog.names import idempotency
from penstock.crash import crash_point
from penstock.errors import KeyUsed
from penstock.lance.doors import lance
from penstock.lance.write import part_uploads, uploads
from penstock.lance.write.part_uploads import Parts, Upload
from penstock.lance.write.uploads import ReadableFile, RowStream
from penstock.model.origins import NOBODY, IdempotencyKey, Origin
from penstock.model.tables import Table

OVERWRITE = "overwrite"


async def begin(catalog: Catalog, table: Table, branch: str) -> str:
    """Begin an upload to a branch; returns its id."""
    await datasets.read(catalog, table, branch, None, lambda dataset: None, is_brief=True)
    catalog.visit_later(table, branch)
    return await catalog.lake.run(part_uploads.begin, catalog.lake.place(table.location))


async def add_part(
    catalog: Catalog,
    table: Table,
    branch: str,
    upload: str,
    part: str,
    mode: str,
    source: "ReadableFile | bytes",
) -> tuple[int, int]:
    """Write one part; returns how many rows it has, and the version it was written for."""
    opened = await _open(catalog, table, branch, upload)

    def write(dataset: "lance.LanceDataset") -> tuple[int, int]:
        stream = RowStream(source, catalog.max_batch_bytes)
        base, known = (None, dataset.schema) if mode == OVERWRITE else (dataset, None)
        if base is not None:
            uploads.check_rows(base.schema, stream)
        count = part_uploads.write_part(opened, part, mode, catalog.datasets, stream, base, known)
        return count, dataset.version

    return await datasets.read(catalog, table, branch, None, write)


async def complete(
    catalog: Catalog, table: Table, branch: str, upload: str, origin: Origin = NOBODY
) -> int:
    """Commit all parts; returns the version, also when it was done before."""
    key = IdempotencyKey(f"upload to {table.id}", upload)
    done = await _find_version(catalog, key)
    if done is not None:
        return done
    opened = await _open(catalog, table, branch, upload)
    parts = await catalog.lake.run(part_uploads.list_parts, opened)
    await catalog.lake.run(part_uploads.adopt, opened, parts)
    crash_point("parts adopted")
    keyed = replace(origin, keys=(*origin.keys, key))
    try:
        version = await _commit(catalog, table, branch, parts, keyed)
    except KeyUsed:
        done = await _find_version(catalog, key)
        if done is None:
            raise
        return done
    crash_point("parts committed")
    await catalog.lake.run(part_uploads.discard, opened.place, upload)
    return version


async def abort(catalog: Catalog, table: Table, upload: str) -> None:
    """Give an upload up; nothing happens when there is none."""
    await catalog.lake.run(part_uploads.discard, catalog.lake.place(table.location), upload)


async def _open(catalog: Catalog, table: Table, branch: str, upload: str) -> Upload:
    place = catalog.lake.place(table.location)
    return await catalog.lake.run(part_uploads.open_upload, place, branch, upload)


async def _commit(catalog: Catalog, table: Table, branch: str, parts: Parts, origin: Origin) -> int:
    if parts.mode == OVERWRITE:
        return (await rows.overwrite_with(catalog, table, branch, parts.written, origin)).version
    return (await get_appender(catalog, table, branch).append(parts.written, origin)).version


async def _find_version(catalog: Catalog, key: IdempotencyKey) -> int | None:
    """The version that an upload became."""
    used = await idempotency.find(catalog.database, key)
    return None if used is None else used.notes["version"]
