"""The rows of one state of a table, or those that some snapshots added, read with pyiceberg.

Metadata may name any file, and whoever may write to a table writes its metadata: only files in the
table's own folders are opened.
"""

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager

import pyarrow as pa
from pydantic import ValidationError
from pyiceberg.expressions import AlwaysTrue
from pyiceberg.io.pyarrow import ArrowScan, PyArrowFile, PyArrowFileIO
from pyiceberg.manifest import DataFile, ManifestContent, ManifestEntryStatus
from pyiceberg.serializers import FromInputFile
from pyiceberg.table import DataScan, FileScanTask
from pyiceberg.table.metadata import TableMetadata

from penstock.errors import Forbidden, InvalidTableState, Unsupported

OPTIONS = {
    "access_key_id": "s3.access-key-id",
    "secret_access_key": "s3.secret-access-key",
    "session_token": "s3.session-token",
    "token": "s3.session-token",
    "region": "s3.region",
    "default_region": "s3.region",
    "endpoint": "s3.endpoint",
    "endpoint_url": "s3.endpoint",
}


class FencedFiles(PyArrowFileIO):
    """Access to files in some folders, and to no others."""

    def __init__(self, folders: Sequence[str], options: Mapping[str, str]) -> None:
        spelled = {name.lower().removeprefix("aws_"): value for name, value in options.items()}
        super().__init__({OPTIONS[name]: v for name, v in spelled.items() if name in OPTIONS})
        self._folders = [self._locate(each) for each in folders if each]

    def new_input(self, location: str) -> PyArrowFile:
        scheme, host, path = self._locate(location)
        inside = (
            (scheme, host) == each[:2] and path.startswith(f"{each[2].rstrip('/')}/")
            for each in self._folders
        )
        if not any(inside) or ".." in path.split("/"):
            raise Forbidden(
                f"the table's metadata names {location[:300]}, which is not in the table's folder",
                detail="write the table anew, with all of its files below its location",
            )
        return super().new_input(location)

    def _locate(self, location: str) -> tuple[str, str, str]:
        """What a location is to whoever opens it, without symbolic links."""
        scheme, host, path = self.parse_location(location)
        return (scheme, host, os.path.realpath(path) if scheme == "file" else path)


class StateReader:
    """Reads a table as one metadata file has it; `snapshots` are the appends to read alone."""

    def __init__(
        self,
        file: str,
        folders: Sequence[str],
        options: Mapping[str, str],
        snapshots: Sequence[int] | None = None,
    ) -> None:
        self._files = FencedFiles(folders, options)
        self._snapshots = snapshots
        with _explained(file):
            self._metadata: TableMetadata = FromInputFile.table_metadata(
                self._files.new_input(file)
            )
            found = self._list_all() if snapshots is None else self._list_added(snapshots)
            # The same in every process that asks.
            self._tasks = sorted(found, key=lambda task: task.file.file_path)

    @property
    def count(self) -> int:
        """How many data files there are."""
        return len(self._tasks)

    def read(self, columns: Sequence[str], part: int, parts: int) -> Iterator[pa.RecordBatch]:
        """The rows of one part of the data files, file by file."""
        schema = self._metadata.schema().select(*columns)
        scan = ArrowScan(self._metadata, self._files, schema, AlwaysTrue())
        for task in self._tasks[part::parts]:
            with _explained(task.file.file_path):
                batches = list(scan.to_record_batches([task]))
            yield from batches

    def _list_all(self) -> list[FileScanTask]:
        return list(DataScan(table_metadata=self._metadata, io=self._files).plan_files())

    def _list_added(self, snapshots: Sequence[int]) -> list[FileScanTask]:
        return [FileScanTask(file) for id in snapshots for file in self._list_files(id)]

    def _list_files(self, id: int) -> Iterator[DataFile]:
        """The data files that an append added."""
        snapshot = self._metadata.snapshot_by_id(id)
        for manifest in () if snapshot is None else snapshot.manifests(self._files):
            # What came later, or was there before, is in manifests of other snapshots.
            if manifest.added_snapshot_id != id or manifest.content != ManifestContent.DATA:
                continue
            for entry in manifest.fetch_manifest_entry(self._files):
                if entry.status == ManifestEntryStatus.ADDED and entry.snapshot_id in (None, id):
                    yield entry.data_file


@contextmanager
def _explained(what: str) -> Iterator[None]:
    try:
        yield
    except FileNotFoundError as error:
        raise InvalidTableState(
            f"{what} is not there any more", detail="refresh again, or restore the file"
        ) from error
    # What pyiceberg does not read yet: equality deletes, files in Avro, newer types.
    except (ValueError, NotImplementedError, ValidationError) as error:
        raise Unsupported(
            f"{what} cannot be read: {str(error).splitlines()[0][:300] if str(error) else error!r}",
            detail="rewrite the table's data files with an engine, without equality deletes",
        ) from error
