"""Files that jobs leave beside a table: data files that no version refers to, and notes."""

from collections.abc import Iterable
from pathlib import Path

import lance


def find_loose(
    root: Path, datasets: Iterable[lance.LanceDataset], files: str, branch: str = ""
) -> set[str]:
    """Data files of a branch, by a pattern, that are in no version of these; and notes of jobs."""
    data = root / (f"tree/{branch}/data" if branch else "data")
    kept = set().union(*(_files_of(dataset) for dataset in datasets))
    left = {path.name for path in data.glob(files)} - kept
    return left | {path.name for path in root.glob("_jobs/**/*")}


def _files_of(newest: lance.LanceDataset) -> set[str]:
    return {
        str(file.path)
        for version in newest.versions()
        for fragment in newest.checkout_version(version["version"]).get_fragments()
        for file in fragment.data_files()
    }
