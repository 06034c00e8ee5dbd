"""Manifests: named Python environments in which jobs run."""

import hashlib
from dataclasses import asdict, dataclass
from typing import Any

import msgspec

from penstock.catalog.catalog import Catalog
from penstock.catalog.names import idempotency
from penstock.database.interface import Row, Transaction
from penstock.errors import (
    InvalidRequest,
    InvalidTableState,
    ManifestAlreadyExists,
    ManifestNotFound,
)
from penstock.model.origins import NOBODY, Origin
from penstock.model.paging import Page, PageRequest, cut_page

COLUMNS = "name, content, checksum, created_at"


@dataclass(frozen=True, slots=True)
class NamedManifest:
    """A named environment; `content` is JSON text, stored as it was sent."""

    name: str
    content: str
    checksum: str
    created_at: int


async def create(
    catalog: Catalog, name: str, content: str, *, overwrite: bool, origin: Origin = NOBODY
) -> NamedManifest:
    check_content(content)
    return await catalog.database.write(_create, name, content, overwrite, origin)


async def get(tx: Transaction, name: str) -> NamedManifest:
    row = await tx.fetch_one(f"SELECT {COLUMNS} FROM manifests WHERE name = $1", name)
    if row is None:
        raise ManifestNotFound(
            f"manifest {name!r} does not exist", detail="create it, or list those there are"
        )
    return _to_manifest(row)


async def list_manifests(catalog: Catalog, page: PageRequest) -> Page[NamedManifest]:
    rows = await catalog.database.fetch(
        f"SELECT {COLUMNS} FROM manifests WHERE name > $1 ORDER BY name LIMIT $2",
        page.after or "",
        page.limit + 1,
    )
    found = [_to_manifest(row) for row in rows]
    return cut_page(page, found, [manifest.name for manifest in found])


async def drop(catalog: Catalog, name: str, origin: Origin = NOBODY) -> NamedManifest:
    return await catalog.database.write(_drop, name, origin)


async def resolve_in(tx: Transaction, given: str | None) -> str | None:
    """Resolve the environment of a request: inline JSON, or the name of a stored one."""
    if given is None or not given.strip():
        return None
    if given.lstrip().startswith("{"):
        return check_content(given)
    try:
        return (await get(tx, given)).content
    except ManifestNotFound as error:
        raise InvalidRequest(error.message, detail="create it, or give it inline as JSON") from None


async def choose_in(tx: Transaction, given: str | None, declared: str | None) -> str | None:
    """The environment of a job: the request's, or else the one its column was declared with.

    The latter is read from the table, which others can write to, so it must have been declared
    here.
    """
    text = await resolve_in(tx, given)
    if text is not None or declared is None:
        return text
    sql = "SELECT 1 FROM environments WHERE sha256 = $1"
    if await tx.fetch_one(sql, _checksum(declared)) is None:
        raise InvalidTableState(
            "the manifest in the column's metadata was not declared here",
            detail="alter the column with the manifest, or name one in the request",
        )
    return declared


async def record_in(tx: Transaction, content: str) -> None:
    """Record an environment that a column is declared with."""
    await tx.fetch(
        "INSERT INTO environments (sha256, created_at) VALUES ($1, now_millis()) "
        "ON CONFLICT DO NOTHING",
        _checksum(content),
    )


def check_content(content: str) -> str:
    """Refuse a manifest with invalid known keys; unknown keys are kept."""
    try:
        found = msgspec.json.decode(content, type=_ManifestContent)
    except (msgspec.MsgspecError, UnicodeError, RecursionError) as error:
        raise InvalidRequest(
            f"the manifest is not right: {error}",
            detail='write {"pip": ["package==1.2"], "env_vars": {"NAME": "value"}}',
        ) from error
    if found.conda or found.conda_environment_path:
        raise InvalidRequest(
            "the manifest has a conda environment, and only those of pip are made",
            detail="name the packages in pip, or start a runner within the environment",
        )
    return content


class _ManifestContent(msgspec.Struct):
    name: str | None = None
    version: str | None = None
    pip: list[str] | None = None
    py_modules: list[str] | None = None
    env_vars: dict[str, str] | None = None
    # Another client's.
    conda: Any = None
    conda_environment_path: Any = None


async def _create(
    tx: Transaction, name: str, content: str, overwrite: bool, origin: Origin
) -> NamedManifest:
    await idempotency.use(tx, origin, "")
    action = (
        "UPDATE SET content = excluded.content, checksum = excluded.checksum, "
        "created_at = excluded.created_at"
        if overwrite
        else "NOTHING"
    )
    row = await tx.fetch_one(
        f"INSERT INTO manifests ({COLUMNS}) VALUES ($1, $2, $3, now_millis()) "
        f"ON CONFLICT (name) DO {action} RETURNING {COLUMNS}",
        name,
        content,
        _checksum(content),
    )
    if row is not None:
        return _to_manifest(row)
    found = await get(tx, name)
    if found.content == content:
        return found
    raise ManifestAlreadyExists(
        f"manifest {name!r} exists already, with other content",
        detail="use mode overwrite, or another name",
    )


async def _drop(tx: Transaction, name: str, origin: Origin) -> NamedManifest:
    found = await get(tx, name)
    # On PostgreSQL, of two concurrent drops the second finds nothing to delete.
    if not await tx.fetch("DELETE FROM manifests WHERE name = $1 RETURNING name", name):
        return await get(tx, name)
    await idempotency.use(tx, origin, "", asdict(found))
    return found


def _checksum(content: str) -> str:
    return hashlib.sha256(content.encode()).hexdigest()


def _to_manifest(row: Row) -> NamedManifest:
    return NamedManifest(*row)
