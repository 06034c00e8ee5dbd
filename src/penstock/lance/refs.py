"""Tags and branches as Lance stores them: one small file each in the table's folder. Blocks.

They are read and written directly, without opening the dataset: a new tag's file is only put where
there is none, so of two clients that create it at once one is told that it exists.
"""

import contextlib
import os
from datetime import UTC, datetime
from typing import Annotated, Literal, TypeVar
from urllib.parse import quote, unquote

import msgspec
import obstore
from obstore.exceptions import AlreadyExistsError, BaseError, NotFoundError

from penstock.errors import InvalidRequest, InvalidTableState, Unavailable
from penstock.lance.commit.manifest import MAX_VERSION
from penstock.lance.doors import lance
from penstock.lance.errors import translated
from penstock.lance.storage import files
from penstock.lance.storage.lake import Place
from penstock.model.branches import check_branch, check_tag

TAGS, BRANCHES = "_refs/tags", "_refs/branches"
# Tags of backfills, which keep versions to compare rows with; they do not block anyone.
OUR_TAGS = "penstock-backfill-"
# A branch below another one is in its folder, and must not take one of these names there.
FOLDERS = {"_versions", "_transactions", "_deletions", "_indices", "_refs", "data", "tree"}

Count = Annotated[int, msgspec.Meta(ge=0, le=MAX_VERSION)]


class Tag(msgspec.Struct, rename="camel"):
    """What the file of a tag holds."""

    version: Count
    branch: str | None = None
    manifest_size: Count = 0
    created_at: str | None = None
    updated_at: str | None = None
    metadata: dict[str, str] | None = None


class Branch(msgspec.Struct, rename="camel"):
    """The parts of a branch's file that matter here."""

    parent_version: Count
    parent_branch: str | None = None
    create_at: Count = 0
    manifest_size: Count = 0
    metadata: dict[str, str] | None = None


R = TypeVar("R", Tag, Branch)

_encoder = msgspec.json.Encoder()
_tag = msgspec.json.Decoder(Tag)
_branch = msgspec.json.Decoder(Branch)


def check_new_tag(name: str) -> str:
    """Check a new tag's name, by Lance's rules."""
    return _check_ref("tag", check_tag(name), name.startswith(".") or name.endswith("."))


def check_new_branch(name: str) -> str:
    """Check a new branch's name, by Lance's rules, and that its files cannot mix with another's."""
    branch = check_branch(name)
    if not branch:
        raise InvalidRequest("branch 'main' is always there", detail="choose another name")
    return _check_ref("branch", branch, bool(FOLDERS & set(branch.split("/")[1:])))


def list_names(place: Place, folder: str) -> list[str]:
    """The names of all tags or of all branches, sorted."""
    entries = files.list_folder(place, folder)
    return sorted(unquote(e.name[:-5]) for e in entries if e.name.endswith(".json"))


def find_tag(place: Place, name: str) -> Tag | None:
    return _find(place, _path(TAGS, name), _tag)


def find_branch(place: Place, name: str) -> Branch | None:
    return _find(place, _path(BRANCHES, name), _branch)


def create_tag(place: Place, name: str, tag: Tag) -> bool:
    """Write a new tag; False, and nothing changed, when the name is taken."""
    now = _now()
    tag.created_at, tag.updated_at, tag.metadata = now, now, {}
    return _put(place, _path(TAGS, name), tag, "create")


def update_tag(place: Place, name: str, tag: Tag) -> None:
    """Point a tag elsewhere."""
    tag.updated_at = _now()
    _put(place, _path(TAGS, name), tag, "overwrite")


def delete_tag(place: Place, name: str) -> None:
    files.remove(place, _path(TAGS, name))


def delete_branch(place: Place, name: str) -> None:
    """Remove a branch's file, then everything it wrote; branches below it keep their files."""
    for tag in _list_tags(place, name):
        if tag.startswith(OUR_TAGS):
            delete_tag(place, tag)
    files.remove(place, _path(BRANCHES, name))
    below = [f"tree/{n}/" for n in list_names(place, BRANCHES) if n.startswith(f"{name}/")]
    for path in _list_all(place, f"tree/{name}"):
        if not path.startswith(tuple(below)):
            files.remove(place, path)
    if place.is_local:
        for folder, _, _ in os.walk(place.file(f"tree/{name}"), topdown=False):
            with contextlib.suppress(OSError):
                os.rmdir(folder)


def hold_version(dataset: "lance.LanceDataset", tag: str, branch: str, version: int) -> None:
    """Protect a version from clean-ups with a tag of ours; never moves the tag to an earlier one.

    Only this tag is read: others come and go with their jobs.
    """
    reference = (branch or None, version)
    with translated():
        try:
            dataset.tags.create(tag, reference)
        except ValueError as error:
            if "already exists" not in str(error):
                raise
            if dataset.tags.get_version(tag) < version:
                dataset.tags.update(tag, reference)


def restore(dataset: "lance.LanceDataset", version: int) -> int:
    """Commit an old version's content as this branch's newest; returns the new number."""
    old = dataset.checkout_version(version)
    old.restore()  # type: ignore[no-untyped-call]
    return old.version


def find_references(place: Place, branch: str) -> list[str]:
    """The tags and branches that need a branch's files."""
    tags = [name for name in _list_tags(place, branch) if not name.startswith(OUR_TAGS)]
    return [f"tag {name}" for name in tags] + [
        f"branch {name}"
        for name in list_names(place, BRANCHES)
        if (other := find_branch(place, name)) is not None and other.parent_branch == branch
    ]


def _list_tags(place: Place, branch: str) -> list[str]:
    """The tags of a branch's versions."""
    return [
        name
        for name in list_names(place, TAGS)
        if (tag := find_tag(place, name)) is not None and tag.branch == branch
    ]


def _check_ref(kind: str, name: str, is_bad: bool) -> str:
    if is_bad or ".." in name or name.endswith(".lock"):
        raise InvalidRequest(
            f"{kind} {name!r} is not a legal name",
            detail="it has no '..', no dot at either end, does not end with '.lock', and is "
            "not named like one of Lance's own folders",
        )
    return name


def _find(place: Place, path: str, decoder: msgspec.json.Decoder[R]) -> R | None:
    try:
        return decoder.decode(files.read(place, path))
    except FileNotFoundError:
        return None
    except msgspec.MsgspecError as error:
        raise InvalidTableState(
            f"the file {path} of the table at {place.location} is damaged: {error}",
            detail="delete it and create it again",
        ) from error


def _path(folder: str, name: str) -> str:
    return f"{folder}/{quote(name, safe='')}.json"


def _put(place: Place, path: str, tag: Tag, mode: Literal["create", "overwrite"]) -> bool:
    try:
        obstore.put(place.store, f"{place.key}/{path}", _encoder.encode(tag), mode=mode)
    except AlreadyExistsError:
        return False
    except (BaseError, OSError) as error:
        raise _failed(place, error) from error
    # If it is deleted or its table dropped right now, that comes after: it was there.
    with contextlib.suppress(FileNotFoundError):
        files.make_durable(place, path, with_parents=True)
    return True


def _list_all(place: Place, folder: str) -> list[str]:
    """All files below a folder, relative to the table."""
    prefix = f"{place.key}/{folder}/"
    try:
        pages = list(obstore.list(place.store, prefix))
    except (NotFoundError, FileNotFoundError):
        return []
    except (BaseError, OSError) as error:
        raise _failed(place, error) from error
    return [meta["path"][len(place.key) + 1 :] for page in pages for meta in page]


def _failed(place: Place, error: Exception) -> Unavailable:
    return Unavailable(
        f"storage at {place.location} failed: {str(error).splitlines()[0]}",
        detail="check that the store can be reached and written by the server",
    )


def _now() -> str:
    return datetime.now(UTC).isoformat().replace("+00:00", "Z")
