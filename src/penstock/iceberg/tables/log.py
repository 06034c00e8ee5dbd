"""The log of earlier metadata files, and which of them may be deleted."""

from penstock.iceberg.checks import strip_slash
from penstock.iceberg.files import METADATA_PATH
from penstock.iceberg.metadata import Json
from penstock.iceberg.tables.document import properties
from penstock.iceberg.tables.properties import deletes_after_commit, previous_versions_max

_KEY = "metadata-log"
_ENDINGS = (".metadata.json", ".metadata.json.gz")


def with_log(
    document: Json, previous: Json | None, previous_location: str | None
) -> tuple[Json, list[str]]:
    """The document that follows a metadata file, and the files that its log does not have any more.

    They are named only when the table's properties say that they are to be deleted.
    """
    if previous is None or previous_location is None:
        return document, []
    entry = {"timestamp-ms": previous["last-updated-ms"], "metadata-file": previous_location}
    log = [*document.get(_KEY, ()), entry]
    limit = previous_versions_max(properties(document))
    gone, kept = log[:-limit], log[-limit:]
    return {**document, _KEY: kept}, _list_deletable(document, gone, kept)


def _list_deletable(document: Json, gone: list[Json], kept: list[Json]) -> list[str]:
    """Of files that are gone from the log, those in the table's own folders."""
    if not deletes_after_commit(properties(document)):
        return []
    # A table that was registered brings a log that somebody else wrote.
    own = (document["location"], properties(document).get(METADATA_PATH))
    folders = tuple(f"{strip_slash(each)}/" for each in own if each)
    needed = {each["metadata-file"] for each in kept}
    return [
        path
        for path in dict.fromkeys(each["metadata-file"] for each in gone)
        if path not in needed
        and path.startswith(folders)
        and path.endswith(_ENDINGS)
        and ".." not in path.split("/")
    ]
