"""Staged manifests: files that a client wrote and asks the catalog to make a version of."""

from dataclasses import dataclass

from penstock.errors import InvalidRequest
from penstock.lance.commit.manifest import (
    FOOTER,
    SCHEMES,
    BadManifest,
    Manifest,
    check_footer,
    manifest_name,
    parse_manifest,
    parse_name,
    versions_folder,
)
from penstock.lance.session.bases import find_foreign
from penstock.lance.storage import files
from penstock.lance.storage.lake import Place
from penstock.model.branches import show_branch
from penstock.model.tables import TableVersion

# A manifest of this size is read faster than it is handed to a thread.
SMALL_MANIFEST_BYTES = 65_536


@dataclass(frozen=True, slots=True)
class NewVersion:
    """A version that a client requests, as requested."""

    branch: str
    version: int
    manifest_path: str
    manifest_size: int | None = None
    e_tag: str | None = None
    metadata: dict[str, str] | None = None
    naming_scheme: str | None = None


@dataclass(frozen=True, slots=True)
class StagedManifest:
    """A checked staged manifest; without content when the file is gone.

    `is_taken`: storage already has this version, under either of its names.
    """

    version: TableVersion
    content: bytes | None
    is_taken: bool = False


def check_staged(place: Place, new: NewVersion) -> StagedManifest:
    """Read the staged manifest and refuse anything but this table's new version; blocks."""
    path = files.relative_path(place, new.manifest_path)
    folder, name = versions_folder(new.branch), path.rpartition("/")[2]
    final = f"{folder}/{manifest_name(new.version, _scheme(new.naming_scheme, name))}"
    if parse_name(name) and path != final:
        raise InvalidRequest(
            f"manifest_path {new.manifest_path!r} is the final name of a version",
            detail="stage the manifest under a name of its own, as the Lance SDK does",
        )
    try:
        size = files.get_size(place, path)
        _check_size(new, size)
        if size > SMALL_MANIFEST_BYTES:
            # Checked before all of it is read: it may be someone's large data file.
            check_footer(files.read_end(place, path, size, FOOTER.size), size)
        content = files.read(place, path)
        manifest = parse_manifest(content)
    except FileNotFoundError:
        # A repeated request: the first one has moved the file.
        return StagedManifest(_record(new, final, path, new.manifest_size or 0, None), None)
    except BadManifest as error:
        raise InvalidRequest(
            f"manifest_path {new.manifest_path!r} is not a Lance manifest: {error}",
            detail="stage the manifest that the Lance SDK wrote",
        ) from error
    _check_content(new, manifest)
    _check_bases(place, new, manifest)
    record = _record(new, final, path, len(content), manifest)
    others = [f"{folder}/{manifest_name(new.version, scheme)}" for scheme in SCHEMES]
    is_taken = any(files.exists(place, other) for other in others if other != path)
    return StagedManifest(record, content, is_taken)


def discard(place: Place, version: TableVersion) -> None:
    """Remove a useless staged manifest, never one under its final name; blocks."""
    if version.staged_path != version.manifest_path:
        files.remove(place, version.staged_path)


def _check_size(new: NewVersion, size: int) -> None:
    if new.manifest_size is not None and new.manifest_size != size:
        raise InvalidRequest(
            f"manifest_size is {new.manifest_size}, the file {new.manifest_path!r} "
            f"has {size} bytes",
            detail="write the manifest completely before creating the version",
        )


def _check_content(new: NewVersion, manifest: Manifest) -> None:
    if manifest.version != new.version:
        raise InvalidRequest(
            f"version is {new.version}, the manifest at {new.manifest_path!r} is of version "
            f"{manifest.version}",
            detail="ask for the version that the manifest holds",
        )
    if manifest.branch != new.branch:
        raise InvalidRequest(
            f"branch is {show_branch(new.branch)}, the manifest at {new.manifest_path!r} is of "
            f"branch {show_branch(manifest.branch)}",
            detail="ask for the branch that the manifest was written for",
        )


def _check_bases(place: Place, new: NewVersion, manifest: Manifest) -> None:
    if manifest.bases and (found := find_foreign(place.location, manifest.bases)) is not None:
        raise InvalidRequest(
            f"the manifest at {new.manifest_path!r} refers to files at {found!r}",
            detail="commit versions whose files are all in the table's own folder",
        )


def _scheme(wanted: str | None, name: str) -> str:
    if wanted is None:
        named = parse_name(name.partition(".manifest")[0] + ".manifest")
        return named[1] if named else "V2"
    if wanted.upper() not in SCHEMES:
        raise InvalidRequest(
            f"naming_scheme {wanted!r} is unknown", detail="use one of " + ", ".join(SCHEMES)
        )
    return wanted.upper()


def _record(
    new: NewVersion, final: str, staged: str, size: int, manifest: Manifest | None
) -> TableVersion:
    return TableVersion(
        version=new.version,
        manifest_path=final,
        manifest_size=size,
        timestamp_millis=manifest.timestamp_millis if manifest else 0,
        e_tag=new.e_tag,
        metadata=new.metadata or {},
        staged_path=staged,
        settled=False,
        transaction_id=manifest.transaction_id if manifest else "",
    )
