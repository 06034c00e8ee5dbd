"""Missing or damaged files of a table: detect them, and name them in errors. Blocks."""

import os
import re
from collections.abc import Iterator

from penstock.errors import DamagedFile
from penstock.lance.commit.manifest import FOOTER, MAGIC, BadManifest, check_footer, parse_manifest
from penstock.lance.doors import lance
from penstock.lance.storage import files
from penstock.lance.storage.lake import Place
from penstock.model.branches import show_branch
from penstock.model.tables import TableVersion

# A manifest of this size is read whole; of a larger one only the end.
SMALL_MANIFEST_BYTES = 65_536
# How many files to check to find the damaged one.
MAX_FILES = 10_000
NO_FILE = re.compile(r"Not found: (\S*?(?:data|_deletions|_indices)/[^\s,]+)")
DAMAGE = re.compile(
    r"invalid magic|file size is too small|not contain correct footer|file is too small"
    r"|does not appear to be a Lance file|Invalid (postscript|footer)|file footer"
)
ENDS = {".lance": MAGIC, ".arrow": b"ARROW1", ".idx": MAGIC}
RESTORE = "restore it from a backup, or restore the table to a version that does not need it"
REMEDIES = {
    "_indices": "drop the index and create it again, or restore the file from a backup",
    "_versions": "restore it from a backup; without one, move the file away, and the version "
    "before it is the newest",
}


def check_manifest(place: Place, branch: str, version: TableVersion) -> None:
    """Raise when a version's manifest is not the file that the catalog knows."""
    try:
        if why := _find_fault(place, branch, version):
            raise bad_manifest(place, branch, version, why)
    except FileNotFoundError:
        raise bad_manifest(place, branch, version, "it is missing") from None


def bad_manifest(place: Place, branch: str, version: TableVersion, why: str) -> DamagedFile:
    """The error for a manifest that is not right."""
    return DamagedFile(
        f"the manifest {place.location}/{version.manifest_path} of version {version.version} on "
        f"branch {show_branch(branch)} is damaged: {why}",
        detail=REMEDIES["_versions"],
    )


def _find_fault(place: Place, branch: str, version: TableVersion) -> str:
    path, known = version.manifest_path, version.manifest_size
    size = files.get_size(place, path)
    if known and size != known:
        return f"it has {size} bytes, and had {known}"
    try:
        if size > SMALL_MANIFEST_BYTES:
            check_footer(files.read_end(place, path, size, FOOTER.size), size)
            return ""
        found = parse_manifest(files.read(place, path))
    except BadManifest as error:
        return str(error)
    if (found.version, found.branch) != (version.version, branch):
        return f"it is of version {found.version} on branch {show_branch(found.branch)}"
    # An adopted version has no transaction on record.
    if version.transaction_id and found.transaction_id != version.transaction_id:
        return "it is of another commit than was recorded, perhaps of another table"
    return ""


def find_damage(text: str) -> DamagedFile | None:
    """What Lance's error says about a missing or damaged file; None when it says nothing."""
    if found := NO_FILE.search(text):
        return DamagedFile(f"the file {found[1]} is missing", detail=_remedy(found[1]))
    if DAMAGE.search(text):
        return DamagedFile("a file of the table is damaged", detail=RESTORE)
    return None


def name_file(place: Place, dataset: "lance.LanceDataset", error: DamagedFile) -> DamagedFile:
    """Add the file's name to the error, if checking the version's files finds it."""
    if "/" in error.message or not place.is_local:
        return error
    for path in _list_files(place, dataset):
        if why := _find_damage_of(path):
            return DamagedFile(f"the file {path} is damaged: {why}", detail=_remedy(path))
    return error


def _list_files(place: Place, dataset: "lance.LanceDataset") -> Iterator[str]:
    root = str(dataset.uri).removeprefix("file://")
    root = root if os.path.isdir(root) else place.location
    count = 0
    for fragment in dataset.get_fragments():
        names = [f"data/{file.path}" for file in fragment.data_files() if file.base_id is None]
        if (deletions := fragment.deletion_file()) is not None:
            names.append(deletions)
        for name in names:
            count += 1
            if count > MAX_FILES:
                return
            yield os.path.join(root, name)
    for path, _ in files.list_below(place, "_indices"):
        yield place.file(path)


def _find_damage_of(path: str) -> str:
    try:
        with open(path, "rb", buffering=0) as file:
            start = file.read(16)
            file.seek(0, os.SEEK_END)
            file.seek(max(0, file.tell() - 16))
            end = file.read(16)
    except OSError as error:
        return error.strerror or "it cannot be read"
    wanted = ENDS.get(os.path.splitext(path)[1])
    if not any(start) and not any(end):
        return "it is empty" if not start else "it is full of zeros"
    return "its end is missing" if wanted and not end.rstrip(b"\0").endswith(wanted) else ""


def _remedy(path: str) -> str:
    return next((text for part, text in REMEDIES.items() if f"/{part}/" in f"/{path}"), RESTORE)
